//! Computes the outcome of one connection, datagram or ping as a pure function of the cluster, both ends and
//! the faults.
//!
//! The model covers what Kubernetes, Microsoft and the CNIs document about Windows nodes in the modes
//! `l2bridge`, `overlay` and `transparent`, kube-proxy's winkernel mode with and without DSR, and an iptables
//! kube-proxy on Linux; and IPv6 wherever nodes and pods have both families.
//!
//! | a connection to | code |
//! |---|---|
//! | a Service's address | `service.rs`, which picks a backend |
//! | a node's address | `node.rs`: kubelet, `NodePort`, `hostPort`, the host's own ports |
//! | anything, once its last hop is known | `path.rs`: the path there, and what listens |
//!
//! `policy.rs` reads `NetworkPolicies`. Names resolve in `names/`.

mod node;
mod path;
mod policy;
mod service;

use std::net::{IpAddr, Ipv6Addr};

use crate::fault::FaultKind;
use crate::topology::Os;
pub(crate) use crate::world::Protocol;
use crate::world::{Key, Node, Page, Pod, World};

/// Where a connection starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A pod with its own address.
    Pod(Key),
    /// A pod that uses its node's network.
    HostPod(Key),
    /// A node itself.
    Node(String),
    /// A client outside the cluster.
    Outside,
}

impl Origin {
    /// The name of its node, if the world knows it.
    pub(crate) fn node<'a>(&'a self, world: &'a World) -> Option<&'a str> {
        match self {
            Self::Pod(key) | Self::HostPod(key) => Some(&world.pods.get(key)?.node),
            Self::Node(name) => Some(name),
            Self::Outside => None,
        }
    }

    /// The operating system of its node; Linux without a node.
    pub(crate) fn os(&self, world: &World) -> Os {
        let node = self.node(world).and_then(|name| world.nodes.get(name));
        node.map_or(Os::Linux, |node| node.pool.os())
    }

    /// Its address of the same family as `other`.
    pub(crate) fn like(&self, world: &World, other: IpAddr) -> Option<IpAddr> {
        match self {
            Self::Pod(key) | Self::HostPod(key) => world.pods.get(key)?.like(other),
            Self::Node(name) => world.nodes.get(name)?.like(other),
            Self::Outside => None,
        }
    }
}

/// A connection, a datagram or a ping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) from: Origin,
    pub(crate) to: IpAddr,
    /// The destination port; 0 for a ping.
    pub(crate) port: u16,
    pub(crate) protocol: Protocol,
    /// Picks one of several backends; each connection has another turn.
    pub(crate) turn: u64,
    /// The size in bytes of the larger of request and answer, which must pass in one packet.
    pub(crate) payload: usize,
}

impl Request {
    /// A TCP connection that exchanges little.
    pub(crate) fn tcp(from: Origin, to: IpAddr, port: u16, turn: u64) -> Self {
        Self {
            from,
            to,
            port,
            protocol: Protocol::Tcp,
            turn,
            payload: 0,
        }
    }

    /// A small datagram and its small answer.
    pub(crate) fn udp(from: Origin, to: IpAddr, port: u16, turn: u64) -> Self {
        Self {
            protocol: Protocol::Udp,
            ..Self::tcp(from, to, port, turn)
        }
    }

    /// One ping.
    pub(crate) fn ping(from: Origin, to: IpAddr) -> Self {
        Self {
            protocol: Protocol::Icmp,
            ..Self::tcp(from, to, 0, 0)
        }
    }
}

/// The outcome of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// A backend answers, which sees this source address.
    Answered { backend: Backend, source: IpAddr },
    /// The other end refuses.
    Refused,
    /// Nothing answers.
    TimedOut,
    /// A router reports that the address does not exist.
    NoRoute,
    /// The sending system has no address of that family, or no route there.
    Unreachable,
    /// The sending system does not let the program connect (`WSAEACCES`).
    Forbidden,
    /// The connection opens, and is reset at the first data.
    Reset,
    /// As answered, but the connection is reset in the middle of what the backend says.
    BrokenOff { backend: Backend, source: IpAddr },
    /// The connection opens, but to something else than the addressee.
    WrongAnswer,
    /// The connection opens, but nothing as large as the payload arrives: the path silently drops packets
    /// above its MTU.
    Stalled,
}

/// What answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Backend {
    /// A program in a container.
    Pod { pod: Key, page: Page },
    /// A node's kubelet, which speaks TLS.
    Kubelet { node: String },
    /// The API server, which speaks TLS.
    ApiServer,
    /// The cluster's DNS.
    Dns,
    /// A server outside the cluster.
    Outside { name: String },
    /// A system's network stack, which echoes pings.
    Echo,
}

/// Computes the outcome of a request.
pub(crate) fn connect(world: &World, request: &Request) -> Outcome {
    match Flow::start(world, request) {
        Ok(flow) => flow.outcome(),
        Err(outcome) => outcome,
    }
}

/// Whether an origin has an address to send IPv6 from.
pub(crate) fn has_ipv6(world: &World, from: &Origin) -> bool {
    from.like(world, Ipv6Addr::UNSPECIFIED.into()).is_some()
}

/// A request on its way.
#[derive(Clone, Copy)]
struct Flow<'a> {
    world: &'a World,
    request: &'a Request,
    /// The pod that it comes from, unless that pod uses its node's network.
    pod: Option<(&'a Key, &'a Pod)>,
    /// The node that it is on: the node where it started, or the node that forwards it.
    node: Option<(&'a str, &'a Node)>,
    /// The source address it carries.
    source: IpAddr,
    /// Whether it has been forwarded by a node.
    forwarded: bool,
}

/// The pod (if it has its own address) and the node where a request starts.
type Ends<'a> = (Option<(&'a Key, &'a Pod)>, Option<(&'a str, &'a Node)>);

impl<'a> Flow<'a> {
    fn start(world: &'a World, request: &'a Request) -> Result<Self, Outcome> {
        let (pod, node) = Self::ends(world, request).ok_or(Outcome::NoRoute)?;
        let to = request.to;
        let forbids = |(name, _)| world.suffers(FaultKind::ConnectForbidden, name);
        if pod.is_some() && node.is_some_and(forbids) && !to.is_loopback() {
            return Err(Outcome::Forbidden);
        }
        let to_self = |pod: &Pod| to.is_loopback() || Some(to) == pod.like(to);
        let source = match (pod, node) {
            (Some(_), Some((name, _))) if world.suffers(FaultKind::AdapterMissing, name) => None,
            (Some((_, pod)), Some((name, node)))
                if !to_self(pod) && world.suffers(FaultKind::SourceRewritten, name) =>
            {
                // A pod with no address of the family sends nothing that could be rewritten
                pod.like(to).and_then(|_| node.like(to))
            }
            (Some((_, pod)), _) => pod.like(to),
            (None, Some((_, node))) => node.like(to),
            (None, None) => Some(world.network.client.into()).filter(|_| to.is_ipv4()),
        };
        // Every system has the address ::1
        let source = source.or_else(|| to.is_loopback().then_some(to));
        Ok(Self {
            world,
            request,
            pod,
            node,
            source: source.ok_or(Outcome::Unreachable)?,
            forwarded: false,
        })
    }

    /// The pod and the node where a request starts; `None` if the world lacks them.
    fn ends(world: &'a World, request: &'a Request) -> Option<Ends<'a>> {
        let pod = match &request.from {
            Origin::Pod(key) => Some(world.pods.get_key_value(key)?),
            Origin::Outside => return Some((None, None)),
            _ => None,
        };
        let name = request.from.node(world)?;
        Some((pod, Some((name, world.nodes.get(name)?))))
    }

    fn outcome(self) -> Outcome {
        let to = self.request.to;
        if to.is_loopback() && self.world.nodes.by_address(to).is_none() {
            return self.to_itself();
        }
        if let Some((key, service)) = self.world.services.by_address(to) {
            return self.to_service(key, service);
        }
        if let Some((name, node)) = self.world.nodes.by_address(to) {
            return self.to_node(name, node);
        }
        self.deliver(to, self.request.port)
    }

    /// The operating system of the node that the request is on; `None` for an outside client.
    fn os(&self) -> Option<Os> {
        self.node.map(|(_, node)| node.pool.os())
    }

    /// Whether it started on a node's own network and no node has forwarded it.
    fn is_host(&self) -> bool {
        self.pod.is_none() && self.node.is_some() && !self.forwarded
    }

    fn is_on(&self, name: &str) -> bool {
        self.node.is_some_and(|(here, _)| here == name)
    }

    fn to_itself(self) -> Outcome {
        let Request { port, protocol, .. } = *self.request;
        if protocol == Protocol::Icmp {
            return self.answered(Backend::Echo);
        }
        let listener = match (self.pod, self.node) {
            (Some((key, pod)), _) => pod.listens(protocol, port).map(|page| (key, page)),
            (None, Some((name, _))) => on_host(self.world, name, protocol, port),
            (None, None) => None,
        };
        match listener {
            Some((pod, page)) => self.answered_by(pod, page),
            None => Outcome::Refused,
        }
    }

    fn answered(&self, backend: Backend) -> Outcome {
        Outcome::Answered {
            backend,
            source: self.source,
        }
    }

    fn answered_by(&self, pod: &Key, page: Page) -> Outcome {
        let pod = pod.clone();
        self.answered(Backend::Pod { pod, page })
    }
}

/// The listener on a node's own address, among the pods that use the node's network.
fn on_host<'a>(
    world: &'a World,
    node: &str,
    protocol: Protocol,
    port: u16,
) -> Option<(&'a Key, Page)> {
    let mut pods = world.pods.on_host(node);
    pods.find_map(|(key, pod)| Some((key, pod.listens(protocol, port)?)))
}

#[cfg(test)]
mod tests;
