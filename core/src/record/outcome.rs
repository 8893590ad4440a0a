//! The outcome of a whole run.

use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::event::SIGNAL;
use super::fold::{CheckView, RunView};
use crate::claims::ClaimId;
use crate::config::Waiver;
use crate::facts::PoolName;
use crate::plan::Disposition;
use crate::verdict::{
    Concluded, Reason, Verdict, WaiverState, Weight, waiver_of, waiver_state, weigh,
};

/// The outcome of a run; each has a process exit code.
#[derive(Clone, Copy, Debug, Deserialize, Eq, IntoStaticStr, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "lowercase")]
pub enum Exit {
    /// Every check that has to be observed has a conclusive verdict, and none speaks against the cluster.
    Conformant,
    /// At least one check speaks against the cluster and is not waived.
    #[strum(serialize = "not conformant")]
    NotConformant,
    /// No check speaks against the cluster, but some are inconclusive or unobserved, or objects are left.
    #[strum(serialize = "could not tell")]
    CouldNotTell,
    /// There was nothing to check.
    #[strum(serialize = "nothing selected")]
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
        self.into()
    }
}

/// The number of checks by verdict, and what else decides the outcome.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Tally {
    counts: BTreeMap<Verdict, usize>,
    /// Checks with a conclusive verdict; without any the run says nothing about the cluster.
    pub told: usize,
    /// Checks without a verdict: the run was killed before it.
    pub unfinished: usize,
    /// Checks whose attempts disagreed.
    pub flaky: usize,
    /// Checks that speak against the cluster and are not waived.
    pub against: usize,
    /// Checks that speak against the cluster and are waived.
    pub waived: usize,
    /// Claims of which at least one check should have been observed and was not.
    pub untested: BTreeSet<ClaimId>,
    /// The same claims, by reason and, where the reason concerns one, by pool or kind of node.
    pub untested_where: BTreeMap<(String, Option<String>), BTreeSet<ClaimId>>,
}

impl Tally {
    /// Counts a run's verdicts.
    pub fn from_view(view: &RunView) -> Self {
        let mut tally = Self::default();
        for check in view.checks.values() {
            let Some(conclusion) = &check.conclusion else {
                tally.unfinished += 1;
                let why = "the run ended before it gave a verdict".to_owned();
                tally.leave(check, why, None);
                continue;
            };
            *tally.counts.entry(conclusion.verdict).or_default() += 1;
            tally.flaky += usize::from(conclusion.flaky);
            tally.told += usize::from(conclusion.verdict.is_conclusive());
            match (view.weight(check), view.waiver(check)) {
                (Some(Weight::Against), None) => tally.against += 1,
                (Some(Weight::Against), Some(_)) => tally.waived += 1,
                (Some(Weight::For | Weight::Nothing) | None, _) => {}
            }
            match (&check.planned.disposition, &conclusion.reason) {
                (Disposition::Skip(reason), _) | (_, Reason::Skipped(reason))
                    if !reason.is_legitimate() =>
                {
                    tally.leave(check, reason.to_string(), reason.place());
                }
                (Disposition::Skip(_), _) | (_, Reason::Skipped(_)) => {}
                _ if conclusion.verdict == Verdict::Skip => {
                    tally.leave(check, "it was skipped".to_owned(), None);
                }
                _ => {}
            }
        }
        tally
    }

    fn leave(&mut self, check: &CheckView, reason: String, place: Option<&str>) {
        let pool = check.planned.point.pool.as_ref();
        let place = place.or(pool.map(PoolName::as_str)).map(str::to_owned);
        let claim = &check.planned.claim;
        self.untested.insert(claim.clone());
        let claims = self.untested_where.entry((reason, place)).or_default();
        claims.insert(claim.clone());
    }

    /// How many checks have this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.counts.get(&verdict).copied().unwrap_or_default()
    }
}

/// The outcome of a run. It is never conformant with objects left, which may change what the next run sees.
pub fn exit(view: &RunView) -> Exit {
    let tally = Tally::from_view(view);
    let left = match &view.torn_down {
        // Objects that the user wanted to stay leave nothing in doubt
        Some(torn) => !(view.kept || torn.left.is_empty()) || !torn.errors.is_empty(),
        // Without a tear-down every announced object may still be there
        None => !view.intents.is_empty(),
    };
    if view.interrupted.as_deref() == Some(SIGNAL) {
        Exit::Interrupted
    } else if !view.planned {
        Exit::CouldNotTell
    } else if view.checks.is_empty() {
        Exit::NothingSelected
    } else if tally.against > 0 {
        Exit::NotConformant
    } else if view.interrupted.is_some()
        || tally.told == 0
        || tally.count(Verdict::Inconclusive) > 0
        || tally.unfinished > 0
        || !tally.untested.is_empty()
        || left
    {
        Exit::CouldNotTell
    } else {
        Exit::Conformant
    }
}

impl RunView {
    /// The day on which the run began, in UTC: it decides whether a waiver applies or has expired.
    pub fn day(&self) -> Date {
        self.began.to_zoned(TimeZone::UTC).date()
    }

    /// The weight of a check's conclusion under the run's profile; `None` without a conclusion.
    pub fn weight(&self, check: &CheckView) -> Option<Weight> {
        let conclusion = check.conclusion.as_ref()?;
        Some(weigh(conclusion, self.started.profile))
    }

    /// The waiver that keeps a check from speaking against the cluster.
    pub fn waiver(&self, check: &CheckView) -> Option<&Waiver> {
        waiver_of(&self.started.waivers, self.concluded(check), self.day())
    }

    /// Every waiver with its state.
    pub fn waivers(&self) -> Vec<(&Waiver, WaiverState)> {
        let day = self.day();
        let state = |waiver| {
            let checks = self.checks.values().map(|check| self.concluded(check));
            waiver_state(waiver, checks, day)
        };
        let waivers = self.started.waivers.iter();
        waivers.map(|waiver| (waiver, state(waiver))).collect()
    }

    fn concluded<'c>(&self, check: &'c CheckView) -> Concluded<'c> {
        Concluded {
            id: check.planned.id.as_str(),
            weight: self.weight(check),
        }
    }
}
