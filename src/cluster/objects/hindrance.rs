//! Reads from JSON, without I/O, why pods are not created or do not run where their own status does not show
//! it.

use serde_json::Value as Json;
use winconform_core::method::{ErrorKind, ObservationError};
use winconform_core::text::printable;

use super::pods::{is_impossible, is_mismatch};
use super::status::{condition, is};

/// A reason why pods are not created or do not run.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Hindrance {
    pub error: ObservationError,
    /// Whether it is permanent. Others may pass, such as the lag of a controller's caches or a network plugin
    /// that is still starting.
    pub lasting: bool,
}

/// Messages of admission that mean a permanent refusal: plugin `ResourceQuota`, plugin PodSecurity, webhooks
/// (apiserver `pkg/admission`).
const REFUSALS: [&str; 4] = [
    "exceeded quota",
    "failed quota",
    "violates PodSecurity",
    "denied the request",
];

/// Why a Deployment's pods are not even created: its condition `ReplicaFailure`.
pub fn refused(deployment: &Json) -> Option<Hindrance> {
    let failure = condition(deployment, "ReplicaFailure")?;
    if failure["status"] != "True" {
        return None;
    }
    Some(refusal(&failure["message"]))
}

/// Why the pods of another workload are not even created: an event with the reason `FailedCreate`.
pub fn refused_creation(event: &Json) -> Option<Hindrance> {
    // It stays when the cause is gone
    (event["reason"] == "FailedCreate").then(|| Hindrance {
        lasting: false,
        ..refusal(&event["message"])
    })
}

/// Why a DaemonSet makes no pod: its controller has looked, and found no node for one.
pub fn without_nodes(daemon_set: &Json) -> Option<Hindrance> {
    let status = &daemon_set["status"];
    let has_looked = status["observedGeneration"] == daemon_set["metadata"]["generation"]
        && status["observedGeneration"].is_number();
    (has_looked && status["desiredNumberScheduled"] == 0).then(|| Hindrance {
        error: ErrorKind::Unscheduled.error("the DaemonSet finds no node for its pods"),
        lasting: false,
    })
}

fn refusal(message: &Json) -> Hindrance {
    let message = message.as_str().unwrap_or("no message");
    let detail = format!("its pods are refused: {}", printable(message));
    Hindrance {
        // A refusal by the cluster's policies is no failure of the cluster
        error: ErrorKind::Forbidden.error(detail),
        lasting: REFUSALS.iter().any(|words| message.contains(words)),
    }
}

/// Whether a pod waits for its sandbox. From 1.29 on a condition shows this (KEP-3085); before, a pod that
/// pulls images is in the same state.
pub fn awaits_sandbox(pod: &Json) -> bool {
    let (bound, has_sandbox) = (
        is(pod, "PodScheduled"),
        is(pod, "PodReadyToStartContainers"),
    );
    bound && pod["status"]["phase"] == "Pending" && !has_sandbox
}

/// Why a pod has no sandbox, or waits for its volumes: an event about one of these (the kubelet,
/// `pkg/kubelet/events/event.go`; the controller that attaches volumes), or about a claim for which no volume is made
/// (kubernetes-sigs/sig-storage-lib-external-provisioner, `controller/controller.go`).
pub fn of_event(event: &Json) -> Option<Hindrance> {
    let message = event["message"].as_str().unwrap_or("no message");
    let (kind, lasting) = match event["reason"].as_str()? {
        "FailedCreatePodSandBox" if is_mismatch(message) => {
            (ErrorKind::BuildMismatch, is_impossible(message))
        }
        "FailedCreatePodSandBox" => (ErrorKind::SandboxFailed, is_impossible(message)),
        "FailedAttachVolume" | "FailedMapVolume" | "FailedMount" | "ProvisioningFailed" => {
            (ErrorKind::FixtureFailed, false)
        }
        _ => return None,
    };
    let of = &event["involvedObject"];
    let what = match of["kind"] == "PersistentVolumeClaim" {
        true => "claim",
        false => "pod",
    };
    let name = printable(of["name"].as_str().unwrap_or_default());
    let detail = format!("{what} {name}: {}", printable(message));
    Some(Hindrance {
        error: kind.error(detail),
        lasting,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn deployment(message: &str) -> Json {
        json!({"status": {"conditions": [
            {"type": "Progressing", "status": "True", "reason": "NewReplicaSetCreated"},
            {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate",
                "message": message}]}})
    }

    #[test]
    fn a_quota_pod_security_and_webhooks_refuse_for_good() {
        for message in [
            "pods \"a-x\" is forbidden: exceeded quota: q, requested: pods=1, used: pods=0, \
             limited: pods=0",
            "pods \"a-x\" is forbidden: failed quota: q: must specify limits.cpu for: main",
            "pods \"a-x\" is forbidden: violates PodSecurity \"restricted:latest\": \
             runAsNonRoot != true",
            "admission webhook \"w.example.com\" denied the request: no selector",
        ] {
            let found = refused(&deployment(message)).expect("refused");
            assert!(found.lasting, "{message}");
            assert_eq!(found.error.kind, ErrorKind::Forbidden);
            assert!(found.error.detail.ends_with(message), "{found:?}");
        }
    }

    #[test]
    fn a_cache_that_lags_refuses_for_a_moment() {
        let lag = "pods \"a-x\" is forbidden: no PriorityClass with name winconform-r1 was found";
        assert!(refused(&deployment(lag)).is_some_and(|found| !found.lasting));
        let mut over = deployment(lag);
        over["status"]["conditions"][1]["status"] = json!("False");
        assert_eq!(refused(&over), None);
        assert_eq!(refused(&json!({})), None);
    }

    #[test]
    fn a_sandbox_that_cannot_be_is_told_from_one_that_is_late() {
        let event = |message: &str| {
            json!({"reason": "FailedCreatePodSandBox", "message": message,
                "involvedObject": {"name": "p"}})
        };
        let of = |message: &str| of_event(&event(message)).expect("it failed");
        let handler = of(
            "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to \
            get sandbox runtime: no runtime for \"nvidia\" is configured",
        );
        assert!(handler.lasting);
        assert_eq!(handler.error.kind, ErrorKind::SandboxFailed);
        let pause = of(
            "Failed to create pod sandbox: hcs::CreateComputeSystem x: The container \
            operating system does not match the host operating system.: unknown",
        );
        assert!(pause.lasting);
        assert_eq!(pause.error.kind, ErrorKind::BuildMismatch);
        let network = of("Failed to create pod sandbox: plugin type=\"win-bridge\" failed (add)");
        assert!(!network.lasting);
        let detail = network.error.detail;
        assert!(detail.starts_with("pod p: Failed to create"), "{detail}");
        let mut other = event("x");
        other["reason"] = json!("BackOff");
        assert_eq!(of_event(&other), None);
        other["reason"] = json!("FailedMount");
        let volume = of_event(&other).expect("it failed");
        assert!(!volume.lasting);
        assert_eq!(volume.error.detail, "pod p: x");
        other["reason"] = json!("ProvisioningFailed");
        other["involvedObject"]["kind"] = json!("PersistentVolumeClaim");
        let claim = of_event(&other).expect("it failed");
        assert_eq!(claim.error.detail, "claim p: x");
    }

    #[test]
    fn a_pod_awaits_its_sandbox_until_its_status_says_otherwise() {
        let pod = |phase: &str, made: Option<&str>| {
            let mut conditions = vec![json!({"type": "PodScheduled", "status": "True"})];
            let made =
                made.map(|made| json!({"type": "PodReadyToStartContainers", "status": made}));
            conditions.extend(made);
            json!({"status": {"phase": phase, "conditions": conditions}})
        };
        assert!(awaits_sandbox(&pod("Pending", None)));
        assert!(awaits_sandbox(&pod("Pending", Some("False"))));
        assert!(!awaits_sandbox(&pod("Pending", Some("True"))));
        assert!(!awaits_sandbox(&pod("Running", None)));
        assert!(!awaits_sandbox(&json!({"status": {"phase": "Pending"}})));
    }
}
