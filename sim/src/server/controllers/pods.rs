//! What controllers read from pods, and how they create and delete them.

use std::cmp::Reverse;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Work, owned_by};
use crate::base::fields::Fields;
use crate::server::checks::refusal::Refusal;
use crate::server::kinds::Kind;
use crate::server::storage::state::State;
use crate::server::storage::store::Object;
use crate::world::Key;

/// The most pods that controllers create in one step (`BurstReplicas` in `pkg/controller/replicaset/`), and
/// how long they then wait, so that a client that wants millions of pods still gets its answer.
const BURST: usize = 500;
const PAUSE: Duration = Duration::from_secs(1);

pub(crate) fn is_over(pod: &Value) -> bool {
    matches!(pod["status"]["phase"].text(), "Succeeded" | "Failed")
}

pub(crate) fn is_going(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

pub(crate) fn is_bound(pod: &Value) -> bool {
    !pod["spec"]["nodeName"].text().is_empty()
}

/// Whether a pod is active: it has not ended and is not being deleted.
pub(super) fn is_active(pod: &Value) -> bool {
    !is_over(pod) && !is_going(pod)
}

/// A condition by its type.
pub(crate) fn condition<'a>(object: &'a Value, named: &str) -> Option<&'a Value> {
    let mut conditions = object["status"]["conditions"].items();
    conditions.find(|condition| condition["type"] == named)
}

pub(super) fn is_ready(pod: &Value) -> bool {
    condition(pod, "Ready").is_some_and(|ready| ready["status"] == "True")
}

fn ready_since(pod: &Value) -> Option<Timestamp> {
    let ready = condition(pod, "Ready").filter(|ready| ready["status"] == "True")?;
    ready["lastTransitionTime"].text().parse().ok()
}

/// The order in which pods are deleted (kubernetes 1.37.0, `pkg/controller/controller_utils.go`,
/// `ActivePodsWithRanks`): those without a node, pending, not ready, then the youngest.
pub(super) fn rank(pod: &Value) -> impl Ord + use<> {
    let phase = match pod["status"]["phase"].text() {
        "Pending" => 0,
        "Unknown" => 1,
        _ => 2,
    };
    let restarts = pod["status"]["containerStatuses"].items();
    let restarts = restarts.filter_map(|one| one["restartCount"].as_i64());
    (
        is_bound(pod),
        phase,
        is_ready(pod),
        Reverse(ready_since(pod)),
        Reverse(restarts.max()),
        Reverse(pod["metadata"]["creationTimestamp"].text().to_owned()),
        pod["metadata"]["name"].text().to_owned(),
    )
}

/// Creates a pod from a template for a controller.
pub(super) fn create(
    state: &mut State,
    component: &str,
    owner: &Value,
    template: &Value,
    change: impl FnOnce(&mut Value),
) -> Result<Object, Refusal> {
    let meta = &owner["metadata"];
    let base = format!("{}-", meta["name"].text());
    let mut pod = json!({
        "metadata": {"generateName": base, "ownerReferences": owned_by(owner)},
        "spec": template["spec"],
    });
    for field in ["labels", "annotations", "finalizers"] {
        if let Some(value) = template["metadata"].get(field) {
            pod["metadata"][field] = value.clone();
        }
    }
    change(&mut pod);
    let created = state.create(Kind::named("pods"), meta["namespace"].text(), pod, false);
    match &created {
        Ok(pod) => {
            let message = format!("Created pod: {}", pod["metadata"]["name"].text());
            state.tell(component, owner, ("Normal", "SuccessfulCreate", &message));
        }
        Err(refusal) => {
            let message = format!("Error creating: {}", refusal.message);
            state.tell(component, owner, ("Warning", "FailedCreate", &message));
        }
    }
    created
}

/// Creates `many` pods. The next change retries what fails now: nothing else would make it possible.
pub(super) fn create_some(state: &mut State, component: &str, owner: &Value, many: i64) {
    let template = &owner["spec"]["template"];
    for _ in 0..many {
        if !may_create(state, owner) || create(state, component, owner, template, |_| {}).is_err() {
            return;
        }
    }
}

/// Whether a controller may create one more pod in this step; else a later step reconciles the owner again.
pub(super) fn may_create(state: &mut State, owner: &Value) -> bool {
    state.made += 1;
    let may = state.made <= BURST;
    if let Some(kind) = Kind::for_object(owner).filter(|_| !may) {
        let [namespace, name] = ["namespace", "name"].map(|field| owner["metadata"][field].text());
        let work = Work::workload(kind.plural, &Key::new(namespace, name));
        state.later_once(PAUSE, work);
    }
    may
}

/// Deletes a pod for a controller.
pub(super) fn delete(state: &mut State, component: &str, owner: &Value, key: &Key) {
    state.discard("pods", key);
    let message = format!("Deleted pod: {}", key.name);
    state.tell(component, owner, ("Normal", "SuccessfulDelete", &message));
}

/// Sets a condition of a status: its type, status, reason and message. The transition time changes
/// only with the condition's status.
pub(super) fn set_condition(
    status: &mut Value,
    (named, is, reason): (&str, &str, &str),
    message: &str,
    now: Timestamp,
) {
    let now = json!(now);
    match condition_mut(status, named) {
        Some(known) => {
            if known["status"] != is {
                known["lastTransitionTime"] = now;
                known["status"] = json!(is);
            }
            known["reason"] = json!(reason);
            known["message"] = json!(message);
        }
        None => status["conditions"].push(json!({
            "type": named, "status": is, "reason": reason, "message": message,
            "lastTransitionTime": now,
        })),
    }
}

/// Returns a condition of a status by its type, for changes.
pub(super) fn condition_mut<'a>(status: &'a mut Value, named: &str) -> Option<&'a mut Value> {
    let mut conditions = status.items_mut("conditions");
    conditions.find(|condition| condition["type"] == named)
}
