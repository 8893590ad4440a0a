//! The test method `placement`: where the scheduler bound one of our pods, or why it did not, and whether the
//! pod started there.
//!
//! Only the scheduler's words decide on a pending pod, never how long it waits; a later observation shows
//! whether another scheduler binds it.

mod pod;
mod said;
mod start;
mod tolerate;

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use strum::{IntoStaticStr, VariantArray};

pub use pod::PlacedPod;
pub(super) use said::before_preemption;
pub use said::{KeptOff, Said};
pub use start::{NEVER_RAN, NO_IMAGE, NOT_CREATED, PREPARING, Start};

use self::tolerate::has_untolerated;
use crate::facts::{NodeFact, Os, WindowsBuild};
use crate::fixture::{FixtureName, Need};
use crate::method::error::{ErrorKind, ObservationError, Result};
use crate::method::failure::{Hindrance, Signature, StartFailure, one_of};
use crate::method::place::Bound;
use crate::method::prepared::Prepared;
use crate::method::{Assertion, Comparison, Difference, Method, Test, Traits};
use crate::text::printable;

/// Where a pod should be.
#[derive(Clone, Copy, Debug, Eq, IntoStaticStr, PartialEq, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Ground {
    /// On a node of the point's pool.
    Pool,
    /// On a node of the point's pool that has a taint; a node without one proves nothing.
    TaintedPool,
    Linux,
}

crate::text::words!(Ground);

#[derive(Clone, Debug, Eq, PartialEq)]
pub enum PlacementExpectation {
    /// The scheduler binds it there.
    Placed(Ground),
    /// The scheduler binds it nowhere, for this reason.
    Pending(Hindrance),
    /// All its containers start.
    Starts,
    /// One of its containers does not start, for one of these reasons.
    NotStarted(BTreeSet<StartFailure>),
}

impl fmt::Display for PlacementExpectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Placed(Ground::Pool | Ground::TaintedPool) => "bound to a node of the pool",
            Self::Placed(Ground::Linux) => "bound to a Linux node",
            Self::Pending(Hindrance::UntoleratedTaint) => {
                "kept Pending by a taint that it does not tolerate"
            }
            Self::Pending(Hindrance::InsufficientCpu) => "kept Pending by too little CPU left",
            Self::Pending(Hindrance::InsufficientMemory) => {
                "kept Pending by too little memory left"
            }
            Self::Pending(Hindrance::InsufficientHugePages) => "kept Pending by no huge page left",
            Self::Pending(Hindrance::Selector | Hindrance::Other) => "kept Pending",
            Self::Starts => "all its containers start",
            Self::NotStarted(classes) => {
                return write!(f, "a container does not start: {}", one_of(classes));
            }
        })
    }
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Whereabouts {
    On {
        node: String,
        /// Its operating system.
        os: Os,
        build: Option<WindowsBuild>,
        /// Whether it has a taint that keeps pods away.
        tainted: bool,
        /// Whether it has one that the pod does not tolerate.
        untolerated: bool,
    },
    /// The scheduler finds no node for it, for these reasons.
    Pending(Said),
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct PlacementObservation {
    pub whereabouts: Whereabouts,
    pub start: Start,
    /// The build of the point's pool.
    pub pool: Option<WindowsBuild>,
    /// How many nodes of the pool the run uses.
    pub pool_nodes: usize,
    /// How many of them have a taint that the pod does not tolerate.
    pub untolerated_nodes: usize,
    /// How many nodes the cluster had when the run began.
    pub nodes: usize,
}

/// The test method `placement`. A query is the pod of the point's pool.
#[derive(Clone, Debug)]
pub enum Placement {}

impl Method for Placement {
    type Query = PlacedPod;
    type Expectation = PlacementExpectation;
    type Observation = PlacementObservation;

    const TEST: fn(Assertion<Self>) -> Test = Test::Placement;

    fn prepare<'a>(
        pod: &'a PlacedPod,
        at: &Bound<'a>,
    ) -> Result<Prepared<'a, PlacementObservation>> {
        let path = at.path_of("pods", pod.fixture().as_str());
        let at = *at;
        Ok(Prepared::list(path, move |pods| read(*pod, &at, pods)))
    }

    fn needs(pod: &PlacedPod) -> Vec<(FixtureName, Need)> {
        [FixtureName::NAMESPACES, pod.fixture()]
            .map(|name| (name, Need::Ready))
            .into()
    }

    fn traits(_: &PlacedPod, expectation: &PlacementExpectation) -> Traits {
        Traits {
            converges: true,
            // Another scheduler may bind what one finds no node for
            must_last: matches!(expectation, PlacementExpectation::Pending(_)),
            stays: true,
            // It distinguishes nodes by their facts
            facts: &["nodes"],
            ..Traits::default()
        }
    }

    fn failing(
        expectation: &PlacementExpectation,
        signature: &Signature,
    ) -> Option<PlacementExpectation> {
        match (expectation, signature) {
            (PlacementExpectation::Starts, Signature::NotStarted(classes)) => {
                Some(PlacementExpectation::NotStarted(classes.clone()))
            }
            (PlacementExpectation::Placed(_), Signature::Pending(by)) => {
                Some(PlacementExpectation::Pending(*by))
            }
            _ => None,
        }
    }

    fn compare(
        expectation: &PlacementExpectation,
        seen: &PlacementObservation,
    ) -> Result<Comparison> {
        let difference = |seen| Difference::between(expectation, seen);
        match expectation {
            PlacementExpectation::Placed(ground) => placed(*ground, seen, difference(seen.place())),
            PlacementExpectation::Pending(by) => pending(*by, seen, difference(seen.place())),
            PlacementExpectation::Starts => starts(seen, difference(seen.outcome_words())),
            PlacementExpectation::NotStarted(classes) => {
                not_started(classes, seen, difference(seen.outcome_words()))
            }
        }
    }
}

fn read(pod: PlacedPod, at: &Bound<'_>, pods: &[Json]) -> Result<PlacementObservation> {
    let pod = find(pod, at, pods)?;
    let name = printable(pod["metadata"]["name"].as_str().unwrap_or_default());
    if !pod["metadata"]["deletionTimestamp"].is_null() {
        let detail = format!("{name}: somebody is deleting it");
        return Err(ErrorKind::NotApplied.error(detail));
    }
    let nodes = &at.ready.node_facts;
    let used: BTreeSet<_> = at.ready.nodes.iter().map(|node| &node.name).collect();
    let of_pool = |node: &&NodeFact| {
        let is_there = node.build == at.build && at.build.is_some();
        node.os == Os::Windows && is_there && used.contains(&node.name)
    };
    let of_pool: Vec<_> = nodes.iter().filter(of_pool).collect();
    let untolerated = |node: &&&NodeFact| has_untolerated(node, pod);
    Ok(PlacementObservation {
        whereabouts: whereabouts(pod, &name, nodes)?,
        start: Start::read(pod),
        pool: at.build,
        pool_nodes: of_pool.len(),
        untolerated_nodes: of_pool.iter().filter(untolerated).count(),
        nodes: nodes.len(),
    })
}

/// Finds the pod among those of its fixture.
fn find<'p>(pod: PlacedPod, at: &Bound<'_>, pods: &'p [Json]) -> Result<&'p Json> {
    let name = pod.fixture().in_pool(at.pool).name_of(pod.as_str());
    let listed = pods.iter().find(|pod| pod["metadata"]["name"] == *name);
    listed.ok_or_else(|| {
        let detail = format!("pod {name} is not there: nothing to observe");
        ErrorKind::NotApplied.error(detail)
    })
}

/// What the scheduler says of a pod for which it has found no node.
pub(in crate::method) fn unschedulable(pod: &Json) -> Option<&str> {
    let mut conditions = pod["status"]["conditions"].as_array()?.iter();
    let scheduled = conditions.find(|condition| condition["type"] == "PodScheduled")?;
    let message = scheduled["message"].as_str().unwrap_or_default();
    (scheduled["reason"] == "Unschedulable").then_some(message)
}

fn whereabouts(pod: &Json, name: &str, nodes: &[NodeFact]) -> Result<Whereabouts> {
    if let Some(node) = pod["spec"]["nodeName"].as_str() {
        let Some(fact) = nodes.iter().find(|known| known.name == node) else {
            let node = printable(node);
            let detail = format!("{name} is on {node}, of which nothing was known at the start");
            return Err(ErrorKind::FactUnknown.error(detail));
        };
        return Ok(Whereabouts::On {
            node: node.to_owned(),
            os: fact.os,
            build: fact.build,
            tainted: !fact.taints.is_empty(),
            untolerated: has_untolerated(fact, pod),
        });
    }
    let Some(message) = unschedulable(pod) else {
        let detail = format!("{name}: the scheduler has said nothing of it yet");
        return Err(ErrorKind::UnrecognisedOutput.error(detail));
    };
    Said::parse(message)
        .map(Whereabouts::Pending)
        .ok_or_else(|| {
            let detail = format!("{name}: the scheduler says `{}`", printable(message));
            ErrorKind::UnrecognisedOutput.error(detail)
        })
}

fn placed(
    ground: Ground,
    seen: &PlacementObservation,
    difference: Difference,
) -> Result<Comparison> {
    match &seen.whereabouts {
        Whereabouts::On {
            node,
            os,
            build,
            tainted,
            ..
        } => {
            let there = match ground {
                Ground::Linux => *os == Os::Linux,
                Ground::Pool | Ground::TaintedPool => {
                    *os == Os::Windows && build.is_some() && *build == seen.pool
                }
            };
            Ok(match (there, ground) {
                (true, Ground::TaintedPool) if !tainted => Comparison::NotApplicable(format!(
                    "node {} has no taint that keeps pods away",
                    printable(node)
                )),
                (true, _) => Comparison::Met(difference),
                (false, _) => Comparison::NotMet(difference),
            })
        }
        Whereabouts::Pending(said) => {
            // A node that left or joined since then could be the reason itself
            let known = said.of >= seen.nodes;
            let by_selector = said
                .kept_off
                .iter()
                .all(|part| part.by == Hindrance::Selector);
            let by_taint = ground != Ground::Linux && seen.is_kept_off_by_taints(said);
            if known && (by_selector || by_taint) {
                Ok(Comparison::Unexpected(difference))
            } else {
                Err(unscheduled(said))
            }
        }
    }
}

fn pending(
    by: Hindrance,
    seen: &PlacementObservation,
    difference: Difference,
) -> Result<Comparison> {
    match (&seen.whereabouts, by) {
        (
            Whereabouts::On {
                node,
                tainted,
                untolerated: false,
                ..
            },
            Hindrance::UntoleratedTaint,
        ) => {
            let node = printable(node);
            // A pod that should wait for a taint is sent without tolerations
            Ok(Comparison::NotApplicable(match tainted {
                true => format!(
                    "the pod came back with tolerations that were not sent, which let it onto node \
                     {node} with its taints: a webhook or policy adds them"
                ),
                false => format!("node {node} has no taint that keeps the pod away"),
            }))
        }
        // Only a start shows that the node has them: something may bind pods without asking what nodes have
        (Whereabouts::On { .. }, Hindrance::InsufficientHugePages) => match seen.settled()? {
            Start::Started => Ok(Comparison::NotMet(difference)),
            _ => Err(ErrorKind::Unscheduled.error(seen.outcome_words())),
        },
        (Whereabouts::On { .. }, _) => Ok(Comparison::NotMet(difference)),
        (Whereabouts::Pending(said), Hindrance::UntoleratedTaint) => {
            match seen.is_kept_off_by_taints(said) {
                true => Ok(Comparison::Met(difference)),
                false => Err(unscheduled(said)),
            }
        }
        (Whereabouts::Pending(said), _) if said.nodes(by) > 0 => Ok(Comparison::Met(difference)),
        (Whereabouts::Pending(said), _) => Err(unscheduled(said)),
    }
}

fn starts(seen: &PlacementObservation, difference: Difference) -> Result<Comparison> {
    match seen.settled()? {
        Start::Started => Ok(Comparison::Met(difference)),
        Start::Unfit { .. } => Ok(Comparison::NotMet(difference)),
        _ => Ok(Comparison::Unexpected(difference)),
    }
}

fn not_started(
    classes: &BTreeSet<StartFailure>,
    seen: &PlacementObservation,
    difference: Difference,
) -> Result<Comparison> {
    match seen.settled()? {
        Start::Started => Ok(Comparison::NotMet(difference)),
        Start::Unfit { class, .. } if classes.contains(class) => Ok(Comparison::Met(difference)),
        _ => Ok(Comparison::Unexpected(difference)),
    }
}

impl PlacementObservation {
    /// How its start went; an error where that depends on the pod's surroundings.
    fn settled(&self) -> Result<&Start> {
        let (kind, detail) = match (&self.whereabouts, &self.start) {
            (Whereabouts::Pending(said), _) => return Err(unscheduled(said)),
            (Whereabouts::On { .. }, Start::NoImage { words, .. }) => {
                (ErrorKind::ImagePull, words.clone())
            }
            // This error is not lasting, so the pod is observed again
            (Whereabouts::On { .. }, Start::Open { words }) => (
                ErrorKind::UnrecognisedOutput,
                format!("neither started nor failed yet: {words}"),
            ),
            (Whereabouts::On { .. }, start) => return Ok(start),
        };
        Err(kind.error(detail))
    }

    /// Whether taints that the pod does not tolerate keep it off the whole pool.
    fn is_kept_off_by_taints(&self, said: &Said) -> bool {
        self.pool_nodes > 0
            && self.untolerated_nodes == self.pool_nodes
            && said.nodes(Hindrance::UntoleratedTaint) >= self.pool_nodes.min(AIMED_AT)
    }

    fn place(&self) -> String {
        match &self.whereabouts {
            Whereabouts::Pending(said) => printable(&said.to_string()),
            Whereabouts::On {
                node, os, build, ..
            } => {
                let what = match (os, build) {
                    (Os::Linux, _) => "Linux".to_owned(),
                    (Os::Windows, Some(build)) => format!("Windows {build}"),
                    (Os::Windows, None) => "Windows".to_owned(),
                };
                format!("bound to {}, {what}", printable(node))
            }
        }
    }

    /// Where it is and how its start went, in words, with the cause where it is known.
    fn outcome_words(&self) -> String {
        let start = match &self.start {
            Start::Started => "all containers started".to_owned(),
            Start::Unfit {
                container,
                class,
                words,
            } => format!(
                "container {container} did not start, since {}: {words}",
                class.cause()
            ),
            Start::NoImage { words, .. } | Start::Failed { words } | Start::Open { words } => {
                words.clone()
            }
        };
        format!("{}; {start}", self.place())
    }
}

/// The error for words of the scheduler that do not decide the query.
fn unscheduled(said: &Said) -> ObservationError {
    let kind = match said.lacks_room() {
        true => ErrorKind::NoRoom,
        false => ErrorKind::Unscheduled,
    };
    kind.error(printable(&said.to_string()))
}

/// At how many nodes of a pool a pod is aimed at most.
pub const AIMED_AT: usize = 64;

#[cfg(test)]
mod tests;
