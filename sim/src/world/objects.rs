//! The maps of the world, each with the indexes for looking up packets' addresses and ports.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;

use super::Protocol;
use super::settings::is_cluster_dns;
use super::{Key, Node, Pod, PodPort, Service, ServicePort};

/// The nodes, by name and by address.
#[derive(Clone, Debug, Default)]
pub(crate) struct Nodes {
    maps: Arc<NodeMaps>,
}

#[derive(Clone, Debug, Default)]
struct NodeMaps {
    all: BTreeMap<String, Node>,
    by_address: HashMap<IpAddr, String>,
    /// By the first three bytes of the pods' IPv4 addresses, to which their IPv6 network maps too.
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

    /// Takes note that a node has booted.
    pub(crate) fn boots(&mut self, name: &str) {
        if let Some(node) = Arc::make_mut(&mut self.maps).all.get_mut(name) {
            node.has_booted = true;
        }
    }

    pub(crate) fn get_key_value(&self, name: &str) -> Option<(&String, &Node)> {
        self.maps.all.get_key_value(name)
    }

    /// All nodes; each turn begins with the next one.
    pub(crate) fn in_turn(&self, turn: u64) -> impl Iterator<Item = (&String, &Node)> {
        let nodes = &self.maps.all;
        let first = turn.checked_rem(nodes.len() as u64).unwrap_or(0);
        let first = usize::try_from(first).unwrap_or(0);
        nodes.iter().cycle().skip(first).take(nodes.len())
    }

    /// The node that has an address.
    pub(crate) fn by_address(&self, address: IpAddr) -> Option<(&String, &Node)> {
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
        let mut collected = Self::default();
        for (name, node) in nodes {
            collected.insert(name, node);
        }
        collected
    }
}

/// The pods, by name, by address, and by the node whose network they use.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pods {
    maps: Arc<PodMaps>,
}

#[derive(Clone, Debug, Default)]
struct PodMaps {
    all: BTreeMap<Key, Arc<Pod>>,
    /// The pods that have their own addresses.
    by_address: HashMap<IpAddr, Key>,
    by_node: HashMap<String, BTreeSet<Key>>,
}

impl Pods {
    pub(crate) fn insert(&mut self, key: Key, pod: Pod) {
        self.remove(&key);
        let maps = Arc::make_mut(&mut self.maps);
        let on_node = maps.by_node.entry(pod.node.clone()).or_default();
        on_node.insert(key.clone());
        for address in pod.addresses().filter(|_| !pod.host_network) {
            maps.by_address.insert(address, key.clone());
        }
        maps.all.insert(key, Arc::new(pod));
    }

    pub(crate) fn remove(&mut self, key: &Key) {
        if !self.maps.all.contains_key(key) {
            return;
        }
        let maps = Arc::make_mut(&mut self.maps);
        let Some(pod) = maps.all.remove(key) else {
            return;
        };
        if let Some(on_node) = maps.by_node.get_mut(&pod.node) {
            on_node.remove(key);
        }
        for address in pod.addresses() {
            if maps.by_address.get(&address) == Some(key) {
                maps.by_address.remove(&address);
            }
        }
    }

    pub(crate) fn get(&self, key: &Key) -> Option<&Pod> {
        self.maps.all.get(key).map(AsRef::as_ref)
    }

    pub(crate) fn get_key_value(&self, key: &Key) -> Option<(&Key, &Pod)> {
        let (key, pod) = self.maps.all.get_key_value(key)?;
        Some((key, pod))
    }

    /// The pod, to be changed; its node and its addresses must stay the same.
    pub(crate) fn get_mut(&mut self, key: &Key) -> Option<&mut Pod> {
        if !self.maps.all.contains_key(key) {
            return None;
        }
        Arc::make_mut(&mut self.maps)
            .all
            .get_mut(key)
            .map(Arc::make_mut)
    }

    /// The pod, to be changed, if its UID is still this one.
    pub(crate) fn own_mut(&mut self, key: &Key, uid: &str) -> Option<&mut Pod> {
        self.get_mut(key).filter(|pod| pod.uid == uid)
    }

    /// The pod to which alone an address belongs.
    pub(crate) fn by_address(&self, address: IpAddr) -> Option<(&Key, &Pod)> {
        self.get_key_value(self.maps.by_address.get(&address)?)
    }

    /// The pods on a node.
    pub(crate) fn on(&self, node: &str) -> impl Iterator<Item = (&Key, &Pod)> {
        let keys = self.maps.by_node.get(node).into_iter().flatten();
        keys.filter_map(|key| self.get_key_value(key))
    }

    /// The pods that use a node's network.
    pub(crate) fn on_host(&self, node: &str) -> impl Iterator<Item = (&Key, &Pod)> {
        self.on(node).filter(|(_, pod)| pod.host_network)
    }

    /// Whether any pod with its own address runs on a node.
    pub(crate) fn any_on(&self, node: &str) -> bool {
        self.on(node).any(|(_, pod)| !pod.host_network)
    }

    /// The pod behind a `hostPort` of a node, and the pod's own port.
    pub(crate) fn host_port(
        &self,
        node: &str,
        protocol: Protocol,
        port: u16,
    ) -> Option<(&Pod, u16)> {
        let mut pods = self.on(node).filter(|(_, pod)| !pod.host_network);
        pods.find_map(|(_, pod)| {
            let mut ports = pod.told.ports.iter();
            let is = |each: &&PodPort| each.protocol == protocol && each.host_port == Some(port);
            Some((pod, ports.find(is)?.port))
        })
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
    /// The order in which the Services arrived, and the number of arrivals so far.
    arrived: HashMap<Key, u64>,
    arrivals: u64,
    /// The virtual addresses of Services that were deleted.
    given_up: HashSet<IpAddr>,
    /// The first address that the cluster's DNS Service had most recently.
    dns: Option<IpAddr>,
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
        if is_cluster_dns(&key.namespace, &key.name) {
            maps.dns = service.addresses.first().copied();
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

    /// Removes a Service that is deleted, and remembers its addresses.
    pub(crate) fn delete(&mut self, key: &Key) {
        let service = self.maps.all.get(key);
        let addresses = service.map_or(Vec::new(), |service| service.addresses.clone());
        self.remove(key);
        Arc::make_mut(&mut self.maps).given_up.extend(addresses);
    }

    /// Whether a virtual address was that of a Service that is deleted.
    pub(crate) fn was_given_up(&self, address: IpAddr) -> bool {
        self.maps.given_up.contains(&address)
    }

    /// The address of the cluster's DNS, even if its Service is deleted: kubelets learn it once, at setup.
    pub(crate) fn dns(&self) -> Option<IpAddr> {
        self.maps.dns
    }

    pub(crate) fn get(&self, key: &Key) -> Option<&Service> {
        self.maps.all.get(key)
    }

    /// How many load balancers kube-proxy creates for the Services that arrived before one.
    pub(crate) fn before(&self, key: &Key) -> usize {
        let Some(order) = self.maps.arrived.get(key) else {
            return 0;
        };
        let earlier = self
            .maps
            .arrived
            .iter()
            .filter(|(_, arrived)| *arrived < order);
        earlier
            .filter_map(|(key, _)| self.maps.all.get(key))
            .map(Service::balancers)
            .sum()
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Service> {
        self.maps.all.values()
    }

    /// The Service that has an address, as a virtual address or as its load balancer's.
    pub(crate) fn by_address(&self, address: IpAddr) -> Option<(&Key, &Service)> {
        let key = self.maps.by_address.get(&address)?;
        self.maps.all.get_key_value(key)
    }

    /// The Service and the port behind a node port.
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

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::topology::Pool;
    use crate::world::Told;

    impl Services {
        pub(crate) fn keys(&self) -> impl Iterator<Item = &Key> {
            self.maps.all.keys()
        }
    }

    #[test]
    fn each_turn_begins_with_the_next_node() {
        let named = |name: &str| {
            let node = Node::new(Pool::Linux, Ipv4Addr::LOCALHOST, 1, [10, 244, 1]);
            (name.to_owned(), node)
        };
        let nodes = Nodes::from_iter(["c", "a", "b", "a"].map(named));
        let order = |turn| nodes.in_turn(turn).map(|(name, _)| name.as_str()).collect();
        let orders: Vec<String> = (0..4).map(order).collect();
        assert_eq!(orders, ["abc", "bca", "cab", "abc"]);
        assert_eq!(Nodes::default().in_turn(3).count(), 0);
    }

    #[test]
    fn a_host_port_goes_with_its_own_pod_alone() {
        let pod = || {
            let port = PodPort {
                protocol: Protocol::Tcp,
                port: 80,
                host_port: Some(8080),
            };
            let told = Told {
                ports: vec![port],
                ..Told::default()
            };
            Pod::new("n", [10, 244, 1, 5], told)
        };
        let key = |name| Key::new("test", name);
        let mut pods = Pods::default();
        pods.insert(key("old"), pod());
        pods.insert(key("new"), pod());
        let at = |pods: &Pods| pods.host_port("n", Protocol::Tcp, 8080).is_some();
        pods.remove(&key("old"));
        assert!(at(&pods), "the other has it");
        pods.remove(&key("new"));
        assert!(!at(&pods));
    }
}
