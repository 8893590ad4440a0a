//! Replica sets: a number of pods of one template (kubernetes 1.37.0, `pkg/controller/replicaset/`).

use serde_json::{Value, json};

use super::pods::{self, is_active, is_going, is_ready, rank};
use super::{BATCH, MANY, Work, count, counted, made, without_zeros};
use crate::base::fields::Fields;
use crate::server::storage::state::State;
use crate::server::storage::store::{Object, Store};
use crate::world::Key;

const COMPONENT: &str = "replicaset-controller";

pub(super) fn look(state: &mut State, key: &Key, set: &Value) {
    let same = set["status"]["observedGeneration"] == set["metadata"]["generation"];
    if same && set["status"]["replicas"].number() >= MANY {
        return state.later_once(BATCH, Work::ManyPods(key.clone()));
    }
    keep(state, key, set);
}

pub(super) fn count_many(state: &mut State, key: &Key) {
    if let Some(set) = state.store.get("replicasets", key).cloned() {
        keep(state, key, &set);
    }
}

/// Creates or deletes pods until their number is right, and reports their counts.
fn keep(state: &mut State, key: &Key, set: &Value) {
    let mut pods = active(&state.store, set);
    let more = counted(pods.len()) - set["spec"]["replicas"].number();
    if more != 0 && !is_going(set) {
        pods::create_some(state, COMPONENT, set, -more);
        pods.sort_by_cached_key(|(_, pod)| rank(pod));
        for (key, _) in pods.iter().take(usize::try_from(more).unwrap_or(0)) {
            pods::delete(state, COMPONENT, set, key);
        }
        pods = active(&state.store, set);
    }
    let labels = &set["spec"]["template"]["metadata"]["labels"];
    let ready = count(&pods, is_ready);
    let status = json!({
        "replicas": pods.len(),
        "fullyLabeledReplicas": count(&pods, |pod| pod["metadata"]["labels"].includes(labels)),
        "readyReplicas": ready, "availableReplicas": ready,
        "observedGeneration": set["metadata"]["generation"],
    });
    state.set_status("replicasets", key, without_zeros(status, &["replicas"]));
}

fn active(store: &Store, set: &Value) -> Vec<(Key, Object)> {
    let mut pods = made(store, "pods", set);
    pods.retain(|(_, pod)| is_active(pod));
    pods
}
