//! The result of a test, from the verdict of its check.

use std::collections::BTreeMap;

use libtest_mimic::{Completion, Failed};
use serde::{Deserialize, Serialize};
use winconform_core::record::{CheckView, RunView, Tally};
use winconform_core::report::ci::harmless;
use winconform_core::report::{alone, terminal::Colour};
use winconform_core::text::printable;
use winconform_core::verdict::{Reason, Verdict};

/// The test of the run itself, whose exit code knows more than the checks, such as what was left behind.
pub(crate) const THE_RUN: &str = "the-run";
/// Columns of a finding.
const WIDTH: usize = 100;

#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) enum Outcome {
    Passes,
    /// With the reason.
    Skipped(String),
    /// With the finding.
    Fails(String),
}

impl Outcome {
    /// Counts a check as the exit code of its run does.
    pub(crate) fn of(view: &RunView, check: &CheckView) -> Self {
        let tally = Tally::from_view(&RunView {
            started: view.started.clone(),
            began: view.began,
            checks: BTreeMap::from([(0, check.clone())]),
            ..RunView::default()
        });
        let finding = || {
            let id = check.planned.id.as_str();
            harmless(&alone::check(view, id, WIDTH, Colour::Never).unwrap_or_default())
        };
        let is_told = tally.count(Verdict::Inconclusive) + tally.unfinished == 0;
        match check.reason() {
            _ if tally.against > 0 => Self::Fails(finding()),
            _ if !is_told || !tally.untested.is_empty() => Self::untold(&finding()),
            Some(Reason::Skipped(reason)) => Self::Skipped(printable(&reason.to_string())),
            _ => Self::Passes,
        }
    }

    pub(crate) fn untold(why: &str) -> Self {
        Self::Fails(format!("could not be told\n{why}"))
    }

    pub(crate) fn into_result(self) -> Result<Completion, Failed> {
        match self {
            Self::Passes => Ok(Completion::Completed),
            Self::Skipped(reason) => Ok(Completion::ignored_with(reason)),
            Self::Fails(finding) => Err(finding.into()),
        }
    }
}
