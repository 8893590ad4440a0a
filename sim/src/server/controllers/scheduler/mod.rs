//! The scheduler: where pods that nobody has placed go (kubernetes 1.37.0, `pkg/scheduler/`, the
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

/// Why a node does not take a pod: the scheduler's words.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Rejection {
    reasons: Vec<String>,
    /// Whether it might take it if pods of lower priority went.
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

/// What speaks for a node that takes a pod, or why it does not.
type Fit = Result<Scores, Rejection>;

/// A node with what is on it, without the pods that are over.
struct Place {
    name: String,
    node: Object,
    pods: Vec<Object>,
    /// What its pods ask for together.
    taken: Amounts,
    allocatable: Amounts,
    /// Whether it keeps no pod away, by a taint or by being closed.
    open: bool,
}

/// What is on the nodes at the moment.
struct Scene {
    /// In the order of their names.
    places: Vec<Place>,
    /// The pods that keep others away, with their nodes.
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

    /// Has a pod be on a node.
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
    /// What it asks for.
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

/// Whether two pods fare alike on every node: all that filters and scores read of them is the same.
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

/// Places a pod, or says why it stays where it is. The scene is kept as it then is, and what was found
/// for the `last` pod holds for another like it.
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
    let mut looked = match last.take() {
        Some((last, looked)) if is_like(&last, &pod) => looked,
        _ => scene.places.iter().map(|own| fit(scene, own)).collect(),
    };
    if let Some(at) = score::best(scene, &pod, &looked) {
        bind(state, key, &scene.places[at].name);
        if let Some(bound) = state.store.get("pods", key) {
            scene.put(at, bound);
        }
        // A pod that looks at others makes a difference to them on other nodes too
        if !affinity::is_asked(&pod) {
            looked[at] = fit(scene, &scene.places[at]);
            *last = Some((Arc::clone(&pod), looked));
        }
        return;
    }
    let why = refusals(&looked);
    let (words, victims) = preempt::find(scene, &wanted, &looked);
    // The plugin DynamicResources has its say before, up to 1.36 (1.36.4 said so, 1.37.0 does not)
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
fn refusals(looked: &[Fit]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let refused = looked.iter().filter_map(|fit| fit.as_ref().err());
    for reason in refused.flat_map(|rejection| &rejection.reasons) {
        *counts.entry(reason).or_default() += 1;
    }
    if looked.is_empty() {
        return "no nodes available to schedule pods".to_owned();
    }
    let told = counts.iter();
    let told = told.map(|(reason, count)| format!("{count} {reason}"));
    none_of(looked.len(), told.collect())
}

/// `0/8 nodes are available: …`, by the reasons of which each tells of how many.
fn none_of(all: usize, mut told: Vec<String>) -> String {
    told.sort();
    format!("0/{all} nodes are available: {}.", told.join(", "))
}

/// Gives a pod its node.
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
        // Placing is no change of what a client wants
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
