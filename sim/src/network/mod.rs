//! The outcome of one connection, datagram or ping, as a pure function of the cluster, both ends
//! and the faults.
//!
//! It models what Kubernetes, Microsoft and the CNIs document of Windows nodes in the modes
//! `l2bridge`, `overlay` and `transparent`, with kube-proxy's winkernel mode with and without DSR,
//! and an iptables kube-proxy on Linux, in both families where nodes and pods have both.
//!
//! | a connection to | is decided in |
//! |---|---|
//! | a Service's address | `service.rs`, which picks a backend |
//! | a node's address | `node.rs`: kubelet, `NodePort`, `hostPort`, the host's own ports |
//! | anything, once its last hop is known | `path.rs`: what lies between, and who listens |
//!
//! `policy.rs` reads `NetworkPolicies`. Names are in `names/`.

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
    /// A pod with an address of its own.
    Pod(Key),
    /// A pod that uses its node's network.
    HostPod(Key),
    /// A node itself.
    Node(String),
    /// A client outside the cluster.
    Outside,
}

impl Origin {
    /// The name of its node, as far as the world knows it.
    pub(crate) fn node<'a>(&'a self, world: &'a World) -> Option<&'a str> {
        match self {
            Self::Pod(key) | Self::HostPod(key) => Some(&world.pods.get(key)?.node),
            Self::Node(name) => Some(name),
            Self::Outside => None,
        }
    }

    /// The system of its node; where there is none, Linux.
    pub(crate) fn os(&self, world: &World) -> Os {
        let node = self.node(world).and_then(|name| world.nodes.get(name));
        node.map_or(Os::Linux, |node| node.pool.os())
    }

    /// Its address of the family of another.
    pub(crate) fn like(&self, world: &World, other: IpAddr) -> Option<IpAddr> {
        match self {
            Self::Pod(key) | Self::HostPod(key) => world.pods.get(key)?.like(other),
            Self::Node(name) => world.nodes.get(name)?.like(other),
            Self::Outside => None,
        }
    }
}

/// What is asked of the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) from: Origin,
    pub(crate) to: IpAddr,
    /// 0 for a ping.
    pub(crate) port: u16,
    pub(crate) protocol: Protocol,
    /// Which of several backends takes it: each connection has a turn of its own.
    pub(crate) turn: u64,
    /// The bytes that must pass in one go, either way: the larger of request and answer.
    pub(crate) payload: usize,
}

impl Request {
    /// A small TCP exchange.
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

    /// A small datagram and its answer.
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

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Somebody listens, and sees this source address.
    Answered { backend: Backend, source: IpAddr },
    /// The other end says no.
    Refused,
    /// Nobody says anything.
    TimedOut,
    /// A router says that there is nobody.
    NoRoute,
    /// The system that asks has no address of that family, or knows no way there.
    Unreachable,
    /// It is opened, and cut at the first data.
    Reset,
    /// It is opened by somebody else than was meant.
    WrongAnswer,
    /// It is opened, and then nothing as large as the payload arrives: packets above the path's
    /// MTU are lost without a word.
    Stalled,
}

/// Who answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Backend {
    /// A container's program.
    Pod { pod: Key, page: Page },
    /// A node's kubelet, which speaks TLS.
    Kubelet { node: String },
    /// The API server, which speaks TLS.
    ApiServer,
    /// The cluster's DNS.
    Dns,
    /// Somebody outside the cluster.
    Outside { name: String },
    /// A system's network itself, which echoes pings.
    Echo,
}

/// Tells what becomes of a request.
pub(crate) fn connect(world: &World, request: &Request) -> Outcome {
    match Flow::start(world, request) {
        Ok(flow) => flow.outcome(),
        Err(outcome) => outcome,
    }
}

/// Whether somebody has an address to reach IPv6 from.
pub(crate) fn has_ipv6(world: &World, from: &Origin) -> bool {
    from.like(world, Ipv6Addr::UNSPECIFIED.into()).is_some()
}

/// A request on its way.
#[derive(Clone, Copy)]
struct Flow<'a> {
    world: &'a World,
    request: &'a Request,
    /// The pod it comes from, unless that uses its node's network.
    pod: Option<(&'a Key, &'a Pod)>,
    /// The node it is on: where it started, or whose load balancer has taken it.
    node: Option<(&'a str, &'a Node)>,
    /// The source address it carries.
    source: IpAddr,
    /// Whether a node has forwarded it that it did not start on.
    forwarded: bool,
}

/// The pod, if it has an address of its own, and the node of a beginning.
type Ends<'a> = (Option<(&'a Key, &'a Pod)>, Option<(&'a str, &'a Node)>);

impl<'a> Flow<'a> {
    fn start(world: &'a World, request: &'a Request) -> Result<Self, Outcome> {
        let (pod, node) = Self::ends(world, request).ok_or(Outcome::NoRoute)?;
        let to = request.to;
        let own = |pod: &Pod| to.is_loopback() || Some(to) == pod.like(to);
        let source = match (pod, node) {
            (Some((_, pod)), Some((name, node)))
                if !own(pod) && world.suffers(FaultKind::SourceRewritten, name) =>
            {
                // What has no address of the family sends nothing that could be rewritten
                pod.like(to).and_then(|_| node.like(to))
            }
            (Some((_, pod)), _) => pod.like(to),
            (None, Some((_, node))) => node.like(to),
            (None, None) => Some(world.network.client.into()).filter(|_| to.is_ipv4()),
        };
        // Every system has ::1
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

    /// The pod and the node that a request comes from; `None` where there is no such pod or node.
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

    /// The system that the request is on; an outside client's is nobody's business.
    fn os(&self) -> Option<Os> {
        self.node.map(|(_, node)| node.pool.os())
    }

    /// Whether it started on a node's own network and is still there.
    fn is_host(&self) -> bool {
        self.pod.is_none() && self.node.is_some() && !self.forwarded
    }

    fn is_on(&self, name: &str) -> bool {
        self.node.is_some_and(|(own, _)| own == name)
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

/// Who listens on a node's own address, among pods that use its network.
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
