//! Pods that the cluster ends through no fault of what runs in them.

use serde_json::Value as Json;

use crate::method::error::{ErrorKind, ObservationError};
use crate::text::printable;

/// The reasons that clusters give when they end pods; before Kubernetes 1.26 nothing else shows it.
const DISRUPTIONS: [&str; 5] = [
    "Evicted",
    "DeadlineExceeded",
    "Terminated",
    "NodeShutdown",
    "NodeLost",
];

/// Whether the cluster ended a pod, such as by an eviction, a preemption or the shutdown of its node
/// (kubernetes.io, "Pod disruption conditions").
pub fn is_disrupted(pod: &Json) -> bool {
    let status = &pod["status"];
    let mut conditions = status["conditions"].as_array().into_iter().flatten();
    status["phase"] == "Failed"
        && (DISRUPTIONS.iter().any(|reason| status["reason"] == *reason)
            || conditions.any(|one| one["type"] == "DisruptionTarget" && one["status"] == "True"))
}

/// The error for a pod that the cluster ended: it proves nothing.
pub(crate) fn disrupted(pod: &Json) -> ObservationError {
    let of = |value: &Json| printable(value.as_str().unwrap_or_default());
    let (reason, message) = (of(&pod["status"]["reason"]), of(&pod["status"]["message"]));
    let name = of(&pod["metadata"]["name"]);
    let detail = format!("the cluster ended the pod {name}: {reason} {message}");
    ErrorKind::FixtureChanged.error(detail.trim_end())
}

/// The statuses of a pod's containers.
pub(crate) fn statuses(pod: &Json) -> impl Iterator<Item = &Json> {
    let statuses = pod["status"]["containerStatuses"].as_array();
    statuses.into_iter().flatten()
}

/// The reason that a node gives for the end of a container that it lost track of, as after a reboot
/// (containerd, `internal/cri/server/restart.go`, `Unknown`; the kubelet, `ContainerStatusUnknown`).
pub(crate) fn lost_container(pod: &Json) -> Option<&str> {
    statuses(pod).find_map(|status| {
        let reasons =
            ["state", "lastState"].map(|state| status[state]["terminated"]["reason"].as_str());
        let mut reasons = reasons.into_iter().flatten();
        reasons.find(|reason| matches!(*reason, "Unknown" | "ContainerStatusUnknown"))
    })
}

/// The error for restarts of a pod whose node lost its containers: they prove nothing.
pub(crate) fn lost(pod: &str) -> ObservationError {
    let name = printable(pod);
    let detail = format!("the node of {name} lost its containers, as in a reboot");
    ErrorKind::FixtureChanged.error(detail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_pod_is_disrupted_that_has_failed_by_an_eviction_or_says_so_itself() {
        let of = |phase: &str, reason: &str, conditions: &[(&str, &str)]| {
            let conditions = conditions.iter();
            let conditions =
                conditions.map(|(kind, status)| json!({"type": kind, "status": status}));
            let conditions: Vec<_> = conditions.collect();
            let status = json!({"phase": phase, "reason": reason, "conditions": conditions});
            is_disrupted(&json!({"status": status}))
        };
        let target = [("Ready", "False"), ("DisruptionTarget", "True")];
        assert!(of("Failed", "Evicted", &[]));
        assert!(of("Failed", "Terminated", &target));
        assert!(!of("Running", "Evicted", &target));
        assert!(!of("Failed", "Error", &[("Ready", "True")]));
        assert!(!of("Failed", "Error", &[("DisruptionTarget", "False")]));
    }
}
