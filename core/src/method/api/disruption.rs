//! Pods that end through no fault of what runs in them.

use serde_json::Value as Json;

use crate::method::error::{ErrorKind, ObservationError};
use crate::text::printable;

/// Reasons with which clusters end pods; before Kubernetes 1.26 nothing else tells.
const DISRUPTIONS: [&str; 5] = [
    "Evicted",
    "DeadlineExceeded",
    "Terminated",
    "NodeShutdown",
    "NodeLost",
];

/// Whether the cluster ended a pod for reasons of its own, such as an eviction, a preemption or a node that shut
/// down (kubernetes.io, "Pod disruption conditions").
pub fn is_disrupted(pod: &Json) -> bool {
    let status = &pod["status"];
    let mut conditions = status["conditions"].as_array().into_iter().flatten();
    status["phase"] == "Failed"
        && (DISRUPTIONS.iter().any(|reason| status["reason"] == *reason)
            || conditions.any(|own| own["type"] == "DisruptionTarget" && own["status"] == "True"))
}

/// Why a pod that the cluster ended tells nothing.
pub(crate) fn disrupted(pod: &Json) -> ObservationError {
    let of = |value: &Json| printable(value.as_str().unwrap_or_default());
    let (reason, message) = (of(&pod["status"]["reason"]), of(&pod["status"]["message"]));
    let name = of(&pod["metadata"]["name"]);
    let detail = format!("the cluster ended the pod {name}: {reason} {message}");
    ErrorKind::FixtureChanged.error(detail.trim_end())
}

/// The reason given for the end of a container of which its node knew no more, as after a reboot (containerd,
/// `internal/cri/server/restart.go`, `Unknown`; the kubelet, `ContainerStatusUnknown`).
pub(crate) fn lost_container(pod: &Json) -> Option<&str> {
    let statuses = pod["status"]["containerStatuses"].as_array();
    statuses.into_iter().flatten().find_map(|status| {
        let reason = status["lastState"]["terminated"]["reason"].as_str()?;
        matches!(reason, "Unknown" | "ContainerStatusUnknown").then_some(reason)
    })
}

/// Why restarts of a pod tell nothing.
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
