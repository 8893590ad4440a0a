//! The test method `preemption`: whether the scheduler removes one of our pods for another of ours with a
//! higher priority, as the scheduler's events say.
//!
//! A missing pod with the other in its place would prove nothing: somebody else may have deleted it.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::placement::before_preemption;
use crate::fixture::{FixtureName, Need};
use crate::method::error::{ErrorKind, Result};
use crate::method::place::Bound;
use crate::method::prepared::Prepared;
use crate::method::{Assertion, Comparison, Difference, Method, Test, Traits};
use crate::text::printable;

/// The scheduler removes the pod with the lower priority.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PreemptionExpectation;

impl fmt::Display for PreemptionExpectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the pod of lower priority is preempted")
    }
}

/// The scheduler's messages.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct PreemptionObservation {
    /// About the victim: that it was preempted.
    pub preempted: Option<String>,
    /// About the preemptor: that it finds nothing to preempt, though only the victim is in its way.
    pub refused: Option<String>,
}

/// The test method `preemption`, which is about the pods `victim` and `preemptor` in
/// `manifests/sched/preemption.yaml`.
#[derive(Clone, Debug)]
pub enum Preemption {}

impl Method for Preemption {
    type Query = ();
    type Expectation = PreemptionExpectation;
    type Observation = PreemptionObservation;

    const TEST: fn(Assertion<Self>) -> Test = Test::Preemption;

    fn prepare<'a>((): &'a (), at: &Bound<'a>) -> Result<Prepared<'a, PreemptionObservation>> {
        let namespace = &at.ready.namespace;
        let path = format!("/api/v1/namespaces/{namespace}/events");
        let pool = at.pool_word();
        Ok(Prepared::list(path, move |events| Ok(read(pool, events))))
    }

    fn needs((): &()) -> Vec<(FixtureName, Need)> {
        [FixtureName::NAMESPACES, FixtureName::SCHED_PREEMPTION]
            .map(|name| (name, Need::Ready))
            .into()
    }

    fn traits((): &(), _: &PreemptionExpectation) -> Traits {
        Traits {
            converges: true,
            ..Traits::default()
        }
    }

    fn compare(
        expectation: &PreemptionExpectation,
        seen: &PreemptionObservation,
    ) -> Result<Comparison> {
        let difference = |seen: &String| Difference::between(expectation, seen.clone());
        match (&seen.preempted, &seen.refused) {
            (Some(words), _) => Ok(Comparison::Met(difference(words))),
            (None, Some(words)) => Ok(Comparison::NotMet(difference(words))),
            (None, None) => Err(ErrorKind::UnrecognisedOutput
                .error("no event of the scheduler says whether it preempts")),
        }
    }
}

fn read(pool: &str, events: &[Json]) -> PreemptionObservation {
    let [victim, preemptor] = ["victim", "preemptor"].map(|pod| format!("{pod}-{pool}"));
    let said = |pod: &str, reason: &str| {
        let of = |event: &&Json| {
            event["reason"] == reason
                && event["involvedObject"]["kind"] == "Pod"
                && event["involvedObject"]["name"] == *pod
        };
        let messages = events.iter().filter(of).map(|event| &event["message"]);
        messages.filter_map(Json::as_str).collect::<Vec<_>>()
    };
    let preempted = said(&victim, "Preempted");
    let failed = said(&preemptor, "FailedScheduling");
    let refused = failed.iter().find(|message| finds_nothing(message));
    PreemptionObservation {
        preempted: preempted.first().map(|words| printable(words)),
        refused: refused.map(|words| printable(words)),
    }
}

/// Whether the scheduler says that the victim keeps the preemptor off a node, and that it still finds nothing
/// to preempt (kubernetes `interpodaffinity`, `ErrReasonAntiAffinityRulesNotMatch`; `defaultpreemption`:
/// `PodEligibleToPreemptOthers`, `SelectVictimsOnNode`).
fn finds_nothing(message: &str) -> bool {
    let why = before_preemption(message);
    let preemption = &message[why.len()..];
    let none = ["not eligible due to", "No preemption victims found"];
    why.contains("node(s) didn't match pod anti-affinity rules")
        && none.iter().any(|words| preemption.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{PoolName, WindowsBuild};
    use crate::method::{ApiReply, ReadyFixtures, Reply};
    use serde_json::json;

    // kube-scheduler 1.37.0
    const AFFINITY: &str = "0/3 nodes are available: 1 node(s) didn't match Pod's node \
        affinity/selector, 2 node(s) didn't match pod affinity rules. preemption: 0/3 nodes are \
        available: 3 Preemption is not helpful for scheduling.";
    const FOUND: &str = "0/3 nodes are available: 1 node(s) didn't match Pod's node \
        affinity/selector, 1 node(s) didn't match pod affinity rules, 1 node(s) didn't match pod \
        anti-affinity rules. preemption: found a potential placement for pod on node win-b, \
        preempting 1 victims";
    const PREEMPTED: &str = "Preempted by pod 688f3a78-a4a7-4411-9333-6987e46a427c on node win-b";
    const NEVER: &str = "0/3 nodes are available: 1 node(s) didn't match pod anti-affinity rules, 2 \
        node(s) didn't match pod affinity rules. preemption: not eligible due to \
        preemptionPolicy=Never.";
    // Of 1.34 and newer, where claims of devices are
    const CLAIMS: &str = "0/3 nodes are available: 1 node(s) didn't match pod anti-affinity rules, 2 \
        node(s) didn't match pod affinity rules. no new claims to deallocate, preemption: not \
        eligible due to preemptionPolicy=Never.";

    fn compared(events: &[(&str, &str, &str)]) -> &'static str {
        let ready = ReadyFixtures::default();
        let pool = PoolName::windows(WindowsBuild::SERVER_2022);
        let at = Bound {
            pool: Some(&pool),
            ..Bound::to_ready(&ready)
        };
        let event = |(pod, reason, message): &(&str, &str, &str)| {
            json!({"reason": reason, "message": message,
                "involvedObject": {"kind": "Pod", "name": pod}})
        };
        let items: Vec<_> = events.iter().map(event).collect();
        let body = json!({"items": items});
        let reply = Reply::Api(ApiReply { status: 200, body });
        let seen = Preemption::prepare(&(), &at).and_then(|prepared| prepared.read(&reply));
        let seen = seen.expect("read");
        match Preemption::compare(&PreemptionExpectation, &seen) {
            Ok(Comparison::Met(_)) => "met",
            Ok(Comparison::NotMet(_)) => "not-met",
            Ok(_) => "else",
            Err(error) => error.kind.as_str(),
        }
    }

    #[test]
    fn only_the_schedulers_own_word_counts() {
        let (victim, preemptor) = ("victim-windows-2022", "preemptor-windows-2022");
        let (first, found) = (
            (preemptor, "FailedScheduling", AFFINITY),
            (preemptor, "FailedScheduling", FOUND),
        );
        let done = (victim, "Preempted", PREEMPTED);
        assert_eq!(compared(&[first, found, done]), "met");
        for never in [NEVER, CLAIMS] {
            let never = (preemptor, "FailedScheduling", never);
            assert_eq!(compared(&[first, never]), "not-met");
            assert_eq!(compared(&[never, done]), "met");
        }
        // About another pool's victim, or that the preemptor waits for the witness
        let other = ("victim-windows-2019", "Preempted", PREEMPTED);
        for untold in [
            &[][..],
            &[first],
            &[first, found],
            &[other],
            &[
                (victim, "Killing", "Stopping container main"),
                (preemptor, "Scheduled", "Successfully assigned"),
            ],
        ] {
            assert_eq!(compared(untold), "unrecognised-output", "{untold:?}");
        }
    }

    #[test]
    fn what_is_expected_has_words() {
        let words = "the pod of lower priority is preempted";
        assert_eq!(PreemptionExpectation.to_string(), words);
    }
}
