//! Whether a pod in memory is ready: looked at once, when it has been put in.

use k8s_openapi::api::core::v1::Container;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::Memory;
use crate::fault::FaultKind;
use crate::network::{self, Backend, Origin, Outcome, Request};
use crate::program::serve::{self, Exchange};
use crate::program::{self, Input, Started, kubelet};
use crate::world::Key;

impl Memory {
    /// What a container's readiness probe says from its node; without one, a container that runs is
    /// ready (kubernetes 1.37.0, `pkg/kubelet/prober/prober_manager.go`, `UpdatePodStatus`). What
    /// cannot be evaluated is not ready.
    pub(super) fn is_ready(&self, key: &Key, container: &Container) -> bool {
        let Some(probe) = &container.readiness_probe else {
            return true;
        };
        let Some(pod) = self.world.pods.get(key) else {
            return false;
        };
        if self.world.suffers(FaultKind::ProbeIgnored, &pod.node) {
            return true;
        }
        let own = pod.first_address();
        let reached = |host: Option<&String>, port: &IntOrString| {
            let host = host.filter(|host| !host.is_empty());
            let address = host.map_or(Ok(own), |host| host.parse()).ok()?;
            let from = Origin::Node(pod.node.clone());
            let request = Request::tcp(from, address, number(container, port)?, 0);
            match network::connect(&self.world, &request) {
                Outcome::Answered {
                    backend: Backend::Pod { pod, page },
                    source,
                } => Some((pod, page, source)),
                _ => None,
            }
        };
        if let Some(get) = &probe.http_get {
            let path = get.path.as_deref().unwrap_or("/");
            return reached(get.host.as_ref(), &get.port).is_some_and(|(pod, page, source)| {
                let exchange = Exchange {
                    hostname: &pod.name,
                    address: own,
                    source,
                };
                // pkg/probe/http/http.go: 200 to 399
                let os = crate::topology::Os::Linux;
                let status = kubelet::on_node(&pod.name, os, &self.view(), |net| {
                    serve::answer(page, path, exchange, net).status
                });
                (200..400).contains(&status)
            });
        }
        if let Some(socket) = &probe.tcp_socket {
            return reached(socket.host.as_ref(), &socket.port).is_some();
        }
        let command = probe.exec.as_ref().and_then(|exec| exec.command.as_ref());
        let place = self.places.get(&(key.clone(), container.name.clone()));
        command.zip(place).is_some_and(|(command, place)| {
            let started = program::start(place, command, &Input::default(), &self.view());
            matches!(started, Started::Ended(ran) if ran.code == 0)
        })
    }
}

/// A port by its number, or by its name among the container's.
fn number(container: &Container, port: &IntOrString) -> Option<u16> {
    let number = match port {
        IntOrString::Int(number) => *number,
        IntOrString::String(name) => {
            let mut ports = container.ports.iter().flatten();
            let named = ports.find(|port| port.name.as_ref() == Some(name))?;
            named.container_port
        }
    };
    u16::try_from(number).ok()
}
