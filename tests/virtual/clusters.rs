//! The clusters that the rows of the table of faults are on: the nodes, and what else is there.

use hybrid_sim::server::Server;
use hybrid_sim::{IpFamilies, NamedTopology, NetworkMode, Topology};
use serde_json::Value;

use crate::table;

/// Nodes of two families of addresses.
const DUAL_STACK: &str = "-dual-stack";
/// A network plugin that keeps policies: Calico, by routes.
const CALICO: &str = "-calico";
/// Nodes without the overlay that the configuration of their network plugin tells of.
const ROUTED: &str = "-routed";

/// Nodes, and what else is in their cluster from the start.
pub(crate) struct Nodes {
    pub(crate) topology: Topology,
    pub(crate) objects: Vec<Value>,
}

impl From<Topology> for Nodes {
    fn from(topology: Topology) -> Self {
        let objects = Vec::new();
        Self { topology, objects }
    }
}

impl Nodes {
    /// Those that a row names: a topology of `demo`, and what is otherwise there.
    pub(crate) fn of_row(name: &str) -> Self {
        let all = NamedTopology::all();
        let known = all.iter().find_map(|known| {
            let suffix = name.strip_prefix(known.name)?;
            let is_one = ["", DUAL_STACK, CALICO, ROUTED].contains(&suffix);
            is_one.then_some((known, suffix))
        });
        let (known, suffix) = known.unwrap_or_else(|| panic!("`{name}` is no topology"));
        let mut topology = known.topology();
        let version = Server::versions().next().unwrap_or_default();
        let mut objects = known.objects(version);
        match suffix {
            DUAL_STACK => topology.ip_families = IpFamilies::DualStack,
            CALICO => {
                for node in &mut topology.nodes {
                    node.network.policies = true;
                }
                objects.extend(calico());
            }
            ROUTED => {
                for node in &mut topology.nodes {
                    node.network.mode = NetworkMode::L2Bridge;
                }
            }
            _ => {}
        }
        Self { topology, objects }
    }
}

/// What tells of Calico.
fn calico() -> Vec<Value> {
    let path = table::folder().join("clusters/calico.yaml");
    let text = std::fs::read_to_string(path).expect("text");
    let list: Value = serde_saphyr::from_str(&text).expect("objects");
    list["items"].as_array().cloned().expect("a list")
}
