//! Required affinity and anti-affinity between pods (`plugins/interpodaffinity`).

use serde_json::Value;

use super::{Rejection, Scene};
use crate::base::fields::Fields;
use crate::nodes::placing::matches;
use crate::server::storage::store::Object;

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";

fn terms<'a>(pod: &'a Value, kind: &str) -> impl Iterator<Item = &'a Value> {
    pod["spec"]["affinity"][kind][REQUIRED].items()
}

/// Whether a pod has affinity or anti-affinity to other pods.
pub(super) fn is_asked(pod: &Value) -> bool {
    let affinity = &pod["spec"]["affinity"];
    affinity["podAffinity"].is_object() || affinity["podAntiAffinity"].is_object()
}

/// Whether a pod has required anti-affinity to other pods.
pub(super) fn keeps_away(pod: &Value) -> bool {
    terms(pod, "podAntiAffinity").next().is_some()
}

/// Whether a term of `of` selects `pod`, in the namespaces that the term lists, or else in that of `of`.
pub(super) fn is_about(term: &Value, of: &Value, pod: &Value) -> bool {
    let namespace = &pod["metadata"]["namespace"];
    let within = match term["namespaces"].as_array() {
        Some(listed) => listed.contains(namespace),
        None => of["metadata"]["namespace"] == *namespace,
    };
    within && matches(&term["labelSelector"], &pod["metadata"]["labels"])
}

/// Whether two nodes are in the same topology domain of a term.
pub(super) fn is_together(term: &Value, one: &Value, other: &Value) -> bool {
    let key = term["topologyKey"].text();
    let value = |node: &Value| node["metadata"]["labels"].get(key).cloned();
    value(one).is_some_and(|domain| value(other) == Some(domain))
}

pub(super) fn check(
    scene: &Scene,
    pod: &Value,
    node: &Value,
    without: &[&Value],
) -> Result<(), Rejection> {
    let stays = |other: &Value| !without.iter().any(|gone| std::ptr::eq(*gone, other));
    let placed = || scene.placed().filter(|(other, _)| stays(other));
    for term in terms(pod, "podAffinity") {
        let mut peers = placed()
            .filter(|(other, _)| is_about(term, pod, other))
            .peekable();
        // The first of several pods with affinity to each other may go anywhere
        let is_first = peers.peek().is_none() && is_about(term, pod, pod);
        if !is_first && !peers.any(|(_, there)| is_together(term, there, node)) {
            let reason = "node(s) didn't match pod affinity rules";
            return Err(Rejection::for_good(reason));
        }
    }
    let against = |term: &Value, of: &Value, about: &Value, there: &Value| {
        is_about(term, of, about) && is_together(term, there, node)
    };
    let mut ours = terms(pod, "podAntiAffinity");
    let mut aloof = scene.aloof.iter().filter(|(other, _)| stays(other));
    let minds = |(other, there): &(Object, Object)| {
        terms(other, "podAntiAffinity").any(|term| against(term, other, pod, there))
    };
    let reason = if ours.any(|term| placed().any(|(other, at)| against(term, pod, other, at))) {
        "node(s) didn't match pod anti-affinity rules"
    } else if aloof.any(minds) {
        "node(s) didn't satisfy existing pods anti-affinity rules"
    } else {
        return Ok(());
    };
    Err(Rejection::for_now([reason]))
}
