//! The lines that a run prints while it goes on.

use jiff::Timestamp;

use super::layout::{fit, pad};
use super::summary::seconds;
use super::terminal::{Detail, VERDICT};
use crate::plan::CheckId;
use crate::record::{Event, FixtureOutcome, Line};
use crate::report::findings::finding::{in_words, reason_line};
use crate::text::{counted, printable};
use crate::verdict::{Conclusion, Verdict};

/// Columns of a reason in a line of progress.
const WIDTH: usize = 120;

/// The most failed fixtures, odd images and verdicts that a line of progress names; the report has the others.
const TOLD: usize = 10;
/// The first that none names.
const FIRST_LEFT_OUT: usize = TOLD + 1;

/// Reports a run while it goes on. In short: each tenth of the checks, and the first things that no healthy cluster
/// has; in full: each fixture and each verdict.
#[derive(Debug)]
pub struct Progress {
    detail: Detail,
    /// Whether lines that are drawn again and again tell how far the run is.
    drawn: bool,
    began: Option<Timestamp>,
    planned: usize,
    concluded: usize,
    told: usize,
}

impl Progress {
    pub fn new(detail: Detail, drawn: bool) -> Self {
        Self {
            detail,
            drawn,
            began: None,
            planned: 0,
            concluded: 0,
            told: 0,
        }
    }

    /// The lines about an event, each without its newline.
    pub fn tell(&mut self, line: &Line) -> Vec<String> {
        self.began.get_or_insert(line.at);
        match &line.event {
            Event::Plan(checks) => {
                self.planned = checks.len();
                let of = counted(checks.len(), "check");
                self.count(format!("planned            {of}"))
            }
            Event::Fixture {
                key,
                outcome,
                took_ms,
            } => {
                let (key, took) = (printable(&key.to_string()), seconds(*took_ms));
                match outcome {
                    FixtureOutcome::Failed(error) => {
                        let error = fit(&in_words(error), WIDTH);
                        self.odd(format!("failed             {key} after {took}: {error}"))
                    }
                    FixtureOutcome::Ready(_) if self.detail == Detail::Full => {
                        vec![format!("ready              {key} after {took}")]
                    }
                    FixtureOutcome::Ready(_) => Vec::new(),
                }
            }
            Event::Unoffered(image) => {
                let image = printable(&image.to_string());
                self.odd(format!("warning            {image}"))
            }
            Event::Waits { holder } => vec![format!(
                "waiting            to see whether `{}`, which holds the Lease, is dead",
                printable(holder)
            )],
            Event::Verdict { check, conclusion } => self.verdict(line.at, check, conclusion),
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
                let removed = counted(torn.removed.len(), "object");
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

    /// A line about how far the run is, unless others tell that.
    fn count(&self, line: String) -> Vec<String> {
        match self.drawn {
            true => Vec::new(),
            false => vec![line],
        }
    }

    /// A line about what no healthy cluster gives, unless there were many.
    fn odd(&mut self, line: String) -> Vec<String> {
        self.told += 1;
        match self.told {
            _ if self.detail == Detail::Full => vec![line],
            ..=TOLD => vec![line],
            FIRST_LEFT_OUT => vec![format!("{}more, which the report tells", pad("", VERDICT))],
            _ => Vec::new(),
        }
    }

    fn verdict(&mut self, at: Timestamp, check: &CheckId, conclusion: &Conclusion) -> Vec<String> {
        let verdict = conclusion.verdict;
        let flaky = if conclusion.flaky { " (flaky)" } else { "" };
        let word = pad(verdict.as_str(), VERDICT);
        let mut line = format!("{word}{}{flaky}", printable(check.as_str()));
        if !verdict.is_expected() {
            let reason = reason_line(verdict, Some(&conclusion.reason));
            line.push_str(": ");
            line.push_str(&fit(&reason, WIDTH));
        }
        let is_calm = verdict.is_expected() || verdict == Verdict::Warn;
        let mut lines = match (is_calm && !conclusion.flaky, self.detail) {
            (true, Detail::Short) => Vec::new(),
            (true, Detail::Full) => vec![line],
            (false, _) => self.odd(line),
        };
        let tenths = |count: usize| count.saturating_mul(10).checked_div(self.planned);
        let before = tenths(self.concluded);
        self.concluded += 1;
        if tenths(self.concluded) > before {
            let took = self
                .began
                .map_or(0, |began| at.duration_since(began).as_millis());
            let took = seconds(u64::try_from(took).unwrap_or_default());
            let of = counted(self.planned, "check");
            let line = format!("observed           {} of {of} after {took}", self.concluded);
            lines.extend(self.count(line));
        }
        lines
    }
}
