//! The addresses of nodes and pods.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;

use super::JoinError;
use crate::nodes::cluster::NodeState;
use crate::topology::Topology;
use crate::wire::loopback::{Listener, Loopback};
use crate::world;

/// Linux, `EMFILE`.
const TOO_MANY_FILES: i32 = 24;

/// How many nodes share the third byte of their addresses.
const TOGETHER: u16 = 250;

/// The address ranges of one simulator.
struct Places {
    /// The second and the third byte of the first node's address.
    nodes: (u8, u8),
    /// The number of its first pod network, out of the 32768 in 10.128.0.0/9.
    network: u16,
}

impl Places {
    /// Random ranges, independent of the seed: simulators that run side by side must differ.
    fn somewhere(loopback: &Loopback) -> Self {
        let chosen = match loopback.is_in_memory() {
            true => 0,
            false => RandomState::new().hash_one(0),
        };
        let [second, third, high, low, ..] = chosen.to_be_bytes();
        Self {
            nodes: (64 + second % 64, third),
            network: u16::from_be_bytes([high, low]),
        }
    }

    /// The loopback address of a node, by its number from 0.
    fn address(&self, number: u16) -> Ipv4Addr {
        let block = (number / TOGETHER).to_be_bytes()[1];
        let last = (number % TOGETHER + 1).to_be_bytes()[1];
        let (second, third) = self.nodes;
        Ipv4Addr::new(127, second, third.wrapping_add(block), last)
    }

    /// The first three bytes of the addresses of a node's pods, by the node's number.
    fn network(&self, number: u16) -> [u8; 3] {
        let [high, low] = self.network.wrapping_add(number).to_be_bytes();
        [10, 128 | high, low]
    }
}

pub(super) type Nodes = BTreeMap<String, Arc<NodeState>>;

/// Gives each node an address, a pod network and a listener.
pub(super) async fn bind(
    loopback: &Loopback,
    topology: &Topology,
    prefix: &str,
) -> Result<(Nodes, Vec<(String, Listener)>), JoinError> {
    let many = topology.nodes.len();
    let most = match loopback.is_in_memory() {
        true => Topology::MOST_IN_MEMORY,
        false => Topology::MOST_NODES,
    };
    if many > most {
        return Err(JoinError::TooManyNodes(many, most));
    }
    let places = Places::somewhere(loopback);
    let mut nodes = Nodes::new();
    let mut listeners = Vec::new();
    for (spec, number) in topology.nodes.iter().zip(0_u16..) {
        let name = format!("{prefix}{}", spec.name);
        let address = places.address(number);
        let failed = |source| failed(source, &name, address, many);
        // Any free port
        let listener = loopback.listen(address, 0).await.map_err(failed)?;
        let kubelet_port = listener.local_addr().map_err(failed)?.port();
        let pod_network = places.network(number);
        let view = world::Node::new(spec.pool, address, kubelet_port, pod_network)
            .connected(spec.network)
            .of_families(topology.ip_families);
        let state = NodeState::new(name.clone(), spec.clone(), view, loopback.wall);
        if nodes.insert(name.clone(), Arc::new(state)).is_some() {
            return Err(JoinError::SameName(name));
        }
        listeners.push((name, listener));
    }
    Ok((nodes, listeners))
}

/// Why a node, one of `nodes`, has no listener.
fn failed(source: io::Error, node: &str, address: Ipv4Addr, nodes: usize) -> JoinError {
    match source.raw_os_error() {
        Some(TOO_MANY_FILES) => JoinError::Descriptors(nodes),
        _ => JoinError::Listen(node.to_owned(), address, source),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use tokio::net::TcpListener;

    #[tokio::test]
    async fn nodes_have_addresses_and_names_of_their_own() {
        let bound = bind(&Loopback::default(), &Topology::hybrid(), "x-").await;
        let (nodes, listeners) = bound.expect("loopback can be bound");
        let names: Vec<_> = nodes.keys().collect();
        assert_eq!(names, ["x-linux-a", "x-windows-2022-a"]);
        assert_eq!(listeners.len(), 2);
        let mut doubled = Topology::hybrid();
        doubled.nodes.extend(Topology::hybrid().nodes);
        let refused = bind(&Loopback::default(), &doubled, "").await;
        assert!(matches!(refused, Err(JoinError::SameName(_))));
        let many = vec![doubled.nodes[0].clone(); Topology::MOST_NODES];
        doubled.nodes.extend(many);
        let refused = bind(&Loopback::default(), &doubled, "").await;
        assert!(matches!(refused, Err(JoinError::TooManyNodes(..))));
    }

    #[tokio::test]
    async fn no_port_for_a_kubelet_is_told_with_node_and_address() {
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let taken = taken.and_then(|taken| Ok((taken.local_addr()?, taken)));
        let (address, _holds) = taken.expect("loopback has a port");
        let refused = TcpListener::bind(address).await.expect_err("it is taken");
        let told = |source| failed(source, "win-1", Ipv4Addr::LOCALHOST, 1500).to_string();
        let text = "failed to listen on `127.0.0.1` for the kubelet of `win-1`";
        assert_eq!(told(refused), text);
        let text = told(io::Error::from_raw_os_error(TOO_MANY_FILES));
        assert!(text.contains("`ulimit -n 4000`"), "{text}");
    }

    #[test]
    fn as_many_addresses_as_nodes() {
        let places = Places {
            nodes: (127, 253),
            network: 0x7FFE,
        };
        let most = u16::try_from(Topology::MOST_NODES).expect("16 bits hold it");
        let addresses: BTreeSet<_> = (0..most).map(|number| places.address(number)).collect();
        let networks: BTreeSet<_> = (0..most).map(|number| places.network(number)).collect();
        assert_eq!((addresses.len(), networks.len()), (2000, 2000));
        assert!(addresses.iter().all(Ipv4Addr::is_loopback));
        assert_eq!(places.network(1), [10, 255, 255]);
        assert_eq!(places.network(2), [10, 128, 0]);
        assert_eq!(places.address(250), Ipv4Addr::new(127, 127, 254, 1));
    }
}
