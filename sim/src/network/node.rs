//! Connections to a node's address.

use super::{Backend, Flow, Outcome, Protocol, on_host};
use crate::fault::FaultKind;
use crate::topology::{NetworkMode, Os};
use crate::world::Node;

impl<'a> Flow<'a> {
    pub(super) fn to_node(self, name: &'a str, node: &'a Node) -> Outcome {
        let request = self.request;
        let windows = node.pool.os() == Os::Windows;
        let local = self.is_on(name);
        if !local
            && let Some(lost) = self.between(Some((name, node)), None, (request.to, request.port))
        {
            return lost;
        }
        // On VXLAN (flannel issue 1369; flannel pull request 1096, comment of 2 July 2019, says so of a Service)
        if windows
            && local
            && self.pod.is_some()
            && (node.network.mode == NetworkMode::Overlay
                || self.world.suffers(FaultKind::OwnNodeUnreached, name))
        {
            return Outcome::TimedOut;
        }
        if request.protocol == Protocol::Icmp {
            // By default Windows Defender Firewall lets no echo request in
            return if windows && !local {
                Outcome::TimedOut
            } else {
                self.passed(Some((name, node)), self.answered(Backend::Echo))
            };
        }
        let services = &self.world.services;
        // kube-proxy opens a node port in the address families of its Service
        if let Some((key, service, port)) = services.on_node_port(request.protocol, request.port)
            && service.has_family_of(request.to)
            && node.forwards(request.to)
        {
            if self.world.suffers(FaultKind::NodePortClosed, name) {
                return Outcome::TimedOut;
            }
            return self.through_node_port(name, node, key, service, port);
        }
        let host_port = self
            .world
            .pods
            .host_port(name, request.protocol, request.port);
        if let Some((pod, port)) = host_port
            && let Some(address) = pod.like(request.to)
            && node.network.host_ports
        {
            // The plugin portmap masquerades connections from the node itself. winkernel uses an HNS NAT
            // policy, which, like its NodePorts, does not work from the node itself
            if windows && local && self.is_host() {
                return Outcome::TimedOut;
            }
            let forwarded = Flow {
                node: Some((name, node)),
                forwarded: true,
                ..self
            };
            return forwarded.deliver(address, port);
        }
        if request.protocol == Protocol::Tcp && request.port == node.kubelet_port {
            return self.answered(Backend::Kubelet {
                node: name.to_owned(),
            });
        }
        match on_host(self.world, name, request.protocol, request.port) {
            Some((pod, page)) => self.passed(Some((name, node)), self.answered_by(pod, page)),
            // Windows Defender Firewall drops packets to ports without a listener ("stealth mode"), except
            // those from the machine itself
            None if windows && !local => Outcome::TimedOut,
            None => Outcome::Refused,
        }
    }
}
