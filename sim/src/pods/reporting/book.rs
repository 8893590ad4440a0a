//! The state of one pod as its node knows it. `status.rs` turns it into the reported status.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    Container, ContainerStateTerminated, ContainerStateWaiting, EphemeralContainer, Pod,
    PodCondition,
};

use crate::base::clock::Wall;
use crate::base::log::Log;
use crate::program::Place;

/// What a node knows about one of its pods.
pub(crate) struct Book {
    /// The pod's object as last seen, with its generation and the conditions that others set.
    pub(crate) pod: Arc<Pod>,
    /// Why the node itself ended the pod: it refused it, evicted it, or its deadline passed.
    pub(crate) verdict: Option<NodeVerdict>,
    /// Whether the node refused to admit the pod.
    pub(crate) refused: bool,
    /// Whether the containers were ended and stay ended, whatever the restart policy.
    pub(crate) ended: bool,
    pub(crate) wall: Wall,
    pub(crate) started: Timestamp,
    pub(crate) address: Option<Ipv4Addr>,
    pub(crate) sandbox: bool,
    /// How many sandboxes the pod has had.
    pub(crate) sandboxes: u32,
    pub(crate) init: Vec<ContainerBook>,
    pub(crate) containers: Vec<ContainerBook>,
    pub(crate) ephemeral: Vec<ContainerBook>,
    /// The condition `DisruptionTarget`, if the node disrupts the pod.
    pub(crate) disruption: Option<PodCondition>,
    pub(crate) conditions: BTreeMap<&'static str, (bool, Timestamp)>,
}

/// Why a node ended a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NodeVerdict {
    pub(crate) reason: String,
    pub(crate) message: String,
}

/// The role of a container in its pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Init,
    /// An init container that keeps running beside the others: `restartPolicy: Always`.
    Sidecar,
    Main,
    Ephemeral,
}

impl Role {
    /// The role of an init container.
    pub(crate) fn of_init(container: &Container) -> Self {
        match container.restart_policy.as_deref() {
            Some("Always") => Self::Sidecar,
            _ => Self::Init,
        }
    }

    /// The list in the pod's spec that has the containers of this role.
    pub(crate) fn field(self) -> &'static str {
        match self {
            Self::Init | Self::Sidecar => "initContainers",
            Self::Main => "containers",
            Self::Ephemeral => "ephemeralContainers",
        }
    }
}

/// The state of one container.
pub(crate) struct ContainerBook {
    pub(crate) name: String,
    pub(crate) role: Role,
    pub(crate) spec: Arc<Container>,
    pub(crate) image: String,
    pub(crate) image_id: String,
    pub(crate) id: Option<String>,
    pub(crate) state: State,
    pub(crate) last: Option<ContainerStateTerminated>,
    pub(crate) restarts: i32,
    pub(crate) ready: bool,
    pub(crate) past_startup: bool,
    /// The output of the current run, and the output of the run before it.
    pub(crate) log: Arc<Log>,
    pub(crate) last_log: Option<Arc<Log>>,
    /// The place of programs that exec runs, while the container runs.
    pub(crate) place: Option<Place>,
    /// Whether the container will not be started again.
    pub(crate) over: bool,
}

/// A container's state.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum State {
    Waiting(ContainerStateWaiting),
    Running(Timestamp),
    /// The exit code is a signed 32-bit integer: 0xC0000142 reads -1073741502.
    Finished(ContainerStateTerminated),
}

impl State {
    pub(crate) fn waiting(reason: &str, message: Option<String>) -> Self {
        Self::Waiting(ContainerStateWaiting {
            reason: Some(reason.to_owned()),
            message,
        })
    }
}

const LOST: &str = "The container could not be located when the pod was terminated";

impl Book {
    pub(crate) fn new(pod: &Arc<Pod>, wall: Wall) -> Self {
        let spec = pod.spec.clone().unwrap_or_default();
        let init = spec.init_containers.unwrap_or_default();
        let waiting = match init.is_empty() {
            true => "ContainerCreating",
            false => "PodInitializing",
        };
        let book = |role, container| ContainerBook::new(container, role, waiting, wall);
        let (init, main) = (init.into_iter(), spec.containers.into_iter());
        let added = spec.ephemeral_containers.iter().flatten().map(plain);
        Self {
            pod: Arc::clone(pod),
            verdict: None,
            refused: false,
            ended: false,
            wall,
            started: wall.now(),
            address: None,
            sandbox: false,
            sandboxes: 0,
            init: init.map(|spec| book(Role::of_init(&spec), spec)).collect(),
            containers: main.map(|spec| book(Role::Main, spec)).collect(),
            ephemeral: added.map(|spec| book(Role::Ephemeral, spec)).collect(),
            disruption: None,
            conditions: BTreeMap::new(),
        }
    }

    /// Returns the container with this name, whatever its role.
    pub(crate) fn container(&self, name: &str) -> Option<&ContainerBook> {
        self.all().find(|container| container.name == name)
    }

    /// Returns the list that has the containers of this role.
    pub(crate) fn containers_of(&mut self, role: Role) -> &mut Vec<ContainerBook> {
        match role {
            Role::Init | Role::Sidecar => &mut self.init,
            Role::Main => &mut self.containers,
            Role::Ephemeral => &mut self.ephemeral,
        }
    }

    /// All containers.
    pub(crate) fn all(&self) -> impl Iterator<Item = &ContainerBook> {
        let main = self.containers.iter();
        main.chain(&self.init).chain(&self.ephemeral)
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut ContainerBook> {
        let main = self.containers.iter_mut();
        main.chain(&mut self.init).chain(&mut self.ephemeral)
    }

    /// Records the pod's object. Returns the ephemeral containers that are new, with their indices.
    pub(crate) fn see(&mut self, pod: &Arc<Pod>) -> Vec<(usize, Arc<Container>)> {
        self.pod = Arc::clone(pod);
        let listed = pod
            .spec
            .iter()
            .flat_map(|spec| spec.ephemeral_containers.iter().flatten());
        let mut new = Vec::new();
        for container in listed {
            let known = &mut self.ephemeral;
            if known.iter().any(|book| book.name == container.name) {
                continue;
            }
            let waiting = "ContainerCreating";
            let book = ContainerBook::new(plain(container), Role::Ephemeral, waiting, self.wall);
            new.push((known.len(), Arc::clone(&book.spec)));
            known.push(book);
        }
        new
    }

    /// Whether a container that ended with this code is started again (kubernetes 1.37.0,
    /// `pkg/api/v1/pod/util.go`, `ContainerShouldRestart`).
    pub(crate) fn restarts(&self, container: &Container, role: Role, code: i32) -> bool {
        if self.ended || role == Role::Ephemeral {
            return false;
        }
        let spec = self.pod.spec.as_ref();
        let of_pod = spec.and_then(|spec| spec.restart_policy.as_deref());
        let policy = container.restart_policy.as_deref().or(of_pod);
        match (role, policy.unwrap_or("Always")) {
            (Role::Sidecar, _) | (Role::Main, "Always") => true,
            (_, "Always" | "OnFailure") => code != 0,
            _ => false,
        }
    }

    /// Records how containers end that were between two runs, or never began, when the pod ends. A container
    /// that backs off stays *waiting* as long as it might be started again, which it is not in a deleted pod
    /// (kubernetes 1.37.0, `pkg/kubelet/kubelet_pods.go`, `convertToAPIContainerStatuses`); a container that
    /// still waits in the end counts as lost (`pkg/kubelet/status/status_manager.go`, `TerminatePod`).
    pub(crate) fn close(&mut self, deleted: bool) {
        let begun = ContainerBook::has_begun;
        let initialized = match self.init.last() {
            None => true,
            Some(last) => {
                let ready = match last.role {
                    Role::Sidecar => last.past_startup,
                    _ => last.last_end().is_some_and(|end| end.exit_code == 0),
                };
                ready || self.containers.iter().any(begun)
            }
        };
        // All init containers up to the last that has begun, and always the first
        let of_init = self.init.iter().rposition(begun).map_or(1, |last| last + 1);
        let main = if initialized { usize::MAX } else { 0 };
        let init = self.init.iter_mut().take(of_init);
        for container in init.chain(self.containers.iter_mut().take(main)) {
            if !matches!(container.state, State::Waiting(_)) {
                continue;
            }
            container.state = State::Finished(match &container.last {
                Some(last) if deleted => last.clone(),
                _ => ContainerStateTerminated {
                    exit_code: 137,
                    reason: Some("ContainerStatusUnknown".to_owned()),
                    message: Some(LOST.to_owned()),
                    ..ContainerStateTerminated::default()
                },
            });
        }
    }

    /// Records that no container of the pod runs any more, and none will.
    pub(crate) fn end(&mut self) {
        self.ended = true;
        for container in self.all_mut() {
            container.log.end();
            container.ready = container.role == Role::Init && container.ready;
            container.past_startup = false;
            container.place = None;
            container.over = true;
        }
    }

    /// The pod's phase (kubelet 1.37.0, `getPhase`).
    pub(crate) fn phase(&self) -> &'static str {
        if self.verdict.is_some() {
            return "Failed";
        }
        let (mut initializing, mut waiting, mut running) = (false, false, false);
        let (mut restarting_sidecar, mut stopped, mut for_good, mut succeeded) = (false, 0, 0, 0);
        for container in &self.init {
            let ended = container.last_end();
            let sidecar = container.role == Role::Sidecar;
            match (&container.state, ended) {
                (State::Running(_), _) if sidecar => {
                    restarting_sidecar |= !container.past_startup;
                    running = true;
                }
                (State::Waiting(_), None) if sidecar => {
                    restarting_sidecar = true;
                    waiting = true;
                }
                (State::Running(_), _) | (_, None) => initializing = true,
                (_, Some(_)) if sidecar => {}
                (_, Some(end)) if end.exit_code != 0 && container.over => return "Failed",
                (_, Some(_)) => {}
            }
        }
        let begun = self.containers.iter().any(ContainerBook::has_begun);
        for container in &self.containers {
            match (&container.state, container.last_end()) {
                (State::Running(_), _) => running = true,
                (_, None) => waiting = true,
                (_, Some(end)) => {
                    stopped += 1;
                    for_good += usize::from(container.over);
                    succeeded += usize::from(end.exit_code == 0);
                }
            }
        }
        if initializing || waiting || restarting_sidecar && !begun {
            return "Pending";
        }
        match (running, stopped) {
            (true, _) => "Running",
            (false, 0) => "Pending",
            (false, _) if !self.ended && stopped != for_good => "Running",
            (false, _) if stopped == succeeded => "Succeeded",
            (false, _) => "Failed",
        }
    }
}

/// Converts an ephemeral container to a container: it has the same fields and one more.
fn plain(container: &EphemeralContainer) -> Container {
    let value = serde_json::to_value(container).unwrap_or_default();
    serde_json::from_value(value).unwrap_or_default()
}

impl ContainerBook {
    fn new(container: Container, role: Role, waiting: &'static str, wall: Wall) -> Self {
        Self {
            name: container.name.clone(),
            role,
            image: container.image.clone().unwrap_or_default(),
            spec: Arc::new(container),
            image_id: String::new(),
            id: None,
            state: State::waiting(waiting, None),
            last: None,
            restarts: 0,
            ready: false,
            past_startup: false,
            log: Log::new(wall),
            last_log: None,
            place: None,
            over: false,
        }
    }

    /// Begins a new run, with a new log.
    pub(crate) fn begin_log(&mut self) {
        let log = Log::new(self.log.wall);
        let before = std::mem::replace(&mut self.log, log);
        before.end();
        if self.id.is_some() {
            self.last_log = Some(before);
        }
    }

    /// Resets the container, so that it begins again in another sandbox.
    pub(crate) fn again(&mut self) {
        if self.id.is_none() {
            return;
        }
        if let State::Finished(finished) = &self.state {
            self.last = Some(finished.clone());
            self.restarts = self.restarts.saturating_add(1);
        }
        self.state = State::waiting("ContainerCreating", None);
        self.ready = false;
        self.past_startup = false;
        self.over = false;
    }

    /// Whether the container runs, or ever ran.
    pub(crate) fn has_begun(&self) -> bool {
        !matches!(self.state, State::Waiting(_)) || self.last.is_some()
    }

    /// How the container's last run ended, if it does not run now.
    fn last_end(&self) -> Option<&ContainerStateTerminated> {
        match &self.state {
            State::Finished(finished) => Some(finished),
            State::Waiting(_) => self.last.as_ref(),
            State::Running(_) => None,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[expect(
        clippy::needless_pass_by_value,
        reason = "tests write it where they call"
    )]
    pub(crate) fn book_of(spec: Value) -> Book {
        let pod: Pod = serde_json::from_value(json!({"spec": spec})).expect("a pod");
        Book::new(&Arc::new(pod), Wall::default())
    }

    fn book(policy: &str) -> Book {
        let containers = json!([{"name": "a"}, {"name": "b"}]);
        book_of(json!({"restartPolicy": policy, "containers": containers}))
    }

    fn ended(code: i32) -> State {
        State::Finished(ContainerStateTerminated {
            exit_code: code,
            ..ContainerStateTerminated::default()
        })
    }

    fn finish(container: &mut ContainerBook, code: i32) {
        container.state = ended(code);
        container.over = true;
    }

    const RUNNING: State = State::Running(Timestamp::UNIX_EPOCH);

    #[test]
    fn phases_follow_the_containers() {
        let mut book = book("Never");
        assert_eq!(book.phase(), "Pending");
        book.containers[0].state = RUNNING;
        assert_eq!(book.phase(), "Pending");
        finish(&mut book.containers[1], 0);
        assert_eq!(book.phase(), "Running");
        finish(&mut book.containers[0], 0);
        assert_eq!(book.phase(), "Succeeded");
        finish(&mut book.containers[0], -1);
        assert_eq!(book.phase(), "Failed");
    }

    #[test]
    fn containers_between_two_runs_are_running() {
        let mut book = book("Always");
        book.containers[0].state = ended(1);
        book.containers[1].state = ended(0);
        assert_eq!(book.phase(), "Running");
        book.end();
        assert_eq!(book.phase(), "Failed");
    }

    #[test]
    fn init_containers_hold_the_pod_back_and_fail_it() {
        let mut book = book_of(
            json!({"restartPolicy": "Never", "containers": [{"name": "a"}],
            "initContainers": [{"name": "s", "restartPolicy": "Always"}, {"name": "i"}]}),
        );
        assert_eq!(book.init[0].role, Role::Sidecar);
        book.init[0].state = RUNNING;
        book.init[0].past_startup = true;
        book.init[1].state = RUNNING;
        assert_eq!(book.phase(), "Pending");
        finish(&mut book.init[1], 0);
        book.containers[0].state = RUNNING;
        assert_eq!(book.phase(), "Running");
        // A sidecar does not keep a pod from ending
        finish(&mut book.containers[0], 0);
        book.init[0].state = ended(137);
        assert_eq!(book.phase(), "Succeeded");
        finish(&mut book.init[1], 3);
        assert_eq!(book.phase(), "Failed");
    }

    #[test]
    fn policies_decide_what_is_started_again() {
        let restarts = |policy, code, role| {
            let book = book(policy);
            let spec = Arc::clone(&book.containers[0].spec);
            book.restarts(&spec, role, code)
        };
        assert!(restarts("Always", 0, Role::Main) && restarts("Always", 1, Role::Init));
        assert!(!restarts("Always", 0, Role::Init) && restarts("Never", 0, Role::Sidecar));
        assert!(restarts("OnFailure", 1, Role::Main) && !restarts("OnFailure", 0, Role::Main));
        assert!(!restarts("Never", 1, Role::Main) && !restarts("Always", 1, Role::Ephemeral));
    }

    #[test]
    fn ephemeral_containers_are_noticed_once() {
        let mut book = book("Always");
        let pod = json!({"spec": {"containers": [], "ephemeralContainers": [
            {"name": "debug", "image": "busybox", "targetContainerName": "a"}]}});
        let pod: Arc<Pod> = Arc::new(serde_json::from_value(pod).expect("a pod"));
        let new = book.see(&pod);
        assert_eq!(new.len(), 1);
        assert_eq!(new[0].1.image.as_deref(), Some("busybox"));
        assert!(book.see(&pod).is_empty());
        assert!(book.container("debug").is_some());
    }
}
