//! Which nodes take a pod: the plugins run in their order, and the first refusal counts.

use serde_json::{Value, json};

use super::{Place, Rejection, Scene, Wanted, affinity, room};
use crate::base::fields::Fields;
use crate::nodes::placing::{node_terms, selects, tolerated};

/// Checks whether a node takes a pod, as if the pods in `without` were gone.
pub(super) fn check(
    scene: &Scene,
    wanted: &Wanted<'_>,
    place: &Place,
    without: &[&Value],
) -> Result<(), Rejection> {
    let (pod, node) = (wanted.pod, &*place.node);
    let closed = node["spec"]["unschedulable"] == true;
    let for_good = if !named(pod, &place.name) {
        "node(s) didn't satisfy plugin(s) [NodeAffinity]"
    } else if !place.open && closed && !tolerated(pod, &unschedulable()) {
        "node(s) were unschedulable"
    } else if !place.open && untolerated(pod, node) {
        "node(s) had untolerated taint(s)"
    } else if !selects(pod, node) {
        "node(s) didn't match Pod's node affinity/selector"
    } else {
        ""
    };
    if !for_good.is_empty() {
        return Err(Rejection::for_good(for_good));
    }
    if !room::ports_are_free(pod, &place.without(without)) {
        let reason = "node(s) didn't have free ports for the requested pod ports";
        return Err(Rejection::for_now([reason]));
    }
    let missing = room::missing(wanted, place, without);
    if !missing.is_empty() {
        return Err(Rejection::for_now(missing));
    }
    affinity::check(scene, pod, node, without)
}

impl Place {
    /// The pods of the node, except those in `without`.
    pub(super) fn without<'a>(
        &'a self,
        without: &'a [&Value],
    ) -> impl Iterator<Item = &'a Value> + Clone {
        let pods = self.pods.iter().map(AsRef::as_ref);
        pods.filter(|pod| !without.iter().any(|gone| std::ptr::eq(*gone, *pod)))
    }
}

/// Whether a node takes the pods of a daemon set, whatever runs on it.
pub(in crate::server::controllers) fn takes(pod: &Value, node: &Value) -> bool {
    let name = node["metadata"]["name"].text();
    let aimed = pod["spec"]["nodeName"].as_str();
    aimed.is_none_or(|aimed| aimed == name)
        && named(pod, name)
        && selects(pod, node)
        && !untolerated(pod, node)
}

fn unschedulable() -> Value {
    json!({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})
}

fn untolerated(pod: &Value, node: &Value) -> bool {
    let mut taints = node["spec"]["taints"].items();
    taints.any(|taint| taint["effect"] != "PreferNoSchedule" && !tolerated(pod, taint))
}

/// Whether a pod's affinity to named nodes allows this one: the scheduler tries such a pod on no
/// other node (`plugins/nodeaffinity`, `PreFilter`).
fn named(pod: &Value, name: &str) -> bool {
    let Some(terms) = node_terms(pod).filter(|terms| !terms.is_empty()) else {
        return true;
    };
    let is_by_name = |one: &&Value| one["key"] == "metadata.name" && one["operator"] == "In";
    let names = |term: &Value| -> Option<bool> {
        let by_name = term["matchFields"].items().find(is_by_name)?;
        let mut values = by_name["values"].as_array()?.iter();
        Some(values.any(|value| value == name))
    };
    // A term without names allows all nodes
    terms.iter().any(|term| names(term) != Some(false))
}
