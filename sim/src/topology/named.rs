//! The topologies that are known by name, and what else is in their clusters.

use serde_json::Value;

use super::{Build, IpFamilies, NetworkMode, NodeSpec, Pool, TaintSpec, Topology};

/// A topology that is known by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedTopology {
    /// The name.
    pub name: &'static str,
    /// Which nodes there are.
    pub what: &'static str,
    pools: &'static [(Pool, usize)],
    /// What else is in the cluster, as YAML, where that is more than any cluster has.
    objects: &'static str,
}

const WS2019: Pool = Pool::Windows(Build::Ws2019);
const WS2022: Pool = Pool::Windows(Build::Ws2022);
const WS2025: Pool = Pool::Windows(Build::Ws2025);

/// Who runs the control plane, as kubeadm marks it (`cmd/kubeadm/app/constants`).
const CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";

const NAMED: &[NamedTopology] = &[
    NamedTopology {
        name: "kubeadm-flannel",
        what: "a control plane and a worker of Linux, two nodes each of Windows Server 2019 and 2022, as kubeadm \
               and Flannel leave them",
        pools: &[(Pool::Linux, 2), (WS2019, 2), (WS2022, 2)],
        objects: include_str!("kubeadm-flannel.yaml"),
    },
    NamedTopology {
        name: "hybrid",
        what: "one Linux node and one of Windows Server 2022",
        pools: &[(Pool::Linux, 1), (WS2022, 1)],
        objects: "",
    },
    NamedTopology {
        name: "three-builds",
        what: "two Linux nodes and two of each build of Windows Server: 2019, 2022, 2025",
        pools: &[(Pool::Linux, 2), (WS2019, 2), (WS2022, 2), (WS2025, 2)],
        objects: "",
    },
    NamedTopology {
        name: "windows-only",
        what: "two nodes of Windows Server 2022 and no Linux node",
        pools: &[(WS2022, 2)],
        objects: "",
    },
    NamedTopology {
        name: "linux-only",
        what: "two Linux nodes and no Windows node",
        pools: &[(Pool::Linux, 2)],
        objects: "",
    },
    NamedTopology {
        name: "single-windows",
        what: "one node of Windows Server 2022 and nothing else",
        pools: &[(WS2022, 1)],
        objects: "",
    },
    NamedTopology {
        name: "fifty",
        what: "20 Linux nodes and ten of each build of Windows Server",
        pools: &[(Pool::Linux, 20), (WS2019, 10), (WS2022, 10), (WS2025, 10)],
        objects: "",
    },
];

impl NamedTopology {
    /// All of them; the first is the usual one of a demo.
    pub fn all() -> &'static [Self] {
        NAMED
    }

    /// The nodes.
    pub fn topology(&self) -> Topology {
        let each = |(pool, count): &(Pool, usize)| {
            let pool = *pool;
            (0..*count).map(move |index| NodeSpec::new(format!("{pool}-{}", letters(index)), pool))
        };
        let mut topology = Topology {
            nodes: self.pools.iter().flat_map(each).collect(),
            ip_families: IpFamilies::default(),
            outside: true,
            load_balancer: false,
        };
        if !self.objects.is_empty() {
            as_kubeadm(&mut topology);
        }
        topology
    }

    /// What else there is beside the nodes, for an embedded API server of a version; others have
    /// their own.
    pub fn objects(&self, version: &str) -> Vec<Value> {
        if self.objects.is_empty() {
            return Vec::new();
        }
        let text = self.objects.replace("VERSION", version);
        let list: Value = serde_saphyr::from_str(&text).expect("the built-in objects are valid");
        list["items"].as_array().cloned().unwrap_or_default()
    }
}

/// Makes the first Linux node a control plane, and the network Flannel's VXLAN.
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

/// `a` to `z`, then `aa` and so on.
pub(super) fn letters(index: usize) -> String {
    let last = char::from(b'a' + u8::try_from(index % 26).unwrap_or(0));
    match index / 26 {
        0 => last.to_string(),
        before => letters(before - 1) + &last.to_string(),
    }
}
