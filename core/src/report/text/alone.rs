//! One check of a run: its finding, and what each attempt saw.

use std::fmt::Write as _;

use super::page::Page;
use super::style::Style;
use super::summary::seconds;
use super::terminal::{Colour, Detail};
use crate::claims::Pattern;
use crate::method::{Comparison, Difference};
use crate::plan::CheckId;
use crate::record::{AssertionRecord, CheckView, RunView, Tried};
use crate::report::findings::finding::{UNFINISHED, in_words, word};
use crate::report::findings::outcomes::Outcomes;
use crate::text::{counted, printable};

/// Columns of what attempts saw, where it is no terminal that shows it.
const WIDTH: usize = 110;

/// Renders one check of a run with the raw replies of its attempts, for a terminal of `width` columns; `None` if the
/// run has no such check. Foreign text comes out without control characters.
pub fn check(view: &RunView, id: &str, width: usize, colour: Colour) -> Option<String> {
    let mut checks = view.checks.values();
    let check = checks.find(|check| check.planned.id.as_str() == id)?;
    let mut page = Page::new(width, colour, Detail::Full);
    page.finding(view, &Outcomes::from_view(view), check, &[]);
    if check.conclusion.is_none() {
        let cut = "the record ends before this check was concluded: the run was killed";
        page.field(
            4,
            "because",
            if view.ended.is_none() {
                cut
            } else {
                UNFINISHED
            },
        );
    }
    page.attempts(check);
    Some(page.text.trim_start_matches('\n').to_owned())
}

/// What each attempt of a check saw, for a page of its own. Foreign text comes out without control characters.
pub(crate) fn attempts(check: &CheckView) -> String {
    let mut page = Page::new(WIDTH, Colour::Never, Detail::Full);
    page.attempts(check);
    page.text.trim_start_matches('\n').to_owned()
}

/// The ids of a run's checks that a pattern covers, or that begin with a text.
pub fn like<'v>(view: &'v RunView, text: &str) -> Vec<&'v CheckId> {
    let pattern = Pattern::parse(text).ok();
    let is_like = |id: &&CheckId| {
        let id = id.as_str();
        id.starts_with(text) || pattern.as_ref().is_some_and(|it| it.covers(id))
    };
    let checks = view.checks.values().map(|check| &check.planned.id);
    checks.filter(is_like).collect()
}

impl Page {
    fn attempts(&mut self, check: &CheckView) {
        for attempt in &check.attempts {
            self.blank();
            let rounds = counted(usize::try_from(attempt.rounds).unwrap_or_default(), "round");
            let mut title = format!("attempt {}, {rounds}", attempt.number);
            if let Some(Tried { began, took_ms }) = attempt.tried {
                let _ = write!(title, ", began {began:.0}, took {}", seconds(took_ms));
            }
            let verdict = Some(attempt.verdict);
            self.entry(word(verdict), Style::for_verdict(verdict), &title);
            for assertion in &attempt.assertions {
                self.assertion(assertion);
            }
        }
        if check.unkept > 0 {
            self.blank();
            let more = counted(check.unkept, "attempt");
            self.line(&format!("  and {more} between these with the same verdict"));
        }
    }

    fn assertion(&mut self, assertion: &AssertionRecord) {
        let AssertionRecord {
            name,
            reply,
            comparison,
            error,
            ..
        } = assertion;
        let told = |holds: &str, difference: &Difference| {
            let Difference { expected, seen } = difference;
            let (expected, seen) = (printable(expected), printable(seen));
            format!("{holds}: expected {expected}, saw {seen}")
        };
        let seen = match (comparison, error) {
            (_, Some(error)) => in_words(error),
            (Some(Comparison::Met(difference)), None) => told("holds", difference),
            (Some(Comparison::NotMet(difference)), None) => told("does not hold", difference),
            (Some(Comparison::Unexpected(difference)), None) => told("unexpected", difference),
            (Some(Comparison::NotApplicable(reason)), None) => printable(reason),
            (None, None) => "not observed".to_owned(),
        };
        self.field(4, &printable(name), &seen);
        if let Some(reply) = reply {
            let reply = serde_json::to_string(reply).unwrap_or_default();
            self.field(4, "reply", &printable(&reply));
        }
    }
}
