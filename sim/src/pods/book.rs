//! The state of one pod, and the status that a kubelet reports of it.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting,
    ContainerStatus, HostIP, Pod, PodCondition, PodIP, PodStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::clock;
use crate::log::Log;
use crate::program::Place;

/// What a node knows of a pod of its own.
pub(crate) struct Book {
    /// A word from the node itself that ends the pod: refused, or past its deadline.
    pub(crate) verdict: Option<NodeVerdict>,
    pub(crate) started: Timestamp,
    pub(crate) address: Option<Ipv4Addr>,
    pub(crate) init: Vec<ContainerBook>,
    pub(crate) containers: Vec<ContainerBook>,
    restarts_always: bool,
    restarts_never: bool,
    conditions: BTreeMap<&'static str, (bool, Timestamp)>,
}

/// Why a node ended a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NodeVerdict {
    pub(crate) reason: String,
    pub(crate) message: String,
}

/// The state of one container.
pub(crate) struct ContainerBook {
    pub(crate) name: String,
    pub(crate) image: String,
    pub(crate) image_id: String,
    pub(crate) id: Option<String>,
    pub(crate) state: State,
    pub(crate) last: Option<Finished>,
    pub(crate) restarts: i32,
    pub(crate) ready: bool,
    pub(crate) past_startup: bool,
    /// What this run has printed, and what the one before it had.
    pub(crate) log: Arc<Log>,
    pub(crate) last_log: Option<Arc<Log>>,
    /// Where exec finds itself, while the container runs.
    pub(crate) place: Option<Place>,
    /// Whether it will not be started again.
    pub(crate) over: bool,
}

/// A container's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Waiting {
        reason: &'static str,
        message: Option<String>,
    },
    Running {
        since: Timestamp,
    },
    Finished(Finished),
}

/// How a container ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finished {
    /// 32 bits with a sign, as the API has it: 0xC0000142 reads -1073741502.
    pub(crate) code: i32,
    pub(crate) reason: &'static str,
    pub(crate) message: Option<String>,
    pub(crate) from: Option<Timestamp>,
    pub(crate) to: Timestamp,
    pub(crate) id: Option<String>,
}

impl Book {
    pub(crate) fn new(pod: &Pod) -> Self {
        let spec = pod.spec.clone().unwrap_or_default();
        let policy = spec.restart_policy.as_deref().unwrap_or("Always");
        let book = |containers: Vec<k8s_openapi::api::core::v1::Container>, reason| {
            containers
                .into_iter()
                .map(|container| ContainerBook {
                    name: container.name,
                    image: container.image.unwrap_or_default(),
                    image_id: String::new(),
                    id: None,
                    state: State::Waiting {
                        reason,
                        message: None,
                    },
                    last: None,
                    restarts: 0,
                    ready: false,
                    past_startup: false,
                    log: Log::new(),
                    last_log: None,
                    place: None,
                    over: false,
                })
                .collect::<Vec<_>>()
        };
        let init = book(spec.init_containers.unwrap_or_default(), "PodInitializing");
        let waiting = if init.is_empty() {
            "ContainerCreating"
        } else {
            "PodInitializing"
        };
        Self {
            verdict: None,
            started: clock::now(),
            address: None,
            init,
            containers: book(spec.containers, waiting),
            restarts_always: policy == "Always",
            restarts_never: policy == "Never",
            conditions: BTreeMap::new(),
        }
    }

    /// Whether a container that ended with this code is started again.
    pub(crate) fn restarts(&self, code: i32, init: bool) -> bool {
        (self.restarts_always && !init) || (code != 0 && !self.restarts_never)
    }

    /// The container of a name, of whichever kind.
    pub(crate) fn container(&self, name: &str) -> Option<&ContainerBook> {
        let mut all = self.containers.iter().chain(&self.init);
        all.find(|container| container.name == name)
    }

    /// kubelet, `getPhase`.
    pub(crate) fn phase(&self) -> &'static str {
        let code = |container: &ContainerBook| match &container.state {
            State::Finished(finished) if container.over => Some(finished.code),
            _ => None,
        };
        let init_failed = self.init.iter().filter_map(code).any(|code| code != 0);
        if self.verdict.is_some() || init_failed {
            return "Failed";
        }
        let codes: Vec<i32> = self.containers.iter().filter_map(code).collect();
        let begun = |container: &ContainerBook| {
            !matches!(container.state, State::Waiting { .. }) || container.last.is_some()
        };
        if codes.len() == self.containers.len() && !codes.is_empty() {
            return if codes.iter().all(|code| *code == 0) {
                "Succeeded"
            } else {
                "Failed"
            };
        }
        if self.containers.iter().all(begun) {
            "Running"
        } else {
            "Pending"
        }
    }

    /// The status to report now.
    pub(crate) fn status(&mut self, host: Ipv4Addr) -> PodStatus {
        let phase = self.phase();
        let address = self.address.map(|address| address.to_string());
        if let Some(verdict) = &self.verdict
            && self.address.is_none()
        {
            // Refused: the kubelet reports no addresses and no containers then
            return PodStatus {
                phase: Some(phase.to_owned()),
                reason: Some(verdict.reason.clone()),
                message: Some(verdict.message.clone()),
                start_time: Some(Time(self.started)),
                ..PodStatus::default()
            };
        }
        PodStatus {
            phase: Some(phase.to_owned()),
            reason: self.verdict.as_ref().map(|verdict| verdict.reason.clone()),
            message: self.verdict.as_ref().map(|verdict| verdict.message.clone()),
            start_time: Some(Time(self.started)),
            host_ip: Some(host.to_string()),
            host_ips: Some(vec![HostIP {
                ip: host.to_string(),
            }]),
            pod_ips: address.clone().map(|ip| vec![PodIP { ip }]),
            pod_ip: address,
            conditions: Some(self.conditions(phase)),
            init_container_statuses: (!self.init.is_empty())
                .then(|| self.init.iter().map(ContainerBook::status).collect()),
            container_statuses: Some(self.containers.iter().map(ContainerBook::status).collect()),
            ..PodStatus::default()
        }
    }

    fn conditions(&mut self, phase: &str) -> Vec<PodCondition> {
        let initialized = self.init.iter().all(|c| c.over);
        let unready: Vec<&str> = self
            .containers
            .iter()
            .filter(|c| !c.ready)
            .map(|c| c.name.as_str())
            .collect();
        let ready = unready.is_empty();
        let (reason, message) = match phase {
            "Succeeded" => ("PodCompleted", None),
            "Failed" => ("PodFailed", None),
            _ => (
                "ContainersNotReady",
                Some(format!(
                    "containers with unready status: [{}]",
                    unready.join(" ")
                )),
            ),
        };
        let sandbox = self.address.is_some() && !matches!(phase, "Succeeded" | "Failed");
        let known = &mut self.conditions;
        let mut condition =
            |name: &'static str, holds: bool, why: Option<(&str, Option<&String>)>| {
                let since = known.entry(name).or_insert_with(|| (holds, clock::now()));
                if since.0 != holds {
                    *since = (holds, clock::now());
                }
                let why = why.filter(|_| !holds);
                PodCondition {
                    type_: name.to_owned(),
                    status: if holds { "True" } else { "False" }.to_owned(),
                    last_transition_time: Some(Time(since.1)),
                    reason: why.map(|(reason, _)| reason.to_owned()),
                    message: why.and_then(|(_, message)| message.cloned()),
                    ..PodCondition::default()
                }
            };
        let why = Some((reason, message.as_ref()));
        vec![
            condition("PodReadyToStartContainers", sandbox, None),
            condition(
                "Initialized",
                initialized,
                Some(("ContainersNotInitialized", None)),
            ),
            condition("Ready", ready && initialized, why),
            condition("ContainersReady", ready, why),
            condition("PodScheduled", true, None),
        ]
    }
}

impl ContainerBook {
    /// A new run begins, with a log of its own.
    pub(crate) fn begin_log(&mut self) {
        let before = std::mem::replace(&mut self.log, Log::new());
        before.end();
        if self.id.is_some() {
            self.last_log = Some(before);
        }
    }

    fn status(&self) -> ContainerStatus {
        ContainerStatus {
            name: self.name.clone(),
            image: self.image.clone(),
            image_id: self.image_id.clone(),
            container_id: self.id.clone(),
            ready: self.ready,
            started: Some(self.past_startup),
            restart_count: self.restarts,
            state: Some(self.state.reported()),
            last_state: self
                .last
                .as_ref()
                .map(|last| State::Finished(last.clone()).reported()),
            ..ContainerStatus::default()
        }
    }
}

impl State {
    fn reported(&self) -> ContainerState {
        match self {
            Self::Waiting { reason, message } => ContainerState {
                waiting: Some(ContainerStateWaiting {
                    reason: Some((*reason).to_owned()),
                    message: message.clone(),
                }),
                ..ContainerState::default()
            },
            Self::Running { since } => ContainerState {
                running: Some(ContainerStateRunning {
                    started_at: Some(Time(*since)),
                }),
                ..ContainerState::default()
            },
            Self::Finished(finished) => ContainerState {
                terminated: Some(ContainerStateTerminated {
                    exit_code: finished.code,
                    reason: Some(finished.reason.to_owned()),
                    message: finished.message.clone(),
                    started_at: finished.from.map(Time),
                    finished_at: Some(Time(finished.to)),
                    container_id: finished.id.clone(),
                    signal: None,
                }),
                ..ContainerState::default()
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn book(policy: &str) -> Book {
        let pod: Pod = serde_json::from_value(serde_json::json!({
            "spec": {"restartPolicy": policy, "containers": [{"name": "a"}, {"name": "b"}]}
        }))
        .expect("a pod");
        Book::new(&pod)
    }

    fn finish(book: &mut Book, at: usize, code: i32) {
        let to = Timestamp::UNIX_EPOCH;
        let finished = Finished {
            code,
            reason: "Completed",
            message: None,
            from: None,
            to,
            id: None,
        };
        book.containers[at].state = State::Finished(finished);
        book.containers[at].over = true;
    }

    #[test]
    fn phases_follow_the_containers() {
        let mut book = book("Never");
        assert_eq!(book.phase(), "Pending");
        book.containers[0].state = State::Running {
            since: Timestamp::UNIX_EPOCH,
        };
        assert_eq!(book.phase(), "Pending");
        finish(&mut book, 1, 0);
        assert_eq!(book.phase(), "Running");
        finish(&mut book, 0, 0);
        assert_eq!(book.phase(), "Succeeded");
        finish(&mut book, 0, -1);
        assert_eq!(book.phase(), "Failed");
    }

    #[test]
    fn policies_decide_what_is_started_again() {
        let restarts = |policy, code, init| book(policy).restarts(code, init);
        assert!(restarts("Always", 0, false) && restarts("Always", 1, true));
        assert!(!restarts("Always", 0, true));
        assert!(restarts("OnFailure", 1, false) && !restarts("OnFailure", 0, false));
        assert!(!restarts("Never", 1, false));
    }

    #[test]
    fn a_refused_pod_has_neither_addresses_nor_containers() {
        let mut book = book("Always");
        let verdict = NodeVerdict {
            reason: "PodOSNotSupported".to_owned(),
            message: "no".to_owned(),
        };
        book.verdict = Some(verdict);
        let status = book.status([127, 0, 0, 1].into());
        assert_eq!(status.phase.as_deref(), Some("Failed"));
        assert_eq!(status.reason.as_deref(), Some("PodOSNotSupported"));
        assert_eq!((status.host_ip, status.container_statuses), (None, None));
    }

    #[test]
    fn ready_needs_every_container() {
        let mut book = book("Always");
        book.address = Some([10, 244, 1, 4].into());
        for at in 0..2 {
            book.containers[at].state = State::Running {
                since: Timestamp::UNIX_EPOCH,
            };
        }
        book.containers[0].ready = true;
        let of = |book: &mut Book, name: &str| {
            let status = book.status([127, 0, 0, 1].into());
            status
                .conditions
                .unwrap_or_default()
                .into_iter()
                .find(|c| c.type_ == name)
        };
        let ready = of(&mut book, "Ready").expect("a condition");
        assert_eq!(ready.status, "False");
        assert_eq!(
            ready.message.as_deref(),
            Some("containers with unready status: [b]")
        );
        book.containers[1].ready = true;
        assert_eq!(of(&mut book, "Ready").expect("a condition").status, "True");
    }

    #[test]
    fn an_empty_pod_does_no_harm() {
        let mut book = Book::new(&Pod::default());
        assert_eq!(
            book.status([127, 0, 0, 1].into()).phase.as_deref(),
            Some("Running")
        );
    }
}
