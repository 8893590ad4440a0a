//! The outcome of a TCP connection, as a pure function of the cluster, both ends and the faults.
//!
//! It models what Kubernetes and Microsoft document for Windows nodes in mode `l2bridge` with
//! kube-proxy's winkernel mode without DSR, and an iptables kube-proxy on Linux. It knows no UDP,
//! no ICMP and no policies.

pub(crate) mod watch;

use std::net::{IpAddr, Ipv4Addr};

use crate::fault::FaultKind;
use crate::program::serve::Page;
use crate::topology::Os;
use crate::world::{Key, Node, Pod, Service, ServicePort, World};

/// Where a connection starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A pod with an address of its own.
    Pod(Key),
    /// A node, or a pod that uses its network.
    Node(String),
}

/// Where a connection goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SocketTarget {
    pub(crate) address: IpAddr,
    pub(crate) port: u16,
    /// Which of several backends takes it: each connection has a turn of its own.
    pub(crate) turn: u64,
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Somebody listens.
    Answered { backend: Backend, source: IpAddr },
    /// The other end says no.
    Refused,
    /// Nobody says anything.
    TimedOut,
    /// A router says that there is nobody.
    NoRoute,
    /// It is opened, and cut at the first data.
    Reset,
    /// It is opened by somebody else than was meant.
    WrongAnswer,
}

/// Who answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Backend {
    /// A container's program.
    Pod { pod: Key, page: Page },
    /// A node's kubelet, which speaks TLS.
    Kubelet { node: String },
}

/// Tells what becomes of a connection.
pub(crate) fn connect(world: &World, from: &Origin, to: SocketTarget) -> Outcome {
    let Some(start) = Start::of(world, from) else {
        return Outcome::NoRoute;
    };
    if let Some((key, service)) = world
        .services
        .iter()
        .find(|(_, s)| s.addresses.contains(&to.address))
    {
        return to_service(world, &start, key, service, to);
    }
    if let Some((name, node)) = world
        .nodes
        .iter()
        .find(|(_, n)| IpAddr::V4(n.address) == to.address)
    {
        return to_node(world, &start, name, node, to);
    }
    if to.address.is_loopback() {
        return to_itself(world, &start, to.port);
    }
    to_pod(world, &start, to)
}

struct Start<'a> {
    origin: &'a Origin,
    node_name: &'a str,
    node: &'a Node,
    source: Ipv4Addr,
}

impl<'a> Start<'a> {
    fn of(world: &'a World, origin: &'a Origin) -> Option<Self> {
        let (node_name, source) = match origin {
            Origin::Pod(key) => {
                let pod = world.pods.get(key)?;
                (&pod.node, Some(pod.address))
            }
            Origin::Node(name) => (name, None),
        };
        let node = world.nodes.get(node_name)?;
        Some(Self {
            origin,
            node_name,
            node,
            source: source.unwrap_or(node.address),
        })
    }

    fn os(&self) -> Os {
        self.node.pool.os()
    }

    fn suffers(&self, world: &World, kind: FaultKind) -> bool {
        world.faults.on_node(kind, self.node_name, self.node.pool)
    }

    fn is_node(&self) -> bool {
        matches!(self.origin, Origin::Node(_))
    }
}

fn to_service(
    world: &World,
    start: &Start<'_>,
    key: &Key,
    service: &Service,
    to: SocketTarget,
) -> Outcome {
    if world.faults.any(FaultKind::ServiceAnswersWrong) {
        return Outcome::WrongAnswer;
    }
    if start.suffers(world, FaultKind::KubeProxyDead) {
        return Outcome::TimedOut;
    }
    if start.is_node() && start.os() == Os::Windows {
        if start.suffers(world, FaultKind::NodeServiceIpResets) {
            return Outcome::Reset;
        }
        // Windows user guide: "Windows container hosts are not able to access the IP of services
        // scheduled on them"; the debug page says so of any Service (debug/windows.md), and so do
        // we
        if !start.suffers(world, FaultKind::NodeServiceIpAnswers) {
            return Outcome::TimedOut;
        }
    }
    match service.ports.iter().find(|port| port.port == to.port) {
        Some(port) => to_backend(world, start, key, port, to.turn),
        // No rule matches such a packet: it leaves by the default route and is lost
        None => Outcome::TimedOut,
    }
}

fn to_node(world: &World, start: &Start<'_>, name: &str, node: &Node, to: SocketTarget) -> Outcome {
    let node_port = world.services.iter().find_map(|(key, service)| {
        let port = service
            .ports
            .iter()
            .find(|port| port.node_port == Some(to.port))?;
        Some((key, port))
    });
    if let Some((key, port)) = node_port {
        if world
            .faults
            .on_node(FaultKind::KubeProxyDead, name, node.pool)
        {
            return Outcome::TimedOut;
        }
        if node.pool.os() == Os::Windows {
            // windows-networking.md: "Local NodePort access from the node itself fails (works for
            // other nodes or external clients)"
            if start.is_node() && start.node_name == name {
                return Outcome::TimedOut;
            }
            // Microsoft, common-problems.md: NodePort forwarding needs at least one pod on the
            // Windows node
            if !world
                .pods
                .values()
                .any(|pod| pod.node == name && !pod.host_network)
            {
                return Outcome::TimedOut;
            }
        }
        return to_backend(world, start, key, port, to.turn);
    }
    if to.port == node.kubelet_port {
        let backend = Backend::Kubelet {
            node: name.to_owned(),
        };
        return Outcome::Answered {
            backend,
            source: start.source.into(),
        };
    }
    match on_host_network(world, name, to.port) {
        Some((pod, page)) => answered(start, pod, page),
        // Windows Defender Firewall drops what nobody listens for ("stealth mode"), except from the
        // machine itself
        None if node.pool.os() == Os::Windows && start.node_name != name => Outcome::TimedOut,
        None => Outcome::Refused,
    }
}

fn to_backend(
    world: &World,
    start: &Start<'_>,
    key: &Key,
    port: &ServicePort,
    turn: u64,
) -> Outcome {
    let backends: Vec<(IpAddr, u16)> = world
        .slices
        .iter()
        .filter(|(slice_key, slice)| {
            slice_key.namespace == key.namespace && slice.service == key.name
        })
        .filter_map(|(_, slice)| Some((slice, *slice.ports.get(&port.name)?)))
        .flat_map(|(slice, target)| slice.ready.iter().map(move |address| (*address, target)))
        .collect();
    let count = backends.len() as u64;
    let Some((address, target)) = turn.checked_rem(count).and_then(|at| {
        let at = usize::try_from(at).expect("below the number of backends");
        backends.get(at).copied()
    }) else {
        return match start.os() {
            // kube-proxy's iptables mode rejects Services without endpoints
            // ("has no endpoints" -j REJECT, pkg/proxy/iptables/proxier.go)
            Os::Linux => Outcome::Refused,
            // winkernel makes no load balancer for such a Service (pkg/proxy/winkernel/proxier.go)
            Os::Windows => Outcome::TimedOut,
        };
    };
    // A pod that reaches itself through its Service fails under l2bridge (hcsshim issue 1511)
    if start.os() == Os::Windows && !start.is_node() && address == IpAddr::V4(start.source) {
        return Outcome::TimedOut;
    }
    to_pod(
        world,
        start,
        SocketTarget {
            address,
            port: target,
            turn,
        },
    )
}

fn to_pod(world: &World, start: &Start<'_>, to: SocketTarget) -> Outcome {
    let IpAddr::V4(address) = to.address else {
        // The simulated network is IPv4 alone
        return Outcome::NoRoute;
    };
    let pod = world
        .pods
        .iter()
        .find(|(_, pod)| !pod.host_network && pod.address == address);
    if let Some((key, pod)) = pod {
        return match pod.listening.get(&to.port) {
            Some(page) => answered(start, key, *page),
            None => Outcome::Refused,
        };
    }
    let [a, b, c, _] = address.octets();
    let local = world
        .nodes
        .values()
        .any(|node| node.pod_network == [a, b, c]);
    match (local, start.os()) {
        // Nobody answers ARP for it: Linux says so after 3 s, Windows waits on
        (true, Os::Linux) => Outcome::NoRoute,
        // Outside the simulated cluster there is nobody
        _ => Outcome::TimedOut,
    }
}

fn to_itself(world: &World, start: &Start<'_>, port: u16) -> Outcome {
    let listener = match start.origin {
        Origin::Pod(key) => world
            .pods
            .get_key_value(key)
            .and_then(|(key, pod)| Some((key, *pod.listening.get(&port)?))),
        Origin::Node(name) => on_host_network(world, name, port),
    };
    listener.map_or(Outcome::Refused, |(pod, page)| answered(start, pod, page))
}

fn on_host_network<'a>(world: &'a World, node: &str, port: u16) -> Option<(&'a Key, Page)> {
    let on_node = |pod: &Pod| pod.host_network && pod.node == node;
    world
        .pods
        .iter()
        .filter(|(_, pod)| on_node(pod))
        .find_map(|(key, pod)| Some((key, *pod.listening.get(&port)?)))
}

fn answered(start: &Start<'_>, pod: &Key, page: Page) -> Outcome {
    Outcome::Answered {
        backend: Backend::Pod {
            pod: pod.clone(),
            page,
        },
        source: start.source.into(),
    }
}

#[cfg(test)]
mod tests;
