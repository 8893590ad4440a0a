//! The named topologies, and the other objects in their clusters.

use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::Value;

use super::{IpFamilies, NetworkMode, NodeSpec, Pool, TaintSpec, Topology};

/// A named topology.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct NamedTopology {
    /// The name.
    pub name: String,
    /// A description of its nodes.
    pub what: String,
    pools: Vec<(String, usize)>,
    /// Whether the cluster is as kubeadm and Flannel set it up, with their objects.
    #[serde(default)]
    kubeadm: bool,
}

/// The label and taint by which kubeadm marks control plane nodes (`cmd/kubeadm/app/constants`).
const CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";

static NAMED: LazyLock<Vec<NamedTopology>> = LazyLock::new(|| {
    serde_saphyr::from_str(include_str!("named.yaml")).expect("named.yaml is whole")
});

impl NamedTopology {
    /// All named topologies; the first is a demo's default.
    pub fn all() -> &'static [Self] {
        &NAMED
    }

    /// Its nodes and settings.
    pub fn topology(&self) -> Topology {
        let each = |(pool, count): &(String, usize)| {
            let pool: Pool = pool.parse().expect("named.yaml names pools");
            (0..*count).map(move |index| NodeSpec::new(format!("{pool}-{}", letters(index)), pool))
        };
        let mut topology = Topology {
            nodes: self.pools.iter().flat_map(each).collect(),
            ip_families: IpFamilies::default(),
            outside: true,
            load_balancer: false,
        };
        if self.kubeadm {
            as_kubeadm(&mut topology);
        }
        topology
    }

    /// The cluster's objects beside the nodes, for an embedded API server of a version; another API server
    /// has its own.
    pub fn objects(&self, version: &str) -> Vec<Value> {
        let text = match self.kubeadm {
            true => include_str!("kubeadm-flannel.yaml").replace("VERSION", version),
            false => include_str!("flannel-routes.yaml").to_owned(),
        };
        let list: Value = serde_saphyr::from_str(&text).expect("the built-in objects are valid");
        list["items"].as_array().cloned().unwrap_or_default()
    }
}

/// Turns the first Linux node into a control plane node, and the network into Flannel's VXLAN.
fn as_kubeadm(topology: &mut Topology) {
    let names = ["control-plane", "linux-a"];
    for (spec, name) in topology.nodes.iter_mut().zip(names) {
        name.clone_into(&mut spec.name);
    }
    if let Some(first) = topology.nodes.first_mut() {
        let others = "node.kubernetes.io/exclude-from-external-load-balancers";
        let labels = [CONTROL_PLANE, others].map(|label| (label.to_owned(), String::new()));
        first.labels.extend(labels);
        first.taints = Some(vec![TaintSpec {
            key: CONTROL_PLANE.to_owned(),
            value: String::new(),
            effect: "NoSchedule".to_owned(),
        }]);
    }
    for spec in &mut topology.nodes {
        spec.network.mode = NetworkMode::Overlay;
    }
}

/// The letters of a number: `a` to `z`, then `aa` and so on.
pub(super) fn letters(index: usize) -> String {
    let last = char::from(b'a' + u8::try_from(index % 26).unwrap_or(0));
    match index / 26 {
        0 => last.to_string(),
        before => letters(before - 1) + &last.to_string(),
    }
}
