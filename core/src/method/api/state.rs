//! The test method `state`: what the API server says of objects.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::disruption::{disrupted, is_disrupted, lost, lost_container};
use super::endpoints::{ObservedEndpoint, read_slice, slices_of};
use super::placement::{NO_IMAGE, PREPARING};
use crate::fixture::{FixtureName, Need};
use crate::method::error::{ErrorKind, ObservationError, Result};
use crate::method::place::{Balancer, Bound};
use crate::method::prepared::Prepared;
use crate::method::{Assertion, Comparison, Difference, Method, Test, Traits};
use crate::text::{counted, exit_code, printable};

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StateQuery {
    /// The pods of a fixture at the point's pool.
    Pods(FixtureName),
    /// The endpoints of a fixture's Service at the point's pool.
    Endpoints(FixtureName),
    /// Where a load balancer answers for a fixture's Service at the point's pool.
    Balancer(FixtureName),
}

impl StateQuery {
    pub fn fixture(self) -> FixtureName {
        match self {
            Self::Pods(fixture) | Self::Endpoints(fixture) | Self::Balancer(fixture) => fixture,
        }
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StateExpectation {
    /// This many pods are Ready, on nodes of the pool, with the image of its build.
    Ready { pods: u16 },
    /// The same for one pod on each node that is a vantage point; the plan sets how many these are.
    ReadyOnEachNode,
    /// The same, and none of their containers ever restarted.
    Steady { pods: u16 },
    /// This many pods report that they are Ready, and their node and address.
    Listed { pods: u16 },
    /// Exactly this many pods are ready endpoints with an address and a port.
    Endpoints { pods: u16 },
    /// A load balancer has assigned the Service an address, or a name in its place.
    Addressed,
}

impl StateExpectation {
    /// How many pods it expects.
    pub fn pods(self) -> u16 {
        match self {
            Self::Ready { pods }
            | Self::Steady { pods }
            | Self::Listed { pods }
            | Self::Endpoints { pods } => pods,
            Self::ReadyOnEachNode | Self::Addressed => 0,
        }
    }
}

impl fmt::Display for StateExpectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pods = counted(self.pods().into(), "pod");
        match self {
            Self::Ready { .. } => write!(f, "{pods} Ready with the image of the build"),
            Self::ReadyOnEachNode => f.write_str("a pod Ready on each node"),
            Self::Steady { .. } => {
                write!(
                    f,
                    "{pods} Ready with the image of the build, none of them restarted"
                )
            }
            Self::Listed { .. } => write!(f, "{pods} Ready, each with its node and address"),
            Self::Endpoints { .. } => write!(f, "{pods} as ready endpoints"),
            Self::Addressed => f.write_str("an address in status.loadBalancer"),
        }
    }
}

/// The readiness of a pod, and what explains it.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ObservedPod {
    pub name: String,
    pub node: Option<String>,
    pub address: Option<String>,
    /// How often its containers restarted.
    #[serde(default)]
    pub restarts: u64,
    /// The reason that its node gives for the end of a container that it lost track of, as after a reboot.
    pub lost: Option<String>,
    /// Whether its condition Ready is True.
    pub ready: bool,
    /// How many seconds after its creation it became Ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_s: Option<i64>,
    pub deleted: bool,
    pub images: Vec<String>,
    /// Whether each is the image that the image table has for the pool, but for containers that a webhook added.
    pub image_of_build: bool,
    /// Why it is not Ready, as far as its status says.
    pub waiting: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StateObservation {
    Pods(Vec<ObservedPod>),
    /// The same, where the run could not do all with them that it was to do before.
    Unchanged(Vec<ObservedPod>),
    Endpoints(Vec<ObservedEndpoint>),
    /// Where a load balancer answers for a Service; `None` where none does.
    Balancer(Option<Balancer>),
}

/// The test method `state`.
#[derive(Clone, Debug)]
pub enum State {}

impl Method for State {
    type Query = StateQuery;
    type Expectation = StateExpectation;
    type Observation = StateObservation;

    const TEST: fn(Assertion<Self>) -> Test = Test::State;

    fn prepare<'a>(
        query: &'a StateQuery,
        at: &Bound<'a>,
    ) -> Result<Prepared<'a, StateObservation>> {
        let namespace = &at.ready.namespace;
        let path = match query {
            StateQuery::Pods(fixture) => at.path_of("pods", fixture.as_str()),
            StateQuery::Balancer(fixture) => at.path_of("services", fixture.as_str()),
            StateQuery::Endpoints(fixture) => {
                slices_of(namespace, &fixture.in_pool(at.pool).object_name())
            }
        };
        let at = *at;
        Ok(Prepared::list(path, move |items| read(*query, &at, items)))
    }

    fn needs(query: &StateQuery) -> Vec<(FixtureName, Need)> {
        let settled = (query.fixture(), Need::Settled);
        let prober = (FixtureName::LINUX_POD_PROBER, Need::Ready);
        let prober = query.fixture().names_the_cluster().then_some(prober);
        let needs = [(FixtureName::NAMESPACES, Need::Ready), settled];
        needs.into_iter().chain(prober).collect()
    }

    fn traits(query: &StateQuery, _: &StateExpectation) -> Traits {
        Traits {
            converges: true,
            // Pods without a readiness probe are Ready as soon as they start
            must_last: true,
            image: query.fixture().image(),
            ..Traits::default()
        }
    }

    fn compare(expectation: &StateExpectation, seen: &StateObservation) -> Result<Comparison> {
        match (expectation, seen) {
            (StateExpectation::Endpoints { .. }, StateObservation::Endpoints(seen)) => {
                Ok(compare_endpoints(*expectation, seen))
            }
            (StateExpectation::Listed { .. }, StateObservation::Pods(seen)) => {
                Ok(compare_listed(*expectation, seen))
            }
            (
                StateExpectation::Ready { .. } | StateExpectation::Steady { .. },
                StateObservation::Pods(seen),
            ) => compare_ready(*expectation, seen),
            (StateExpectation::Ready { .. }, StateObservation::Unchanged(seen)) => {
                match compare_ready(*expectation, seen)? {
                    Comparison::Met(seen) => {
                        let detail = format!("{}, but not after all changes", seen.seen);
                        Err(ErrorKind::FixtureFailed.error(detail))
                    }
                    other => Ok(other),
                }
            }
            (StateExpectation::Addressed, StateObservation::Balancer(seen)) => {
                Ok(compare_balancer(*expectation, seen.as_ref()))
            }
            _ => {
                let detail = "what was seen is not what the expectation is about";
                Err(ErrorKind::UnrecognisedOutput.error(detail))
            }
        }
    }
}

fn read(query: StateQuery, at: &Bound<'_>, items: &[Json]) -> Result<StateObservation> {
    let fixture = match query {
        StateQuery::Pods(fixture) => fixture,
        StateQuery::Endpoints(_) => {
            let endpoints = items.iter().flat_map(read_slice).collect();
            return Ok(StateObservation::Endpoints(endpoints));
        }
        StateQuery::Balancer(fixture) => {
            let service = items.first().ok_or_else(|| {
                let detail = format!("{} has no Service: nothing to observe", fixture.as_str());
                ErrorKind::NotApplied.error(detail)
            })?;
            return Ok(StateObservation::Balancer(Balancer::from_service(service)));
        }
    };
    let (ended, there): (Vec<_>, Vec<_>) = items.iter().partition(|pod| is_disrupted(pod));
    let pods = there
        .into_iter()
        .map(|pod| read_pod(pod, fixture, at))
        .collect::<Result<Vec<_>, _>>()?;
    // Replacements of pods that the cluster ended may not be Ready yet
    if let Some(pod) = ended.first()
        && !pods.iter().all(|pod| pod.ready)
    {
        return Err(disrupted(pod));
    }
    // One whose pod a run deletes has had one, and its controller is to make another
    if pods.is_empty() && !fixture.is_to_replace() {
        let detail = format!("{} has no pods: nothing to observe", fixture.as_str());
        return Err(ErrorKind::NotApplied.error(detail));
    }
    // A pod that is still being prepared after a boot has failed, or where others of many at once have begun
    let others_began = || pods.iter().any(|pod| pod.ready);
    let was_prepared = fixture.disrupts() || fixture.starts_together() && others_began();
    let mut not_begun = pods.iter().filter_map(|pod| not_begun(pod, was_prepared));
    let is_unchanged = !fixture.changes().is_empty()
        && !fixture.disrupts()
        && !at.ready.fixtures.contains_key(&fixture.in_pool(at.pool));
    // One crashed pod decides, whatever the state of its siblings
    match not_begun.next() {
        Some(error) if !pods.iter().any(has_crashed) => Err(error),
        _ if is_unchanged => Ok(StateObservation::Unchanged(pods)),
        _ => Ok(StateObservation::Pods(pods)),
    }
}

/// The error for a pod that shows nothing of its workload: it has not started, or somebody deletes it.
fn not_begun(pod: &ObservedPod, was_prepared: bool) -> Option<ObservationError> {
    if pod.deleted {
        let detail = format!("{}: somebody is deleting it", pod.name);
        return Some(ErrorKind::NotApplied.error(detail));
    }
    let waiting = pod.waiting.as_deref()?;
    let kind = match waiting {
        _ if NO_IMAGE.contains(&waiting) => ErrorKind::ImagePull,
        _ if PREPARING.contains(&waiting) && !was_prepared => ErrorKind::NotApplied,
        _ => return None,
    };
    (!pod.ready).then(|| kind.error(format!("{}: {waiting}", pod.name)))
}

/// Whether a pod's container started, ended and is not Ready again.
fn has_crashed(pod: &ObservedPod) -> bool {
    let crashed = |why: &String| why.starts_with(CRASHES) || why.starts_with(ENDED);
    !pod.ready && !pod.deleted && pod.waiting.as_ref().is_some_and(crashed)
}

fn compare_ready(expectation: StateExpectation, pods: &[ObservedPod]) -> Result<Comparison> {
    let ready: Vec<_> = pods.iter().filter(|pod| pod.ready).collect();
    let mut seen = format!("{} of {} Ready", ready.len(), pods.len());
    for pod in pods.iter().filter(|pod| !pod.ready) {
        let why = printable(pod.waiting.as_deref().unwrap_or("no reason given"));
        let node = pod.node.as_ref();
        let node = node.map(|node| format!(" on {}", printable(node)));
        let (name, node) = (printable(&pod.name), node.unwrap_or_default());
        seen.push_str(&format!("; {name}{node}: {why}"));
    }
    for pod in pods.iter().filter(|pod| !pod.image_of_build) {
        let images = printable(&pod.images.join(", "));
        seen.push_str(&format!("; {} runs {images}", printable(&pod.name)));
    }
    let steady = matches!(expectation, StateExpectation::Steady { .. });
    let restarted = || pods.iter().filter(|pod| steady && pod.restarts > 0);
    // If a node lost containers, the cause of their restart is unknown
    if let Some(pod) = restarted().find(|pod| pod.lost.is_some()) {
        return Err(lost(&pod.name));
    }
    for pod in restarted() {
        let times = counted(usize::try_from(pod.restarts).unwrap_or(usize::MAX), "time");
        let name = printable(&pod.name);
        seen.push_str(&format!("; {name} was restarted {times}"));
    }
    let difference = Difference::between(&expectation, seen);
    Ok(
        if ready.len() < usize::from(expectation.pods()) || restarted().next().is_some() {
            Comparison::NotMet(difference)
        } else if ready.iter().any(|pod| !pod.image_of_build) {
            Comparison::Unexpected(difference)
        } else {
            Comparison::Met(difference)
        },
    )
}

fn compare_listed(expectation: StateExpectation, pods: &[ObservedPod]) -> Comparison {
    let is_listed = |pod: &ObservedPod| pod.ready && pod.node.is_some() && pod.address.is_some();
    let of = |value: &Option<String>, what| match value {
        Some(value) => printable(value),
        None => format!("no {what}"),
    };
    let shown = pods.iter().map(|pod| {
        let ready = if pod.ready { "Ready" } else { "not Ready" };
        let (node, address) = (of(&pod.node, "node"), of(&pod.address, "address"));
        let took = pod.took_s.map(|took| format!(", after {took} s"));
        let (name, took) = (printable(&pod.name), took.unwrap_or_default());
        format!("{name}: {ready}, {node}, {address}{took}")
    });
    let difference = Difference::between(&expectation, shown.collect::<Vec<_>>().join("; "));
    match pods.iter().filter(|pod| is_listed(pod)).count() >= usize::from(expectation.pods()) {
        true => Comparison::Met(difference),
        false => Comparison::NotMet(difference),
    }
}

fn compare_endpoints(expectation: StateExpectation, endpoints: &[ObservedEndpoint]) -> Comparison {
    let is_whole = |endpoint: &&ObservedEndpoint| {
        endpoint.ready && endpoint.address.is_some() && endpoint.port.is_some()
    };
    // A pod of two address families is in two slices
    let pods: BTreeSet<_> = endpoints
        .iter()
        .filter(is_whole)
        .filter_map(|endpoint| endpoint.pod.as_deref())
        .collect();
    let amiss = endpoints.iter().filter(|endpoint| !is_whole(endpoint));
    let mut seen = format!("{} as ready endpoints", counted(pods.len(), "pod"));
    for endpoint in amiss {
        let pod = endpoint.pod.as_deref().unwrap_or("no pod");
        let lacks = match (endpoint.ready, &endpoint.address) {
            (false, _) => "is not ready",
            (true, None) => "has no address",
            (true, Some(_)) => "has no port",
        };
        seen.push_str(&format!("; {} {lacks}", printable(pod)));
    }
    let difference = Difference::between(&expectation, seen);
    match pods.len().cmp(&usize::from(expectation.pods())) {
        Ordering::Less => Comparison::NotMet(difference),
        Ordering::Equal => Comparison::Met(difference),
        Ordering::Greater => Comparison::Unexpected(difference),
    }
}

fn compare_balancer(expectation: StateExpectation, seen: Option<&Balancer>) -> Comparison {
    let difference = |seen| Difference::between(&expectation, seen);
    match seen {
        Some(balancer) => Comparison::Met(difference(printable(&balancer.at))),
        None => Comparison::NotMet(difference("none: the Service is pending".to_owned())),
    }
}

pub(super) fn text(value: &Json) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn name(object: &Json) -> Result<String> {
    text(&object["metadata"]["name"])
        .ok_or_else(|| ErrorKind::UnrecognisedOutput.error("an object without a name"))
}

fn read_pod(pod: &Json, of: FixtureName, at: &Bound<'_>) -> Result<ObservedPod> {
    let list = |value: &Json| value.as_array().cloned().unwrap_or_default();
    let containers = list(&pod["spec"]["containers"]);
    let images = containers
        .iter()
        .filter_map(|c| text(&c["image"]))
        .collect();
    let is_added =
        |c: &&Json| c["name"].is_string() && of.containers().all(|own| own["name"] != c["name"]);
    let own: Vec<_> = containers
        .iter()
        .filter(|c| !is_added(c))
        .map(|c| c["image"].as_str())
        .collect();
    let is_ready = |c: &&Json| c["type"] == "Ready" && c["status"] == "True";
    let conditions = list(&pod["status"]["conditions"]);
    let ready = conditions.iter().find(is_ready);
    let moment = |time: &Json| time.as_str()?.parse::<Timestamp>().ok();
    let since = ready.and_then(|ready| moment(&ready["lastTransitionTime"]));
    let created = moment(&pod["metadata"]["creationTimestamp"]);
    let took = since
        .zip(created)
        .map(|(since, created)| since.as_second() - created.as_second())
        // They are of two clocks
        .filter(|took| *took >= 0);
    let waiting = list(&pod["status"]["containerStatuses"])
        .iter()
        .find_map(|status| {
            let waiting = text(&status["state"]["waiting"]["reason"]);
            let ended = end(&status["state"]).or_else(|| end(&status["lastState"]));
            match (waiting.as_deref(), &ended) {
                (Some(CRASHES), Some(ended)) => Some(format!("{CRASHES}, {ended}")),
                _ => waiting.or(ended),
            }
        })
        .or_else(|| text(&pod["status"]["reason"]));
    Ok(ObservedPod {
        name: name(pod)?,
        node: text(&pod["spec"]["nodeName"]),
        address: text(&pod["status"]["podIP"]),
        restarts: list(&pod["status"]["containerStatuses"])
            .iter()
            .filter_map(|status| status["restartCount"].as_u64())
            .sum(),
        lost: lost_container(pod).map(str::to_owned),
        deleted: !pod["metadata"]["deletionTimestamp"].is_null(),
        ready: ready.is_some(),
        took_s: took,
        image_of_build: !own.is_empty() && own.iter().all(|image| *image == at.image),
        images,
        waiting,
    })
}

/// The waiting reason of a container that ended repeatedly.
const CRASHES: &str = "CrashLoopBackOff";
/// The beginning of the words for a container's end.
const ENDED: &str = "ended with exit code";

/// How a container ended, by one of its states, in words.
fn end(state: &Json) -> Option<String> {
    let code = state["terminated"]["exitCode"].as_i64()?;
    Some(format!("{ENDED} {}", exit_code(code)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::method::{ApiReply, ReadyFixtures, Reply};
    use crate::rows::listed;
    use serde_json::json;

    /// A row of `state.yaml`.
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Row {
        expectation: String,
        items: Json,
        told: String,
    }

    /// The query and the expectation of a row.
    fn test(expectation: &str) -> (StateQuery, StateExpectation) {
        let of = FixtureName::WIN_WEBSERVER;
        let (word, pods) = expectation.split_once(' ').unwrap_or((expectation, "0"));
        let pods = pods.parse().expect("a number");
        match word {
            "ready" => (StateQuery::Pods(of), StateExpectation::Ready { pods }),
            "each-node" => (StateQuery::Pods(of), StateExpectation::ReadyOnEachNode),
            "steady" => (StateQuery::Pods(of), StateExpectation::Steady { pods }),
            "listed" => (StateQuery::Pods(of), StateExpectation::Listed { pods }),
            "endpoints" => (
                StateQuery::Endpoints(of),
                StateExpectation::Endpoints { pods },
            ),
            "addressed" => (StateQuery::Balancer(of), StateExpectation::Addressed),
            other => panic!("{other} is none"),
        }
    }

    #[test]
    fn what_is_listed_tells_what_its_row_says() {
        let rows: Vec<Row> = listed(include_str!("state.yaml"));
        let ready = ReadyFixtures::default();
        let image = Some("web:2022");
        let at = Bound {
            image,
            ..Bound::to_ready(&ready)
        };
        for row in rows {
            let (query, expectation) = test(&row.expectation);
            let (status, body) = (200, json!({"items": row.items}));
            let reply = Reply::Api(ApiReply { status, body });
            let seen = State::prepare(&query, &at).and_then(|prepared| prepared.read(&reply));
            let told = match seen.and_then(|seen| State::compare(&expectation, &seen)) {
                Ok(Comparison::Met(difference)) => format!("met: {}", difference.seen),
                Ok(Comparison::NotMet(difference)) => format!("not-met: {}", difference.seen),
                Ok(Comparison::Unexpected(difference)) => {
                    format!("unexpected: {}", difference.seen)
                }
                Ok(Comparison::NotApplicable(reason)) => reason,
                Err(error) => format!("error: {error}"),
            };
            assert!(
                told.starts_with(&row.told),
                "{} {}: {told}",
                row.expectation,
                row.items
            );
        }
    }

    /// Whether two pods are Ready, of as many of a fixture of which not all changes were made.
    fn unchanged(pods: usize) -> Result<Comparison> {
        let pod = json!({"metadata": {"name": "a"}, "spec": {"containers": [{"image": "web:2022"}]},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]}});
        let ready = ReadyFixtures::default();
        let at = Bound {
            image: Some("web:2022"),
            ..Bound::to_ready(&ready)
        };
        let seen = read(StateQuery::Pods(FixtureName::CHURN), &at, &vec![pod; pods])?;
        State::compare(&StateExpectation::Ready { pods: 2 }, &seen)
    }

    #[test]
    fn pods_show_nothing_of_changes_that_were_not_made() {
        let error = unchanged(2).expect_err("nothing is shown");
        assert_eq!(error.detail, "2 of 2 Ready, but not after all changes");
        let seen = unchanged(1).map(|compared| compared.holds());
        assert_eq!(seen, Ok(false));
    }

    #[test]
    fn an_expectation_says_what_it_is() {
        assert_eq!(
            StateExpectation::Steady { pods: 1 }.to_string(),
            "1 pod Ready with the image of the build, none of them restarted"
        );
    }

    #[test]
    fn pods_are_no_endpoints() {
        let seen = StateObservation::Pods(Vec::new());
        let error = State::compare(&StateExpectation::Endpoints { pods: 1 }, &seen);
        assert!(error.is_err(), "{error:?}");
    }

    #[test]
    fn what_is_no_list_is_trouble() {
        for (status, body) in [
            (200, json!({})),
            (500, json!({"items": []})),
            (200, json!([])),
        ] {
            let reply = Reply::Api(ApiReply { status, body });
            assert!(reply.items().is_err());
        }
    }
}
