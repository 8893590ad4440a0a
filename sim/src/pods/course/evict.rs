//! Eviction under memory pressure (kubernetes 1.37.0, `pkg/kubelet/eviction`): the node evicts one
//! pod after the other, pods without requests first.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, PodCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;

use super::run::PodRun;
use crate::fault::{FaultKind, FaultSet};
use crate::nodes::cluster::{Cluster, NodeState};
use crate::nodes::placing;
use crate::pods::reporting::book::NodeVerdict;
use crate::pods::reporting::events;
use crate::pods::spec::resources;
use crate::topology::Os;
use crate::world::Key;

/// The time between two evictions (kubelet, `monitoringInterval`).
const INTERVAL: Duration = Duration::from_secs(10);

/// `scheduling.SystemCriticalPriority`.
const CRITICAL: i32 = 2_000_000_000;

/// Waits until the node evicts the pod. Returns the verdict and the condition to report.
pub(crate) async fn evicted(cluster: &Cluster, run: &Arc<PodRun>) -> (NodeVerdict, PodCondition) {
    if is_critical(&run.pod) {
        return std::future::pending().await;
    }
    let mut faults = cluster.faults.changes();
    let presses = |faults: &FaultSet| run.node.suffers(FaultKind::MemoryPressure, faults);
    loop {
        // This cannot fail: the sender lives in the cluster
        drop(faults.wait_for(presses).await);
        let before = ahead(cluster, run);
        let turn = cluster.clock.pass(INTERVAL * before);
        tokio::select! {
            biased;
            _ = faults.wait_for(|faults| !presses(faults)) => {}
            () = turn => break,
        }
    }
    let message = message(run.node.pool.os());
    events::warning(cluster, run, "Evicted", message.clone());
    ended(cluster, run, "Evicted", message)
}

/// Waits until the node ends the pod before it shuts down (`pkg/kubelet/nodeshutdown/nodeshutdown_manager.go`).
pub(crate) async fn shut_down(cluster: &Cluster, run: &PodRun) -> (NodeVerdict, PodCondition) {
    let mut power = run.node.power.subscribe();
    // This cannot fail: the sender lives in the node
    drop(power.wait_for(|power| power.stops).await);
    // The node says first that it is not Ready, or its pods would be made anew there
    cluster.clock.pass(Duration::from_secs(1)).await;
    let message = "Pod was terminated in response to imminent node shutdown.".to_owned();
    ended(cluster, run, "Terminated", message)
}

/// What a pod is reported with that its node ends.
fn ended(
    cluster: &Cluster,
    run: &PodRun,
    reason: &str,
    message: String,
) -> (NodeVerdict, PodCondition) {
    let condition = PodCondition {
        type_: "DisruptionTarget".to_owned(),
        status: "True".to_owned(),
        reason: Some("TerminationByKubelet".to_owned()),
        message: Some(message.clone()),
        last_transition_time: Some(Time(run.now(cluster))),
        observed_generation: run.pod.metadata.generation,
        ..PodCondition::default()
    };
    let reason = reason.to_owned();
    (NodeVerdict { reason, message }, condition)
}

/// How many pods the node evicts before this one, plus one interval in which it notices the pressure.
fn ahead(cluster: &Cluster, run: &PodRun) -> u32 {
    let own_rank = rank(&run.key, &run.pod);
    let runs = cluster.runs(&run.node);
    let others = runs
        .values()
        .filter(|other| !is_critical(&other.pod) && rank(&other.key, &other.pod) < own_rank);
    1 + u32::try_from(others.count()).unwrap_or(u32::MAX - 1)
}

/// The order of eviction: by `qosClass`, then by priority, then by name.
fn rank<'a>(key: &'a Key, pod: &Pod) -> (u8, i32, &'a Key) {
    let spec = pod.spec.as_ref();
    let class = match spec.map(resources::qos_class) {
        Some("Guaranteed") => 2,
        Some("Burstable") => 1,
        _ => 0,
    };
    let priority = spec.and_then(|spec| spec.priority).unwrap_or(0);
    (class, priority, key)
}

pub(crate) fn is_critical(pod: &Pod) -> bool {
    let spec = pod.spec.as_ref();
    spec.and_then(|spec| spec.priority).unwrap_or(0) >= CRITICAL
}

fn message(os: Os) -> String {
    // `pkg/kubelet/eviction/defaults_{linux,windows}.go`
    let (threshold, available) = match os {
        Os::Linux => ("100Mi", "61424Ki"),
        Os::Windows => ("500Mi", "311200Ki"),
    };
    format!(
        "The node was low on resource: memory. Threshold quantity: {threshold}, available: \
         {available}. "
    )
}

/// Why a node under pressure does not take a pod (`managerImpl.Admit`).
pub(crate) fn refusal(pod: &Pod, node: &NodeState, faults: &FaultSet) -> Option<NodeVerdict> {
    let spec = pod.spec.as_ref()?;
    let presses = node.suffers(FaultKind::MemoryPressure, faults);
    if !presses || is_critical(pod) || resources::qos_class(spec) != "BestEffort" {
        return None;
    }
    let taint = json!({"key": "node.kubernetes.io/memory-pressure", "effect": "NoSchedule"});
    let tolerated = placing::tolerated(&json!(pod), &taint);
    (!tolerated).then(|| NodeVerdict {
        reason: "Evicted".to_owned(),
        message: "The node had condition: [MemoryPressure]. ".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[expect(
        clippy::needless_pass_by_value,
        reason = "tests write it where they call"
    )]
    fn pod(spec: Value) -> Pod {
        serde_json::from_value(json!({"spec": spec})).expect("a pod")
    }

    #[test]
    fn what_asks_for_nothing_goes_first() {
        let key = Key::new("a", "b");
        let limits = json!({"limits": {"cpu": "1", "memory": "1Gi"}});
        let best = pod(json!({"containers": [{"name": "a"}]}));
        let sure = pod(json!({"containers": [{"name": "a", "resources": limits}]}));
        assert!(rank(&key, &best) < rank(&key, &sure));
        let vital = pod(json!({"containers": [], "priority": 2_000_001_000}));
        assert!(is_critical(&vital) && !is_critical(&best));
    }

    #[test]
    fn each_system_has_its_threshold() {
        assert!(message(Os::Windows).contains("Threshold quantity: 500Mi"));
        assert!(message(Os::Linux).contains("Threshold quantity: 100Mi"));
    }
}
