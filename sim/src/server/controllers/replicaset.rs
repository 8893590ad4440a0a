//! Replica sets: so many pods of a template (kubernetes 1.37.0, `pkg/controller/replicaset/`).

use std::sync::Arc;

use serde_json::{Value, json};

use super::pods::{self, available, is_going, rank};
use super::{Work, made, number};
use crate::server::kinds::Kind;
use crate::server::state::State;
use crate::server::store::{Object, Store};
use crate::world::Key;

const COMPONENT: &str = "replicaset-controller";

/// Whether a set has to be looked at because of a change of one of its pods. Most changes are none to
/// it: it counts the pod as before, and it has what it wants.
pub(super) fn is_touched(store: &Store, set: &Key, before: Option<&Object>, pod: &Object) -> bool {
    let Some(before) = before else {
        return true;
    };
    let Some(set) = store.value("replicasets", set) else {
        return true;
    };
    let (wanted, has) = (&set["spec"]["replicas"], &set["status"]["replicas"]);
    let by_time = number(&set["spec"]["minReadySeconds"]) > 0;
    number(wanted) != number(has)
        || by_time
        || before.standing() != pod.standing()
        || ["labels", "ownerReferences"]
            .iter()
            .any(|field| before["metadata"][field] != pod["metadata"][field])
}

pub(super) fn look(state: &mut State, key: &Key) {
    let kind = Kind::named("replicasets");
    let Some(set) = state.store.get(kind, key).cloned() else {
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
            own.retain(|(_, pod)| pod.standing().active);
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
    let least = number(&set["spec"]["minReadySeconds"]);
    let labels = &template["metadata"]["labels"];
    let labelled = |pod: &Value| {
        let own = &pod["metadata"]["labels"];
        let mut all = labels.as_object().into_iter().flatten();
        all.all(|(name, value)| own[name] == *value)
    };
    let (mut ready, mut fit, mut full) = (0, 0, 0);
    for pod in &now {
        let standing = pod.standing();
        ready += i64::from(standing.ready);
        full += i64::from(labelled(pod));
        let is_fit = match (standing.ready, least) {
            (false, _) => Err(None),
            (true, 0) => Ok(()),
            _ => available(pod, least),
        };
        match is_fit {
            Ok(()) => fit += 1,
            Err(Some(left)) => {
                let left = std::time::Duration::try_from(left).unwrap_or_default();
                state.later(left, Work::ReplicaSet(key.clone()));
            }
            Err(None) => {}
        }
    }
    let status = json!({
        "replicas": count(&now), "fullyLabeledReplicas": full,
        "readyReplicas": ready, "availableReplicas": fit,
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
fn active(state: &State, set: &Value) -> Vec<Arc<Object>> {
    let uid = set["metadata"]["uid"].as_str().unwrap_or_default();
    let owned = state.store.owned_by(uid);
    let pods = owned.filter(|((plural, _), pod)| *plural == "pods" && pod.standing().active);
    pods.map(|(_, pod)| Arc::clone(pod)).collect()
}

fn count<T>(of: &[T]) -> i64 {
    i64::try_from(of.len()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_looked_at_for_what_it_counts() {
        let mut store = Store::default();
        let key = Key::new("a", "s");
        let mut set = json!({"metadata": {}, "spec": {"replicas": 1}, "status": {"replicas": 1}});
        let kind = Kind::named("replicasets");
        store.put(kind, &key, set.clone());
        let pod = json!({"metadata": {"labels": {"app": "x"}}, "status": {"phase": "Pending"}});
        let with = |path: &str, value: Value| {
            let mut pod = pod.clone();
            pod[path] = value;
            pod
        };
        let is = |store: &Store, before: Option<&Value>, pod: &Value| {
            let before = before.map(|before| Object::new(before.clone()));
            is_touched(store, &key, before.as_deref(), &Object::new(pod.clone()))
        };
        let ready =
            json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
        for (other, touched) in [
            (with("status", json!({"phase": "Running"})), false),
            (with("spec", json!({"nodeName": "n"})), false),
            (with("status", json!({"phase": "Failed"})), true),
            (with("status", ready), true),
            (with("metadata", json!({"labels": {"app": "y"}})), true),
            (
                with(
                    "metadata",
                    json!({"labels": {"app": "x"}, "deletionTimestamp": "now"}),
                ),
                true,
            ),
        ] {
            assert_eq!(is(&store, Some(&pod), &other), touched, "{other}");
            assert_eq!(is(&store, Some(&other), &pod), touched, "{other}");
        }
        assert!(is(&store, None, &pod), "it is new");
        set["spec"]["minReadySeconds"] = json!(5);
        store.put(kind, &key, set.clone());
        assert!(is(&store, Some(&pod), &pod), "time counts");
        set["spec"] = json!({"replicas": 2});
        store.put(kind, &key, set);
        assert!(is(&store, Some(&pod), &pod), "it lacks one");
    }
}
