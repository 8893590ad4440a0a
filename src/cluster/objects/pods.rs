//! Reads the state of a pod from its JSON, without I/O.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value as Json;
use tokio::time::Instant;
use winconform_core::config::{Durations, Limits};
use winconform_core::method::{
    ErrorKind, NEVER_RAN, NO_IMAGE, NOT_CREATED, ObservationError, PREPARING, Said, StartFailure,
};
use winconform_core::text::{exit_code, printable};

use super::status::{condition, containers, is, text};
use super::wait::Condition;
use crate::transport::Api;

/// Whether a pod is Ready, or will never be. A failure that may pass is not `Never` here: a new pod may be
/// unschedulable for a moment, and a registry may limit its rate; [`PodWait`] knows how long it has lasted.
pub fn readiness(pod: &Json) -> Condition<()> {
    if !pod["metadata"]["deletionTimestamp"].is_null() {
        return Condition::NotYet("it is being deleted".to_owned());
    }
    let status = &pod["status"];
    if is_over(pod) {
        let kind = match is_mismatch(text(&status["message"])) {
            true => ErrorKind::BuildMismatch,
            false => ErrorKind::FixtureFailed,
        };
        return never(kind, ended(status));
    }
    match failure(pod) {
        Some(failure) if failure.may_pass => Condition::NotYet(failure.error.detail),
        Some(failure) => Condition::Never(failure.error),
        None if is(pod, "Ready") => Condition::Done(()),
        None => Condition::NotYet(progress(pod)),
    }
}

/// Whether a pod has ended for good.
pub fn is_over(pod: &Json) -> bool {
    let phase = &pod["status"]["phase"];
    phase == "Failed" || phase == "Succeeded"
}

/// A failure to pull the image of a container, or to start it.
struct Failure {
    error: ObservationError,
    may_pass: bool,
    /// Whether the container ran before, which proves that it can start.
    ran: bool,
    restarts: u64,
    reason: String,
    message: String,
}

/// Waiting reasons of a container whose image can never be pulled, whatever the message is.
const NO_SUCH_IMAGE: [&str; 3] = [
    "InvalidImageName",
    "ErrImageNeverPull",
    "SignatureValidationFailed",
];

/// Messages of registries about an image that does not exist, or that needs other credentials (distribution's
/// `errcode`, containerd's resolver), in lower case.
const NOT_TO_BE_HAD: [&str; 5] = [
    "manifest unknown",
    "not found",
    "unauthorized",
    "access denied",
    "denied: ",
];

/// Windows' message about a layer that it cannot access at the moment, in lower case.
const BUSY: &str = "element not found";

/// Messages of runtimes and kubelets about a sandbox or container that can never start as specified:
/// containerd lacks the handler, the RuntimeClass is gone, the image does not know the user, or the pod lacks
/// an address that EKS's webhook gives when a pod is created and never later (kubernetes#78429).
const IMPOSSIBLE: [&str; 4] = [
    "no runtime for",
    "failed to lookup RuntimeClass",
    "The user name or password is incorrect",
    "pod does not have label vpc.amazonaws.com/PrivateIPv4Address",
];

/// Whether a message is about a start that can never succeed as specified.
pub(crate) fn is_impossible(message: &str) -> bool {
    is_mismatch(message) || IMPOSSIBLE.iter().any(|words| message.contains(words))
}

/// Waiting reasons of containers that the kubelet tries again later; an earlier reason names the failure.
const BACK_OFF: [&str; 2] = ["ImagePullBackOff", CRASHES];
const CRASHES: &str = "CrashLoopBackOff";

fn failure(pod: &Json) -> Option<Failure> {
    let deleted = !pod["metadata"]["deletionTimestamp"].is_null();
    if deleted || is_over(pod) {
        return None;
    }
    containers(pod).find_map(|container| {
        let waiting = &container["state"]["waiting"];
        let (reason, message) = (text(&waiting["reason"]), text(&waiting["message"]));
        let ended = &container["lastState"]["terminated"];
        let last = text(&ended["message"]);
        let name = printable(text(&container["name"]));
        let detail = format!("container {name}: {}", describe(reason, message));
        let (kind, detail, may_pass) = if is_mismatch(message) || is_mismatch(last) {
            (ErrorKind::BuildMismatch, detail, false)
        } else if NO_IMAGE.contains(&reason) {
            let lower = message.to_lowercase().replace(BUSY, "");
            let gone = NOT_TO_BE_HAD.iter().any(|words| lower.contains(words));
            let may_pass = !gone && !NO_SUCH_IMAGE.contains(&reason);
            (ErrorKind::ImagePull, detail, may_pass)
        } else if NOT_CREATED.contains(&reason) || reason == CRASHES {
            let impossible = [message, last].into_iter().any(is_impossible);
            let may_pass = !impossible && reason != "CreateContainerConfigError";
            let detail = crashes(pod).unwrap_or(detail);
            (ErrorKind::FixtureFailed, detail, may_pass)
        } else {
            return None;
        };
        Some(Failure {
            error: kind.error(detail),
            may_pass,
            ran: reason == CRASHES && ended["reason"] != "StartError",
            restarts: container["restartCount"].as_u64().unwrap_or(0),
            reason: reason.to_owned(),
            message: message.to_owned(),
        })
    })
}

/// Whether a pod's image is on its node: its container began, however it ended since; `None` while no
/// container began.
pub fn pulled(pod: &Json) -> Option<Condition<()>> {
    let began = containers(pod).find_map(|container| {
        let state = &container["state"];
        let ended = &state["terminated"];
        (ended.is_object() || state["running"].is_object()).then_some(ended)
    })?;
    // The kubelet also pulls an image of another build, if its name refers to one platform only
    Some(match is_mismatch(text(&began["message"])) {
        true => never(ErrorKind::BuildMismatch, printable(text(&began["message"]))),
        false => Condition::Done(()),
    })
}

fn settled(pod: &Json, starts: bool) -> Condition<()> {
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
    match !starts || ended || have_begun(pod) {
        true => Condition::Done(()),
        false => Condition::NotYet(progress(pod)),
    }
}

/// Whether each of a pod's containers is past its preparations, whatever happened to it since.
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

/// Why the scheduler currently finds no node for a pod, if it finds none.
pub fn unscheduled(pod: &Json) -> Option<String> {
    let scheduled = condition(pod, "PodScheduled")?;
    let unschedulable = scheduled["status"] == "False" && scheduled["reason"] == "Unschedulable";
    unschedulable.then(|| printable(text(&scheduled["message"])))
}

/// Why a container of a pod that is over never ran.
fn not_started(container: &Json) -> Option<ObservationError> {
    let name = printable(text(&container["name"]));
    if container["state"]["waiting"].is_object() {
        // An init container failed before
        let detail = format!("container {name} never ran");
        return Some(ErrorKind::FixtureFailed.error(detail));
    }
    let ended = &container["state"]["terminated"];
    let (reason, message) = (text(&ended["reason"]), text(&ended["message"]));
    let kind = match is_mismatch(message) {
        true => ErrorKind::BuildMismatch,
        false => ErrorKind::FixtureFailed,
    };
    let detail = format!("container {name}: {}", describe(reason, message));
    NEVER_RAN.contains(&reason).then(|| kind.error(detail))
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
                    .map_or("unknown".into(), exit_code);
                format!(
                    "{}, exit code {code}",
                    describe(text(&ended["reason"]), text(&ended["message"]))
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

/// Waits for several pods, by name.
#[derive(Clone, Debug)]
pub struct PodWaits {
    new: PodWait,
    waits: BTreeMap<String, PodWait>,
}

impl PodWaits {
    pub fn new(api: &Api) -> Self {
        Self {
            new: PodWait::new(api.durations(), api.limits()),
            waits: BTreeMap::new(),
        }
    }

    /// The wait for a pod, which could not be observed while the server was last `away`.
    pub fn entry(&mut self, name: &str, away: Option<Instant>) -> &mut PodWait {
        let wait = self.waits.entry(name.to_owned());
        let wait = wait.or_insert_with(|| self.new.clone());
        wait.unseen(away);
        wait
    }
}

/// Waits for one pod to be Ready; remembers since when it has been unschedulable or failing.
///
/// Our own clock measures this from the first observation: the condition's `lastTransitionTime` is the
/// server's, and clocks differ.
#[derive(Clone, Debug)]
pub struct PodWait {
    patience: Duration,
    patience_with_failing: Duration,
    retries: u64,
    unscheduled: Option<Unscheduled>,
    failing: Option<Failing>,
}

/// That the scheduler finds no node for a pod, for one kind of reason.
#[derive(Clone, Copy, Debug)]
struct Unscheduled {
    since: Instant,
    /// Whether it may come by itself: other pods have what is lacking, or a volume is being made.
    may_come_free: bool,
}

/// The failure of a pod that goes on.
#[derive(Clone, Debug)]
struct Failing {
    since: Instant,
    /// The reason and the message seen last.
    last: (String, String),
    retries: u64,
}

impl PodWait {
    pub fn new(durations: &Durations, limits: &Limits) -> Self {
        Self {
            patience: durations.unscheduled,
            patience_with_failing: durations.failing,
            retries: limits.kubelet_retries,
            unscheduled: None,
            failing: None,
        }
    }

    /// Lets all times begin no earlier than the server was last away, when the pod could not be observed.
    fn unseen(&mut self, away: Option<Instant>) {
        let failing = self.failing.iter_mut().map(|it| &mut it.since);
        let unscheduled = self.unscheduled.iter_mut().map(|it| &mut it.since);
        for since in failing.chain(unscheduled) {
            *since = away.map_or(*since, |away| away.max(*since));
        }
    }

    pub fn look(&mut self, pod: &Json, now: Instant) -> Condition<()> {
        let Some(why) = unscheduled(pod) else {
            self.unscheduled = None;
            let failed = self.failed(pod, now);
            return failed.map_or_else(|| readiness(pod), Condition::Never);
        };
        // A StorageClass of mode Immediate makes volumes before it is known where their pods go
        let awaits_volume = why.contains("unbound immediate PersistentVolumeClaims");
        let lacks_room = Said::parse(&why).is_some_and(|said| said.lacks_room());
        let may_come_free = awaits_volume || lacks_room;
        let begun = Unscheduled {
            since: now,
            may_come_free,
        };
        let known = self.unscheduled.get_or_insert(begun);
        if known.may_come_free != may_come_free {
            *known = begun;
        }
        let since = known.since;
        let patience = match may_come_free {
            true => self.patience_with_failing.max(self.patience),
            false => self.patience,
        };
        if now.saturating_duration_since(since) >= patience {
            return never(ErrorKind::Unscheduled, why);
        }
        readiness(pod)
    }

    /// Whether the cluster has decided where a pod runs, or why nowhere, and with `starts` also whether each
    /// of its containers starts there or permanently fails to; not which of these.
    pub fn settled(&mut self, pod: &Json, starts: bool, now: Instant) -> Condition<()> {
        let failed = self.failed(pod, now).is_some();
        match failure(pod) {
            Some(open) if starts && !failed && !open.ran => Condition::NotYet(open.error.detail),
            _ => settled(pod, starts && !failed),
        }
    }

    /// Whether all containers of a pod run, ready or not.
    pub fn running(&mut self, pod: &Json, now: Instant) -> Condition<()> {
        let expected = pod["spec"]["containers"].as_array().map_or(0, Vec::len);
        let runs = containers(pod).filter(|container| container["state"]["running"].is_object());
        let runs = runs.count() >= expected;
        match (unscheduled(pod), self.failed(pod, now)) {
            (Some(_), _) => self.look(pod, now),
            (None, Some(error)) => Condition::Never(error),
            (None, None) if is_over(pod) => readiness(pod),
            (None, None) if runs => Condition::Done(()),
            (None, None) => Condition::NotYet(progress(pod)),
        }
    }

    /// Whether a pod has ended by itself; never, where something else ended it or it does not start.
    pub fn ended(&mut self, pod: &Json, now: Instant) -> Condition<()> {
        let status = &pod["status"];
        if unscheduled(pod).is_some() {
            return self.look(pod, now);
        }
        match self.failed(pod, now) {
            _ if is_over(pod) => match containers(pod).find_map(not_started) {
                Some(error) => Condition::Never(error),
                None if status["reason"].is_string() => {
                    never(ErrorKind::FixtureFailed, ended(status))
                }
                None => Condition::Done(()),
            },
            Some(error) => Condition::Never(error),
            None => Condition::NotYet(progress(pod)),
        }
    }

    /// Why a pod does not start, once that is final: by its message, by the number of the kubelet's retries,
    /// or by how long it has lasted.
    fn failed(&mut self, pod: &Json, now: Instant) -> Option<ObservationError> {
        let Some(failure) = failure(pod) else {
            self.failing = None;
            return None;
        };
        let seen = (failure.reason, failure.message);
        let failing = self.failing.get_or_insert_with(|| Failing {
            since: now,
            last: seen.clone(),
            retries: 0,
        });
        if failing.last != seen {
            failing.retries += u64::from(!BACK_OFF.contains(&seen.0.as_str()));
            failing.last = seen;
        }
        let lasts = now.saturating_duration_since(failing.since) >= self.patience_with_failing;
        let tried = failing.retries.max(failure.restarts) >= self.retries;
        (!failure.may_pass || lasts || tried).then_some(failure.error)
    }
}

fn never(kind: ErrorKind, detail: String) -> Condition<()> {
    Condition::Never(kind.error(detail))
}

/// The reason that an ended pod gives: the kubelet's admission (`PodOSNotSupported`, `NodeAffinity`,
/// `OutOfcpu`), an eviction, a deadline.
fn ended(status: &Json) -> String {
    let phase = printable(text(&status["phase"]));
    let said = describe(text(&status["reason"]), text(&status["message"]));
    format!("the pod ended as {phase}: {said}")
}

fn progress(pod: &Json) -> String {
    if let Some(why) = unscheduled(pod) {
        return format!("no node yet: {why}");
    }
    let waiting = containers(pod).find_map(|container| {
        let waiting = &container["state"]["waiting"];
        let said = describe(text(&waiting["reason"]), text(&waiting["message"]));
        waiting
            .is_object()
            .then(|| format!("{}: {said}", printable(text(&container["name"]))))
    });
    waiting.unwrap_or_else(|| match condition(pod, "Ready") {
        Some(ready) if !text(&ready["reason"]).is_empty() => {
            describe(text(&ready["reason"]), text(&ready["message"]))
        }
        _ => format!("phase {}", printable(text(&pod["status"]["phase"]))),
    })
}

/// Whether a message is a runtime's about an image that the node cannot run.
pub(crate) fn is_mismatch(message: &str) -> bool {
    StartFailure::from_words(message).is_some()
}

fn describe(reason: &str, message: &str) -> String {
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

    /// A row of `pods.yaml`.
    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Row {
        waits: Option<[String; 2]>,
        #[serde(default)]
        pod: Json,
        told: String,
        crashes: Option<String>,
    }

    #[test]
    fn what_is_told_of_a_pod_is_what_its_row_says() {
        let rows: Vec<Row> = serde_saphyr::from_str(include_str!("pods.yaml")).expect("rows");
        for row in rows {
            let pod = match &row.waits {
                Some([reason, message]) => waiting(reason, message),
                None => row.pod,
            };
            let told = match readiness(&pod) {
                Condition::Done(()) => "done".to_owned(),
                Condition::NotYet(status) => format!("not yet: {status}"),
                Condition::Never(error) => error.to_string(),
            };
            assert!(told.starts_with(&row.told), "{pod}: {told}");
            assert_eq!(crashes(&pod), row.crashes, "{pod}");
        }
    }

    fn wait() -> PodWait {
        PodWait::new(&Durations::default(), &Limits::default())
    }

    #[test]
    fn what_may_pass_is_final_after_three_retries_or_three_minutes() {
        let (begun, limit) = (Instant::now(), Durations::default().failing);
        let failed = waiting("ErrImagePull", "429");
        let later = waiting("ImagePullBackOff", "Back-off pulling image: 429");
        let ends =
            |wait: &mut PodWait, pod: &Json, at| matches!(wait.look(pod, at), Condition::Never(_));
        let mut often = wait();
        for pod in [&failed, &later, &failed, &later, &failed, &failed, &later] {
            assert!(!ends(&mut often, pod, begun));
        }
        assert!(ends(&mut often, &failed, begun));

        let mut long = wait();
        assert!(!ends(&mut long, &later, begun));
        // A pod that recovered meanwhile starts its time again
        assert!(!ends(&mut long, &waiting("ContainerCreating", ""), begun));
        let again = begun + limit;
        assert!(!ends(&mut long, &later, again));
        assert!(ends(&mut long, &later, again + limit));

        let mut crash = waiting(CRASHES, "back-off 10s restarting failed container");
        for (restarts, is_final) in [(2, false), (3, true)] {
            crash["status"]["containerStatuses"][0]["restartCount"] = json!(restarts);
            assert_eq!(ends(&mut wait(), &crash, begun), is_final, "{restarts}");
        }
    }

    #[test]
    fn where_a_start_is_awaited_so_is_what_may_pass() {
        let mut wait = wait();
        let now = Instant::now();
        for (words, settles) in [("429", false), ("no match for platform in manifest", true)] {
            let mut pod = waiting("ErrImagePull", words);
            pod["spec"] = json!({"nodeName": "n", "containers": [{"name": "main"}]});
            let seen = wait.settled(&pod, true, now);
            assert_eq!(matches!(seen, Condition::Done(())), settles, "{words}");
            let anywhere = wait.settled(&pod, false, now);
            assert!(matches!(anywhere, Condition::Done(())), "{words}");
        }
    }

    #[test]
    fn a_pod_is_settled_whose_container_crashes_for_good_before_the_others_begin() {
        for (restarts, settles) in [(2, false), (3, true)] {
            let mut pod = waiting(CRASHES, "back-off");
            pod["spec"] = json!({"nodeName": "n", "containers": [{"name": "a"}, {"name": "b"}]});
            pod["status"]["containerStatuses"][0]["restartCount"] = json!(restarts);
            let seen = wait().settled(&pod, true, Instant::now());
            assert_eq!(matches!(seen, Condition::Done(())), settles, "{restarts}");
        }
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
        let Some(Condition::Never(error)) = of(other) else {
            panic!("it is of another build")
        };
        assert_eq!(error.kind, ErrorKind::BuildMismatch);
    }

    #[test]
    fn unschedulable_is_final_only_after_it_lasted() {
        let mut wait = wait();
        let (pod, begun) = (unschedulable(), Instant::now());
        let at = |seconds| begun + Duration::from_secs(seconds);
        assert!(matches!(wait.look(&pod, at(0)), Condition::NotYet(_)));
        assert!(matches!(wait.look(&pod, at(29)), Condition::NotYet(_)));
        let fresh = json!({"status": {"phase": "Pending"}});
        assert!(matches!(wait.look(&fresh, at(29)), Condition::NotYet(_)));
        assert!(matches!(wait.look(&pod, at(32)), Condition::NotYet(_)));
        let Condition::Never(error) = wait.look(&pod, at(62)) else {
            panic!("it lasted")
        };
        assert_eq!(error.kind, ErrorKind::Unscheduled);
        assert_eq!(error.detail, "0/2 nodes are available");
    }

    #[test]
    fn what_may_come_by_itself_is_waited_for_as_long_as_a_pull() {
        let because = |why: &str| {
            let mut pod = unschedulable();
            let message = format!("0/2 nodes are available: 2 {why}.");
            pod["status"]["conditions"][0]["message"] = json!(message);
            pod
        };
        let no_room = [
            "Insufficient vpc.amazonaws.com/PrivateIPv4Address",
            "Too many pods",
            "pod has unbound immediate PersistentVolumeClaims",
        ];
        for pod in no_room.map(because) {
            let (mut wait, begun) = (wait(), Instant::now());
            let mut look = |pod, seconds| wait.look(pod, begun + Duration::from_secs(seconds));
            assert!(matches!(look(&pod, 0), Condition::NotYet(_)));
            assert!(matches!(look(&pod, 179), Condition::NotYet(_)));
            // One that is not waited for so long has only begun
            let tainted = because("node(s) had untolerated taint {a: }");
            assert!(matches!(look(&tainted, 179), Condition::NotYet(_)));
            assert!(matches!(look(&pod, 180), Condition::NotYet(_)));
            assert!(matches!(look(&pod, 359), Condition::NotYet(_)));
            assert!(matches!(look(&pod, 360), Condition::Never(_)));
        }
    }

    #[test]
    fn what_nobody_could_see_change_has_not_lasted() {
        let begun = Instant::now();
        let at = |seconds| begun + Duration::from_secs(seconds);
        for (pod, lasts) in [
            (unschedulable(), 30),
            (waiting("ErrImagePull", "pull QPS exceeded"), 180),
        ] {
            let mut wait = wait();
            assert!(matches!(wait.look(&pod, at(0)), Condition::NotYet(_)));
            wait.unseen(Some(at(lasts - 1)));
            assert!(matches!(wait.look(&pod, at(lasts)), Condition::NotYet(_)));
            wait.unseen(None);
            let last = wait.look(&pod, at(lasts * 2));
            assert!(matches!(last, Condition::Never(_)), "{last:?}");
        }
    }
}
