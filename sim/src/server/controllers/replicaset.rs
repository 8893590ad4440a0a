//! Replica sets: so many pods of a template (kubernetes 1.37.0, `pkg/controller/replicaset/`).

use std::sync::Arc;

use serde_json::{Value, json};

use super::pods::{self, available, is_going, is_over, is_ready, rank};
use super::{Work, made, number};
use crate::server::kinds::Kind;
use crate::server::state::State;
use crate::server::store::Object;
use crate::world::Key;

const COMPONENT: &str = "replicaset-controller";

pub(super) fn look(state: &mut State, key: &Key) {
    let kind = Kind::named("replicasets");
    let Some(set) = state.store.value("replicasets", key).cloned() else {
        return;
    };
    let template = set["spec"]["template"].clone();
    if !is_going(&set) {
        let wanted = number(&set["spec"]["replicas"]);
        let mut now = active(state, &set);
        let mut failed = false;
        for _ in 0..(wanted - count(&now)).max(0) {
            // What fails now is tried again with the next change: nothing else would make it possible
            if pods::create(state, COMPONENT, (kind, &set), &template, |_| {}).is_err() {
                failed = true;
                break;
            }
        }
        let more = count(&now) - wanted;
        if more > 0 && !failed {
            now.sort_by_cached_key(|(_, pod)| rank(pod));
            let more = usize::try_from(more).unwrap_or(0);
            for (key, _) in now.iter().take(more) {
                pods::delete(state, COMPONENT, (kind, &set), key);
            }
        }
    }
    let active = active(state, &set);
    let least = number(&set["spec"]["minReadySeconds"]);
    let ready = active.iter().filter(|(_, pod)| is_ready(pod));
    let mut fit = 0;
    for (_, pod) in &active {
        match available(pod, least) {
            Ok(()) => fit += 1,
            Err(Some(left)) => {
                let left = std::time::Duration::try_from(left).unwrap_or_default();
                state.later(left, Work::ReplicaSet(key.clone()));
            }
            Err(None) => {}
        }
    }
    let labels = template["metadata"]["labels"].as_object();
    let labelled = |pod: &Value| {
        let has = |(name, value): (&String, &Value)| pod["metadata"]["labels"][name] == *value;
        labels.into_iter().flatten().all(has)
    };
    let status = json!({
        "replicas": count(&active), "fullyLabeledReplicas": active.iter().filter(|(_, pod)| labelled(pod)).count(),
        "readyReplicas": ready.count(), "availableReplicas": fit,
        "observedGeneration": set["metadata"]["generation"],
    });
    state.set_status("replicasets", key, told(status));
}

/// Counts that are none are not told.
pub(super) fn told(mut status: Value) -> Value {
    const ALWAYS: [&str; 6] = [
        "replicas",
        "currentNumberScheduled",
        "desiredNumberScheduled",
        "numberMisscheduled",
        "numberReady",
        "availableReplicas",
    ];
    let stateful = status.get("currentRevision").is_some();
    if let Some(fields) = status.as_object_mut() {
        fields.retain(|name, value| {
            let kept = ALWAYS.contains(&name.as_str()) && (name != "availableReplicas" || stateful);
            *value != 0 && !value.is_null() || kept
        });
    }
    status
}

/// The pods that count: not over and not on their way out.
fn active(state: &State, set: &Value) -> Vec<(Key, Arc<Object>)> {
    let mut all = made(&state.store, "pods", set);
    all.retain(|(_, pod)| !is_over(pod) && !is_going(pod));
    all
}

fn count<T>(of: &[T]) -> i64 {
    i64::try_from(of.len()).unwrap_or(i64::MAX)
}
