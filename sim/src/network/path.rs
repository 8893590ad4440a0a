//! The last hop: what has an address, whether the path there drops packets, and whether anything listens.

use std::net::{IpAddr, Ipv4Addr};

use super::{Backend, Flow, Outcome, Protocol, Request, on_host, policy};
use crate::fault::FaultKind;
use crate::topology::{Build, NetworkMode, Os, SecurityGroup};
use crate::world::{CLUSTER_DNS, Key, Node, Outside, Pod, World};

/// VXLAN's headers: outer Ethernet, IP and UDP, and its own.
const VXLAN: usize = 50;
/// The port of its datagrams (RFC 7348), to which Windows sends whatever is configured.
const VXLAN_PORT: u16 = 4789;

/// The size of the headers of IP and of the protocol above it.
fn headers(protocol: Protocol, to: IpAddr) -> usize {
    let ip = if to.is_ipv4() { 20 } else { 40 };
    ip + match protocol {
        Protocol::Tcp => 20,
        Protocol::Udp | Protocol::Icmp => 8,
    }
}

/// The largest packet that the fault `mtu-black-hole` lets pass.
const HOLE: usize = 1400;

/// Where clouds serve the metadata of a virtual machine.
const METADATA: IpAddr = IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254));

/// A node and its name.
type There<'a> = (&'a str, &'a Node);

impl<'a> Flow<'a> {
    /// Sends the request to an address that is not a Service's.
    pub(super) fn deliver(self, address: IpAddr, port: u16) -> Outcome {
        // The DNS Service's backends answer even if this simulator does not run their pods
        let other = bystander(self.world, address, port, self.request.protocol);
        if let Some((key, pod)) = self.world.pods.by_address(address)
            && !matches!(other, Some(Backend::Dns))
        {
            return self.to_pod(key, pod, (address, port));
        }
        if let Some((name, node)) = self.world.nodes.by_address(address) {
            return self.to_host(name, node, (address, port));
        }
        if let Some(backend) = other {
            let node = self.world.nodes.around(address);
            let there = node.map(|(name, node)| (name.as_str(), node));
            return match self.between(there, None, (address, port)) {
                Some(lost) => lost,
                None => self.passed(there, self.answered(backend)),
            };
        }
        if address == METADATA
            && port == 80
            && self.suffers(FaultKind::MetadataAnswers, [self.node, None])
        {
            let name = "metadata".to_owned();
            return self.answered(Backend::Outside { name });
        }
        let outside = &self.world.network.outside;
        if let Some(outside) = outside.iter().find(|each| each.address == address) {
            return self.to_outside(outside, port);
        }
        match (self.world.nodes.around(address), self.os()) {
            // No system answers ARP for it: Linux reports that after 3 s; Windows keeps waiting, but reports
            // it to a ping ("Destination host unreachable")
            (Some(_), Some(Os::Linux)) => Outcome::NoRoute,
            (Some((name, _)), _) if self.request.protocol == Protocol::Icmp && self.is_on(name) => {
                Outcome::NoRoute
            }
            (None, Some(_)) if self.is_captive() => Outcome::WrongAnswer,
            // Nothing answers outside the simulated cluster
            _ => Outcome::TimedOut,
        }
    }

    fn to_pod(self, key: &'a Key, pod: &'a Pod, to: (IpAddr, u16)) -> Outcome {
        let Some(node) = self.world.nodes.get(&pod.node) else {
            return Outcome::TimedOut;
        };
        let there = (pod.node.as_str(), node);
        let itself = self.pod.is_some_and(|(origin, _)| origin == key);
        let direct = itself && self.request.to == to.0;
        let suffers = |kind| self.world.suffers(kind, there.0);
        if suffers(FaultKind::AdapterMissing) || direct && suffers(FaultKind::OwnAddressDead) {
            return Outcome::TimedOut;
        }
        if !itself || self.forwarded {
            // Pod networks are not routed outside the cluster
            if self.node.is_none() {
                return Outcome::TimedOut;
            }
            if let Some(lost) = self.between(Some(there), Some((key, pod)), to) {
                return lost;
            }
        }
        let protocol = self.request.protocol;
        match pod.listens(protocol, to.1) {
            _ if protocol == Protocol::Icmp => {
                self.passed(Some(there), self.answered(Backend::Echo))
            }
            Some(page) => self.passed(Some(there), self.answered_by(key, page)),
            None => Outcome::Refused,
        }
    }

    /// Connects to a backend on its node's own network.
    fn to_host(self, name: &'a str, node: &'a Node, to: (IpAddr, u16)) -> Outcome {
        if let Some(lost) = self.between(Some((name, node)), None, to) {
            return lost;
        }
        match on_host(self.world, name, self.request.protocol, to.1) {
            Some((pod, page)) => self.passed(Some((name, node)), self.answered_by(pod, page)),
            None if node.pool.os() == Os::Windows && !self.is_on(name) => Outcome::TimedOut,
            None => Outcome::Refused,
        }
    }

    fn to_outside(self, outside: &Outside, port: u16) -> Outcome {
        let protocol = self.request.protocol;
        let Some((here, node)) = self.node else {
            return Outcome::TimedOut;
        };
        if let Some(lost) = self.between(None, None, (outside.address, port)) {
            return lost;
        }
        if self.world.suffers(FaultKind::OutboundCut, here) {
            return Outcome::TimedOut;
        }
        if protocol == Protocol::Icmp {
            if !self.world.network.outside_pings {
                return Outcome::TimedOut;
            }
            // windows-networking.md: VFP cannot transpose ICMP, so pings beyond the network are not routed
            // back; it names win-overlay, win-bridge and Azure-CNI
            let limited = node.pool.os() == Os::Windows
                && self.pod.is_some()
                && node.network.mode != NetworkMode::Transparent
                && !self.world.suffers(FaultKind::OutboundPingAnswers, here);
            if limited {
                return Outcome::TimedOut;
            }
            let flow = self.leaving(node);
            return flow.passed(None, flow.answered(Backend::Echo));
        }
        let listens = match protocol {
            Protocol::Tcp => outside.tcp.contains(&port),
            _ => outside.udp.contains(&port),
        };
        if self.is_captive() {
            return Outcome::WrongAnswer;
        }
        if !listens {
            return Outcome::TimedOut;
        }
        let name = outside.names.first().cloned().unwrap_or_default();
        let flow = self.leaving(node);
        flow.passed(None, flow.answered(Backend::Outside { name }))
    }

    /// Whether a captive proxy answers connections that leave the cluster.
    fn is_captive(&self) -> bool {
        let here = [self.node, None];
        self.request.protocol == Protocol::Tcp && self.suffers(FaultKind::CaptiveProxy, here)
    }

    /// Whether a kind of fault holds on either of two nodes.
    fn suffers(&self, kind: FaultKind, ends: [Option<There<'_>>; 2]) -> bool {
        let mut ends = ends.into_iter().flatten();
        ends.any(|(name, _)| self.world.suffers(kind, name))
    }

    /// The request with its node's address as source, which pods get when they leave the cluster.
    fn leaving(self, node: &Node) -> Self {
        Self {
            source: node.like(self.source).unwrap_or(self.source),
            ..self
        }
    }

    /// The outcome of what drops the request on its way to a node, to a pod on it, or out of the cluster;
    /// else `None`.
    pub(super) fn between(
        &self,
        there: Option<There<'_>>,
        pod: Option<(&Key, &Pod)>,
        to: (IpAddr, u16),
    ) -> Option<Outcome> {
        let (world, here) = (self.world, self.node);
        let remote = here.map(|(name, _)| name) != there.map(|(name, _)| name);
        let over_ipv6 = remote && to.0.is_ipv6();
        let from = |(name, node): There<'_>| {
            let Request { protocol, port, .. } = *self.request;
            let dropped = protocol == Protocol::Udp && port != 53;
            let pings = protocol == Protocol::Icmp;
            // windows-networking.md, Flannel VXLAN: "Node-to-pod communication is only possible for
            // local pods"
            let host = self.is_host() && node.pool.os() == Os::Windows;
            let overlay = node.network.mode == NetworkMode::Overlay;
            dropped && world.suffers(FaultKind::UdpDropped, name)
                || pings && world.suffers(FaultKind::PingDropped, name)
                || there.is_some_and(|there| world.cut((name, node), there))
                || remote && pod.is_some() && host && overlay
        };
        // A pod on a node whose network did not outlast a boot
        let stranded = |end: Option<There<'_>>, has_pod: bool| {
            end.filter(|(_, node)| has_pod && node.has_booted)
                .is_some_and(|(name, _)| world.suffers(FaultKind::BootLosesNetwork, name))
        };
        let is_stranded = || stranded(here, self.pod.is_some()) || stranded(there, pod.is_some());
        let lost = remote && (unbuilt(here) || unbuilt(there) || is_stranded())
            || self.suffers(FaultKind::NodeVanishes, [here, there])
            || remote && !self.is_let_through([here, there], to)
            || over_ipv6 && self.suffers(FaultKind::Ipv6Dropped, [here, there])
            || here.is_some_and(from)
            || !policy::allows(self, there, pod, to.1);
        lost.then_some(Outcome::TimedOut)
    }

    /// Whether the nodes' security group lets the request pass between two nodes. Of what an overlay carries it
    /// sees only VXLAN's datagrams.
    fn is_let_through(&self, ends: [Option<There<'_>>; 2], (address, port): (IpAddr, u16)) -> bool {
        let [Some((_, node)), Some(_)] = ends else {
            return true;
        };
        let is_of_pod = self.world.nodes.by_address(address).is_none();
        let (protocol, port) = match is_of_pod && node.network.mode == NetworkMode::Overlay {
            true => (Protocol::Udp, VXLAN_PORT),
            false => (self.request.protocol, port),
        };
        let passes = |group: &SecurityGroup| group.passes(protocol, port);
        let group = self.world.network.between_nodes.as_ref();
        let fault = self.suffers(FaultKind::SecurityGroup, ends);
        group.is_none_or(passes) && (!fault || passes(&SecurityGroup::of_terraform_eks()))
    }

    /// `outcome`, unless the payload is too large for a path that loses large packets: the path to the node
    /// that forwards the request, or the path on to the backend.
    pub(super) fn passed(&self, there: Option<There<'_>>, outcome: Outcome) -> Outcome {
        let start = match self.forwarded {
            true => Self::ends(self.world, self.request).and_then(|(_, node)| node),
            false => self.node,
        };
        let carries = [(start, self.node, false), (self.node, there, true)]
            .into_iter()
            .filter_map(|(here, there, last)| self.carries(here, there, last))
            .min();
        match (carries, self.request.protocol) {
            (Some(carries), Protocol::Tcp) if self.request.payload > carries => Outcome::Stalled,
            (Some(carries), _) if self.request.payload > carries => Outcome::TimedOut,
            (_, Protocol::Tcp) => self.broken_off(there, outcome),
            _ => outcome,
        }
    }

    /// `outcome`, unless the last hop leads to a pod whose answers to other nodes are broken off.
    fn broken_off(&self, there: Option<There<'_>>, outcome: Outcome) -> Outcome {
        let remote = self.node.map(|(name, _)| name) != there.map(|(name, _)| name);
        match outcome {
            Outcome::Answered {
                backend: backend @ Backend::Pod { .. },
                source,
            } if remote && self.suffers(FaultKind::AnswersBrokenOff, [None, there]) => {
                Outcome::BrokenOff { backend, source }
            }
            outcome => outcome,
        }
    }

    /// The largest payload that a hop carries; `None` without the fault. Between overlay nodes the last hop,
    /// which carries pods' packets, is tunnelled.
    fn carries(
        &self,
        here: Option<There<'_>>,
        there: Option<There<'_>>,
        last: bool,
    ) -> Option<usize> {
        let remote = here.map(|(name, _)| name) != there.map(|(name, _)| name);
        if !remote || !self.suffers(FaultKind::MtuBlackHole, [here, there]) {
            return None;
        }
        let overlay = here.is_some_and(|(_, node)| node.network.mode == NetworkMode::Overlay);
        let tunnelled = last && overlay && there.is_some();
        Some(
            HOLE - headers(self.request.protocol, self.request.to)
                - if tunnelled { VXLAN } else { 0 },
        )
    }
}

/// windows-networking.md: overlay on Windows Server 2019 needs KB4489899, which is build 17763.379.
fn unbuilt(at: Option<There<'_>>) -> bool {
    at.is_some_and(|(_, node)| {
        node.pool.build() == Some(Build::Ws2019)
            && node.network.mode == NetworkMode::Overlay
            && node.revision < 379
    })
}

/// What answers at an address without being a simulated pod: the cluster's DNS or the API server, which are
/// known by their `EndpointSlices`.
fn bystander(world: &World, address: IpAddr, port: u16, protocol: Protocol) -> Option<Backend> {
    let is_of = |namespace, name| {
        world
            .slices
            .for_service(&Key::new(namespace, name))
            .any(|slice| {
                let there = slice.endpoints.iter().any(|each| each.address == address);
                there
                    && (protocol == Protocol::Icmp
                        || slice.ports.values().any(|each| *each == port))
            })
    };
    if CLUSTER_DNS
        .into_iter()
        .any(|(namespace, name)| is_of(namespace, name))
    {
        return Some(match protocol {
            Protocol::Icmp => Backend::Echo,
            _ => Backend::Dns,
        });
    }
    (protocol == Protocol::Tcp && is_of("default", "kubernetes")).then_some(Backend::ApiServer)
}
