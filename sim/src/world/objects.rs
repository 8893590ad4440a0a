//! The maps of the world, each with the indexes that packets are looked up by.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

use super::{Endpoint, Key, Node, Pod, Service, ServicePort, Slice};
use crate::network::Protocol;

/// The nodes, by name and by address.
#[derive(Clone, Debug, Default)]
pub(crate) struct Nodes {
    maps: Arc<NodeMaps>,
}

#[derive(Clone, Debug, Default)]
struct NodeMaps {
    all: BTreeMap<String, Node>,
    by_address: HashMap<IpAddr, String>,
    /// By the first three bytes of IPv4, and what stands for them in IPv6.
    by_pod_network: HashMap<[u8; 3], String>,
}

impl Nodes {
    pub(crate) fn insert(&mut self, name: String, node: Node) {
        let maps = Arc::make_mut(&mut self.maps);
        for address in node.addresses() {
            maps.by_address.insert(address, name.clone());
        }
        maps.by_pod_network.insert(node.pod_network, name.clone());
        maps.all.insert(name, node);
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Node> {
        self.maps.all.get(name)
    }

    /// Only how pods are connected may change.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&String, &Node)> {
        self.maps.all.iter()
    }

    /// The node that has an address.
    pub(crate) fn at(&self, address: IpAddr) -> Option<(&String, &Node)> {
        let name = self.maps.by_address.get(&address)?;
        self.maps.all.get_key_value(name)
    }

    /// The node in whose pod network an address lies.
    pub(crate) fn around(&self, address: IpAddr) -> Option<(&String, &Node)> {
        let network = match address {
            IpAddr::V4(address) => {
                let [a, b, c, _] = address.octets();
                [a, b, c]
            }
            IpAddr::V6(address) => {
                let [.., b, c] = *address.octets().first_chunk::<8>()?;
                [10, b, c]
            }
        };
        let name = self.maps.by_pod_network.get(&network)?;
        let (name, node) = self.maps.all.get_key_value(name)?;
        node.is_around(address).then_some((name, node))
    }
}

impl FromIterator<(String, Node)> for Nodes {
    fn from_iter<I: IntoIterator<Item = (String, Node)>>(nodes: I) -> Self {
        let mut all = Self::default();
        for (name, node) in nodes {
            all.insert(name, node);
        }
        all
    }
}

/// The pods, by name, by address, and by the node whose network they use.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pods {
    maps: Arc<PodMaps>,
}

#[derive(Clone, Debug, Default)]
struct PodMaps {
    by_key: BTreeMap<Key, Arc<Pod>>,
    by_address: HashMap<IpAddr, Key>,
    on_host: HashMap<String, BTreeSet<Key>>,
    /// How many pods with addresses of their own each node has.
    count: HashMap<String, usize>,
    host_ports: HashMap<(String, Protocol, u16), (Key, u16)>,
}

impl Pods {
    pub(crate) fn insert(&mut self, key: Key, pod: Pod) {
        self.remove(&key);
        let maps = Arc::make_mut(&mut self.maps);
        if pod.host_network {
            let on_node = maps.on_host.entry(pod.node.clone()).or_default();
            on_node.insert(key.clone());
        } else {
            *maps.count.entry(pod.node.clone()).or_default() += 1;
            for address in pod.addresses() {
                maps.by_address.insert(address, key.clone());
            }
            for port in &pod.told.ports {
                if let Some(host_port) = port.host_port {
                    let at = (pod.node.clone(), port.protocol, host_port);
                    maps.host_ports.insert(at, (key.clone(), port.port));
                }
            }
        }
        maps.by_key.insert(key, Arc::new(pod));
    }

    pub(crate) fn remove(&mut self, key: &Key) {
        if !self.maps.by_key.contains_key(key) {
            return;
        }
        let maps = Arc::make_mut(&mut self.maps);
        let Some(pod) = maps.by_key.remove(key) else {
            return;
        };
        if let Some(on_node) = maps.on_host.get_mut(&pod.node) {
            on_node.remove(key);
        }
        if pod.host_network {
            return;
        }
        if let Some(count) = maps.count.get_mut(&pod.node) {
            *count = count.saturating_sub(1);
        }
        for address in pod.addresses() {
            if maps.by_address.get(&address) == Some(key) {
                maps.by_address.remove(&address);
            }
        }
        maps.host_ports.retain(|_, (owner, _)| owner != key);
    }

    pub(crate) fn get(&self, key: &Key) -> Option<&Pod> {
        self.maps.by_key.get(key).map(AsRef::as_ref)
    }

    pub(crate) fn get_key_value(&self, key: &Key) -> Option<(&Key, &Pod)> {
        let (key, pod) = self.maps.by_key.get_key_value(key)?;
        Some((key, pod))
    }

    /// Its node and addresses must stay as they are.
    pub(crate) fn get_mut(&mut self, key: &Key) -> Option<&mut Pod> {
        if !self.maps.by_key.contains_key(key) {
            return None;
        }
        Arc::make_mut(&mut self.maps)
            .by_key
            .get_mut(key)
            .map(Arc::make_mut)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Key, &Pod)> {
        self.maps.by_key.iter().map(|(key, pod)| (key, &**pod))
    }

    /// The pod that has an address for itself.
    pub(crate) fn at(&self, address: IpAddr) -> Option<(&Key, &Pod)> {
        self.get_key_value(self.maps.by_address.get(&address)?)
    }

    /// The pods that use a node's network.
    pub(crate) fn on_host(&self, node: &str) -> impl Iterator<Item = (&Key, &Pod)> {
        let keys = self.maps.on_host.get(node).into_iter().flatten();
        keys.filter_map(|key| self.get_key_value(key))
    }

    /// Whether a pod with an address of its own runs on a node.
    pub(crate) fn any_on(&self, node: &str) -> bool {
        self.maps.count.get(node).is_some_and(|count| *count > 0)
    }

    /// The pod and its port behind a `hostPort`.
    pub(crate) fn host_port(
        &self,
        node: &str,
        protocol: Protocol,
        port: u16,
    ) -> Option<(&Pod, u16)> {
        let at = (node.to_owned(), protocol, port);
        let (key, inner) = self.maps.host_ports.get(&at)?;
        Some((self.get(key)?, *inner))
    }
}

impl FromIterator<(Key, Pod)> for Pods {
    fn from_iter<I: IntoIterator<Item = (Key, Pod)>>(pods: I) -> Self {
        let mut all = Self::default();
        for (key, pod) in pods {
            all.insert(key, pod);
        }
        all
    }
}

/// The Services, by name, by address and by node port.
#[derive(Clone, Debug, Default)]
pub(crate) struct Services {
    maps: Arc<ServiceMaps>,
}

#[derive(Clone, Debug, Default)]
struct ServiceMaps {
    all: BTreeMap<Key, Service>,
    by_address: HashMap<IpAddr, Key>,
    by_node_port: HashMap<(Protocol, u16), Key>,
    /// When each was first seen, and how many there have been.
    arrived: HashMap<Key, u64>,
    arrivals: u64,
}

impl Services {
    pub(crate) fn insert(&mut self, key: Key, service: Service) {
        let arrived = self.maps.arrived.get(&key).copied();
        self.remove(&key);
        let maps = Arc::make_mut(&mut self.maps);
        let arrived = arrived.unwrap_or(maps.arrivals);
        maps.arrived.insert(key.clone(), arrived);
        maps.arrivals = maps.arrivals.max(arrived + 1);
        for address in service.addresses.iter().chain(&service.external) {
            maps.by_address.insert(*address, key.clone());
        }
        for port in &service.ports {
            if let Some(node_port) = port.node_port {
                let at = (port.protocol, node_port);
                maps.by_node_port.insert(at, key.clone());
            }
        }
        maps.all.insert(key, service);
    }

    pub(crate) fn remove(&mut self, key: &Key) {
        let maps = Arc::make_mut(&mut self.maps);
        if let Some(service) = maps.all.remove(key) {
            for address in service.addresses.iter().chain(&service.external) {
                if maps.by_address.get(address) == Some(key) {
                    maps.by_address.remove(address);
                }
            }
            maps.by_node_port.retain(|_, owner| owner != key);
            maps.arrived.remove(key);
        }
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.maps.all.keys()
    }

    pub(crate) fn get(&self, key: &Key) -> Option<&Service> {
        self.maps.all.get(key)
    }

    /// How many load balancers kube-proxy makes for the Services that were there before one: one for
    /// each port on each address, and for each node port.
    pub(crate) fn before(&self, key: &Key) -> usize {
        let Some(own) = self.maps.arrived.get(key) else {
            return 0;
        };
        let of = |service: &Service| {
            let addresses = service.addresses.len() + service.external.len();
            let node_ports = service.ports.iter().filter(|port| port.node_port.is_some());
            service.ports.len() * addresses + node_ports.count()
        };
        let earlier = self
            .maps
            .arrived
            .iter()
            .filter(|(_, arrived)| *arrived < own);
        earlier
            .filter_map(|(key, _)| self.maps.all.get(key))
            .map(of)
            .sum()
    }

    /// The Service that has an address, its own or its load balancer's.
    pub(crate) fn at(&self, address: IpAddr) -> Option<(&Key, &Service)> {
        let key = self.maps.by_address.get(&address)?;
        self.maps.all.get_key_value(key)
    }

    /// The Service behind a node port.
    pub(crate) fn on_node_port(
        &self,
        protocol: Protocol,
        port: u16,
    ) -> Option<(&Key, &Service, &ServicePort)> {
        let key = self.maps.by_node_port.get(&(protocol, port))?;
        let (key, service) = self.maps.all.get_key_value(key)?;
        let of = |each: &&ServicePort| each.protocol == protocol && each.node_port == Some(port);
        Some((key, service, service.ports.iter().find(of)?))
    }
}

impl FromIterator<(Key, Service)> for Services {
    fn from_iter<I: IntoIterator<Item = (Key, Service)>>(services: I) -> Self {
        let mut all = Self::default();
        for (key, service) in services {
            all.insert(key, service);
        }
        all
    }
}

/// How many backends that have gone are kept in mind per Service.
const REMEMBERED: usize = 8;

/// The `EndpointSlices`, by name and by Service, and which backends have gone lately.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slices {
    maps: Arc<SliceMaps>,
}

#[derive(Clone, Debug, Default)]
struct SliceMaps {
    by_key: BTreeMap<Key, Slice>,
    by_service: HashMap<Key, BTreeSet<Key>>,
    gone: HashMap<Key, Vec<Endpoint>>,
}

impl Slices {
    pub(crate) fn insert(&mut self, key: Key, slice: Slice) {
        let service = Key::new(&key.namespace, &slice.service);
        let left = self.take(&key);
        let maps = Arc::make_mut(&mut self.maps);
        let of_service = maps.by_service.entry(service.clone()).or_default();
        of_service.insert(key.clone());
        maps.by_key.insert(key, slice);
        self.remember(&service, left);
    }

    pub(crate) fn remove(&mut self, key: &Key) {
        let service = self.maps.by_key.get(key).map(|slice| slice.service.clone());
        let left = self.take(key);
        if let Some(service) = service {
            self.remember(&Key::new(&key.namespace, &service), left);
        }
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.maps.by_key.keys()
    }

    /// The slices of a Service.
    pub(crate) fn of(&self, service: &Key) -> impl Iterator<Item = &Slice> {
        let keys = self.maps.by_service.get(service).into_iter().flatten();
        keys.filter_map(|key| self.maps.by_key.get(key))
    }

    /// The backends that have left a Service, oldest first.
    pub(crate) fn gone(&self, service: &Key) -> &[Endpoint] {
        self.maps.gone.get(service).map_or(&[], Vec::as_slice)
    }

    fn take(&mut self, key: &Key) -> Vec<Endpoint> {
        let maps = Arc::make_mut(&mut self.maps);
        let Some(slice) = maps.by_key.remove(key) else {
            return Vec::new();
        };
        let service = Key::new(&key.namespace, &slice.service);
        if let Some(keys) = maps.by_service.get_mut(&service) {
            keys.remove(key);
            if keys.is_empty() {
                maps.by_service.remove(&service);
            }
        }
        slice.endpoints
    }

    fn remember(&mut self, service: &Key, left: Vec<Endpoint>) {
        let here: BTreeSet<IpAddr> = self
            .of(service)
            .flat_map(|slice| slice.endpoints.iter().map(|endpoint| endpoint.address))
            .collect();
        let maps = Arc::make_mut(&mut self.maps);
        if here.is_empty() && left.is_empty() {
            return;
        }
        let gone = maps.gone.entry(service.clone()).or_default();
        gone.extend(left);
        let mut seen = here;
        gone.retain(|endpoint| seen.insert(endpoint.address));
        let surplus = gone.len().saturating_sub(REMEMBERED);
        gone.drain(..surplus);
        if gone.is_empty() {
            maps.gone.remove(service);
        }
    }

    /// Forgets what a Service had: it has gone itself.
    pub(crate) fn forget(&mut self, service: &Key) {
        Arc::make_mut(&mut self.maps).gone.remove(service);
    }
}

impl FromIterator<(Key, Slice)> for Slices {
    fn from_iter<I: IntoIterator<Item = (Key, Slice)>>(slices: I) -> Self {
        let mut all = Self::default();
        for (key, slice) in slices {
            all.insert(key, slice);
        }
        all
    }
}
