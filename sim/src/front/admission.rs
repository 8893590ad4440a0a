//! Admission faults: Windows pods sent with a field less or more, and returned with it again.
//!
//! Only what is created is touched (also with a dry run), as a pod or as a workload's template; a
//! later read shows what the server stored.

use bytes::Bytes;
use serde_json::Value;

use super::asked::Asked;
use super::fault::FrontFault;
use super::field::Taken;

/// A request as it is sent instead, and what its answer will need.
#[derive(Debug)]
pub(super) struct Altered {
    pub(super) body: Bytes,
    /// The names of the faults that changed it.
    pub(super) by: Vec<&'static str>,
    template: &'static str,
    restore: Vec<Taken>,
}

/// What the faults make of a request; none if they do not concern it.
pub(super) fn alter(faults: &[FrontFault], asked: &Asked, body: &[u8]) -> Option<Altered> {
    if asked.kind.verb != "create" {
        return None;
    }
    let template = template(&asked.kind.resource)?;
    let mut object: Value = serde_json::from_slice(body).ok()?;
    let pod = object.pointer_mut(template)?;
    if pod.pointer("/spec/os/name")?.as_str()? != "windows" {
        return None;
    }
    let mut by = Vec::new();
    let mut restore = Vec::new();
    for fault in faults {
        match fault {
            FrontFault::Harness { .. } => continue,
            FrontFault::AdmissionAllows { field } => {
                let taken = field.take(pod);
                if taken.is_empty() {
                    continue;
                }
                restore.extend(taken);
            }
            FrontFault::AdmissionDrops { field } => {
                if field.take(pod).is_empty() {
                    continue;
                }
            }
            FrontFault::AdmissionInjects { field, value } => field.set(pod, value),
        }
        by.push(fault.name());
    }
    if by.is_empty() {
        return None;
    }
    Some(Altered {
        body: object.to_string().into(),
        by,
        template,
        restore,
    })
}

impl Altered {
    /// The answer as the client sees it; none if it stays as the server sent it.
    pub(super) fn answer(self, body: &[u8]) -> Option<Bytes> {
        if self.restore.is_empty() {
            return None;
        }
        let mut object: Value = serde_json::from_slice(body).ok()?;
        let pod = object.pointer_mut(self.template)?;
        for taken in self.restore {
            taken.restore(pod);
        }
        Some(object.to_string().into())
    }
}

/// Where a resource holds its pod, as a JSON pointer.
fn template(resource: &str) -> Option<&'static str> {
    Some(match resource {
        "pods" => "",
        "podtemplates" => "/template",
        "daemonsets"
        | "deployments"
        | "jobs"
        | "replicasets"
        | "replicationcontrollers"
        | "statefulsets" => "/spec/template",
        "cronjobs" => "/spec/jobTemplate/spec/template",
        _ => return None,
    })
}
