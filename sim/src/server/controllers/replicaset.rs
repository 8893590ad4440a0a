//! Replica sets: so many pods of a template (kubernetes 1.37.0, `pkg/controller/replicaset/`).

use serde_json::{Value, json};

use super::pods::{self, is_active, is_going, is_ready, rank};
use super::{count, counted, made, told};
use crate::base::fields::Fields;
use crate::server::storage::state::State;
use crate::world::Key;

const COMPONENT: &str = "replicaset-controller";

pub(super) fn look(state: &mut State, key: &Key, set: &Value) {
    if !is_going(set) {
        let mut active = made(&state.store, "pods", set);
        active.retain(|(_, pod)| is_active(pod));
        let more = counted(active.len()) - set["spec"]["replicas"].number();
        pods::create_some(state, COMPONENT, set, -more);
        if more > 0 {
            active.sort_by_cached_key(|(_, pod)| rank(pod));
        }
        for (key, _) in active.iter().take(usize::try_from(more).unwrap_or(0)) {
            pods::delete(state, COMPONENT, set, key);
        }
    }
    let mut active = made(&state.store, "pods", set);
    active.retain(|(_, pod)| is_active(pod));
    let labels = &set["spec"]["template"]["metadata"]["labels"];
    let ready = count(&active, is_ready);
    let status = json!({
        "replicas": active.len(),
        "fullyLabeledReplicas": count(&active, |pod| pod["metadata"]["labels"].includes(labels)),
        "readyReplicas": ready, "availableReplicas": ready,
        "observedGeneration": set["metadata"]["generation"],
    });
    state.set_status("replicasets", key, told(status, &["replicas"]));
}
