//! Preemption (`plugins/defaultpreemption`): deletes pods of lower priority to make room for a pod.
//! It ignores disruption budgets.

use serde_json::Value;

use super::{COMPONENT, Fit, Scene, Wanted, filter, none_of, priority};
use crate::base::fields::Fields;
use crate::server::controllers::pods::{is_going, set_condition};
use crate::server::storage::state::State;
use crate::world::Key;

/// The node, and the pods that must leave it.
pub(super) type Victims = (String, Vec<Value>);

/// Finds what preemption can do: the scheduler's message, and the victims.
pub(super) fn find(scene: &Scene, wanted: &Wanted<'_>, fits: &[Fit]) -> (String, Option<Victims>) {
    let pod = wanted.pod;
    let not = |why: &str| (format!("not eligible due to {why}."), None);
    if pod["spec"]["preemptionPolicy"] == "Never" {
        return not("preemptionPolicy=Never");
    }
    let lower = |other: &&Value| priority(other) < priority(pod);
    if let Some(node) = pod["status"]["nominatedNodeName"].as_str() {
        let pods = scene.position_of(node).map(|at| &scene.places[at].pods);
        let pods = pods.into_iter().flatten().map(AsRef::as_ref);
        if pods.filter(lower).any(is_going) {
            return not("a terminating pod on the nominated node");
        }
    }
    let mut candidates = Vec::new();
    let (mut unhelpful, mut in_vain) = (0, 0);
    for (place, rejection) in scene.places.iter().zip(fits) {
        if !rejection.as_ref().is_err_and(|why| why.resolvable) {
            unhelpful += 1;
            continue;
        }
        let pods = place.pods.iter().map(AsRef::as_ref);
        let mut gone: Vec<&Value> = pods.filter(lower).collect();
        if gone.is_empty() || filter::check(scene, wanted, place, &gone).is_err() {
            in_vain += 1;
            continue;
        }
        // Spare as many pods as possible, the most important ones first
        gone.sort_by_key(|other| std::cmp::Reverse(priority(other)));
        for other in gone.clone() {
            let mut rest = gone.clone();
            rest.retain(|one| !std::ptr::eq(*one, other));
            if filter::check(scene, wanted, place, &rest).is_ok() {
                gone = rest;
            }
        }
        let highest = gone.iter().map(|other| priority(other)).max();
        candidates.push(((highest, gone.len()), place, gone));
    }
    // Of equally good nodes, the first in the order of their names
    let best = candidates.into_iter().min_by_key(|(cost, ..)| *cost);
    if let Some(((_, count), place, gone)) = best {
        let node = place.name.clone();
        let words = format!(
            "found a potential placement for pod on node {node}, preempting {count} victims"
        );
        return (words, Some((node, gone.into_iter().cloned().collect())));
    }
    let counts = [
        (in_vain, "No preemption victims found for incoming pod"),
        (unhelpful, "Preemption is not helpful for scheduling"),
    ];
    let reasons = counts.iter().filter(|(count, _)| *count > 0);
    let reasons = reasons.map(|(count, words)| format!("{count} {words}"));
    (none_of(unhelpful + in_vain, reasons.collect()), None)
}

/// Deletes the victims.
pub(super) fn remove(state: &mut State, pod: &Value, node: &str, victims: &[Value]) {
    let uid = pod["metadata"]["uid"].text();
    let now = state.wall.now();
    for victim in victims {
        let meta = &victim["metadata"];
        let key = Key::new(meta["namespace"].text(), meta["name"].text());
        state.edit("pods", &key, |victim| {
            let message = format!("{COMPONENT}: preempting to accommodate a higher priority pod");
            let disrupted = ("DisruptionTarget", "True", "PreemptionByScheduler");
            set_condition(&mut victim["status"], disrupted, &message, now);
        });
        state.discard("pods", &key);
        let message = format!("Preempted by pod {uid} on node {node}");
        state.tell(COMPONENT, victim, ("Normal", "Preempted", &message));
    }
}
