//! The life of nodes: taints by their conditions, silence, and what becomes of their pods.

use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::Work;
use super::pods::{condition, is_going, is_over, set_condition};
use crate::clock;
use crate::placing::tolerates;
use crate::server::kinds::Kind;
use crate::server::state::State;
use crate::server::store::Object;
use crate::world::Key;

/// kube-controller-manager, `--node-monitor-grace-period`: its default since 1.32.
const PATIENCE: Duration = Duration::from_secs(50);

/// How long pods of a node that is gone are left (`pkg/controller/podgc/gc_controller.go`,
/// `quarantineTime`).
const QUARANTINE: Duration = Duration::from_secs(40);

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

fn readiness(node: &Value) -> &str {
    condition(node, "Ready")
        .and_then(|ready| ready["status"].as_str())
        .unwrap_or("Unknown")
}

/// Whether nothing is heard of a node.
pub(super) fn is_silent(node: &Value) -> bool {
    readiness(node) == "Unknown"
}

pub(super) fn is_troubled(node: &Value) -> bool {
    readiness(node) != "True"
}

pub(super) fn look(state: &mut State, name: &str) {
    let key = Key::new("", name);
    greet(state, name, &key);
    watch(state, name, &key);
    let Some(node) = state.store.get("nodes", &key) else {
        return;
    };
    let taints = wanted(node);
    state.edit("nodes", &key, |node| match taints.is_empty() {
        true => {
            if let Some(spec) = node["spec"].as_object_mut() {
                spec.remove("taints");
            }
        }
        false => node["spec"]["taints"] = json!(taints),
    });
    let Some(node) = state.store.get("nodes", &key).cloned() else {
        return;
    };
    if is_troubled(&node) && condition(&node, "Ready").is_some() {
        unready(state, name);
    }
    evict(state, name, &node);
}

/// Tells once that there is a new node.
fn greet(state: &mut State, name: &str, key: &Key) {
    if state.renewed.contains_key(name) {
        return;
    }
    let Some(node) = state.store.get("nodes", key).cloned() else {
        return;
    };
    state.renewed.insert(name.to_owned(), clock::moment());
    let message = format!("Node {name} event: Registered Node {name} in Controller");
    let about = (Kind::named("nodes"), &*node);
    state.tell(
        "node-controller",
        about,
        ("Normal", "RegisteredNode", &message),
    );
}

/// Notes that a node is silent, or when it is to be asked again whether it is.
fn watch(state: &mut State, name: &str, key: &Key) {
    let Some(node) = state.store.get("nodes", key) else {
        return;
    };
    if condition(node, "Ready").is_none() {
        return;
    }
    let heard = *state
        .renewed
        .entry(name.to_owned())
        .or_insert_with(clock::moment);
    let silent = clock::moment().duration_since(heard);
    if silent < PATIENCE {
        let work = Work::Node(name.to_owned());
        if !state.is_awaited(&work) {
            state.later(PATIENCE.saturating_sub(silent), work);
        }
        return;
    }
    state.edit("nodes", key, |node| {
        for named in ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"] {
            let message = "Kubelet stopped posting node status.";
            set_condition(
                &mut node["status"],
                named,
                "Unknown",
                "NodeStatusUnknown",
                message,
            );
        }
    });
}

/// The taints that a node is to have: its own and those of its conditions.
fn wanted(node: &Value) -> Vec<Value> {
    let ours: Vec<&str> = BY_CONDITION
        .iter()
        .map(|(_, _, key)| *key)
        .chain([UNREACHABLE, "node.kubernetes.io/unschedulable"])
        .collect();
    let now = node["spec"]["taints"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let is_ours = |taint: &Value| taint["key"].as_str().is_some_and(|key| ours.contains(&key));
    let mut keys: Vec<(&str, &str)> = Vec::new();
    if node["spec"]["unschedulable"] == true {
        keys.push(("node.kubernetes.io/unschedulable", "NoSchedule"));
    }
    for (named, status, key) in BY_CONDITION {
        if condition(node, named).is_some_and(|condition| condition["status"] == status) {
            keys.push((key, "NoSchedule"));
        }
    }
    match condition(node, "Ready").and_then(|ready| ready["status"].as_str()) {
        // Nobody has told anything of it yet
        None => keys.push((NOT_READY, "NoSchedule")),
        Some("False") => keys.push((NOT_READY, "NoExecute")),
        Some("True") => {}
        Some(_) => keys.extend([(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")]),
    }
    let mut all: Vec<Value> = now
        .iter()
        .filter(|taint| !is_ours(taint))
        .cloned()
        .collect();
    for (key, effect) in keys {
        let same = now
            .iter()
            .find(|taint| taint["key"] == key && taint["effect"] == effect);
        all.push(same.cloned().unwrap_or_else(|| {
            let mut taint = json!({"key": key, "effect": effect});
            if effect == "NoExecute" {
                taint["timeAdded"] = json!(clock::now());
            }
            taint
        }));
    }
    all
}

/// The pods of a node that is not ready are not ready.
fn unready(state: &mut State, node: &str) {
    for (key, _) in pods_of(state, node) {
        state.edit("pods", &key, |pod| {
            if condition(pod, "Ready").is_some_and(|ready| ready["status"] == "True") {
                let message = "";
                set_condition(
                    &mut pod["status"],
                    "Ready",
                    "False",
                    "NodeNotReady",
                    message,
                );
            }
        });
    }
}

/// `NoExecute`: pods that do not tolerate a taint go, those that do for a while later.
fn evict(state: &mut State, name: &str, node: &Value) {
    let taints = node["spec"]["taints"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let taints: Vec<Value> = taints
        .into_iter()
        .filter(|taint| taint["effect"] == "NoExecute")
        .collect();
    if taints.is_empty() {
        return;
    }
    for (key, pod) in pods_of(state, name) {
        if is_going(&pod) {
            continue;
        }
        let Some(left) = taints.iter().map(|taint| stays(&pod, taint)).min() else {
            continue;
        };
        if !left.is_positive() {
            state.discard("pods", &key);
        } else if left != SignedDuration::MAX {
            let left = Duration::try_from(left).unwrap_or_default();
            state.later(left, Work::Node(name.to_owned()));
        }
    }
}

/// How long a pod may stay in spite of a taint; the longest time is for ever.
fn stays(pod: &Value, taint: &Value) -> SignedDuration {
    let tolerations = pod["spec"]["tolerations"].as_array();
    let tolerating = tolerations
        .into_iter()
        .flatten()
        .filter(|one| tolerates(one, taint));
    let times: Vec<Option<i64>> = tolerating
        .map(|one| one["tolerationSeconds"].as_i64())
        .collect();
    if times.is_empty() {
        return SignedDuration::ZERO;
    }
    let Some(least) = times.into_iter().flatten().min() else {
        return SignedDuration::MAX;
    };
    let since = taint["timeAdded"].as_str();
    let since = since.and_then(|at| at.parse::<jiff::Timestamp>().ok());
    let passed = since.map(|since| clock::now().duration_since(since));
    SignedDuration::from_secs(least) - passed.unwrap_or_default()
}

fn pods_of(state: &State, node: &str) -> Vec<(Key, Object)> {
    let pods = state.store.pods_of(node);
    pods.map(|(key, pod)| (key.clone(), Arc::clone(pod)))
        .collect()
}

/// The pods of a node that is gone go, after a while.
pub(super) fn orphans(state: &mut State, node: &str) {
    if state.store.get("nodes", &Key::new("", node)).is_some() {
        state.gone_nodes.remove(node);
        return;
    }
    let now = clock::moment();
    let since = *state.gone_nodes.entry(node.to_owned()).or_insert(now);
    let passed = now.duration_since(since);
    let pods = pods_of(state, node);
    if pods.is_empty() {
        state.gone_nodes.remove(node);
        state.renewed.remove(node);
        return;
    }
    if passed < QUARANTINE {
        state.later(
            QUARANTINE.saturating_sub(passed),
            Work::Orphans(node.to_owned()),
        );
        return;
    }
    for (key, pod) in pods {
        if !is_over(&pod) {
            state.edit("pods", &key, |pod| {
                pod["status"]["phase"] = json!("Failed");
                let message = "PodGC: node no longer exists";
                set_condition(
                    &mut pod["status"],
                    "DisruptionTarget",
                    "True",
                    "DeletionByPodGC",
                    message,
                );
            });
        }
        state.discard_now("pods", &key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tolerations_are_kubernetes() {
        let taint = json!({"key": "os", "value": "windows", "effect": "NoSchedule"});
        for (toleration, tolerated) in [
            (json!({"operator": "Exists"}), true),
            (json!({"key": "os", "operator": "Exists"}), true),
            (json!({"key": "os", "value": "windows"}), true),
            (
                json!({"key": "os", "operator": "Equal", "value": "linux"}),
                false,
            ),
            (
                json!({"key": "os", "operator": "Exists", "effect": "NoExecute"}),
                false,
            ),
            (json!({"key": "gpu", "operator": "Exists"}), false),
        ] {
            assert_eq!(tolerates(&toleration, &taint), tolerated, "{toleration}");
        }
    }

    #[test]
    fn taints_follow_conditions_and_leave_others_alone() {
        let keys = |node: &Value| -> Vec<String> {
            let told = |taint: Value| {
                format!(
                    "{}:{}",
                    taint["key"].as_str().unwrap_or(""),
                    taint["effect"].as_str().unwrap_or("")
                )
            };
            wanted(node).into_iter().map(told).collect()
        };
        let mut node = json!({"spec": {"taints": [{"key": "os", "value": "windows", "effect": "NoSchedule"}]}});
        assert_eq!(
            keys(&node),
            ["os:NoSchedule", "node.kubernetes.io/not-ready:NoSchedule"]
        );
        node["status"]["conditions"] = json!([{"type": "Ready", "status": "True"}]);
        assert_eq!(keys(&node), ["os:NoSchedule"]);
        node["status"]["conditions"] = json!([{"type": "Ready", "status": "Unknown"}]);
        assert_eq!(keys(&node).len(), 3);
        node["status"]["conditions"] = json!([{"type": "Ready", "status": "False"}, {"type": "DiskPressure", "status": "True"}]);
        assert_eq!(
            keys(&node),
            [
                "os:NoSchedule",
                "node.kubernetes.io/disk-pressure:NoSchedule",
                "node.kubernetes.io/not-ready:NoSchedule",
                "node.kubernetes.io/not-ready:NoExecute"
            ]
        );
    }
}
