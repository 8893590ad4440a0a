//! The status that a kubelet reports for a pod: kubernetes 1.37.0, `pkg/kubelet/kubelet_pods.go`
//! (`generateAPIPodStatus`, `convertToAPIContainerStatuses`), `pkg/kubelet/status/generate.go` and
//! `pkg/kubelet/prober/prober_manager.go` (`UpdatePodStatus`).

use k8s_openapi::api::core::v1::{
    ContainerState, ContainerStateRunning, ContainerStatus, HostIP, PodCondition, PodIP, PodStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::book::{Book, ContainerBook, Role, State};
use crate::pods::spec::resources;
use crate::world::Node;

impl Book {
    /// Builds the status to report now; `node` is the pod's node.
    pub(crate) fn status(&mut self, node: &Node) -> PodStatus {
        let phase = self.phase();
        let ips: Vec<String> = self
            .address
            .into_iter()
            .flat_map(|address| node.addresses_of(address))
            .map(|address| address.to_string())
            .collect();
        let generation = self.pod.metadata.generation;
        let qos_class = self.pod.spec.as_ref().map(resources::qos_class);
        let head = PodStatus {
            phase: Some(phase.to_owned()),
            qos_class: qos_class.map(str::to_owned),
            reason: self.verdict.as_ref().map(|verdict| verdict.reason.clone()),
            message: self.verdict.as_ref().map(|verdict| verdict.message.clone()),
            start_time: Some(Time(self.started)),
            observed_generation: generation,
            ..PodStatus::default()
        };
        if self.refused {
            // kubelet, `rejectPod`: neither addresses nor containers
            return head;
        }
        let list = |containers: &[ContainerBook]| {
            let statuses = containers.iter().map(ContainerBook::status);
            (!containers.is_empty()).then(|| statuses.collect())
        };
        let conditions = self.conditions(phase);
        PodStatus {
            host_ip: Some(node.address.to_string()),
            host_ips: Some(
                node.addresses()
                    .map(|address| HostIP {
                        ip: address.to_string(),
                    })
                    .collect(),
            ),
            pod_ip: ips.first().cloned(),
            pod_ips: (!ips.is_empty()).then(|| ips.into_iter().map(|ip| PodIP { ip }).collect()),
            conditions: Some(conditions),
            init_container_statuses: list(&self.init),
            container_statuses: list(&self.containers),
            ephemeral_container_statuses: list(&self.ephemeral),
            ..head
        }
    }

    fn conditions(&mut self, phase: &str) -> Vec<PodCondition> {
        let listed = |kind: &str, is: &dyn Fn(&ContainerBook) -> bool| {
            let books = self.init.iter().chain(&self.containers);
            let names = books.filter(|b| is(b)).map(|b| b.name.as_str());
            let names = names.collect::<Vec<_>>().join(" ");
            (!names.is_empty()).then(|| format!("containers with {kind} status: [{names}]"))
        };
        let unready = listed("unready", &|book| book.role != Role::Init && !book.ready);
        let incomplete = listed("incomplete", &|book| match book.role {
            Role::Sidecar => !book.past_startup,
            Role::Init => !book.ready,
            Role::Main | Role::Ephemeral => false,
        });
        let begun = self.containers.iter().any(ContainerBook::has_begun);
        let initialized = match (phase, begun, incomplete) {
            ("Succeeded", _, _) => (true, Some("PodCompleted"), None),
            (_, false, Some(why)) => (false, Some("ContainersNotInitialized"), Some(why)),
            _ => (true, None, None),
        };
        let containers_ready = match (phase, unready) {
            ("Succeeded", _) => (false, Some("PodCompleted"), None),
            ("Failed", _) => (false, Some("PodFailed"), None),
            (_, Some(why)) => (false, Some("ContainersNotReady"), Some(why)),
            _ => (true, None, None),
        };
        let ready = match (containers_ready.0, self.gates()) {
            (true, Some(why)) => (false, Some("ReadinessGatesNotReady"), Some(why)),
            _ => containers_ready.clone(),
        };
        let current = [
            ("PodReadyToStartContainers", self.ready_to_start()),
            ("Initialized", initialized),
            ("Ready", ready),
            ("ContainersReady", containers_ready),
            ("PodScheduled", (true, None, None)),
        ];
        let generation = self.pod.metadata.generation;
        let mut conditions: Vec<PodCondition> = self.disruption.clone().into_iter().collect();
        let now = self.wall.now();
        for (name, (holds, reason, message)) in current {
            let known = self.conditions.entry(name);
            let since = known.or_insert_with(|| (holds, now));
            if since.0 != holds {
                *since = (holds, now);
            }
            conditions.push(PodCondition {
                type_: name.to_owned(),
                status: if holds { "True" } else { "False" }.to_owned(),
                last_transition_time: Some(Time(since.1)),
                observed_generation: generation,
                reason: reason.map(str::to_owned),
                message,
                ..PodCondition::default()
            });
        }
        conditions
    }

    /// `GeneratePodReadyToStartContainersCondition`, with the messages of `PodSandboxChanged` in
    /// `pkg/kubelet/kuberuntime/util/util.go`.
    fn ready_to_start(&self) -> (bool, Option<&'static str>, Option<String>) {
        let why = match (self.sandbox, self.sandboxes) {
            (true, _) => return (true, None, None),
            (false, 0) => "no pod sandbox exists",
            (false, _) => "pod sandbox is not ready",
        };
        (false, Some("PodSandboxNotReady"), Some(why.to_owned()))
    }

    /// Why the pod's readiness gates do not hold, if they do not.
    fn gates(&self) -> Option<String> {
        let set = self.pod.status.as_ref();
        let set = set.and_then(|status| status.conditions.as_deref());
        let spec = self.pod.spec.as_ref()?;
        let lacking = spec.readiness_gates.iter().flatten().filter_map(|gate| {
            let name = &gate.condition_type;
            let known = set.unwrap_or_default().iter().find(|c| c.type_ == *name);
            match known.map(|condition| condition.status.as_str()) {
                Some("True") => None,
                Some(status) => Some(format!(
                    "the status of pod readiness gate \"{name}\" is not \"True\", but {status}"
                )),
                None => Some(format!(
                    "corresponding condition of pod readiness gate \"{name}\" does not exist."
                )),
            }
        });
        let lacking: Vec<String> = lacking.collect();
        (!lacking.is_empty()).then(|| lacking.join(", "))
    }
}

impl ContainerBook {
    fn status(&self) -> ContainerStatus {
        ContainerStatus {
            name: self.name.clone(),
            image: self.image.clone(),
            image_id: self.image_id.clone(),
            container_id: self.id.clone(),
            ready: self.ready,
            started: (self.role != Role::Ephemeral).then_some(self.past_startup),
            restart_count: self.restarts,
            state: Some(self.state.clone().reported()),
            last_state: self
                .last
                .clone()
                .map(|last| State::Finished(last).reported()),
            ..ContainerStatus::default()
        }
    }
}

impl State {
    fn reported(self) -> ContainerState {
        let mut state = ContainerState::default();
        match self {
            Self::Waiting(waiting) => state.waiting = Some(waiting),
            Self::Running(since) => {
                let started_at = Some(Time(since));
                state.running = Some(ContainerStateRunning { started_at });
            }
            Self::Finished(finished) => state.terminated = Some(finished),
        }
        state
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use jiff::Timestamp;
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::json;

    use super::super::book::NodeVerdict;
    use super::super::book::tests::book_of;
    use std::net::Ipv4Addr;

    use super::*;
    use crate::topology::{IpFamilies, Pool};

    fn host() -> Node {
        Node::new(Pool::Linux, Ipv4Addr::LOCALHOST, 1, [10, 244, 1])
    }

    fn condition(book: &mut Book, name: &str) -> PodCondition {
        let conditions = book.status(&host()).conditions.unwrap_or_default();
        let found = conditions.into_iter().find(|c| c.type_ == name);
        found.expect("a condition")
    }

    #[test]
    fn a_refused_pod_has_neither_addresses_nor_containers() {
        let mut book = book_of(json!({"containers": [{"name": "a"}]}));
        book.refused = true;
        book.verdict = Some(NodeVerdict {
            reason: "PodOSNotSupported".to_owned(),
            message: "no".to_owned(),
        });
        let status = book.status(&host());
        assert_eq!(status.phase.as_deref(), Some("Failed"));
        assert_eq!(status.reason.as_deref(), Some("PodOSNotSupported"));
        assert_eq!((status.host_ip, status.container_statuses), (None, None));
    }

    #[test]
    fn addresses_stand_in_the_order_of_the_nodes() {
        let of = |families| {
            let mut book = book_of(json!({"containers": [{"name": "a"}]}));
            book.address = Some(Ipv4Addr::new(10, 244, 1, 7));
            let status = book.status(&host().of_families(families));
            let own: Vec<_> = status.pod_ips.iter().flatten().collect();
            let own: Vec<_> = own.into_iter().map(|own| own.ip.clone()).collect();
            let hosts: Vec<_> = status.host_ips.iter().flatten().collect();
            let hosts: Vec<_> = hosts.into_iter().map(|host| host.ip.clone()).collect();
            assert_eq!(status.pod_ip.as_ref(), own.first(), "{families:?}");
            assert_eq!(status.host_ip.as_ref(), hosts.first(), "{families:?}");
            (own, hosts)
        };
        let (four, six) = ("10.244.1.7", "fd00:10:244:f401::7");
        let (host4, host6) = ("127.0.0.1", "fd00:10::7f00:1");
        for (families, own, hosts) in [
            (IpFamilies::IPv4, &[four][..], &[host4][..]),
            (IpFamilies::DualStack, &[four, six], &[host4, host6]),
        ] {
            let expected = |all: &[&str]| all.iter().map(|&one| one.to_owned()).collect::<Vec<_>>();
            assert_eq!(
                of(families),
                (expected(own), expected(hosts)),
                "{families:?}"
            );
        }
    }

    #[test]
    fn a_pod_without_a_sandbox_says_why() {
        let mut book = book_of(json!({"containers": [{"name": "a"}]}));
        let mut why = |(is, was)| {
            (book.sandbox, book.sandboxes) = (is, was);
            let found = condition(&mut book, "PodReadyToStartContainers");
            (found.status, found.message.unwrap_or_default())
        };
        let said = |status: &str, why: &str| (status.to_owned(), why.to_owned());
        assert_eq!(why((false, 0)), said("False", "no pod sandbox exists"));
        assert_eq!(why((true, 1)), said("True", ""));
        assert_eq!(why((false, 1)), said("False", "pod sandbox is not ready"));
    }

    #[test]
    fn ready_needs_every_container_and_every_gate() {
        let mut book = book_of(json!({"containers": [{"name": "a"}, {"name": "b"}],
            "readinessGates": [{"conditionType": "example.com/on"}]}));
        for container in &mut book.containers {
            container.state = State::Running(Timestamp::UNIX_EPOCH);
        }
        book.containers[0].ready = true;
        let ready = condition(&mut book, "Ready");
        assert_eq!(ready.status, "False");
        assert_eq!(
            ready.message.as_deref(),
            Some("containers with unready status: [b]")
        );
        book.containers[1].ready = true;
        assert_eq!(condition(&mut book, "ContainersReady").status, "True");
        let ready = condition(&mut book, "Ready");
        assert_eq!(ready.reason.as_deref(), Some("ReadinessGatesNotReady"));
        let mut pod = Pod::clone(&book.pod);
        let set = json!({"conditions": [{"type": "example.com/on", "status": "True"}]});
        pod.status = serde_json::from_value(set).expect("a status");
        book.pod = Arc::new(pod);
        assert_eq!(condition(&mut book, "Ready").status, "True");
    }

    #[test]
    fn initialized_waits_for_init_containers_and_says_for_which() {
        let mut book = book_of(json!({"containers": [{"name": "a"}],
            "initContainers": [{"name": "i"}, {"name": "s", "restartPolicy": "Always"}]}));
        let initialized = condition(&mut book, "Initialized");
        assert_eq!(
            initialized.message.as_deref(),
            Some("containers with incomplete status: [i s]")
        );
        book.init[0].ready = true;
        book.init[1].past_startup = true;
        assert_eq!(condition(&mut book, "Initialized").status, "True");
    }
}
