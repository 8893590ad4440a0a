//! Whether a pod's containers started, read from its status.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::method::failure::StartFailure;
use crate::text::printable;

/// Whether a pod's containers started.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    Started,
    /// A container did not start because of what its image is.
    Unfit {
        container: String,
        class: StartFailure,
        /// The kubelet's words.
        words: String,
    },
    /// The kubelet did not get a container's image, for another reason.
    NoImage {
        container: String,
        /// The kubelet's words.
        words: String,
    },
    /// A container did not start in another way, or the kubelet refused the pod.
    Failed {
        /// The kubelet's words.
        words: String,
    },
    /// The status does not show it yet.
    Open {
        /// How far the start is.
        words: String,
    },
}

impl Start {
    /// Reads the status of a pod that is bound.
    pub(super) fn read(pod: &Json) -> Self {
        let status = &pod["status"];
        if status["phase"] == "Failed" && status["containerStatuses"].is_null() {
            let words = said(&status["reason"], &status["message"]);
            return Self::Failed { words };
        }
        let known = status["containerStatuses"].as_array();
        let names = pod["spec"]["containers"].as_array().into_iter().flatten();
        let each = names.map(|container| {
            let name = container["name"].as_str().unwrap_or_default();
            let status = known
                .into_iter()
                .flatten()
                .find(|status| status["name"] == name);
            match status {
                Some(status) => Self::of_container(name, status),
                None => Self::Open {
                    words: format!("{}: no status yet", printable(name)),
                },
            }
        });
        // A failed container decides before an open one
        each.max_by_key(Self::weight).unwrap_or(Self::Open {
            words: "it has no containers".to_owned(),
        })
    }

    fn weight(&self) -> u8 {
        match self {
            Self::Started => 0,
            Self::Open { .. } => 1,
            Self::NoImage { .. } => 2,
            Self::Failed { .. } => 3,
            Self::Unfit { .. } => 4,
        }
    }

    fn of_container(name: &str, status: &Json) -> Self {
        let container = printable(name);
        let [state, last] = ["state", "lastState"].map(|key| &status[key]);
        let waiting = &state["waiting"];
        let ended = [state, last].map(|state| &state["terminated"]);
        let not_begun = ended
            .into_iter()
            .find(|ended| NEVER_RAN.iter().any(|reason| ended["reason"] == *reason));
        let why = [Some(waiting), not_begun].into_iter().flatten();
        let why: Vec<_> = why.filter(|why| why.is_object()).collect();
        let unfit = why.iter().find_map(|why| {
            let words = said(&why["reason"], &why["message"]);
            Some((StartFailure::from_words(&words)?, words))
        });
        if let Some((class, words)) = unfit {
            return Self::Unfit {
                container,
                class,
                words,
            };
        }
        let reason = waiting["reason"].as_str().unwrap_or_default();
        let causes = [waiting, &state["terminated"]];
        let cause = causes.into_iter().find(|cause| cause.is_object());
        let cause = cause.unwrap_or(waiting);
        let words = format!("{container}: {}", said(&cause["reason"], &cause["message"]));
        match reason {
            // Kubelets before 1.31 report only the back-off here, and the cause a moment before
            "ImagePullBackOff" if !words.contains("ErrImagePull") => Self::Open { words },
            reason if NO_IMAGE.contains(&reason) => Self::NoImage { container, words },
            _ if not_begun.is_some() => Self::Failed { words },
            reason if NOT_CREATED.contains(&reason) => Self::Failed { words },
            // A container that waited when the cluster ended its pod is also reported as `LOST`
            _ if state["running"].is_object()
                || (ended.iter()).any(|ended| ended.is_object() && ended["reason"] != LOST) =>
            {
                Self::Started
            }
            _ => Self::Open { words },
        }
    }
}

/// The reasons for the end of a container that never ran (`kuberuntime`, `ErrRunContainer`; Docker's).
pub const NEVER_RAN: [&str; 2] = ["StartError", "ContainerCannotRun"];

/// The reason for the end of a container that its kubelet lost track of.
const LOST: &str = "ContainerStatusUnknown";

/// The waiting reasons of a container that has not started (the kubelet, `pkg/kubelet/kubelet_pods.go`).
pub const PREPARING: [&str; 2] = ["ContainerCreating", "PodInitializing"];

/// Waiting reasons of `pkg/kubelet/images`: the kubelet does not get the image.
pub const NO_IMAGE: [&str; 7] = [
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "ImageInspectError",
    "RegistryUnavailable",
    "SignatureValidationFailed",
];

/// Waiting reasons of `pkg/kubelet/kuberuntime`: the container is not created or does not run.
pub const NOT_CREATED: [&str; 4] = [
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
    "PostStartHookError",
];

fn said(reason: &Json, message: &Json) -> String {
    let [reason, message] = [reason, message].map(|text| printable(text.as_str().unwrap_or("")));
    match (reason.is_empty(), message.is_empty()) {
        (true, true) => "nothing said".to_owned(),
        (true, false) => message,
        (false, true) => reason,
        (false, false) => format!("{reason}: {message}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const PLATFORM: &str = "rpc error: code = NotFound desc = failed to pull and unpack image \
        \"mcr.microsoft.com/windows/servercore:ltsc2022\": no match for platform in manifest: not \
        found";
    const BUILD: &str = "failed to create containerd task: failed to create shim task: \
        hcs::CreateComputeSystem x: The container operating system does not match the host operating \
        system.: unknown";

    fn pod(statuses: &Json) -> Json {
        json!({"spec": {"containers": [{"name": "a"}, {"name": "b"}]},
            "status": {"phase": "Pending", "containerStatuses": statuses}})
    }

    fn start(b: &Json) -> Start {
        let mut b = b.clone();
        b["name"] = json!("b");
        let a = json!({"name": "a", "state": {"running": {}}});
        Start::read(&pod(&json!([a, b])))
    }

    fn waiting(reason: &str, message: &str) -> Json {
        json!({"state": {"waiting": {"reason": reason, "message": message}}})
    }

    fn class(start: &Start) -> Option<StartFailure> {
        match start {
            Start::Unfit {
                class, container, ..
            } if container == "b" => Some(*class),
            _ => None,
        }
    }

    #[test]
    fn an_image_that_does_not_fit_is_told_by_the_runtimes_words() {
        for message in [
            PLATFORM.to_owned(),
            format!("Back-off pulling image \"x\": ErrImagePull: {PLATFORM}"),
        ] {
            let seen = start(&waiting("ErrImagePull", &message));
            assert_eq!(class(&seen), Some(StartFailure::WrongPlatform), "{seen:?}");
        }
        let ended = json!({"reason": "StartError", "exitCode": 128, "message": BUILD});
        for status in [
            json!({"state": {"terminated": ended}}),
            json!({"state": {"waiting": {"reason": "CrashLoopBackOff"}},
                "lastState": {"terminated": ended}}),
            waiting("RunContainerError", BUILD),
        ] {
            let seen = start(&status);
            assert_eq!(class(&seen), Some(StartFailure::WrongBuild), "{seen:?}");
        }
    }

    #[test]
    fn what_fails_otherwise_is_told_apart_from_what_is_open() {
        let no_image = start(&waiting("ErrImagePull", "dial tcp: i/o timeout"));
        assert!(matches!(no_image, Start::NoImage { .. }), "{no_image:?}");
        // As kubelets before 1.31 report it: the cause was in the state before
        let cut = start(&waiting("ImagePullBackOff", "Back-off pulling image \"x\""));
        assert!(matches!(cut, Start::Open { .. }), "{cut:?}");
        let creating = start(&waiting("ContainerCreating", ""));
        assert!(matches!(creating, Start::Open { .. }), "{creating:?}");
        let failed = start(&waiting(
            "CreateContainerError",
            "context deadline exceeded",
        ));
        assert!(matches!(failed, Start::Failed { .. }), "{failed:?}");
        let refused = json!({"spec": {"containers": [{"name": "a"}]}, "status":
            {"phase": "Failed", "reason": "PodOSNotSupported"}});
        let refused = Start::read(&refused);
        assert!(matches!(refused, Start::Failed { .. }), "{refused:?}");
        let none = Start::read(&pod(&json!([])));
        assert!(matches!(none, Start::Open { .. }), "{none:?}");
    }

    #[test]
    fn what_ran_has_started_however_it_ended() {
        let ended = json!({"reason": "Error", "exitCode": -1_073_741_502});
        for status in [
            json!({"state": {"running": {}}}),
            json!({"state": {"terminated": ended}}),
            json!({"state": {"waiting": {"reason": "CrashLoopBackOff"}},
                "lastState": {"terminated": ended}}),
        ] {
            assert_eq!(start(&status), Start::Started);
        }
    }

    #[test]
    fn what_failed_says_more_than_what_started_wherever_it_stands() {
        let mut first = waiting("CreateContainerError", "x");
        first["name"] = json!("a");
        let second = json!({"name": "b", "state": {"running": {}}});
        let failed = Start::read(&pod(&json!([first, second])));
        assert!(matches!(failed, Start::Failed { .. }), "{failed:?}");
    }

    #[test]
    fn a_container_that_ended_before_it_ran_has_failed() {
        let ended = json!({"reason": "StartError", "exitCode": 128, "message": "x"});
        let failed = start(&json!({"state": {"terminated": ended}}));
        let words = "b: StartError: x".to_owned();
        assert_eq!(failed, Start::Failed { words });
    }

    #[test]
    fn a_pull_that_is_backed_off_from_tells_its_cause_on_newer_kubelets() {
        let told = "Back-off pulling image \"x\": ErrImagePull: i/o timeout";
        let no_image = start(&waiting("ImagePullBackOff", told));
        assert!(matches!(no_image, Start::NoImage { .. }), "{no_image:?}");
    }

    #[test]
    fn nobody_knows_whether_a_container_started_that_its_kubelet_has_lost() {
        let lost = json!({"reason": LOST, "exitCode": 137, "message": "gone"});
        let open = start(&json!({"state": {"terminated": lost}}));
        let words = "b: ContainerStatusUnknown: gone".to_owned();
        assert_eq!(open, Start::Open { words });
    }

    #[test]
    fn a_pod_of_which_nothing_is_said_yet_has_not_failed() {
        let silent = json!({"spec": {"containers": [{"name": "a"}]}, "status":
            {"phase": "Pending"}});
        let open = Start::read(&silent);
        assert!(matches!(open, Start::Open { .. }), "{open:?}");
    }
}
