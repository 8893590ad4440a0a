//! Admission faults: a pod that the server refuses is accepted all the same, or is sent with another field.
//!
//! A request goes to the server unchanged. If the server refuses it for a forgotten field, it goes again
//! without the field, and the answer gets the field back; so whatever the server does not refuse is as it
//! would be without the fault. Where that does not help, because the server misses a field or refuses a
//! resize, this module creates the answer. It touches only creations (dry runs too) of pods and of workloads
//! with a pod template, pods that are applied, and the two subresources that change a pod's containers; a
//! later read returns what the server stored.

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use serde_json::Value;

use crate::base::field_path::FieldPath;
use crate::interference::asked::Asked;
use crate::interference::fault::Fault;

/// kubernetes 1.37.0, pkg/apis/core/validation/validation.go, `ValidatePodResize`.
const NO_RESIZE: &str = "windows pods cannot be resized";

/// kubernetes 1.37.0, apiserver, pkg/admission/plugin/resourcequota/controller.go.
const OVER_QUOTA: &str = " is forbidden: exceeded quota: ";
/// What a refusal by the webhook of gMSA begins with (kubernetes-sigs/windows-gmsa, `charts/gmsa/templates`).
const OF_GMSA: &str =
    "admission webhook \"admission-webhook.windows-gmsa.sigs.k8s.io\" denied the request: ";

/// The state of a request that passes through a faulty admission.
#[derive(Debug)]
pub(crate) struct Review<'a> {
    faults: &'a [Fault],
    holder: Holder,
    /// The object that is sent to the server.
    object: Value,
    /// The object before any field was removed.
    whole: Value,
    /// Which of the faults have removed their field.
    taken: Vec<bool>,
    /// The fields that the answer gets back.
    restore: Vec<&'a FieldPath>,
}

/// Where a request holds its pod, and what it does to the pod.
#[derive(Debug, Clone, Copy)]
struct Holder {
    /// The place of the pod or template, as a JSON pointer.
    template: &'static str,
    change: Change,
    resize: bool,
}

/// What a request does to its pod or template.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Change {
    Create,
    /// As a run makes its own pods. These only lose fields: with most other values the server would refuse each.
    Apply,
    /// Of its containers, by a whole pod.
    Replace,
    /// Of its containers, by a part of a pod.
    Patch,
}

impl Change {
    fn creates(self) -> bool {
        matches!(self, Self::Create | Self::Apply)
    }
}

/// What follows a refusal.
#[derive(Debug)]
pub(crate) enum Next {
    /// The client gets the refusal.
    Stands,
    /// The request is sent again, with this body.
    Again(Bytes),
    /// The client gets this answer, which the server would have given.
    Pretend(Pretence),
}

/// An acceptance that the server did not send.
#[derive(Debug)]
pub(crate) struct Pretence {
    object: Value,
    /// Whether the object is only a part, and the rest comes from the stored object.
    pub(crate) is_part: bool,
    pub(crate) created: bool,
}

impl<'a> Review<'a> {
    /// Begins a review; returns `None` if no admission fault concerns the request.
    pub(crate) fn begin(
        faults: &'a [Fault],
        asked: &Asked,
        head: &Parts,
        body: &[u8],
    ) -> Option<Self> {
        if !faults.iter().any(is_of_admission) {
            return None;
        }
        let holder = holder(asked, head)?;
        let mut object: Value = serde_json::from_slice(body).ok()?;
        let pod = object.pointer_mut(holder.template)?;
        if !pod.get("spec").is_some_and(Value::is_object) {
            return None;
        }
        for fault in faults {
            if let Fault::AdmissionInjects(field, value) = fault
                && (holder.change.creates() || field.is_inside_a_list())
                && (holder.change != Change::Apply || value.is_null())
            {
                match value {
                    Value::Null => field.remove_from(pod),
                    value => field.set(pod, value),
                };
            }
        }
        Some(Self {
            faults,
            holder,
            whole: object.clone(),
            object,
            taken: vec![false; faults.len()],
            restore: Vec::new(),
        })
    }

    /// The body to send.
    pub(crate) fn body(&self) -> Bytes {
        self.object.to_string().into()
    }

    /// What follows the Status with which a server refused an object as invalid, or as forbidden.
    pub(crate) fn refused(&mut self, status: &[u8]) -> Next {
        let status = serde_json::from_slice::<Value>(status);
        let (Ok(status), false) = (status, self.holder.change == Change::Apply) else {
            return Next::Stands;
        };
        let says = |words| {
            let said = status["message"].as_str();
            said.is_some_and(|said| said.contains(words))
        };
        let forgotten = [
            (Fault::QuotaIgnored, OVER_QUOTA),
            (Fault::GmsaUnchecked, OF_GMSA),
        ];
        let mut forgotten = forgotten.into_iter();
        if forgotten.any(|(fault, words)| self.faults.contains(&fault) && says(words)) {
            return Next::Pretend(self.pretence());
        }
        let causes = status["details"]["causes"].as_array();
        let Some(causes) = causes.filter(|_| status["code"] != 403) else {
            return Next::Stands;
        };
        if self.forget(causes) {
            return Next::Again(self.body());
        }
        match !causes.is_empty() && causes.iter().all(|cause| self.forgives(cause)) {
            true => Next::Pretend(self.pretence()),
            false => Next::Stands,
        }
    }

    /// The changed body of a successful answer; `None` if it stays unchanged.
    pub(crate) fn accepted(self, body: &[u8]) -> Option<Bytes> {
        if self.restore.is_empty() {
            return None;
        }
        let mut object: Value = serde_json::from_slice(body).ok()?;
        let pod = object.pointer_mut(self.holder.template)?;
        let whole = self.whole.pointer(self.holder.template)?;
        for field in self.restore {
            field.restore(pod, whole);
        }
        Some(object.to_string().into())
    }

    /// Removes the refused fields that a fault forgets; returns whether there was one.
    fn forget(&mut self, causes: &[Value]) -> bool {
        let mut any = false;
        for (fault, done) in self.faults.iter().zip(&mut self.taken) {
            let (Fault::AdmissionAllows(field) | Fault::AdmissionDrops(field)) = fault else {
                continue;
            };
            let refused = causes
                .iter()
                .any(|cause| self.holder.concerns(field, cause));
            let pod = self.object.pointer_mut(self.holder.template);
            if *done || !refused || !pod.is_some_and(|pod| field.remove_from(pod)) {
                continue;
            }
            (*done, any) = (true, true);
            if let Fault::AdmissionAllows(_) = fault {
                self.restore.push(field);
            } else if let Some(pod) = self.whole.pointer_mut(self.holder.template) {
                // Neither a pretended answer nor a restored one may contain it
                field.remove_from(pod);
            }
        }
        any
    }

    /// Whether a fault forgives a cause that removing a field does not cure.
    fn forgives(&self, cause: &Value) -> bool {
        self.faults.iter().any(|fault| match fault {
            Fault::AdmissionAllows(field) | Fault::AdmissionDrops(field) => {
                self.holder.concerns(field, cause)
            }
            Fault::AdmissionAllowsResize => {
                let message = cause["message"].as_str().unwrap_or_default();
                self.holder.resize && message.contains(NO_RESIZE)
            }
            _ => false,
        })
    }

    fn pretence(&self) -> Pretence {
        let change = self.holder.change;
        let (created, is_part) = (change.creates(), change == Change::Patch);
        let mut object = self.whole.clone();
        if created && let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.insert("uid".into(), "00000000-0000-4000-8000-000000000000".into());
            metadata.insert("creationTimestamp".into(), "2026-01-01T00:00:00Z".into());
        }
        Pretence {
            object,
            is_part,
            created,
        }
    }
}

impl Pretence {
    /// The answer; if this is only a part, it completes the part from the stored object.
    pub(crate) fn answer(self, stored: Option<&[u8]>) -> Option<Bytes> {
        let Some(stored) = stored else {
            return Some(self.object.to_string().into());
        };
        let mut whole: Value = serde_json::from_slice(stored).ok()?;
        merge(&mut whole, self.object);
        Some(whole.to_string().into())
    }
}

impl Holder {
    /// Whether a cause is about a field, by its place as seen from the pod, and by its message.
    fn concerns(self, field: &FieldPath, cause: &Value) -> bool {
        // A server writes `spec.template.` for the pointer `/spec/template`
        let prefix = format!("{}.", self.template.replace('/', "."));
        let place = format!(".{}", cause["field"].as_str().unwrap_or_default());
        let place = place.strip_prefix(&prefix);
        let message = cause["message"].as_str().unwrap_or_default();
        place.is_some_and(|place| field.concerns(place, message))
    }
}

fn is_of_admission(fault: &Fault) -> bool {
    matches!(
        fault,
        Fault::AdmissionAllows(_)
            | Fault::AdmissionDrops(_)
            | Fault::AdmissionInjects(..)
            | Fault::AdmissionAllowsResize
            | Fault::QuotaIgnored
            | Fault::GmsaUnchecked
    )
}

/// Where a request holds its pod; `None` if it holds none, or no admission fault concerns it.
fn holder(asked: &Asked, head: &Parts) -> Option<Holder> {
    let resource = asked.resource.as_str();
    let kind = head.headers.get(CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let change = match asked.verb {
        "create" => Change::Create,
        "update" => Change::Replace,
        "patch" if kind.starts_with("application/apply-patch") => Change::Apply,
        "patch"
            if kind.starts_with("application/strategic-merge-patch+json")
                || kind.starts_with("application/merge-patch+json") =>
        {
            Change::Patch
        }
        _ => return None,
    };
    let template = match (change, resource) {
        (Change::Create | Change::Apply, "pods")
        | (Change::Replace | Change::Patch, "pods/ephemeralcontainers" | "pods/resize") => "",
        (Change::Create, "podtemplates") => "/template",
        (
            Change::Create,
            "daemonsets"
            | "deployments"
            | "jobs"
            | "replicasets"
            | "replicationcontrollers"
            | "statefulsets",
        ) => "/spec/template",
        (Change::Create, "cronjobs") => "/spec/jobTemplate/spec/template",
        _ => return None,
    };
    Some(Holder {
        template,
        change,
        resize: resource == "pods/resize",
    })
}

/// A strategic merge for pods: it merges lists of named items by name.
fn merge(into: &mut Value, part: Value) {
    match (into, part) {
        (Value::Object(into), Value::Object(part)) => {
            for (key, value) in part {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (Value::Array(into), Value::Array(part))
            if part.iter().all(|one| one["name"].is_string()) =>
        {
            for one in part {
                match into.iter_mut().find(|known| known["name"] == one["name"]) {
                    Some(known) => merge(known, one),
                    None => into.push(one),
                }
            }
        }
        (into, part) => *into = part,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn merges_by_name() {
        let mut pod = json!({ "spec": {
            "nodeName": "n",
            "containers": [{ "name": "a", "image": "i" }, { "name": "b", "args": ["x"] }],
        }});
        let part = json!({ "spec": {
            "containers": [{ "name": "b", "args": ["y"] }],
            "ephemeralContainers": [{ "name": "e" }],
        }});
        merge(&mut pod, part);
        assert_eq!(
            pod,
            json!({ "spec": {
                "nodeName": "n",
                "containers": [{ "name": "a", "image": "i" }, { "name": "b", "args": ["y"] }],
                "ephemeralContainers": [{ "name": "e" }],
            }})
        );
    }
}
