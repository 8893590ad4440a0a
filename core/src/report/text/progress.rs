//! The lines that a run prints while it goes on.

use std::collections::BTreeMap;

use super::ending::objects;
use super::layout::{fit, pad};
use super::summary::seconds;
use super::terminal::VERDICT;
use crate::claims::ClaimId;
use crate::plan::CheckId;
use crate::record::{Event, FixtureOutcome, Line};
use crate::report::findings::finding::{in_words, reason_line};
use crate::text::{counted, printable};
use crate::verdict::{Conclusion, Verdict};

/// Columns of a reason in a line of progress.
const WIDTH: usize = 120;

/// Reports a run while it goes on. It reports expected verdicts once per claim.
#[derive(Debug, Default)]
pub struct Progress {
    claims: BTreeMap<CheckId, ClaimId>,
    open: BTreeMap<ClaimId, Open>,
}

/// A claim with checks that have no verdict yet.
#[derive(Debug, Default)]
struct Open {
    without_verdict: usize,
    as_expected: BTreeMap<Verdict, Vec<CheckId>>,
}

impl Progress {
    /// The lines about an event, each without its newline.
    pub fn tell(&mut self, line: &Line) -> Vec<String> {
        match &line.event {
            Event::Plan(checks) => {
                for check in checks {
                    self.claims.insert(check.id.clone(), check.claim.clone());
                    self.open
                        .entry(check.claim.clone())
                        .or_default()
                        .without_verdict += 1;
                }
                vec![format!(
                    "planned            {}",
                    counted(checks.len(), "check")
                )]
            }
            Event::Fixture {
                key,
                outcome,
                took_ms,
            } => {
                let (key, took) = (printable(&key.to_string()), seconds(*took_ms));
                vec![match outcome {
                    FixtureOutcome::Ready(_) => format!("ready              {key} after {took}"),
                    FixtureOutcome::Failed(error) => {
                        let error = fit(&in_words(error), WIDTH);
                        format!("failed             {key} after {took}: {error}")
                    }
                }]
            }
            Event::Unoffered(image) => {
                vec![format!(
                    "warning            {}",
                    printable(&image.to_string())
                )]
            }
            Event::Waits { holder } => vec![format!(
                "waiting            to see whether `{}`, which holds the Lease, is dead",
                printable(holder)
            )],
            Event::Verdict { check, conclusion } => self.verdict(check, conclusion),
            Event::Interrupted { by } => {
                let by = printable(by);
                vec![format!("interrupted        by {by}: tearing down")]
            }
            Event::Deadline { .. } => {
                vec!["deadline           has come: tearing down".to_owned()]
            }
            Event::Resumed { run, checks } => vec![format!(
                "resumed            run {}: {} settled",
                printable(run),
                counted(*checks, "check")
            )],
            Event::Repetition { number } => vec![format!("repetition         {number}")],
            Event::Kept => vec!["kept               what was created stays".to_owned()],
            Event::TornDown(torn) => {
                let removed = objects(torn.removed.len());
                vec![match torn.left.len() {
                    _ if torn.unlisted => {
                        format!("torn down          {removed} removed, others may be left")
                    }
                    0 => format!("torn down          {removed} removed"),
                    left => format!("torn down          {removed} removed, {left} left"),
                }]
            }
            Event::RunStarted(_)
            | Event::Facts(_)
            | Event::LeftOut(_)
            | Event::Intent(_)
            | Event::Attempt(_)
            | Event::Curl(_)
            | Event::Span(_)
            | Event::Diagnosis(_)
            | Event::RunEnded(_) => Vec::new(),
        }
    }

    fn verdict(&mut self, check: &CheckId, conclusion: &Conclusion) -> Vec<String> {
        let mut lines = Vec::new();
        let verdict = conclusion.verdict;
        let told_alone = !verdict.is_expected() || conclusion.flaky;
        if told_alone {
            let flaky = if conclusion.flaky { " (flaky)" } else { "" };
            let word = pad(verdict.as_str(), VERDICT);
            let mut line = format!("{word}{}{flaky}", printable(check.as_str()));
            if !verdict.is_expected() {
                let reason = reason_line(verdict, Some(&conclusion.reason));
                line.push_str(": ");
                line.push_str(&fit(&reason, WIDTH));
            }
            lines.push(line);
        }
        let Some(claim) = self.claims.get(check) else {
            return lines;
        };
        let Some(open) = self.open.get_mut(claim) else {
            return lines;
        };
        open.without_verdict = open.without_verdict.saturating_sub(1);
        if !told_alone {
            open.as_expected
                .entry(verdict)
                .or_default()
                .push(check.clone());
        }
        if open.without_verdict == 0 {
            for (verdict, checks) in std::mem::take(&mut open.as_expected) {
                let what = match checks.as_slice() {
                    [only] => printable(only.as_str()),
                    many => format!("{claim} ({})", counted(many.len(), "check")),
                };
                lines.push(format!("{}{what}", pad(verdict.as_str(), VERDICT)));
            }
        }
        lines
    }
}
