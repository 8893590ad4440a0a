//! How a pod stands, read from its JSON; pure.

use std::time::Duration;

use serde_json::Value as Json;
use tokio::time::Instant;
use winconform_core::text::printable;
use winconform_core::way::{NO_IMAGE, NOT_CREATED, PREPARING, StartFailure, Trouble, TroubleKind};

use super::status::{condition, containers, is, text};
use super::wait::Condition;

/// Whether a pod is Ready, or will never be. Being unschedulable is not yet `Never` here: a fresh
/// pod may be so for a moment; [`PodWait`] knows how long it has lasted.
pub fn readiness(pod: &Json) -> Condition<()> {
    if !pod["metadata"]["deletionTimestamp"].is_null() {
        return Condition::NotYet("it is being deleted".to_owned());
    }
    let status = &pod["status"];
    if status["phase"] == "Failed" || status["phase"] == "Succeeded" {
        return never(kind_of_failure(status), ended(status));
    }
    for container in containers(pod) {
        let waiting = &container["state"]["waiting"];
        let reason = text(&waiting["reason"]);
        let said = told(reason, text(&waiting["message"]));
        let name = printable(text(&container["name"]));
        let last = text(&container["lastState"]["terminated"]["message"]);
        if is_mismatch(text(&waiting["message"])) || is_mismatch(last) {
            return never(
                TroubleKind::BuildMismatch,
                format!("container {name}: {said}"),
            );
        }
        if NO_IMAGE.contains(&reason) {
            return never(TroubleKind::ImagePull, format!("container {name}: {said}"));
        }
        if NOT_CREATED.contains(&reason) || reason == "CrashLoopBackOff" {
            let detail = crashes(pod).unwrap_or_else(|| format!("container {name}: {said}"));
            return never(TroubleKind::FixtureFailed, detail);
        }
    }
    if is(pod, "Ready") {
        return Condition::Done(());
    }
    Condition::NotYet(progress(pod))
}

/// Whether a pod's image is on its node: its container began, however it ended since; `None` while
/// nothing began.
pub fn pulled(pod: &Json) -> Option<Condition<()>> {
    let began = containers(pod).find_map(|container| {
        let state = &container["state"];
        let ended = &state["terminated"];
        (ended.is_object() || state["running"].is_object()).then_some(ended)
    })?;
    // An image of another build is pulled all the same where its name is that of one platform's
    Some(match is_mismatch(text(&began["message"])) {
        true => never(
            TroubleKind::BuildMismatch,
            printable(text(&began["message"])),
        ),
        false => Condition::Done(()),
    })
}

/// Whether it is said where a pod goes, or why nowhere, and with `starts` also whether each of its
/// containers starts there; not what.
pub fn settled(pod: &Json, starts: bool) -> Condition<()> {
    if !pod["metadata"]["deletionTimestamp"].is_null() {
        return Condition::NotYet("it is being deleted".to_owned());
    }
    if pod["spec"]["nodeName"].is_null() {
        return match unscheduled(pod) {
            Some(_) => Condition::Done(()),
            None => Condition::NotYet("the scheduler has said nothing of it yet".to_owned()),
        };
    }
    let ended = pod["status"]["phase"] == "Failed";
    if !starts || ended {
        return Condition::Done(());
    }
    if !have_begun(pod) {
        return Condition::NotYet(progress(pod));
    }
    Condition::Done(())
}

/// Whether each of a pod's containers is past the preparations for it, however it fared since.
pub fn have_begun(pod: &Json) -> bool {
    let expected = pod["spec"]["containers"].as_array().map_or(0, Vec::len);
    let begun = containers(pod).filter(|container| {
        let reason = text(&container["state"]["waiting"]["reason"]);
        let waits = container["state"]["waiting"].is_object();
        let ran = container["lastState"]["terminated"].is_object();
        container["state"].is_object()
            && (ran || !waits || !(reason.is_empty() || PREPARING.contains(&reason)))
    });
    begun.count() >= expected
}

/// Why the scheduler finds no node for a pod, while it finds none.
pub fn unscheduled(pod: &Json) -> Option<String> {
    let scheduled = condition(pod, "PodScheduled")?;
    let unschedulable = scheduled["status"] == "False" && scheduled["reason"] == "Unschedulable";
    unschedulable.then(|| printable(text(&scheduled["message"])))
}

/// Why a pod's container ended, when it has been restarted at least once.
pub fn crashes(pod: &Json) -> Option<String> {
    containers(pod).find_map(|container| {
        let restarts = container["restartCount"]
            .as_u64()
            .filter(|count| *count > 0)?;
        let state = ["lastState", "state"].map(|state| &container[state]["terminated"]);
        let ended = state.into_iter().find(|ended| ended.is_object());
        let how = match ended {
            Some(ended) => {
                let code = ended["exitCode"]
                    .as_i64()
                    .map_or("unknown".into(), |c| c.to_string());
                format!(
                    "{}, exit code {code}",
                    told(text(&ended["reason"]), text(&ended["message"]))
                )
            }
            None => "unknown why".to_owned(),
        };
        let name = printable(text(&container["name"]));
        Some(format!(
            "container {name} ended ({how}) and was restarted {restarts} times"
        ))
    })
}

/// Waits for one pod to be Ready; remembers since when it has been unschedulable.
///
/// Since when is measured by our own clock from our first sight of it: the condition's
/// `lastTransitionTime` is the server's, and clocks differ.
#[derive(Clone, Copy, Debug)]
pub struct PodWait {
    patience: Duration,
    unscheduled: Option<Instant>,
}

impl PodWait {
    /// A wait that takes a pod for unschedulable after it has been so for `patience`.
    pub fn new(patience: Duration) -> Self {
        Self {
            patience,
            unscheduled: None,
        }
    }

    /// Looks at the pod as it is `now`.
    pub fn look(&mut self, pod: &Json, now: Instant) -> Condition<()> {
        let Some(why) = unscheduled(pod) else {
            self.unscheduled = None;
            return readiness(pod);
        };
        let since = *self.unscheduled.get_or_insert(now);
        if now.saturating_duration_since(since) >= self.patience {
            return never(TroubleKind::Unscheduled, why);
        }
        readiness(pod)
    }
}

fn never(kind: TroubleKind, detail: String) -> Condition<()> {
    Condition::Never(Trouble::new(kind, detail))
}

/// What a pod that ended says of it: the kubelet's admission (`PodOSNotSupported`,
/// `NodeAffinity`, `OutOfcpu`), an eviction, a deadline.
fn ended(status: &Json) -> String {
    let phase = printable(text(&status["phase"]));
    let said = told(text(&status["reason"]), text(&status["message"]));
    format!("the pod ended as {phase}: {said}")
}

fn kind_of_failure(status: &Json) -> TroubleKind {
    if is_mismatch(text(&status["message"])) {
        TroubleKind::BuildMismatch
    } else {
        TroubleKind::FixtureFailed
    }
}

fn progress(pod: &Json) -> String {
    if let Some(why) = unscheduled(pod) {
        return format!("no node yet: {why}");
    }
    let waiting = containers(pod).find_map(|container| {
        let waiting = &container["state"]["waiting"];
        let said = told(text(&waiting["reason"]), text(&waiting["message"]));
        waiting
            .is_object()
            .then(|| format!("{}: {said}", printable(text(&container["name"]))))
    });
    waiting.unwrap_or_else(|| match condition(pod, "Ready") {
        Some(ready) if !text(&ready["reason"]).is_empty() => {
            told(text(&ready["reason"]), text(&ready["message"]))
        }
        _ => format!("phase {}", printable(text(&pod["status"]["phase"]))),
    })
}

/// Whether these are words of a runtime about an image that the node cannot run.
pub(super) fn is_mismatch(message: &str) -> bool {
    StartFailure::of(message).is_some()
}

fn told(reason: &str, message: &str) -> String {
    match (reason, message) {
        ("", "") => "no reason given".to_owned(),
        (reason, "") => printable(reason),
        ("", message) => printable(message),
        (reason, message) => format!("{}: {}", printable(reason), printable(message)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn waiting(reason: &str, message: &str) -> Json {
        json!({"status": {"phase": "Pending", "containerStatuses": [{"name": "main",
            "restartCount": 0, "state": {"waiting": {"reason": reason, "message": message}}}]}})
    }

    fn unschedulable() -> Json {
        json!({"status": {"phase": "Pending", "conditions": [{"type": "PodScheduled",
            "status": "False", "reason": "Unschedulable", "message": "0/2 nodes are available"}]}})
    }

    fn trouble(pod: &Json) -> Trouble {
        match readiness(pod) {
            Condition::Never(trouble) => trouble,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn ready_is_done_and_deleted_is_not() {
        let mut pod = json!({"status": {"phase": "Running",
            "conditions": [{"type": "Ready", "status": "True"}]}});
        assert_eq!(readiness(&pod), Condition::Done(()));
        pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert!(matches!(readiness(&pod), Condition::NotYet(_)));
    }

    #[test]
    fn an_image_that_does_not_come() {
        for reason in ["ErrImagePull", "ImagePullBackOff", "InvalidImageName"] {
            let trouble = trouble(&waiting(reason, "not found"));
            assert_eq!(trouble.kind, TroubleKind::ImagePull);
            assert_eq!(
                trouble.detail,
                format!("container main: {reason}: not found")
            );
        }
    }

    #[test]
    fn an_image_of_another_build() {
        for (reason, message) in [
            (
                "ErrImagePull",
                "rpc error: no match for platform in manifest: not found",
            ),
            (
                "ImagePullBackOff",
                "Back-off: no matching manifest for windows(10.0.17763)/amd64",
            ),
            (
                "CreateContainerError",
                "hcs::CreateComputeSystem x: The container operating system \
                does not match the host operating system.: unknown",
            ),
            ("RunContainerError", "hcs::CreateComputeSystem: 0xc0370101"),
        ] {
            assert_eq!(
                trouble(&waiting(reason, message)).kind,
                TroubleKind::BuildMismatch
            );
        }
        // In the crash loop that follows, only the last state tells
        let mut pod = waiting(
            "CrashLoopBackOff",
            "back-off 10s restarting failed container",
        );
        pod["status"]["containerStatuses"][0]["lastState"]["terminated"]["message"] =
            json!("The container operating system does not match the host operating system.");
        assert_eq!(trouble(&pod).kind, TroubleKind::BuildMismatch);
    }

    #[test]
    fn a_pod_the_kubelet_does_not_take() {
        for reason in ["PodOSNotSupported", "NodeAffinity", "OutOfcpu", "Evicted"] {
            let pod = json!({"status": {"phase": "Failed", "reason": reason, "message": "why"}});
            let trouble = trouble(&pod);
            assert_eq!(trouble.kind, TroubleKind::FixtureFailed);
            assert_eq!(
                trouble.detail,
                format!("the pod ended as Failed: {reason}: why")
            );
        }
    }

    #[test]
    fn a_container_that_cannot_be_made_and_one_that_crashes() {
        let config = trouble(&waiting(
            "CreateContainerConfigError",
            "configmap \"x\" not found",
        ));
        assert_eq!(config.kind, TroubleKind::FixtureFailed);
        let mut pod = waiting("CrashLoopBackOff", "back-off");
        pod["status"]["containerStatuses"][0]["restartCount"] = json!(3);
        pod["status"]["containerStatuses"][0]["lastState"]["terminated"] =
            json!({"reason": "Error", "exitCode": 1});
        let said = "container main ended (Error, exit code 1) and was restarted 3 times";
        assert_eq!(crashes(&pod).as_deref(), Some(said));
        assert_eq!(trouble(&pod).detail, said);
        assert_eq!(crashes(&waiting("ContainerCreating", "")), None);
    }

    #[test]
    fn a_pod_is_settled_by_what_was_said_of_it() {
        let is = |pod: &Json, starts| matches!(settled(pod, starts), Condition::Done(()));
        assert!(!is(&json!({"spec": {}, "status": {}}), false));
        assert!(is(&unschedulable(), true));
        let bound = |statuses: &Json| {
            json!({"spec": {"nodeName": "n", "containers": [{"name": "a"}, {"name": "b"}]},
                "status": {"phase": "Pending", "containerStatuses": statuses}})
        };
        let running = json!({"name": "a", "state": {"running": {}}});
        let waiting = |reason: &str| json!({"name": "b", "state": {"waiting": {"reason": reason}}});
        for (second, starts) in [
            (waiting("ContainerCreating"), false),
            (waiting("ErrImagePull"), true),
            (running.clone(), true),
        ] {
            let pod = bound(&json!([running, second]));
            assert!(is(&pod, false));
            assert_eq!(is(&pod, true), starts, "{pod}");
        }
        assert!(!is(&bound(&json!([running])), true));
        let mut going = bound(&json!([]));
        going["metadata"] = json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
        assert!(!is(&going, false));
    }

    #[test]
    fn an_image_is_there_once_its_container_began() {
        let of = |state: Json| {
            pulled(&json!({"status": {"containerStatuses": [{"name": "pull", "state": state}]}}))
        };
        assert_eq!(of(json!({"waiting": {"reason": "ErrImagePull"}})), None);
        assert_eq!(pulled(&json!({})), None);
        assert_eq!(of(json!({"running": {}})), Some(Condition::Done(())));
        let ended = json!({"terminated": {"exitCode": 1, "reason": "Error"}});
        assert_eq!(of(ended), Some(Condition::Done(())));
        let other = json!({"terminated": {"reason": "StartError", "message": "hcs: 0xc0370101"}});
        let Some(Condition::Never(trouble)) = of(other) else {
            panic!("it is of another build")
        };
        assert_eq!(trouble.kind, TroubleKind::BuildMismatch);
    }

    #[test]
    fn unschedulable_is_final_only_after_it_lasted() {
        let mut wait = PodWait::new(Duration::from_secs(10));
        let (pod, begun) = (unschedulable(), Instant::now());
        let at = |seconds| begun + Duration::from_secs(seconds);
        assert!(matches!(wait.look(&pod, at(0)), Condition::NotYet(_)));
        assert!(matches!(wait.look(&pod, at(9)), Condition::NotYet(_)));
        let fresh = json!({"status": {"phase": "Pending"}});
        assert!(matches!(wait.look(&fresh, at(9)), Condition::NotYet(_)));
        assert!(matches!(wait.look(&pod, at(12)), Condition::NotYet(_)));
        let Condition::Never(trouble) = wait.look(&pod, at(22)) else {
            panic!("it lasted")
        };
        assert_eq!(trouble.kind, TroubleKind::Unscheduled);
        assert_eq!(trouble.detail, "0/2 nodes are available");
    }

    #[test]
    fn hostile_and_empty_pods_are_not_yet() {
        for pod in [
            json!({}),
            json!(null),
            json!({"status": {"containerStatuses": "x"}}),
            json!({"status": {"conditions": [1, null], "containerStatuses": [[], 3]}}),
        ] {
            assert!(matches!(readiness(&pod), Condition::NotYet(_)), "{pod}");
            assert_eq!(crashes(&pod), None);
        }
    }
}
