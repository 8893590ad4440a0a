//! The clusters of the rows in the table of faults: their nodes and their other objects.

use hybrid_sim::server::Server;
use hybrid_sim::{IpFamilies, NamedTopology, NetworkMode, Topology};
use serde_json::Value;

use crate::table;

/// Nodes with addresses of both IP families.
const DUAL_STACK: &str = "-dual-stack";
/// A network plugin that enforces network policies: Calico, with routes.
const CALICO: &str = "-calico";
/// Nodes without the overlay that their network plugin's configuration names.
const ROUTED: &str = "-routed";
/// Nodes with an overlay that no object shows.
const OVERLAY: &str = "-overlay";

/// Nodes, and the other initial objects of their cluster.
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
    /// The nodes that a row names: a topology of `demo`, with a suffix for each difference.
    pub(crate) fn of_row(name: &str) -> Self {
        let topologies = NamedTopology::all();
        let starts = topologies
            .iter()
            .find_map(|known| Some((known, name.strip_prefix(known.name.as_str())?)));
        let (known, suffixes) = starts.unwrap_or_else(|| panic!("`{name}` is no topology"));
        let version = Server::versions().next().unwrap_or_default();
        let mut nodes = Self {
            topology: known.topology(),
            objects: known.objects(version),
        };
        let mut rest = suffixes;
        while !rest.is_empty() {
            let known = [DUAL_STACK, CALICO, ROUTED, OVERLAY];
            let next = known.into_iter().find(|suffix| rest.starts_with(suffix));
            let suffix = next.unwrap_or_else(|| panic!("`{name}`: `{rest}` is not known"));
            nodes.change(suffix);
            rest = &rest[suffix.len()..];
        }
        nodes
    }

    fn change(&mut self, suffix: &str) {
        if suffix == DUAL_STACK {
            self.topology.ip_families = IpFamilies::DualStack;
        }
        if suffix == CALICO {
            self.objects.extend(calico());
        }
        for node in &mut self.topology.nodes {
            match suffix {
                CALICO => node.network.policies = true,
                ROUTED => node.network.mode = NetworkMode::L2Bridge,
                OVERLAY => node.network.mode = NetworkMode::Overlay,
                _ => {}
            }
        }
    }
}

/// The objects by which the tool recognises Calico.
fn calico() -> Vec<Value> {
    let path = table::folder().join("clusters/calico.yaml");
    let text = std::fs::read_to_string(path).expect("text");
    let list: Value = serde_saphyr::from_str(&text).expect("objects");
    list["items"].as_array().cloned().expect("a list")
}
