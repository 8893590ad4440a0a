//! The scheduler: where pods that nobody has placed go (kubernetes 1.37.0, `pkg/scheduler/`, the
//! default profile without `PodTopologySpread`'s own constraints, volumes and dynamic resources).

mod affinity;
mod filter;
mod preempt;
mod room;
mod score;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::pods::{condition, is_going, set_condition};
use crate::clock;
use crate::server::kinds::Kind;
use crate::server::state::State;
use crate::server::store::Object;
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
    fn for_good(reason: impl Into<String>) -> Self {
        Self {
            reasons: vec![reason.into()],
            resolvable: false,
        }
    }

    fn for_now(reasons: Vec<String>) -> Self {
        Self {
            reasons,
            resolvable: true,
        }
    }
}

/// What is on the nodes at the moment, without the pods that are over.
struct Scene<'a> {
    nodes: Vec<(&'a str, &'a Value)>,
    pods: BTreeMap<&'a str, Vec<&'a Value>>,
    namespaces: BTreeMap<&'a str, &'a Value>,
    /// The pods that keep others away, with their nodes.
    aloof: Vec<(&'a Value, &'a Value)>,
}

impl<'a> Scene<'a> {
    fn of(state: &'a State) -> Self {
        let named = |(key, object): (&'a Key, &'a Arc<Object>)| (key.name.as_str(), &object.value);
        let nodes: Vec<_> = state.store.all("nodes", "").map(named).collect();
        let pods = nodes.iter().map(|(name, _)| {
            let own = state
                .store
                .pods_of(name)
                .filter(|pod| !super::pods::is_over(pod));
            (*name, own.collect())
        });
        let mut scene = Self {
            pods: pods.collect(),
            namespaces: state.store.all("namespaces", "").map(named).collect(),
            aloof: Vec::new(),
            nodes,
        };
        let aloof = scene.placed();
        scene.aloof = aloof.filter(|(pod, _)| affinity::keeps_away(pod)).collect();
        scene
    }

    fn pods_on(&self, node: &str) -> &[&'a Value] {
        self.pods.get(node).map_or(&[], Vec::as_slice)
    }

    /// Every pod with the node that it is on.
    fn placed(&self) -> impl Iterator<Item = (&'a Value, &'a Value)> + '_ {
        self.nodes
            .iter()
            .flat_map(|(name, node)| self.pods_on(name).iter().map(|pod| (*pod, *node)))
    }
}

pub(super) fn look(state: &mut State) {
    let mut waiting: Vec<(Reverse<i64>, String, Key)> = state
        .store
        .unbound_pods()
        .filter_map(|key| {
            let pod = state.store.value("pods", key)?;
            let ours = pod["spec"]["schedulerName"] == COMPONENT && !is_going(pod);
            let gated = pod["spec"]["schedulingGates"]
                .as_array()
                .is_some_and(|gates| !gates.is_empty());
            let since = pod["metadata"]["creationTimestamp"]
                .as_str()
                .unwrap_or_default();
            (ours && !gated).then(|| (Reverse(priority(pod)), since.to_owned(), key.clone()))
        })
        .collect();
    waiting.sort();
    for (_, _, key) in waiting {
        place(state, &key);
    }
}

fn priority(pod: &Value) -> i64 {
    pod["spec"]["priority"].as_i64().unwrap_or(0)
}

/// Places a pod, or says why it stays where it is.
fn place(state: &mut State, key: &Key) {
    let Some(pod) = state.store.value("pods", key).cloned() else {
        return;
    };
    let scene = Scene::of(state);
    let looked: Vec<(&str, Result<(), Rejection>)> = scene
        .nodes
        .iter()
        .map(|(name, node)| (*name, filter::check(&scene, &pod, name, node, &[])))
        .collect();
    let fit: Vec<&str> = looked
        .iter()
        .filter(|(_, taken)| taken.is_ok())
        .map(|(name, _)| *name)
        .collect();
    if let Some(node) = score::best(&scene, &pod, &fit).map(str::to_owned) {
        bind(state, key, &node);
        return;
    }
    let why = refusals(&looked);
    let found = preempt::find(&scene, &pod, &looked);
    // The plugin DynamicResources has its say before, up to 1.36 (1.36.4 said so, 1.37.0 does not)
    let before = match state.recorded.git_version() {
        "v1.36.4" => "no new claims to deallocate, ",
        _ => "",
    };
    let message = format!("{why} {before}preemption: {}", found.words());
    if let preempt::Found::Victims { node, victims, .. } = &found {
        preempt::remove(state, &pod, node, victims);
    }
    let nominated = match &found {
        preempt::Found::Victims { node, .. } => Some(node.clone()),
        _ => None,
    };
    let known = condition(&pod, "PodScheduled").is_some_and(|known| known["message"] == *message);
    if known {
        return;
    }
    state.edit("pods", key, |pod| {
        let status = &mut pod["status"];
        scheduled(status, "False", &message);
        if let Some(node) = nominated {
            status["nominatedNodeName"] = json!(node);
        }
    });
    let pods = Kind::named("pods");
    state.tell(
        COMPONENT,
        (pods, &pod),
        ("Warning", "FailedScheduling", &message),
    );
}

/// Sets whether a pod is placed.
fn scheduled(status: &mut Value, is: &str, message: &str) {
    set_condition(status, "PodScheduled", is, "Unschedulable", message);
    let conditions = status["conditions"].as_array_mut().into_iter().flatten();
    for condition in conditions.filter(|condition| condition["type"] == "PodScheduled") {
        condition["lastProbeTime"] = Value::Null;
        if let Some(condition) = condition.as_object_mut() {
            condition.retain(|_, value| !value.is_null());
            if is == "True" {
                condition.remove("reason");
                condition.remove("message");
            }
        }
    }
}

/// `0/8 nodes are available: 2 node(s) had untolerated taint(s), …` (`framework/types.go`,
/// `FitError`).
fn refusals(looked: &[(&str, Result<(), Rejection>)]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, taken) in looked {
        for reason in taken
            .as_ref()
            .err()
            .into_iter()
            .flat_map(|rejection| &rejection.reasons)
        {
            *counts.entry(reason).or_default() += 1;
        }
    }
    let all = looked.len();
    if all == 0 {
        return "no nodes available to schedule pods".to_owned();
    }
    let mut told: Vec<String> = counts
        .iter()
        .map(|(reason, count)| format!("{count} {reason}"))
        .collect();
    told.sort();
    format!("0/{all} nodes are available: {}.", told.join(", "))
}

/// Gives a pod its node.
pub(in crate::server) fn bind(state: &mut State, key: &Key, node: &str) {
    state.edit("pods", key, |pod| {
        pod["spec"]["nodeName"] = json!(node);
        scheduled(&mut pod["status"], "True", "");
        if let Some(status) = pod["status"].as_object_mut() {
            status.remove("nominatedNodeName");
        }
        // Placing is no change of what a client wants
        if let Some(generation) = pod["metadata"]["generation"].as_i64() {
            pod["metadata"]["generation"] = json!(generation - 1);
        }
    });
    tracing::trace!(pod = %key, node, at = %clock::now(), "placed");
    let Some(pod) = state.store.value("pods", key).cloned() else {
        return;
    };
    let message = format!("Successfully assigned {key} to {node}");
    state.tell(
        COMPONENT,
        (Kind::named("pods"), &pod),
        ("Normal", "Scheduled", &message),
    );
}
