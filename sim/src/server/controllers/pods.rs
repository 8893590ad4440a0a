//! What controllers ask of pods, and how they make them.

use std::cmp::Reverse;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::owned_by;
use crate::clock;
use crate::server::kinds::Kind;
use crate::server::refusal::Refusal;
use crate::server::state::State;
use crate::server::store::Object;
use crate::world::Key;

pub(super) fn is_over(pod: &Value) -> bool {
    matches!(
        pod["status"]["phase"].as_str(),
        Some("Succeeded" | "Failed")
    )
}

pub(super) fn is_going(pod: &Value) -> bool {
    pod["metadata"]["deletionTimestamp"].is_string()
}

pub(super) fn is_bound(pod: &Value) -> bool {
    pod["spec"]["nodeName"]
        .as_str()
        .is_some_and(|node| !node.is_empty())
}

/// A condition by its type.
pub(super) fn condition<'a>(object: &'a Value, named: &str) -> Option<&'a Value> {
    let conditions = object["status"]["conditions"].as_array();
    conditions?
        .iter()
        .find(|condition| condition["type"] == named)
}

pub(super) fn is_ready(pod: &Value) -> bool {
    condition(pod, "Ready").is_some_and(|ready| ready["status"] == "True")
}

fn ready_since(pod: &Value) -> Option<Timestamp> {
    let ready = condition(pod, "Ready").filter(|ready| ready["status"] == "True")?;
    ready["lastTransitionTime"].as_str()?.parse().ok()
}

/// Which of several pods go first (kubernetes 1.37.0, `pkg/controller/controller_utils.go`,
/// `ActivePodsWithRanks`): those without a node, pending, not ready, then the youngest.
pub(super) fn rank(pod: &Value) -> impl Ord + use<> {
    let phase = match pod["status"]["phase"].as_str() {
        Some("Pending") => 0,
        Some("Unknown") => 1,
        _ => 2,
    };
    let restarts = pod["status"]["containerStatuses"].as_array();
    let restarts = restarts
        .into_iter()
        .flatten()
        .filter_map(|one| one["restartCount"].as_i64())
        .max();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (
        is_bound(pod),
        phase,
        is_ready(pod),
        Reverse(ready_since(pod)),
        Reverse(restarts),
        Reverse(text(&pod["metadata"]["creationTimestamp"])),
        text(&pod["metadata"]["name"]),
    )
}

/// Creates a pod from a template for a controller.
pub(super) fn create(
    state: &mut State,
    component: &str,
    (kind, owner): (&Kind, &Value),
    template: &Value,
    change: impl FnOnce(&mut Value),
) -> Result<Object, Refusal> {
    let namespace = owner["metadata"]["namespace"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let base = owner["metadata"]["name"].as_str().unwrap_or_default();
    let mut pod = json!({
        "metadata": {"generateName": format!("{base}-"), "ownerReferences": owned_by(kind, owner)},
        "spec": template["spec"],
    });
    for field in ["labels", "annotations", "finalizers"] {
        if let Some(value) = template["metadata"].get(field) {
            pod["metadata"][field] = value.clone();
        }
    }
    change(&mut pod);
    let created = state.create(Kind::named("pods"), &namespace, pod, false);
    match &created {
        Ok(pod) => {
            let name = pod["metadata"]["name"].as_str().unwrap_or_default();
            let message = format!("Created pod: {name}");
            state.tell(
                component,
                (kind, owner),
                ("Normal", "SuccessfulCreate", &message),
            );
        }
        Err(refusal) => {
            let said = refusal.status();
            let words = said["message"].as_str().unwrap_or_default();
            let message = format!("Error creating: {words}");
            state.tell(
                component,
                (kind, owner),
                ("Warning", "FailedCreate", &message),
            );
        }
    }
    created
}

/// Deletes a pod for a controller.
pub(super) fn delete(
    state: &mut State,
    component: &str,
    (kind, owner): (&Kind, &Value),
    key: &Key,
) {
    state.discard("pods", key);
    let message = format!("Deleted pod: {}", key.name);
    state.tell(
        component,
        (kind, owner),
        ("Normal", "SuccessfulDelete", &message),
    );
}

/// Sets a condition of a status; the moment is that of the last change of `status`.
pub(super) fn set_condition(
    status: &mut Value,
    named: &str,
    is: &str,
    reason: &str,
    message: &str,
) {
    let now = json!(clock::now());
    if !status["conditions"].is_array() {
        status["conditions"] = json!([]);
    }
    let conditions = status["conditions"].as_array_mut().expect("it is one now");
    let found = conditions
        .iter_mut()
        .find(|condition| condition["type"] == named);
    match found {
        Some(found) => {
            if found["status"] != is {
                found["lastTransitionTime"] = now;
                found["status"] = json!(is);
            }
            found["reason"] = json!(reason);
            found["message"] = json!(message);
        }
        None => conditions.push(json!({
            "type": named, "status": is, "reason": reason, "message": message,
            "lastTransitionTime": now,
        })),
    }
}
