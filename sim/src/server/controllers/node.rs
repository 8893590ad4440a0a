//! The life of nodes: taints by condition, silent nodes, and what happens to the pods of such nodes.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::Work;
use super::pods::{condition, condition_mut, is_going, is_over, set_condition};
use crate::base::clock;
use crate::base::fields::Fields;
use crate::nodes::placing::tolerates;
use crate::server::storage::state::State;
use crate::server::storage::store::Object;
use crate::world::Key;

/// kube-controller-manager, `--node-monitor-grace-period`: its default since 1.32.
const PATIENCE: Duration = Duration::from_secs(50);

/// How long the pods of a deleted node are kept (`pkg/controller/podgc/gc_controller.go`, `quarantineTime`).
const QUARANTINE: Duration = Duration::from_secs(40);

const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";
const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

/// The taints that the controller sets by conditions
/// (`pkg/controller/nodelifecycle/node_lifecycle_controller.go`).
const BY_CONDITION: [(&str, &str, &str); 5] = [
    (
        "MemoryPressure",
        "True",
        "node.kubernetes.io/memory-pressure",
    ),
    ("DiskPressure", "True", "node.kubernetes.io/disk-pressure"),
    ("PIDPressure", "True", "node.kubernetes.io/pid-pressure"),
    (
        "NetworkUnavailable",
        "True",
        "node.kubernetes.io/network-unavailable",
    ),
    ("Ready", "False", NOT_READY),
];

/// The status of a node's condition `Ready`, if it has been reported.
fn readiness(node: &Value) -> Option<&str> {
    condition(node, "Ready")?["status"].as_str()
}

/// Whether a node does not report.
pub(super) fn is_silent(node: &Value) -> bool {
    readiness(node).is_none_or(|ready| ready == "Unknown")
}

pub(super) fn is_troubled(node: &Value) -> bool {
    readiness(node) != Some("True")
}

pub(super) fn look(state: &mut State, name: &str) {
    let key = Key::new("", name);
    greet(state, name);
    watch(state, name);
    let now = state.wall.now();
    state.edit("nodes", &key, |node| {
        let taints = wanted(node, now);
        match taints.is_empty() {
            true => drop(node["spec"].remove("taints")),
            false => node["spec"]["taints"] = json!(taints),
        }
    });
    let Some(node) = state.store.get("nodes", &key).cloned() else {
        return;
    };
    if readiness(&node).is_some_and(|ready| ready != "True") {
        unready(state, name);
    }
    evict(state, name, &node);
}

/// Sends the event about a new node, once.
fn greet(state: &mut State, name: &str) {
    let node = state.store.global("nodes", name).cloned();
    if let Some(node) = node.filter(|_| !state.renewed.contains_key(name)) {
        state.renewed.insert(name.to_owned(), clock::moment());
        let message = format!("Node {name} event: Registered Node {name} in Controller");
        let event = ("Normal", "RegisteredNode", &*message);
        state.tell("node-controller", &node, event);
    }
}

/// Marks a node that is silent, or schedules the next check of it.
fn watch(state: &mut State, name: &str) {
    let node = state.store.global("nodes", name);
    if node.is_none_or(|node| condition(node, "Ready").is_none()) {
        return;
    }
    let renewed = state.renewed.entry(name.to_owned());
    let silent = clock::moment().duration_since(*renewed.or_insert_with(clock::moment));
    let left = PATIENCE.saturating_sub(silent);
    if !left.is_zero() {
        state.later_once(left, Work::Node(name.to_owned()));
        return;
    }
    let now = state.wall.now();
    state.edit("nodes", &Key::new("", name), |node| {
        for named in ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"] {
            let silent = (named, "Unknown", "NodeStatusUnknown");
            let message = "Kubelet stopped posting node status.";
            set_condition(&mut node["status"], silent, message, now);
        }
    });
}

/// The taints that a node must have: the ones that others set, and the ones of its conditions.
fn wanted(node: &Value, now: Timestamp) -> Vec<Value> {
    let mut keys: Vec<(&str, &str)> = Vec::new();
    if node["spec"]["unschedulable"] == true {
        keys.push((UNSCHEDULABLE, "NoSchedule"));
    }
    for (named, status, key) in BY_CONDITION {
        if condition(node, named).is_some_and(|condition| condition["status"] == status) {
            keys.push((key, "NoSchedule"));
        }
    }
    match readiness(node) {
        None => keys.push((NOT_READY, "NoSchedule")),
        Some("False") => keys.push((NOT_READY, "NoExecute")),
        Some("True") => {}
        Some(_) => keys.extend([(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")]),
    }
    let is_ours = |taint: &Value| {
        let mut ours = BY_CONDITION.iter().map(|(_, _, key)| *key);
        let key = taint["key"].text();
        key == UNREACHABLE || key == UNSCHEDULABLE || ours.any(|one| one == key)
    };
    let known = || node["spec"]["taints"].items();
    let others = known().filter(|taint| !is_ours(taint));
    let mut taints: Vec<Value> = others.cloned().collect();
    for (key, effect) in keys {
        let same = known().find(|taint| taint["key"] == key && taint["effect"] == effect);
        taints.push(same.cloned().unwrap_or_else(|| match effect {
            "NoExecute" => json!({"key": key, "effect": effect, "timeAdded": now}),
            _ => json!({"key": key, "effect": effect}),
        }));
    }
    taints
}

/// Marks the pods of a node that is not ready as not ready.
fn unready(state: &mut State, node: &str) {
    let now = state.wall.now();
    for (key, _) in pods_of(state, node) {
        state.edit("pods", &key, |pod| {
            let status = &mut pod["status"];
            if condition_mut(status, "Ready").is_some_and(|ready| ready["status"] == "True") {
                set_condition(status, ("Ready", "False", "NodeNotReady"), "", now);
            }
        });
    }
}

/// `NoExecute`: deletes pods without a toleration at once, and pods with a limited one when it ends.
fn evict(state: &mut State, name: &str, node: &Value) {
    let now = state.wall.now();
    let evicts = |taint: &&Value| taint["effect"] == "NoExecute";
    let taints: Vec<&Value> = node["spec"]["taints"].items().filter(evicts).collect();
    if taints.is_empty() {
        return;
    }
    let mut pods = pods_of(state, name);
    pods.retain(|(_, pod)| !is_going(pod));
    for (key, pod) in pods {
        let times = taints.iter().map(|taint| stays(&pod, taint, now));
        let left = times.min().unwrap_or(SignedDuration::MAX);
        if !left.is_positive() {
            state.discard("pods", &key);
        } else if left != SignedDuration::MAX {
            let left = Duration::try_from(left).unwrap_or_default();
            state.later(left, Work::Node(name.to_owned()));
        }
    }
}

/// How long a pod may stay despite a taint; the longest duration means for ever.
fn stays(pod: &Value, taint: &Value, now: Timestamp) -> SignedDuration {
    let tolerations = pod["spec"]["tolerations"].items();
    let mut tolerating = tolerations.filter(|one| tolerates(one, taint)).peekable();
    if tolerating.peek().is_none() {
        return SignedDuration::ZERO;
    }
    let seconds = tolerating.filter_map(|one| one["tolerationSeconds"].as_i64());
    let Some(least) = seconds.min() else {
        return SignedDuration::MAX;
    };
    let since = taint["timeAdded"].text().parse::<Timestamp>();
    let passed = since.map(|since| now.duration_since(since));
    SignedDuration::from_secs(least).saturating_sub(passed.unwrap_or_default())
}

fn pods_of(state: &State, node: &str) -> Vec<(Key, Object)> {
    let pods = state.store.pods_of(node);
    pods.map(|(key, pod)| (key.clone(), Object::clone(pod)))
        .collect()
}

/// Deletes the pods of a deleted node, after [`QUARANTINE`].
pub(super) fn orphans(state: &mut State, node: &str) {
    if state.store.global("nodes", node).is_some() {
        state.gone_nodes.remove(node);
        return;
    }
    let now = clock::moment();
    let since = *state.gone_nodes.entry(node.to_owned()).or_insert(now);
    let pods = pods_of(state, node);
    let left = QUARANTINE.saturating_sub(now.duration_since(since));
    if !left.is_zero() && !pods.is_empty() {
        state.later(left, Work::Orphans(node.to_owned()));
        return;
    }
    let now = state.wall.now();
    for (key, pod) in pods {
        if !is_over(&pod) {
            state.edit("pods", &key, |pod| {
                let status = &mut pod["status"];
                status["phase"] = json!("Failed");
                let disrupted = ("DisruptionTarget", "True", "DeletionByPodGC");
                set_condition(status, disrupted, "PodGC: node no longer exists", now);
            });
        }
        state.discard_now("pods", &key);
    }
    state.gone_nodes.remove(node);
    state.renewed.remove(node);
}
