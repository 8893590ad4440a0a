//! Stateful sets: pods with numbers, one after the other (kubernetes 1.37.0,
//! `pkg/controller/statefulset/`). Of volumes that are claimed nothing is made.

use serde_json::{Value, json};

use super::pods::{self, is_going, is_over, is_ready};
use super::replicaset::told;
use super::{hash_of, made, number};
use crate::server::kinds::Kind;
use crate::server::state::State;
use crate::server::store::Object;
use crate::world::Key;

const COMPONENT: &str = "statefulset-controller";
const REVISION: &str = "controller-revision-hash";

pub(super) fn look(state: &mut State, key: &Key) {
    let kind = Kind::named("statefulsets");
    let Some(set) = state.store.get("statefulsets", key).cloned() else {
        return;
    };
    if is_going(&set) {
        return;
    }
    let template = &set["spec"]["template"];
    let hash = format!("{}-{}", key.name, hash_of(template));
    let wanted = number(&set["spec"]["replicas"]);
    let parallel = set["spec"]["podManagementPolicy"] == "Parallel";
    let own = made(&state.store, "pods", &set);
    let at = |number: i64| {
        let name = format!("{}-{number}", key.name);
        own.iter().find(|(key, _)| key.name == name)
    };
    let mut settled = true;
    for ordinal in 0..wanted {
        match at(ordinal) {
            None => {
                settled = false;
                let made = pods::create(state, COMPONENT, (kind, &set), template, |pod| {
                    let name = format!("{}-{ordinal}", key.name);
                    if let Some(meta) = pod["metadata"].as_object_mut() {
                        meta.remove("generateName");
                    }
                    pod["metadata"]["name"] = json!(name);
                    pod["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"] = json!(name);
                    pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"] =
                        json!(ordinal.to_string());
                    pod["metadata"]["labels"][REVISION] = json!(hash);
                    pod["spec"]["hostname"] = json!(name);
                    pod["spec"]["subdomain"] = set["spec"]["serviceName"].clone();
                });
                if made.is_err() || !parallel {
                    break;
                }
            }
            Some((key, pod)) if is_over(pod) && !is_going(pod) => {
                settled = false;
                pods::delete(state, COMPONENT, (kind, &set), key);
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
    let number_of = |key: &Key| -> i64 {
        key.name
            .rsplit_once('-')
            .and_then(|(_, number)| number.parse().ok())
            .unwrap_or(-1)
    };
    let mut beyond: Vec<&(Key, Object)> = own
        .iter()
        .filter(|(key, _)| number_of(key) >= wanted)
        .collect();
    beyond.sort_by_key(|(key, _)| -number_of(key));
    if settled || parallel {
        // The last first, and the next when it is gone
        if let Some((key, pod)) = beyond.first()
            && !is_going(pod)
        {
            pods::delete(state, COMPONENT, (kind, &set), key);
        }
    }
    if settled && beyond.is_empty() {
        let old = (0..wanted)
            .rev()
            .filter_map(at)
            .find(|(_, pod)| pod["metadata"]["labels"][REVISION] != hash);
        if let Some((key, _)) = old {
            pods::delete(state, COMPONENT, (kind, &set), key);
        }
    }
    let own = made(&state.store, "pods", &set);
    let count = |which: &dyn Fn(&Value) -> bool| {
        own.iter()
            .filter(|(_, pod)| !is_going(pod) && which(pod))
            .count()
    };
    let is_new = |pod: &Value| pod["metadata"]["labels"][REVISION] == hash;
    let updated = count(&is_new);
    let current = match count(&|_| true) == updated {
        true => json!(hash),
        false => set["status"]["currentRevision"].clone(),
    };
    let status = json!({
        "observedGeneration": set["metadata"]["generation"], "replicas": own.len(), "collisionCount": 0,
        "readyReplicas": count(&is_ready), "availableReplicas": count(&is_ready),
        "currentReplicas": count(&|pod| pod["metadata"]["labels"][REVISION] == current), "updatedReplicas": updated,
        "currentRevision": current, "updateRevision": hash,
    });
    state.set_status("statefulsets", key, told(status));
}
