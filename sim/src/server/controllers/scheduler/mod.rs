//! The scheduler: places the pods that have no node (kubernetes 1.37.0, `pkg/scheduler/`, the
//! default profile without `PodTopologySpread`'s own constraints, volumes and dynamic resources).

mod affinity;
mod filter;
mod preempt;
mod room;
mod score;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};

use self::room::Amounts;
use self::score::Scores;
use super::pods::{condition, condition_mut, is_going, is_over, set_condition};
use crate::base::fields::Fields;
use crate::server::storage::state::State;
use crate::server::storage::store::Object;
use crate::world::Key;

pub(super) use filter::takes;

const COMPONENT: &str = "default-scheduler";

/// Why a node does not take a pod, in the scheduler's messages.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Rejection {
    reasons: Vec<String>,
    /// Whether the node might take the pod if pods of lower priority went.
    resolvable: bool,
}

impl Rejection {
    fn for_good(reason: &str) -> Self {
        Self {
            reasons: vec![reason.to_owned()],
            resolvable: false,
        }
    }

    fn for_now(reasons: impl IntoIterator<Item: Into<String>>) -> Self {
        Self {
            reasons: reasons.into_iter().map(Into::into).collect(),
            resolvable: true,
        }
    }
}

/// The scores of a node that takes a pod, or why it does not.
type Fit = Result<Scores, Rejection>;

/// A node with the pods on it that have not ended.
struct Place {
    name: String,
    node: Object,
    pods: Vec<Object>,
    /// The sum of the pods' requests.
    taken: Amounts,
    allocatable: Amounts,
    /// Whether the node has no taints and is schedulable.
    open: bool,
}

/// All nodes with their pods, at one moment.
struct Scene {
    /// The nodes, in the order of their names.
    places: Vec<Place>,
    /// The pods with required anti-affinity, with their nodes.
    aloof: Vec<(Object, Object)>,
}

impl Scene {
    fn from_state(state: &State) -> Self {
        let nodes = state.store.all("nodes", "");
        let places = nodes.map(|(key, node)| Place {
            name: key.name.clone(),
            node: Arc::clone(node),
            pods: Vec::new(),
            taken: Amounts::new(),
            allocatable: room::allocatable(node),
            open: node["spec"]["unschedulable"] != true
                && node["spec"]["taints"].items().len() == 0,
        });
        let (places, aloof) = (places.collect(), Vec::new());
        let mut scene = Self { places, aloof };
        for at in 0..scene.places.len() {
            for (_, pod) in state.store.pods_of(&scene.places[at].name) {
                scene.put(at, pod);
            }
        }
        scene
    }

    /// Adds a pod to a node, unless it has ended.
    fn put(&mut self, at: usize, pod: &Object) {
        if is_over(pod) {
            return;
        }
        let place = &mut self.places[at];
        place.pods.push(Arc::clone(pod));
        room::add(&mut place.taken, &room::requests(pod));
        if affinity::keeps_away(pod) {
            self.aloof.push((Arc::clone(pod), Arc::clone(&place.node)));
        }
    }

    fn position_of(&self, name: &str) -> Option<usize> {
        let by_name = |place: &Place| place.name.as_str().cmp(name);
        self.places.binary_search_by(by_name).ok()
    }

    /// Every pod with the node that it is on.
    fn placed(&self) -> impl Iterator<Item = (&Value, &Value)> + '_ {
        self.places.iter().flat_map(|place| {
            let pods = place.pods.iter();
            pods.map(|pod| (&**pod, &*place.node))
        })
    }
}

/// A pod that is to be placed.
struct Wanted<'a> {
    pod: &'a Value,
    /// The pod's requests.
    requests: Amounts,
}

pub(super) fn look(state: &mut State) {
    let unplaced = state.store.pods_of("").filter(|(_, pod)| {
        let spec = &pod["spec"];
        spec["schedulerName"] == COMPONENT
            && !is_going(pod)
            && spec["schedulingGates"].items().len() == 0
    });
    let waiting: BTreeSet<(Reverse<i64>, String, Key)> = unplaced
        .map(|(key, pod)| {
            let since = pod["metadata"]["creationTimestamp"].text();
            (Reverse(priority(pod)), since.to_owned(), key.clone())
        })
        .collect();
    if waiting.is_empty() {
        return;
    }
    let mut scene = Scene::from_state(state);
    let mut last = None;
    for (_, _, key) in waiting {
        place(state, &mut scene, &mut last, &key);
    }
}

fn priority(pod: &Value) -> i64 {
    pod["spec"]["priority"].number()
}

/// Whether two pods get the same result on every node: filters and scores read the same values from both.
fn is_like(one: &Value, other: &Value) -> bool {
    let spec = ["affinity", "nodeSelector", "tolerations", "overhead"];
    let meta = ["namespace", "labels", "ownerReferences"];
    let same = |within: &str, names: &[&str]| {
        let mut names = names.iter();
        names.all(|name| one[within][name] == other[within][name])
    };
    same("spec", &spec)
        && same("metadata", &meta)
        && room::requests(one) == room::requests(other)
        && room::ports(one).eq(room::ports(other))
}

/// Places a pod, or reports why it has no node. Updates the scene, and reuses the result of the
/// `last` pod for another like it.
fn place(state: &mut State, scene: &mut Scene, last: &mut Option<(Object, Vec<Fit>)>, key: &Key) {
    let Some(pod) = state.store.get("pods", key).cloned() else {
        return;
    };
    let wanted = Wanted {
        requests: room::requests(&pod),
        pod: &pod,
    };
    let fit = |scene: &Scene, place: &Place| {
        filter::check(scene, &wanted, place, &[])?;
        Ok(Scores::for_place(scene, &wanted, place))
    };
    let mut fits = match last.take() {
        Some((last, fits)) if is_like(&last, &pod) => fits,
        _ => scene.places.iter().map(|place| fit(scene, place)).collect(),
    };
    if let Some(at) = score::best(scene, &pod, &fits) {
        bind(state, key, &scene.places[at].name);
        if let Some(bound) = state.store.get("pods", key) {
            scene.put(at, bound);
        }
        // Placing a pod with affinity changes the results of other nodes, too
        if !affinity::is_asked(&pod) {
            fits[at] = fit(scene, &scene.places[at]);
            *last = Some((Arc::clone(&pod), fits));
        }
        return;
    }
    let why = refusals(&fits);
    let (words, victims) = preempt::find(scene, &wanted, &fits);
    // The plugin DynamicResources adds its message up to 1.36 (1.36.4 does, 1.37.0 does not)
    let before = match state.recorded.git_version() {
        "v1.36.4" => "no new claims to deallocate, ",
        _ => "",
    };
    let message = format!("{why} {before}preemption: {words}");
    if let Some((node, victims)) = &victims {
        preempt::remove(state, &pod, node, victims);
        *scene = Scene::from_state(state);
    }
    if condition(&pod, "PodScheduled").is_some_and(|known| known["message"] == message) {
        return;
    }
    let now = state.wall.now();
    state.edit("pods", key, |pod| {
        let status = &mut pod["status"];
        let is = ("PodScheduled", "False", "Unschedulable");
        set_condition(status, is, &message, now);
        if let Some((node, _)) = victims {
            status["nominatedNodeName"] = json!(node);
        }
    });
    state.tell(COMPONENT, &pod, ("Warning", "FailedScheduling", &message));
}

/// `2 node(s) had untolerated taint(s), …` (`framework/types.go`, `FitError`).
fn refusals(fits: &[Fit]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let refused = fits.iter().filter_map(|fit| fit.as_ref().err());
    for reason in refused.flat_map(|rejection| &rejection.reasons) {
        *counts.entry(reason).or_default() += 1;
    }
    if fits.is_empty() {
        return "no nodes available to schedule pods".to_owned();
    }
    let reasons = counts.iter();
    let reasons = reasons.map(|(reason, count)| format!("{count} {reason}"));
    none_of(fits.len(), reasons.collect())
}

/// `0/8 nodes are available: …`, with the reasons and their counts.
fn none_of(nodes: usize, mut reasons: Vec<String>) -> String {
    reasons.sort();
    format!("0/{nodes} nodes are available: {}.", reasons.join(", "))
}

/// Binds a pod to a node.
pub(crate) fn bind(state: &mut State, key: &Key, node: &str) {
    let now = state.wall.now();
    state.edit("pods", key, |pod| {
        pod["spec"]["nodeName"] = json!(node);
        let status = &mut pod["status"];
        set_condition(status, ("PodScheduled", "True", ""), "", now);
        if let Some(placed) = condition_mut(status, "PodScheduled") {
            placed.remove("reason");
            placed.remove("message");
        }
        status.remove("nominatedNodeName");
        // Binding is no change by a client, so the generation stays
        if let Some(generation) = pod["metadata"]["generation"].as_i64() {
            pod["metadata"]["generation"] = json!(generation - 1);
        }
    });
    tracing::trace!(pod = %key, node, at = %now, "placed");
    if let Some(pod) = state.store.get("pods", key).cloned() {
        let message = format!("Successfully assigned {key} to {node}");
        state.tell(COMPONENT, &pod, ("Normal", "Scheduled", &message));
    }
}
