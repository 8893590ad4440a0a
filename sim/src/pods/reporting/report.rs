//! What of a pod's status is sent to the API server, and when (kubernetes 1.37.0,
//! `pkg/kubelet/status/status_manager.go`): what it does not know, and what others have changed.

use std::sync::Mutex;

use k8s_openapi::api::core::v1::{Pod, PodCondition, PodStatus};
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::base::lock::locked;
use crate::nodes::cluster::Cluster;
use crate::pods::course::run::PodRun;

/// Tells the API server of one pod, and nothing twice.
#[derive(Default)]
pub(crate) struct Reporter {
    taken: Mutex<Option<Taken>>,
}

/// What the API server took last.
struct Taken {
    status: PodStatus,
    /// The object's version with it.
    version: u64,
}

impl Taken {
    /// Whether somebody has since set a condition that is the kubelet's to something else, as the node
    /// controller does on nodes that are not ready (`needsReconcile`).
    fn is_contradicted(&self, pod: &Pod) -> bool {
        if version(pod) <= self.version {
            return false;
        }
        let set = pod.status.as_ref().and_then(|set| set.conditions.as_ref());
        let set = set.map_or(&[][..], Vec::as_slice);
        let is_set = |own: &PodCondition| {
            set.iter()
                .any(|one| one.type_ == own.type_ && one.status == own.status)
        };
        !self.status.conditions.iter().flatten().all(is_set)
    }
}

impl Reporter {
    /// Tells the state of the moment, if the API server does not know it.
    pub(crate) async fn report(&self, cluster: &Cluster, run: &PodRun) {
        cluster.heard(&run.node).await;
        let (status, seen) = {
            let mut book = run.book();
            (book.status(&run.node.view), book.pod.clone())
        };
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

    /// Whether what the API server took is not what it now says.
    pub(crate) fn is_contradicted(&self, pod: &Pod) -> bool {
        let taken = locked(&self.taken);
        let taken = taken.as_ref();
        taken.is_some_and(|taken| taken.is_contradicted(pod))
    }
}

/// Versions are numbers that grow (KEP-5504).
fn version(pod: &Pod) -> u64 {
    let version = pod.metadata.resource_version.as_deref().unwrap_or_default();
    version.parse().unwrap_or(0)
}

/// A status as a patch of the one before.
fn written(status: &PodStatus) -> Value {
    let mut status = json!(status);
    if let Some(addresses) = status.get_mut("podIPs").and_then(Value::as_array_mut) {
        // Else the server adds a new address to the old one
        addresses.push(json!({"$patch": "replace"}));
    }
    let conditions = status.get_mut("conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        // Else the server keeps what a condition said when it was another
        for field in ["reason", "message"] {
            if condition.get(field).is_none() {
                condition[field] = Value::Null;
            }
        }
    }
    status
}
