//! The faults `taint-ignored` and `requests-ignored`: they bind pods that the scheduler refuses to place, as
//! a scheduler without the plugin `TaintToleration` or `NodeResourcesFit` would.

use futures::StreamExt;
use k8s_openapi::api::core::v1::{Node, Pod, Taint};
use kube::api::PostParams;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use super::taints;
use crate::base::fields::Fields;
use crate::fault::{FaultKind, FaultSet};
use crate::nodes::cluster::Cluster;
use crate::nodes::placing::tolerated;
use crate::pods::admit;

/// The namespace of the cluster's components, which stay where the scheduler puts them.
const LEFT_ALONE: &str = "kube-system";

/// Binds pods whenever one of the faults holds, for as long as it holds.
pub(super) async fn follow(cluster: &Cluster) {
    let mut faults = cluster.faults.changes();
    let holds = |faults: &FaultSet| {
        faults.any(FaultKind::TaintIgnored) || faults.any(FaultKind::RequestsIgnored)
    };
    // The sender lives in the cluster
    while faults.wait_for(holds).await.is_ok() {
        // Any change starts again with all waiting pods: the fault may have another place now
        let held = faults.borrow_and_update().clone();
        tokio::select! {
            biased;
            _ = faults.wait_for(|faults| *faults != held) => {}
            () = bind_all(cluster) => {}
        }
    }
}

/// Binds all pods that wait now or later, for ever.
async fn bind_all(cluster: &Cluster) {
    let pods = Api::<Pod>::all(cluster.client.clone());
    let waiting = watcher::Config::default().fields("spec.nodeName=,status.phase=Pending");
    let mut stream = watcher::watcher(pods, waiting).default_backoff().boxed();
    while let Some(event) = stream.next().await {
        match event {
            Ok(Event::InitApply(pod) | Event::Apply(pod)) if is_passed_over(&json!(pod)) => {
                bind(cluster, &pod).await;
            }
            Ok(_) => {}
            Err(error) => tracing::debug!(%error, "watch is restarted"),
        }
    }
}

/// The scheduler's words about a node that a pod cannot go to for a reason that is ignored here (kubernetes
/// 1.37.0, `pkg/scheduler/framework/plugins`: `tainttoleration`, `noderesources`).
const IGNORED: [&str; 2] = ["untolerated taint", "Insufficient "];

/// Whether the scheduler found no node for the pod, and names a reason that is ignored here (`PodScheduled`,
/// `Unschedulable`).
fn is_passed_over(pod: &Value) -> bool {
    let ignored = |message: &str| IGNORED.iter().any(|words| message.contains(words));
    let unschedulable = pod["status"]["conditions"].items().any(|condition| {
        condition["type"] == "PodScheduled"
            && condition["status"] == "False"
            && condition["reason"] == "Unschedulable"
            && ignored(condition["message"].text())
    });
    // A pod that it must avoid may be on a full node; the scheduler's message then names only the missing
    // room
    let avoided = &pod["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    let meta = &pod["metadata"];
    unschedulable
        && avoided.items().len() == 0
        && meta["deletionTimestamp"].is_null()
        && meta["namespace"] != LEFT_ALONE
}

/// Binds the pod to the first node of a fault's place that only an ignored reason keeps it away from: the
/// node's own taints, or the resources that the pod requests.
async fn bind(cluster: &Cluster, pod: &Pod) {
    let faults = cluster.faults.current();
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    let value = json!(pod);
    for node in cluster.nodes.values() {
        let no_taint = node.suffers(FaultKind::TaintIgnored, &faults);
        let no_room = node.suffers(FaultKind::RequestsIgnored, &faults);
        if !(no_taint || no_room) || !admit::takes(cluster, pod, node, no_room) {
            continue;
        }
        let Ok(Some(object)) = nodes.get_opt(&node.name).await else {
            continue;
        };
        let own_taints = taints(node, &faults);
        let there = object.spec.and_then(|spec| spec.taints).unwrap_or_default();
        let keeps = |taint: &&Taint| {
            let effect = taint.effect.as_str();
            matches!(effect, "NoSchedule" | "NoExecute") && !tolerated(&value, &json!(taint))
        };
        let is_own = |taint: &Taint| no_taint && own_taints.iter().any(|one| one.key == taint.key);
        if !there.iter().filter(keeps).all(is_own) {
            continue;
        }
        let (name, namespace) = (pod.name_any(), pod.namespace().unwrap_or_default());
        let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), &namespace);
        let binding = json!({
            "apiVersion": "v1", "kind": "Binding",
            "metadata": {"name": name, "namespace": namespace, "uid": pod.metadata.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node.name},
        });
        let post = PostParams::default();
        let bound = cluster.insist("binding", || {
            pods.create_subresource::<_, Value>("binding", &name, &post, &binding)
        });
        if let Err(error) = bound.await {
            // The pod was deleted, or the scheduler has bound it
            tracing::debug!(pod = name, %error, "the pod is not bound");
        }
        return;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_scheduler_has_passed_over_is_bound() {
        let says = |message: &str, affinity: Value, namespace: &str, reason: &str| {
            let condition = json!({"type": "PodScheduled", "status": "False", "reason": reason,
                "message": message});
            json!({"metadata": {"name": "p", "namespace": namespace},
                "spec": {"containers": [], "affinity": affinity},
                "status": {"conditions": [condition]}})
        };
        let full = "0/1 nodes are available: 1 Insufficient cpu.";
        let pod = |namespace: &str, reason: &str| says(full, json!({}), namespace, reason);
        for (message, ignored) in [
            (full, true),
            (
                "0/1 nodes are available: 1 node(s) had untolerated taint(s).",
                true,
            ),
            (
                "0/1 nodes are available: 1 node(s) had untolerated taint {os: windows}.",
                true,
            ),
            (
                "0/1 nodes are available: 1 node(s) didn't match pod affinity rules.",
                false,
            ),
            ("", false),
        ] {
            let pod = says(message, json!({}), "test", "Unschedulable");
            assert_eq!(is_passed_over(&pod), ignored, "{message}");
        }
        let required = |kind: &str| {
            let term = json!({"topologyKey": "kubernetes.io/hostname"});
            json!({kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}})
        };
        let beside = |kind: &str| says(full, required(kind), "test", "Unschedulable");
        assert!(is_passed_over(&beside("podAffinity")));
        assert!(!is_passed_over(&beside("podAntiAffinity")));
        assert!(is_passed_over(&pod("test", "Unschedulable")));
        assert!(!is_passed_over(&pod("test", "SchedulingGated")));
        assert!(!is_passed_over(&pod("kube-system", "Unschedulable")));
        assert!(!is_passed_over(&json!({})));
    }
}
