//! Replica sets: so many pods of a template (kubernetes 1.37.0, `pkg/controller/replicaset/`).

use std::sync::Arc;

use serde_json::{Value, json};

use super::pods::{self, is_going, is_over, is_ready, rank};
use super::{made, number};
use crate::server::kinds::Kind;
use crate::server::state::State;
use crate::server::store::Object;
use crate::world::Key;

const COMPONENT: &str = "replicaset-controller";

pub(super) fn look(state: &mut State, key: &Key) {
    let kind = Kind::named("replicasets");
    let Some(set) = state.store.get(kind.plural, key).cloned() else {
        return;
    };
    let template = &set["spec"]["template"];
    let mut now = active(state, &set);
    if !is_going(&set) {
        let wanted = number(&set["spec"]["replicas"]);
        let more = count(&now) - wanted;
        let mut failed = false;
        for _ in more..0 {
            // What fails now is tried again with the next change: nothing else would make it possible
            if pods::create(state, COMPONENT, (kind, &set), template, |_| {}).is_err() {
                failed = true;
                break;
            }
        }
        if more > 0 && !failed {
            let mut own = made(&state.store, "pods", &set);
            own.retain(|(_, pod)| is_active(pod));
            own.sort_by_cached_key(|(_, pod)| rank(pod));
            let more = usize::try_from(more).unwrap_or(0);
            for (key, _) in own.iter().take(more) {
                pods::delete(state, COMPONENT, (kind, &set), key);
            }
        }
        if more != 0 {
            now = active(state, &set);
        }
    }
    let labels = &template["metadata"]["labels"];
    let labelled = |pod: &Value| {
        let own = &pod["metadata"]["labels"];
        let mut all = labels.as_object().into_iter().flatten();
        all.all(|(name, value)| own[name] == *value)
    };
    let with = |is: &dyn Fn(&Value) -> bool| now.iter().filter(|pod| is(pod)).count();
    let ready = with(&is_ready);
    let status = json!({
        "replicas": now.len(), "fullyLabeledReplicas": with(&labelled),
        "readyReplicas": ready, "availableReplicas": ready,
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
fn active(state: &State, set: &Value) -> Vec<Object> {
    let uid = set["metadata"]["uid"].as_str().unwrap_or_default();
    let owned = state.store.owned_by(uid);
    let pods = owned.filter(|(plural, _, pod)| *plural == "pods" && is_active(pod));
    pods.map(|(.., pod)| Arc::clone(pod)).collect()
}

fn is_active(pod: &Value) -> bool {
    !is_over(pod) && !is_going(pod)
}

fn count<T>(of: &[T]) -> i64 {
    i64::try_from(of.len()).unwrap_or(i64::MAX)
}
