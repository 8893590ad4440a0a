//! What the simulated network and programs know of the cluster: a plain value, kept current by the
//! watches.
//!
//! It holds no client and does nothing by itself; a reader takes a snapshot and computes.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, PoisonError};

use crate::fault::FaultSet;
use crate::program::serve::Page;
use crate::topology::Pool;

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

/// A node of this simulator.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) pool: Pool,
    pub(crate) address: Ipv4Addr,
    /// Where the kubelet serves.
    pub(crate) kubelet_port: u16,
    /// The first three bytes of its pods' addresses.
    pub(crate) pod_network: [u8; 3],
}

/// A pod that runs on a node of this simulator.
#[derive(Clone, Debug)]
pub(crate) struct Pod {
    pub(crate) uid: String,
    pub(crate) node: String,
    /// Its own address, or its node's.
    pub(crate) address: Ipv4Addr,
    /// Whether it uses its node's network, as `HostProcess` pods do.
    pub(crate) host_network: bool,
    /// What its containers serve, by TCP port.
    pub(crate) listening: BTreeMap<u16, Page>,
}

/// A Service, as far as it concerns packets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Service {
    /// The virtual addresses; none for headless and external ones.
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) ports: Vec<ServicePort>,
}

/// A TCP port of a Service.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServicePort {
    pub(crate) name: String,
    pub(crate) port: u16,
    pub(crate) node_port: Option<u16>,
}

/// An `EndpointSlice`, as far as it concerns packets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slice {
    /// The Service it belongs to.
    pub(crate) service: String,
    /// The ports of the backends, by the name of the Service's port.
    pub(crate) ports: BTreeMap<String, u16>,
    /// The addresses of the ready backends.
    pub(crate) ready: Vec<IpAddr>,
}

/// Everything together.
#[derive(Clone, Debug, Default)]
pub(crate) struct World {
    pub(crate) nodes: BTreeMap<String, Node>,
    pub(crate) pods: BTreeMap<Key, Pod>,
    pub(crate) services: BTreeMap<Key, Service>,
    pub(crate) slices: BTreeMap<Key, Slice>,
    pub(crate) faults: FaultSet,
}

/// The world of a running simulator: many readers take snapshots, few writers change it.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    world: Mutex<Arc<World>>,
}

impl Shared {
    /// The world as it stands.
    pub(crate) fn snapshot(&self) -> Arc<World> {
        Arc::clone(&self.world.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes the world; copies it only while a snapshot is out.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut World) -> T) -> T {
        let mut world = self.world.lock().unwrap_or_else(PoisonError::into_inner);
        change(Arc::make_mut(&mut world))
    }
}
