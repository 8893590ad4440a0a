//! Deployments: a replica set per template, the newest growing as the others shrink (kubernetes
//! 1.37.0, `pkg/controller/deployment/`).

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::pods::{condition, is_going, set_condition};
use super::replicaset::told;
use super::{Work, hash_of, made, number, owned_by};
use crate::clock;
use crate::server::kinds::Kind;
use crate::server::state::State;
use crate::server::store::Object;
use crate::world::Key;

const COMPONENT: &str = "deployment-controller";
const HASH: &str = "pod-template-hash";
const REVISION: &str = "deployment.kubernetes.io/revision";

pub(super) fn look(state: &mut State, key: &Key) {
    let kind = Kind::named("deployments");
    let Some(deployment) = state.store.get(kind.plural, key).cloned() else {
        return;
    };
    if is_going(&deployment) {
        return;
    }
    let Some(newest) = newest(state, key, &deployment) else {
        return;
    };
    if deployment["spec"]["paused"] != true {
        roll(state, &deployment, &newest);
    }
    tell(state, key, &newest);
}

fn sets(state: &State, deployment: &Value) -> Vec<(Key, Object)> {
    let mut sets = made(&state.store, "replicasets", deployment);
    sets.sort_by_key(|(_, set)| revision(set));
    sets
}

fn revision(object: &Value) -> i64 {
    let written = object["metadata"]["annotations"][REVISION].as_str();
    written.and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// The replica set of the template as it is now, made if there is none; its name.
fn newest(state: &mut State, key: &Key, deployment: &Value) -> Option<Key> {
    let template = &deployment["spec"]["template"];
    let hash = hash_of(template);
    let named = Key::new(&key.namespace, &format!("{}-{hash}", key.name));
    let last = sets(state, deployment)
        .iter()
        .map(|(_, set)| revision(set))
        .max()
        .unwrap_or(0);
    let found = state
        .store
        .get("replicasets", &named)
        .map(|set| revision(set));
    let number = match found {
        Some(own) if own == last => own,
        _ => last + 1,
    };
    if found.is_none() {
        let mut template = template.clone();
        template["metadata"]["labels"][HASH] = json!(hash);
        let mut selector = deployment["spec"]["selector"].clone();
        selector["matchLabels"][HASH] = json!(hash);
        let set = json!({
            "metadata": {"name": named.name, "labels": template["metadata"]["labels"],
                "ownerReferences": owned_by(Kind::named("deployments"), deployment),
                "annotations": {REVISION: number.to_string()}},
            "spec": {"replicas": 0, "selector": selector, "template": template},
        });
        if let Err(refusal) = state.create(Kind::named("replicasets"), &key.namespace, set, false) {
            tracing::debug!(?refusal, deployment = %key, "no replica set can be made");
            return None;
        }
    } else {
        number_it(state, "replicasets", &named, number);
    }
    number_it(state, "deployments", key, number);
    Some(named)
}

/// Writes a revision down where another is, or none: on most looks it is there.
fn number_it(state: &mut State, plural: &str, key: &Key, number: i64) {
    let number = number.to_string();
    let live = state.store.get(plural, key);
    if live.is_some_and(|live| live["metadata"]["annotations"][REVISION] != number) {
        state.edit(plural, key, |value| {
            value["metadata"]["annotations"][REVISION] = json!(number);
        });
    }
}

/// A number of pods, or so many of a hundred; `up` says how halves are rounded.
fn share(value: &Value, of: i64, up: bool) -> i64 {
    match value {
        Value::Number(number) => number.as_i64().unwrap_or(0),
        Value::String(text) => {
            let percent: i64 = text.trim_end_matches('%').parse().unwrap_or(0);
            let product = percent.saturating_mul(of);
            if up {
                (product + 99) / 100
            } else {
                product / 100
            }
        }
        _ => 0,
    }
}

/// How many pods there may be at most, and how many must be available at least.
fn bounds(deployment: &Value) -> (i64, i64) {
    let wanted = number(&deployment["spec"]["replicas"]);
    let rolling = &deployment["spec"]["strategy"]["rollingUpdate"];
    let surge = share(&rolling["maxSurge"], wanted, true);
    let mut missing = share(&rolling["maxUnavailable"], wanted, false);
    if surge == 0 && missing == 0 {
        missing = 1;
    }
    (wanted + surge, (wanted - missing).max(0))
}

fn roll(state: &mut State, deployment: &Value, newest: &Key) {
    let wanted = number(&deployment["spec"]["replicas"]);
    let (most, least) = bounds(deployment);
    let all = sets(state, deployment);
    let of = |set: &Value| number(&set["spec"]["replicas"]);
    let total: i64 = all.iter().map(|(_, set)| of(set)).sum();
    let Some((_, own)) = all.iter().find(|(key, _)| key == newest) else {
        return;
    };
    let now = of(own);
    if now > wanted {
        scale(state, deployment, newest, wanted);
    } else if now < wanted && total < most {
        scale(
            state,
            deployment,
            newest,
            now + (wanted - now).min(most - total),
        );
    }
    // Those that are not available go first, then as many as may
    let old: Vec<_> = sets(state, deployment)
        .into_iter()
        .filter(|(key, _)| key != newest)
        .collect();
    let all = sets(state, deployment);
    let able = |set: &Value| number(&set["status"]["availableReplicas"]);
    let total: i64 = all.iter().map(|(_, set)| of(set)).sum();
    let fresh = all.iter().find(|(key, _)| key == newest);
    let unfit = fresh.map_or(0, |(_, set)| of(set) - able(set));
    let mut may_go = total - least - unfit.max(0);
    if may_go <= 0 {
        return;
    }
    for (key, set) in &old {
        let sick = (of(set) - able(set)).min(may_go).max(0);
        if sick > 0 {
            scale(state, deployment, key, of(set) - sick);
            may_go -= sick;
        }
    }
    let fit: i64 = sets(state, deployment)
        .iter()
        .map(|(_, set)| able(set))
        .sum();
    let mut may_go = fit - least;
    for (key, _) in old {
        let Some(set) = state.store.get("replicasets", &key) else {
            continue;
        };
        let goes = of(set).min(may_go).max(0);
        if goes > 0 {
            let left = of(set) - goes;
            scale(state, deployment, &key, left);
            may_go -= goes;
        }
    }
}

fn scale(state: &mut State, deployment: &Value, key: &Key, to: i64) {
    let Some(set) = state.store.get("replicasets", key) else {
        return;
    };
    let from = number(&set["spec"]["replicas"]);
    if from == to {
        return;
    }
    let wanted = number(&deployment["spec"]["replicas"]);
    let most = bounds(deployment).0;
    state.edit("replicasets", key, |set| {
        set["spec"]["replicas"] = json!(to);
        let annotations = &mut set["metadata"]["annotations"];
        annotations["deployment.kubernetes.io/desired-replicas"] = json!(wanted.to_string());
        annotations["deployment.kubernetes.io/max-replicas"] = json!(most.to_string());
    });
    let way = if to > from { "up" } else { "down" };
    let message = format!("Scaled {way} replica set {} from {from} to {to}", key.name);
    let about = (Kind::named("deployments"), deployment);
    state.tell(COMPONENT, about, ("Normal", "ScalingReplicaSet", &message));
}

fn tell(state: &mut State, key: &Key, newest: &Key) {
    let kind = Kind::named("deployments");
    let Some(deployment) = state.store.get(kind.plural, key).cloned() else {
        return;
    };
    let all = sets(state, &deployment);
    let sum = |field: &str| -> i64 {
        all.iter()
            .map(|(_, set)| number(&set["status"][field]))
            .sum()
    };
    let updated = all
        .iter()
        .find(|(key, _)| key == newest)
        .map_or(0, |(_, set)| number(&set["status"]["replicas"]));
    let wanted = number(&deployment["spec"]["replicas"]);
    let (replicas, able) = (sum("replicas"), sum("availableReplicas"));
    let mut status = told(json!({
        "observedGeneration": deployment["metadata"]["generation"], "updatedReplicas": updated,
        "readyReplicas": sum("readyReplicas"), "unavailableReplicas": (wanted - able).max(0),
    }));
    for (field, value) in [("replicas", replicas), ("availableReplicas", able)] {
        if value != 0 {
            status[field] = json!(value);
        }
    }
    let before = &deployment["status"];
    status["conditions"] = before["conditions"].clone();
    let (is, reason, message) = match able >= bounds(&deployment).1 {
        true => (
            "True",
            "MinimumReplicasAvailable",
            "Deployment has minimum availability.",
        ),
        false => (
            "False",
            "MinimumReplicasUnavailable",
            "Deployment does not have minimum availability.",
        ),
    };
    set_condition(&mut status, "Available", is, reason, message);
    progress(
        state,
        key,
        &deployment,
        newest,
        &mut status,
        updated == wanted && replicas == wanted && able >= wanted,
    );
    state.set_status("deployments", key, status);
}

/// The condition `Progressing`, which turns when nothing moves for longer than the deadline.
fn progress(
    state: &mut State,
    key: &Key,
    deployment: &Value,
    newest: &Key,
    status: &mut Value,
    done: bool,
) {
    let deadline = number(&deployment["spec"]["progressDeadlineSeconds"]);
    let now = clock::now();
    let known = condition(deployment, "Progressing")
        .cloned()
        .unwrap_or_default();
    let set = &newest.name;
    let counts = [
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
    ];
    let moved = counts
        .iter()
        .any(|count| status.get(count) != deployment["status"].get(count));
    let (is, reason, message) = if done {
        (
            "True",
            "NewReplicaSetAvailable",
            format!("ReplicaSet \"{set}\" has successfully progressed."),
        )
    } else if moved || known.is_null() || known["reason"] == "NewReplicaSetAvailable" {
        (
            "True",
            "ReplicaSetUpdated",
            format!("ReplicaSet \"{set}\" is progressing."),
        )
    } else {
        let since = known["lastUpdateTime"]
            .as_str()
            .and_then(|at| at.parse::<Timestamp>().ok());
        let left = SignedDuration::from_secs(deadline)
            - since
                .map(|since| now.duration_since(since))
                .unwrap_or_default();
        if left.is_positive() {
            let left = Duration::try_from(left).unwrap_or_default();
            let work = Work::Deployment(key.clone());
            if !state.is_awaited(&work) {
                state.later(left, work);
            }
            return;
        }
        (
            "False",
            "ProgressDeadlineExceeded",
            format!("ReplicaSet \"{set}\" has timed out progressing."),
        )
    };
    if known["reason"] == reason && known["message"] == message && !moved {
        return;
    }
    set_condition(status, "Progressing", is, reason, &message);
    let conditions = status["conditions"].as_array_mut().into_iter().flatten();
    for condition in conditions.filter(|condition| condition["type"] == "Progressing") {
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
