//! When a pod's status is sent to the API server (kubernetes 1.37.0, `pkg/kubelet/status/status_manager.go`):
//! when the server does not have it, or others have changed it.

use std::sync::Mutex;

use k8s_openapi::api::core::v1::{Pod, PodCondition, PodStatus};
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::base::lock::locked;
use crate::fault::FaultKind;
use crate::nodes::cluster::Cluster;
use crate::pods::course::run::PodRun;

/// Reports the status of one pod to the API server, and no status twice.
#[derive(Default)]
pub(crate) struct Reporter {
    taken: Mutex<Option<Taken>>,
}

/// The status that the API server accepted last.
struct Taken {
    status: PodStatus,
    /// The version of the object with this status.
    version: u64,
}

impl Taken {
    /// Whether another component has since changed a condition that the kubelet owns, as the node
    /// controller does on nodes that are not ready (`needsReconcile`).
    fn is_contradicted(&self, pod: &Pod) -> bool {
        if version(pod) <= self.version {
            return false;
        }
        let set = pod.status.as_ref().and_then(|set| set.conditions.as_ref());
        let set = set.map_or(&[][..], Vec::as_slice);
        let is_set = |ours: &PodCondition| {
            set.iter()
                .any(|one| one.type_ == ours.type_ && one.status == ours.status)
        };
        !self.status.conditions.iter().flatten().all(is_set)
    }
}

impl Reporter {
    /// Sends the current status, unless the API server has it already.
    pub(crate) async fn report(&self, cluster: &Cluster, run: &PodRun) {
        cluster.heard(&run.node).await;
        let (mut status, seen) = {
            let mut book = run.book();
            (book.status(&run.node.view), book.pod.clone())
        };
        if run.suffers(FaultKind::ReadyStays, cluster) {
            let taken = locked(&self.taken);
            stay_ready(&mut status, taken.as_ref().map(|taken| &taken.status));
        }
        let is_known = |taken: &Taken| taken.status == status && !taken.is_contradicted(&seen);
        if locked(&self.taken).as_ref().is_some_and(is_known) {
            return;
        }
        let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), &run.key.namespace);
        // The UID guards against a new pod of the same name, as in the kubelet's patches
        let patch = json!({"metadata": {"uid": run.uid}, "status": written(&status)});
        let patch = Patch::Strategic(patch);
        let params = PatchParams::default();
        let (name, what) = (&run.key.name, "pod status");
        let answer = cluster.insist(what, || pods.patch_status(name, &params, &patch));
        match answer.await {
            Ok(pod) => {
                let version = version(&pod);
                *locked(&self.taken) = Some(Taken { status, version });
            }
            Err(error) => tracing::debug!(pod = %run.key, %error, "status is not taken"),
        }
    }

    /// Whether the pod's object contradicts the status that the API server accepted last.
    pub(crate) fn is_contradicted(&self, pod: &Pod) -> bool {
        let taken = locked(&self.taken);
        let taken = taken.as_ref();
        taken.is_some_and(|taken| taken.is_contradicted(pod))
    }
}

/// Leaves the condition Ready of a pod that runs as it was reported, if that was True.
fn stay_ready(status: &mut PodStatus, taken: Option<&PodStatus>) {
    let is_ready = |condition: &&PodCondition| condition.type_ == "Ready";
    let before = taken.and_then(|taken| taken.conditions.iter().flatten().find(is_ready));
    let before = before.filter(|condition| condition.status == "True");
    let runs = status.phase.as_deref() == Some("Running");
    let mut conditions = status.conditions.iter_mut().flatten();
    if let (true, Some(before)) = (runs, before)
        && let Some(ready) = conditions.find(|condition| condition.type_ == "Ready")
    {
        *ready = before.clone();
    }
}

/// Reads an object's version: versions are numbers that grow (KEP-5504).
fn version(pod: &Pod) -> u64 {
    let version = pod.metadata.resource_version.as_deref().unwrap_or_default();
    version.parse().unwrap_or(0)
}

/// Writes a status as a patch of the previous one.
fn written(status: &PodStatus) -> Value {
    let mut status = json!(status);
    if let Some(addresses) = status.get_mut("podIPs").and_then(Value::as_array_mut) {
        // Otherwise the server adds a new address to the old one
        addresses.push(json!({"$patch": "replace"}));
    }
    let conditions = status.get_mut("conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        // Otherwise the server keeps the texts of the condition's previous state
        for field in ["reason", "message"] {
            if condition.get(field).is_none() {
                condition[field] = Value::Null;
            }
        }
    }
    status
}
