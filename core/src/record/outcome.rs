//! What a run came to as a whole.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::fold::RunView;
use crate::claims::ClaimId;
use crate::plan::Fate;
use crate::verdict::{Because, SkipReason, Verdict};

/// What a run came to; each has a process exit code.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Exit {
    /// Everything that was to be told was told, and nothing failed.
    Conformant,
    /// Something failed.
    NotConformant,
    /// Nothing failed, but something could not be told.
    CouldNotTell,
    /// There was nothing to check.
    NothingSelected,
    /// A signal ended it.
    Interrupted,
}

impl Exit {
    /// The process exit code.
    pub fn code(self) -> u8 {
        match self {
            Self::Conformant => 0,
            Self::NotConformant => 10,
            Self::CouldNotTell => 11,
            Self::NothingSelected => 12,
            Self::Interrupted => 130,
        }
    }

    /// The outcome in words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Conformant => "conformant",
            Self::NotConformant => "not conformant",
            Self::CouldNotTell => "could not tell",
            Self::NothingSelected => "nothing selected",
            Self::Interrupted => "interrupted",
        }
    }
}

/// How many checks came to which verdict.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Tally {
    counts: BTreeMap<Verdict, usize>,
    /// Checks without a verdict: the run was killed before.
    pub unfinished: usize,
    /// Checks whose attempts disagreed.
    pub flaky: usize,
    /// Claims of which at least one check should have been looked at and was not.
    pub untested: BTreeSet<ClaimId>,
}

impl Tally {
    /// Counts a run's verdicts.
    pub fn of(view: &RunView) -> Self {
        let mut tally = Self::default();
        for check in view.checks.values() {
            let Some(conclusion) = &check.conclusion else {
                tally.unfinished += 1;
                tally.untested.insert(check.planned.claim.clone());
                continue;
            };
            *tally.counts.entry(conclusion.verdict).or_default() += 1;
            tally.flaky += usize::from(conclusion.flaky);
            let legitimate = match (&check.planned.fate, &conclusion.because) {
                (Fate::Skip(reason), _) | (_, Because::Skipped(reason)) => {
                    SkipReason::is_legitimate(reason)
                }
                _ => conclusion.verdict != Verdict::Skip,
            };
            if !legitimate {
                tally.untested.insert(check.planned.claim.clone());
            }
        }
        tally
    }

    /// How many checks came to a verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.counts.get(&verdict).copied().unwrap_or_default()
    }
}

/// What a run came to. Objects left behind leave it untold: what stays of one run may change
/// what the next one sees.
pub fn exit(view: &RunView) -> Exit {
    let tally = Tally::of(view);
    let left = match &view.torn_down {
        Some(torn) => !torn.left.is_empty() || !torn.troubles.is_empty(),
        // What was announced and never torn down is there still, for all that is known
        None => !view.intents.is_empty(),
    };
    if view.interrupted.is_some() {
        Exit::Interrupted
    } else if !view.planned {
        Exit::CouldNotTell
    } else if view.checks.is_empty() {
        Exit::NothingSelected
    } else if tally.count(Verdict::Fail) > 0 {
        Exit::NotConformant
    } else if tally.count(Verdict::Broken) > 0
        || tally.unfinished > 0
        || !tally.untested.is_empty()
        || left
    {
        Exit::CouldNotTell
    } else {
        Exit::Conformant
    }
}
