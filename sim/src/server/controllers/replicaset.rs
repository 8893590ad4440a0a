//! Replica sets and replication controllers: a number of pods of one template (kubernetes 1.37.0,
//! `pkg/controller/replicaset/`, to which `pkg/controller/replication/` converts the latter).

use serde_json::{Value, json};

use super::pods::{self, is_active, is_going, is_ready, rank};
use super::{BATCH, MANY, Work, count, counted, made, without_zeros};
use crate::base::fields::Fields;
use crate::fault::FaultKind;
use crate::server::storage::state::State;
use crate::server::storage::store::{Object, Store};
use crate::world::Key;

/// The name under which the controller of a kind reports events.
fn component(plural: &str) -> &'static str {
    match plural {
        "replicasets" => "replicaset-controller",
        _ => "replication-controller",
    }
}

/// The fault of a controller that does what is asked of it, and does not see what becomes of its pods.
fn stuck(plural: &str) -> FaultKind {
    match plural {
        "replicasets" => FaultKind::ReplicaSetsStuck,
        _ => FaultKind::ReplicationControllersStuck,
    }
}

pub(super) fn look(state: &mut State, key: &Key, set: &Value) {
    reconcile(state, "replicasets", key, set);
}

pub(super) fn look_at_controller(state: &mut State, key: &Key, set: &Value) {
    reconcile(state, "replicationcontrollers", key, set);
}

fn reconcile(state: &mut State, plural: &'static str, key: &Key, set: &Value) {
    if is_known(set) && set["status"]["replicas"].number() >= MANY {
        return state.later_once(BATCH, Work::ManyPods(plural, key.clone()));
    }
    keep(state, plural, key, set);
}

/// Whether the controller has done what is asked of it.
fn is_known(set: &Value) -> bool {
    set["status"]["observedGeneration"] == set["metadata"]["generation"]
}

pub(super) fn count_many(state: &mut State, plural: &'static str, key: &Key) {
    if let Some(set) = state.store.get(plural, key).cloned() {
        keep(state, plural, key, &set);
    }
}

/// Creates or deletes pods until their number is right, and reports their counts.
fn keep(state: &mut State, plural: &str, key: &Key, set: &Value) {
    let component = component(plural);
    let mut pods = active(&state.store, set);
    let more = counted(pods.len()) - set["spec"]["replicas"].number();
    let is_stuck = is_known(set) && state.suffers(stuck(plural));
    if more != 0 && !is_going(set) && !is_stuck {
        pods::create_some(state, component, set, -more);
        pods.sort_by_cached_key(|(_, pod)| rank(pod));
        for (key, _) in pods.iter().take(usize::try_from(more).unwrap_or(0)) {
            pods::delete(state, component, set, key);
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
    state.set_status(plural, key, without_zeros(status, &["replicas"]));
}

fn active(store: &Store, set: &Value) -> Vec<(Key, Object)> {
    let mut pods = made(store, "pods", set);
    pods.retain(|(_, pod)| is_active(pod));
    pods
}
