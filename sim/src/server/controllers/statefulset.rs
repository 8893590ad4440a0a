//! Stateful sets: numbered pods, one after the other (kubernetes 1.37.0,
//! `pkg/controller/statefulset/`). The controller creates no volume claims.

use serde_json::{Value, json};

use super::pods::{self, is_going, is_over, is_ready};
use super::{count, counted, hash_of, made, without_zeros};
use crate::base::fields::Fields;
use crate::fault::FaultKind;
use crate::server::storage::state::State;
use crate::server::storage::store::Object;
use crate::world::Key;

const COMPONENT: &str = "statefulset-controller";
const REVISION: &str = "controller-revision-hash";

pub(super) fn look(state: &mut State, key: &Key, set: &Value) {
    let template = &set["spec"]["template"];
    let hash = format!("{}-{}", key.name, hash_of(template));
    let is_new = |pod: &Value| pod["metadata"]["labels"][REVISION] == hash;
    let wanted = set["spec"]["replicas"].number();
    let parallel = set["spec"]["podManagementPolicy"] == "Parallel";
    let owned = made(&state.store, "pods", set);
    let has_lost = set["status"]["replicas"].number() > counted(owned.len());
    if has_lost && state.suffers(FaultKind::StatefulSetsStuck) {
        return;
    }
    let renames = state.suffers(FaultKind::StatefulSetsRename);
    let number_of = |key: &Key| -> Option<i64> { key.name.rsplit_once('-')?.1.parse().ok() };
    let at = |number: i64| {
        let name = format!("{}-{number}", key.name);
        owned.iter().find(|(key, _)| key.name == name)
    };
    let mut settled = true;
    for mut ordinal in 0..wanted {
        let is_later = |(key, _): &(Key, Object)| number_of(key).is_some_and(|it| it > ordinal);
        if renames && at(ordinal).is_none() && (has_lost || owned.iter().any(is_later)) {
            ordinal += wanted;
            settled = false;
        }
        match at(ordinal) {
            None => {
                settled = false;
                if !pods::may_create(state, set) {
                    break;
                }
                let created = pods::create(state, COMPONENT, set, template, |pod| {
                    let name = format!("{}-{ordinal}", key.name);
                    pod["metadata"].remove("generateName");
                    pod["metadata"]["name"] = json!(name);
                    let labels = &mut pod["metadata"]["labels"];
                    labels["statefulset.kubernetes.io/pod-name"] = json!(name);
                    labels["apps.kubernetes.io/pod-index"] = json!(ordinal.to_string());
                    labels[REVISION] = json!(hash);
                    pod["spec"]["hostname"] = json!(name);
                    pod["spec"]["subdomain"] = set["spec"]["serviceName"].clone();
                });
                if created.is_err() || !parallel {
                    break;
                }
            }
            Some((key, pod)) if is_over(pod) && !is_going(pod) => {
                settled = false;
                pods::delete(state, COMPONENT, set, key);
            }
            Some((_, pod)) if !is_ready(pod) || is_going(pod) => {
                settled = false;
                if !parallel {
                    break;
                }
            }
            Some(_) => {}
        }
    }
    let beyond = owned.iter().filter_map(|p| Some((number_of(&p.0)?, p)));
    let beyond = beyond.filter(|(number, _)| *number >= wanted);
    match beyond.max_by_key(|(number, _)| *number) {
        // The pod with the highest number goes first, and the next when it is gone
        Some((_, (key, pod))) if (settled || parallel) && !is_going(pod) => {
            pods::delete(state, COMPONENT, set, key);
        }
        None if settled => {
            let mut newest_first = (0..wanted).rev().filter_map(at);
            if let Some((key, _)) = newest_first.find(|(_, pod)| !is_new(pod)) {
                pods::delete(state, COMPONENT, set, key);
            }
        }
        _ => {}
    }
    let owned = made(&state.store, "pods", set);
    let mut live = owned.clone();
    live.retain(|(_, pod)| !is_going(pod));
    let (ready, updated) = (count(&live, is_ready), count(&live, is_new));
    let current = match live.len() == updated {
        true => json!(hash),
        false => set["status"]["currentRevision"].clone(),
    };
    let status = json!({
        "observedGeneration": set["metadata"]["generation"], "replicas": owned.len(),
        "readyReplicas": ready, "availableReplicas": ready,
        "currentReplicas": count(&live, |pod| pod["metadata"]["labels"][REVISION] == current),
        "updatedReplicas": updated, "currentRevision": current, "updateRevision": hash,
    });
    let always = ["replicas", "availableReplicas"];
    state.set_status("statefulsets", key, without_zeros(status, &always));
}
