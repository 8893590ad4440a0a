//! What the simulated network and programs know of the cluster: a plain value, which the watches keep
//! current.
//!
//! The value holds no client and does nothing by itself; a reader takes a snapshot and computes from it.
//! Indexes by address serve the look-ups by address, and a copy shares everything that has not changed.

mod node;
mod objects;
mod page;
mod protocol;
mod settings;
mod slices;

pub(crate) use node::Node;
pub(crate) use objects::{Nodes, Pods, Services};
pub(crate) use page::Page;
pub(crate) use protocol::Protocol;
pub(crate) use settings::{CLUSTER_DNS, Network, Outside, is_cluster_dns};
pub(crate) use slices::Slices;

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1;
use k8s_openapi::api::networking::v1::NetworkPolicySpec;
use tokio::time::Instant;

use crate::base::clock::{Clock, Wall, moment};
use crate::base::lock::locked;
use crate::fault::{FaultKind, FaultSet};
use node::both;

/// A namespaced name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Key {
    pub(crate) fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Labels of an object.
pub(crate) type Labels = BTreeMap<String, String>;

/// A pod that runs on a node of this simulator.
#[derive(Clone, Debug)]
pub(crate) struct Pod {
    pub(crate) uid: String,
    pub(crate) node: String,
    /// Its own address, or its node's.
    pub(crate) address: Ipv4Addr,
    /// Its IPv6 address, or its node's.
    pub(crate) address6: Option<Ipv6Addr>,
    /// Whether it uses its node's network, as `HostProcess` pods do.
    pub(crate) host_network: bool,
    /// The pages that its containers serve, by TCP port.
    pub(crate) listening: BTreeMap<u16, Page>,
    /// The pages that its containers serve, by UDP port.
    pub(crate) listening_udp: BTreeMap<u16, Page>,
    /// What its resolver waits for until it reaches a name server, as in a new Windows pod.
    pub(crate) dns_lag: Option<Lag>,
    /// Whether its containers run in a virtual machine of their own: Hyper-V isolation.
    pub(crate) isolated: bool,
    /// What its API object says about the network.
    pub(crate) told: Arc<Told>,
}

impl Pod {
    /// Creates a pod that has its address and serves nothing yet.
    pub(crate) fn new(node: &str, address: impl Into<Ipv4Addr>, told: Told) -> Self {
        Self {
            uid: told.uid.clone(),
            node: node.to_owned(),
            address: address.into(),
            address6: None,
            host_network: false,
            listening: BTreeMap::new(),
            listening_udp: BTreeMap::new(),
            dns_lag: None,
            isolated: false,
            told: Arc::new(told),
        }
    }

    /// Its addresses, that of IPv4 first.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        both(self.address, self.address6)
    }

    /// Its address of the same family as `other`.
    pub(crate) fn like(&self, other: IpAddr) -> Option<IpAddr> {
        let mut addresses = self.addresses();
        addresses.find(|address| address.is_ipv6() == other.is_ipv6())
    }

    /// The pod with the IPv6 address that its node gives it.
    pub(crate) fn on(self, node: &Node) -> Self {
        Self {
            address6: node.address6_of(self.address),
            ..self
        }
    }

    /// The page that it serves on a port, if any.
    pub(crate) fn listens(&self, protocol: Protocol, port: u16) -> Option<Page> {
        match protocol {
            Protocol::Tcp => self.listening.get(&port),
            Protocol::Udp => self.listening_udp.get(&port),
            Protocol::Icmp => None,
        }
        .copied()
    }
}

/// A time that has begun to pass, at a clock's speed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lag {
    simulated: Duration,
    real: Duration,
    since: Instant,
}

impl Lag {
    pub(crate) fn of(simulated: Duration, clock: Clock) -> Self {
        Self {
            simulated,
            real: clock.real(simulated),
            since: moment(),
        }
    }

    /// How much of it is left.
    pub(crate) fn left(self) -> Duration {
        let left = self.real.saturating_sub(self.since.elapsed());
        let share = left.as_secs_f64() / self.real.as_secs_f64();
        self.simulated
            .mul_f64(if share.is_nan() { 0.0 } else { share })
    }
}

/// What a pod's API object says about packets, names and programs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    pub(crate) uid: String,
    pub(crate) labels: Labels,
    /// The host name that its spec sets, if it sets one.
    pub(crate) own_name: Option<String>,
    pub(crate) ports: Vec<PodPort>,
    /// `spec.dnsPolicy`; empty is `ClusterFirst`.
    pub(crate) dns_policy: String,
    /// `spec.dnsConfig`.
    pub(crate) dns_config: v1::PodDNSConfig,
    /// The command lines of its containers.
    pub(crate) lines: Vec<String>,
}

/// A port of a container.
#[derive(Clone, Debug)]
pub(crate) struct PodPort {
    pub(crate) protocol: Protocol,
    pub(crate) port: u16,
    pub(crate) host_port: Option<u16>,
}

/// The host name that a pod's spec sets, if it sets one (kubelet, `GeneratePodHostNameAndDomain`).
pub(crate) fn own_name(spec: &v1::PodSpec) -> Option<&str> {
    let hostname = spec.hostname.as_ref().filter(|name| !name.is_empty());
    spec.hostname_override
        .as_ref()
        .or(hostname)
        .map(String::as_str)
}

impl Told {
    /// Reads what a pod's API object says.
    pub(crate) fn by(pod: &v1::Pod) -> Self {
        let spec = pod.spec.clone().unwrap_or_default();
        let number = |port: i32| u16::try_from(port).ok().filter(|port| *port != 0);
        let ports = spec
            .containers
            .iter()
            .flat_map(|c| c.ports.iter().flatten());
        Self {
            uid: pod.metadata.uid.clone().unwrap_or_default(),
            labels: pod.metadata.labels.clone().unwrap_or_default(),
            own_name: pod.spec.as_ref().and_then(own_name).map(str::to_owned),
            ports: ports
                .filter_map(|port| {
                    Some(PodPort {
                        protocol: Protocol::named(port.protocol.as_deref())?,
                        port: number(port.container_port)?,
                        host_port: port.host_port.and_then(number),
                    })
                })
                .collect(),
            dns_policy: spec.dns_policy.unwrap_or_default(),
            dns_config: spec.dns_config.unwrap_or_default(),
            lines: spec.containers.iter().filter_map(line_of).collect(),
        }
    }
}

/// The command line that a container's `command` and `args` make; an image's own is not known.
pub(crate) fn line_of(container: &v1::Container) -> Option<String> {
    let args = container.args.iter().flatten();
    let words: Vec<_> = container
        .command
        .iter()
        .flatten()
        .chain(args)
        .cloned()
        .collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// What packets depend on in a Service.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "the API has as many")]
pub(crate) struct Service {
    /// The virtual addresses; empty for headless and external Services.
    pub(crate) addresses: Vec<IpAddr>,
    /// The addresses of its load balancer, and those in `spec.externalIPs`.
    pub(crate) external: Vec<IpAddr>,
    pub(crate) ports: Vec<ServicePort>,
    /// `sessionAffinity: ClientIP`.
    pub(crate) sticky: bool,
    /// `internalTrafficPolicy: Local`.
    pub(crate) internal_local: bool,
    /// `externalTrafficPolicy: Local`.
    pub(crate) external_local: bool,
    /// The annotation `preserve-destination: "true"`.
    pub(crate) preserves_destination: bool,
    /// The name that an `ExternalName` Service points to.
    pub(crate) external_name: Option<String>,
}

impl Service {
    /// Whether it has a virtual address of the same family as `other`.
    pub(crate) fn has_family_of(&self, other: IpAddr) -> bool {
        let mut addresses = self.addresses.iter();
        addresses.any(|address| address.is_ipv6() == other.is_ipv6())
    }

    /// How many load balancers kube-proxy creates for it: one for each port on each address, and one for each
    /// node port.
    pub(crate) fn balancers(&self) -> usize {
        let addresses = self.addresses.len() + self.external.len();
        let node_ports = self.ports.iter().filter(|port| port.node_port.is_some());
        self.ports.len() * addresses + node_ports.count()
    }
}

/// A port of a Service.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServicePort {
    pub(crate) name: String,
    pub(crate) protocol: Protocol,
    pub(crate) port: u16,
    pub(crate) node_port: Option<u16>,
}

/// What packets depend on in an `EndpointSlice`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slice {
    /// The Service that it belongs to.
    pub(crate) service: String,
    /// The backends' ports, by the name of the Service's port.
    pub(crate) ports: BTreeMap<String, u16>,
    pub(crate) endpoints: Vec<Endpoint>,
}

/// One backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    pub(crate) address: IpAddr,
    pub(crate) node: Option<String>,
    /// The first label of its name under a headless Service.
    pub(crate) hostname: Option<String>,
    pub(crate) ready: bool,
    /// Whether it is terminating and still serves; traffic goes to it where no backend is ready.
    pub(crate) serving_last: bool,
}

/// Everything that the simulated network and programs know.
#[derive(Clone, Debug, Default)]
pub(crate) struct World {
    pub(crate) nodes: Nodes,
    pub(crate) pods: Pods,
    pub(crate) services: Services,
    pub(crate) slices: Slices,
    pub(crate) policies: Arc<BTreeMap<Key, NetworkPolicySpec>>,
    /// The labels of each namespace.
    pub(crate) namespaces: Arc<BTreeMap<String, Labels>>,
    pub(crate) faults: FaultSet,
    pub(crate) network: Arc<Network>,
    pub(crate) wall: Wall,
}

impl World {
    /// Whether a kind of fault holds on a node.
    pub(crate) fn suffers(&self, kind: FaultKind, node: &str) -> bool {
        let pool = self.nodes.get(node).map(|node| node.pool);
        pool.is_some_and(|pool| self.faults.on_node(kind, node, pool))
    }

    /// Whether a fault drops every packet that opens a connection from one node to another.
    pub(crate) fn cut(&self, from: (&str, &Node), to: (&str, &Node)) -> bool {
        let way = |kind, from: (&str, &Node), to: (&str, &Node)| {
            let (from, to) = ((from.0, from.1.pool), (to.0, to.1.pool));
            self.faults.on_way(kind, from, to)
        };
        way(FaultKind::TrafficCutOneWay, from, to)
            || way(FaultKind::TrafficCut, from, to)
            || way(FaultKind::TrafficCut, to, from)
    }
}

/// The world of a running simulator: many readers take snapshots of it, a few writers change it.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    world: Mutex<Arc<World>>,
}

impl Shared {
    /// The current world.
    pub(crate) fn snapshot(&self) -> Arc<World> {
        Arc::clone(&locked(&self.world))
    }

    /// Changes the world. Copies only the parts that a snapshot still holds.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut World) -> T) -> T {
        change(Arc::make_mut(&mut locked(&self.world)))
    }
}
