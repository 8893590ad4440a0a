//! Deployments: one replica set per template; the newest grows as the others shrink (kubernetes
//! 1.37.0, `pkg/controller/deployment/`).

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::pods::{condition, condition_mut, set_condition};
use super::{Work, hash_of, made, owned_by, without_zeros};
use crate::base::fields::Fields;
use crate::fault::FaultKind;
use crate::server::kinds::Kind;
use crate::server::storage::state::State;
use crate::server::storage::store::Object;
use crate::world::Key;

const COMPONENT: &str = "deployment-controller";
const HASH: &str = "pod-template-hash";
const REVISION: &str = "deployment.kubernetes.io/revision";

pub(super) fn look(state: &mut State, key: &Key, deployment: &Value) {
    let Some(newest) = newest(state, key, deployment) else {
        return;
    };
    if deployment["spec"]["paused"] != true {
        roll(state, deployment, &newest);
    }
    tell(state, key, &newest);
}

fn sets(state: &State, deployment: &Value) -> Vec<(Key, Object)> {
    let mut sets = made(&state.store, "replicasets", deployment);
    sets.sort_by_key(|(_, set)| revision(set));
    sets
}

/// The sum of a number over replica sets.
fn sum(sets: &[(Key, Object)], number: impl Fn(&Value) -> i64) -> i64 {
    sets.iter().map(|(_, set)| number(set)).sum()
}

fn revision(object: &Value) -> i64 {
    let written = object["metadata"]["annotations"][REVISION].text();
    written.parse().unwrap_or(0)
}

fn replicas(object: &Value) -> i64 {
    object["spec"]["replicas"].number()
}

fn available(set: &Value) -> i64 {
    set["status"]["availableReplicas"].number()
}

/// Returns the name of the replica set of the current template; creates it if it is missing.
fn newest(state: &mut State, key: &Key, deployment: &Value) -> Option<Key> {
    let template = &deployment["spec"]["template"];
    let hash = hash_of(template);
    let named = Key::new(&key.namespace, &format!("{}-{hash}", key.name));
    let known = sets(state, deployment);
    let last = known.last().map_or(0, |(_, set)| revision(set));
    let current = state.store.get("replicasets", &named);
    let current = current.map(|set| revision(set));
    let number = current.filter(|number| *number == last);
    let number = number.unwrap_or(last.saturating_add(1));
    if current.is_none() {
        let mut template = template.clone();
        template["metadata"]["labels"][HASH] = json!(hash);
        let mut selector = deployment["spec"]["selector"].clone();
        selector["matchLabels"][HASH] = json!(hash);
        let set = json!({
            "metadata": {"name": named.name, "labels": template["metadata"]["labels"],
                "ownerReferences": owned_by(deployment), "annotations": {REVISION: number.to_string()}},
            "spec": {"replicas": 0, "selector": selector, "template": template},
        });
        if let Err(refusal) = state.create(Kind::named("replicasets"), &key.namespace, set, false) {
            tracing::debug!(?refusal, deployment = %key, "no replica set can be made");
            return None;
        }
    }
    number_it(state, "replicasets", &named, number);
    number_it(state, "deployments", key, number);
    Some(named)
}

/// Writes a revision, unless it is there already, as in most runs.
fn number_it(state: &mut State, plural: &str, key: &Key, number: i64) {
    let number = number.to_string();
    let live = state.store.get(plural, key);
    if live.is_some_and(|live| live["metadata"]["annotations"][REVISION] != number) {
        state.edit(plural, key, |value| {
            value["metadata"]["annotations"][REVISION] = json!(number);
        });
    }
}

/// A number of pods, or a percentage of `of`; `up` says how fractions are rounded.
fn share(value: &Value, of: i64, up: bool) -> i64 {
    let Some(text) = value.as_str() else {
        return value.number();
    };
    let percent: i64 = text.trim_end_matches('%').parse().unwrap_or(0);
    let rounding = if up { 99 } else { 0 };
    percent.saturating_mul(of).saturating_add(rounding) / 100
}

/// How many pods may exist at most, and how many must be available at least.
fn bounds(deployment: &Value) -> (i64, i64) {
    let wanted = replicas(deployment);
    let rolling = &deployment["spec"]["strategy"]["rollingUpdate"];
    let surge = share(&rolling["maxSurge"], wanted, true);
    let mut missing = share(&rolling["maxUnavailable"], wanted, false);
    if surge == 0 && missing == 0 {
        missing = 1;
    }
    (wanted + surge, (wanted - missing).max(0))
}

fn roll(state: &mut State, deployment: &Value, newest: &Key) {
    let (most, least) = bounds(deployment);
    let known = sets(state, deployment);
    let Some((_, set)) = known.iter().find(|(key, _)| key == newest) else {
        return;
    };
    let mut room = (most - sum(&known, replicas)).max(0);
    if known.len() > 1 && state.suffers(FaultKind::DeploymentsHalfRolled) {
        room = 0;
    }
    let grown = replicas(deployment).min(replicas(set) + room);
    scale(state, deployment, newest, grown);
    // Pods that are not available go first, then as many others as the bounds allow
    let known = sets(state, deployment);
    let (fresh, old): (Vec<_>, Vec<_>) = known.iter().cloned().partition(|(key, _)| key == newest);
    let unfit = |set: &Value| replicas(set) - available(set);
    let mut may_go = sum(&known, replicas) - least - sum(&fresh, unfit).max(0);
    if may_go <= 0 {
        return;
    }
    for (key, set) in &old {
        let sick = unfit(set).min(may_go).max(0);
        scale(state, deployment, key, replicas(set) - sick);
        may_go -= sick;
    }
    let mut may_go = sum(&sets(state, deployment), available) - least;
    for (key, _) in &old {
        let left = state.store.get("replicasets", key);
        let left = left.map_or(0, |set| replicas(set));
        let goes = left.min(may_go).max(0);
        scale(state, deployment, key, left - goes);
        may_go -= goes;
    }
}

fn scale(state: &mut State, deployment: &Value, key: &Key, to: i64) {
    let from = state.store.get("replicasets", key).map(|set| replicas(set));
    let Some(from) = from.filter(|from| *from != to) else {
        return;
    };
    let (wanted, most) = (replicas(deployment), bounds(deployment).0);
    state.edit("replicasets", key, |set| {
        set["spec"]["replicas"] = json!(to);
        let annotations = &mut set["metadata"]["annotations"];
        annotations["deployment.kubernetes.io/desired-replicas"] = json!(wanted.to_string());
        annotations["deployment.kubernetes.io/max-replicas"] = json!(most.to_string());
    });
    let way = if to > from { "up" } else { "down" };
    let message = format!("Scaled {way} replica set {} from {from} to {to}", key.name);
    let event = ("Normal", "ScalingReplicaSet", &*message);
    state.tell(COMPONENT, deployment, event);
}

fn tell(state: &mut State, key: &Key, newest: &Key) {
    let Some(deployment) = state.store.get("deployments", key).cloned() else {
        return;
    };
    let mut known = sets(state, &deployment);
    let of = |known: &[_], field: &str| sum(known, |set| set["status"][field].number());
    let (replicas, able) = (of(&known, "replicas"), of(&known, "availableReplicas"));
    let ready = of(&known, "readyReplicas");
    known.retain(|(key, _)| key == newest);
    let (updated, wanted) = (of(&known, "replicas"), self::replicas(&deployment));
    let counts = json!({
        "observedGeneration": deployment["metadata"]["generation"], "updatedReplicas": updated,
        "readyReplicas": ready, "unavailableReplicas": (wanted - able).max(0),
        "replicas": replicas, "availableReplicas": able,
    });
    let mut status = without_zeros(counts, &[]);
    status["conditions"] = deployment["status"]["conditions"].clone();
    let (is, reason, has) = match able >= bounds(&deployment).1 {
        true => ("True", "MinimumReplicasAvailable", "has"),
        false => ("False", "MinimumReplicasUnavailable", "does not have"),
    };
    let message = format!("Deployment {has} minimum availability.");
    let is = ("Available", is, reason);
    set_condition(&mut status, is, &message, state.wall.now());
    let done = updated == wanted && replicas == wanted && able >= wanted;
    progress(state, key, &deployment, &newest.name, &mut status, done);
    state.set_status("deployments", key, status);
}

/// Sets the condition `Progressing`, which turns false when no count changes within the deadline.
fn progress(
    state: &mut State,
    key: &Key,
    deployment: &Value,
    set: &str,
    status: &mut Value,
    done: bool,
) {
    let now = state.wall.now();
    let known = condition(deployment, "Progressing").unwrap_or(&Value::Null);
    let counts = ["replicas", "updatedReplicas", "readyReplicas"].into_iter();
    let mut counts = counts.chain(["availableReplicas"]);
    let moved = counts.any(|count| status.get(count) != deployment["status"].get(count));
    let (is, reason, words) = if done {
        let words = "has successfully progressed";
        ("True", "NewReplicaSetAvailable", words)
    } else if moved || known.is_null() || known["reason"] == "NewReplicaSetAvailable" {
        ("True", "ReplicaSetUpdated", "is progressing")
    } else {
        let since = known["lastUpdateTime"].text().parse::<Timestamp>();
        let passed = since.map(|since| now.duration_since(since));
        let deadline = deployment["spec"]["progressDeadlineSeconds"].number();
        let left = SignedDuration::from_secs(deadline) - passed.unwrap_or_default();
        if left.is_positive() {
            let left = Duration::try_from(left).unwrap_or_default();
            state.later_once(left, Work::workload("deployments", key));
            return;
        }
        let words = "has timed out progressing";
        ("False", "ProgressDeadlineExceeded", words)
    };
    let message = format!("ReplicaSet \"{set}\" {words}.");
    if known["reason"] == reason && known["message"] == message && !moved {
        return;
    }
    set_condition(status, ("Progressing", is, reason), &message, now);
    if let Some(condition) = condition_mut(status, "Progressing") {
        condition["lastUpdateTime"] = json!(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_rounded_as_kubernetes_does() {
        for (value, of, up, is) in [
            (json!("25%"), 2, true, 1),
            (json!("25%"), 2, false, 0),
            (json!("50%"), 3, true, 2),
            (json!(3), 10, false, 3),
            (Value::Null, 10, false, 0),
        ] {
            assert_eq!(share(&value, of, up), is, "{value} of {of}");
        }
    }
}
