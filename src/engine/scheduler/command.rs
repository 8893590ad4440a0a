//! The messages between dispatcher and executor.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value as Json;
use winconform_core::fixture::FixtureKey;
use winconform_core::method::{Evaluated, ObservationError, Reply, Result, SourceKind, VantageKey};
use winconform_core::plan::{CheckId, PlannedAssertion};
use winconform_core::record::{AssertionRecord, Attempted};
use winconform_core::verdict::{Conclusion, SkipReason};

use super::room::Load;

/// One assertion of one check, by their places in the plan.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) struct AssertionIx {
    pub(crate) check: usize,
    /// 0 is the check's own assertion, then come its controls.
    pub(crate) assertion: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct AssertionOutcome {
    pub(crate) reply: Option<Reply>,
    /// The observation with its comparison, or why there is none.
    pub(crate) evaluated: Result<Evaluated>,
}

impl AssertionOutcome {
    /// The outcome of an assertion that has no reply.
    pub(crate) fn lost(error: ObservationError) -> Self {
        Self {
            reply: None,
            evaluated: Err(error),
        }
    }

    pub(crate) fn holds(&self) -> bool {
        let evaluated = self.evaluated.as_ref();
        evaluated.is_ok_and(|evaluated| evaluated.comparison.holds())
    }

    pub(crate) fn into_record(self, planned: &PlannedAssertion) -> AssertionRecord {
        let (observation, comparison, error) = match self.evaluated {
            Ok(seen) => (Some(seen.observation), Some(seen.comparison), None),
            Err(error) => (None, None, Some(error)),
        };
        AssertionRecord {
            name: planned.name.clone(),
            role: planned.role,
            reply: self.reply,
            observation,
            comparison,
            error,
        }
    }

    /// Its requests that none of our pods answered.
    fn unanswered(&self) -> impl Iterator<Item = &Json> {
        let evaluated = self.evaluated.as_ref().ok();
        let targets = evaluated.and_then(|evaluated| evaluated.observation["targets"].as_array());
        let targets = targets.into_iter().flatten();
        targets.filter(|target| target["by"].is_null())
    }

    /// Whether there is a request that none of our pods answered.
    pub(crate) fn lacks_an_answer(&self) -> bool {
        self.unanswered().next().is_some()
    }

    /// Whether every unanswered request was refused. A pod without a readiness probe, such as the published
    /// win-webserver, is Ready before it listens, and refuses until then. For a request from outside, a proxy
    /// on the way may report that by 502 or 503 (RFC 9110, 15.6).
    pub(crate) fn is_refused_alone(&self, from: Option<&VantageKey>) -> bool {
        let is_outside = from.is_some_and(|from| from.kind == SourceKind::Outside);
        let refused = |target: &Json| {
            let class = target["answer"]["failed"]["class"].as_str();
            let status = target["answer"]["answered"]["status"].as_u64();
            class.is_some_and(|class| ["refused", "not-connected"].contains(&class))
                || is_outside && status.is_some_and(|status| [502, 503].contains(&status))
        };
        self.lacks_an_answer() && self.unanswered().all(refused)
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Input {
    /// The run begins.
    Started,
    Ready(FixtureKey),
    /// All pods of a fixture are Ready, which is not ready before they have stayed so.
    PodsReady(FixtureKey),
    /// The scheduler has bound these pods of a fixture to Windows nodes, which the run had left to it.
    Bound(FixtureKey, BTreeMap<String, Load>),
    /// The removal of a fixture's pods is over; whether they are gone from their nodes.
    Removed(FixtureKey, bool),
    /// A fixture is not ready, or somebody else deleted or replaced one that was ready or had failed.
    Failed(FixtureKey, ObservationError),
    /// An API request is done.
    Asked(AssertionIx, AssertionOutcome),
    /// The outcome of an assertion after the liveness of the nodes on which it failed was checked.
    Confirmed(AssertionIx, AssertionOutcome),
    /// An exec session is done.
    SessionReplies(VantageKey, Vec<(AssertionIx, AssertionOutcome)>),
    /// The time asked for by [`Command::WakeAt`] has come.
    Woken,
    /// No new work; open checks are skipped for this reason.
    Stop(SkipReason),
}

#[derive(Clone, Debug)]
pub(crate) enum Command {
    /// Apply a fixture, and report when it is ready or why it is not.
    Apply(FixtureKey),
    /// Remove the pods of a fixture, which nothing observes any more.
    Remove {
        key: FixtureKey,
        /// Diagnose them before, for these failed checks.
        diagnose: Option<Vec<CheckId>>,
    },
    /// Send an API request for an assertion.
    Observe(AssertionIx),
    /// Observe from a vantage point, all in one session.
    ExecSession(VantageKey, Vec<AssertionIx>),
    /// Check the liveness of the nodes on which an assertion failed: failures on a silent node do not count.
    Confirm(AssertionIx, AssertionOutcome),
    /// Report when this time since the start has come.
    WakeAt(Duration),
    /// Write into the record that this repetition begins.
    Repeat(u32),
    /// Write into the record an attempt that began this long after the start.
    Attempted(Attempted, Duration),
    /// Write a verdict into the record.
    Conclude(usize, Conclusion),
    /// End whatever is under way, then remove everything: always the last command.
    TearDown,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use winconform_core::method::Comparison;

    #[test]
    fn a_proxy_tells_outside_alone_by_a_status_that_nobody_listens() {
        let outcome = |answer: Json| AssertionOutcome {
            reply: None,
            evaluated: Ok(Evaluated {
                observation: json!({"targets": [{"answer": answer}]}),
                comparison: Comparison::NotApplicable(String::new()),
            }),
        };
        let from = |kind| VantageKey {
            kind,
            pool: None,
            node: None,
        };
        let seen = |answer: Json| {
            let outcome = outcome(answer);
            [SourceKind::Outside, SourceKind::LinuxPod]
                .map(|kind| outcome.is_refused_alone(Some(&from(kind))))
        };
        assert_eq!(seen(json!({"answered": {"status": 502}})), [true, false]);
        assert_eq!(seen(json!({"answered": {"status": 503}})), [true, false]);
        assert_eq!(seen(json!({"answered": {"status": 500}})), [false, false]);
        assert_eq!(seen(json!({"failed": {"class": "refused"}})), [true, true]);
    }
}
