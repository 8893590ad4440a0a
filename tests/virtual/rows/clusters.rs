//! The clusters of the rows in the table of faults: their nodes and their other objects.

use hybrid_sim::{
    Effect, IpFamilies, NamedTopology, NetworkMode, NodeSpec, Pool, TaintSpec, Topology,
};
use serde_json::{Value, json};
use winconform::cli::named_topology;

use crate::table;

/// Nodes with addresses of both IP families.
const DUAL_STACK: &str = "-dual-stack";
/// A network plugin that enforces network policies: Calico, with routes.
const CALICO: &str = "-calico";
/// Nodes without the overlay that their network plugin's configuration names.
const ROUTED: &str = "-routed";
/// Nodes with an overlay that no object shows.
const OVERLAY: &str = "-overlay";
/// Two nodes of EKS Fargate beside the others.
const FARGATE: &str = "-fargate";
/// A Linux node of a system pool and a Windows node on spot capacity beside the others, as AKS marks them.
const SPARED: &str = "-spared";

/// The webhook of gMSA, which looks credential specs up.
const GMSA: &str = "-gmsa";

/// A CSI driver on each node, and the default StorageClass, whose volumes it makes.
const STORAGE: &str = "-storage";

/// Two nodes in each pool.
const PAIRS: &str = "-pairs";

/// The run may have the first node of Windows Server 2022 boot.
pub(crate) const BOOTS: &str = "-boots";

/// The node that a run of such rows may have boot.
pub(crate) fn disrupted(name: &str) -> Option<String> {
    let topology = of_row(name);
    let mut nodes = topology.nodes.into_iter();
    let node = nodes.find(|node| node.pool.to_string() == "windows-2022")?;
    name.ends_with(BOOTS).then_some(node.name)
}

/// The cluster that a row names: a topology of `demo`, with a suffix for each difference.
pub(crate) fn of_row(name: &str) -> Topology {
    let mut known = NamedTopology::ALL.iter();
    let starts = known.find_map(|known| Some((known.name, name.strip_prefix(known.name)?)));
    let (known, mut rest) = starts.unwrap_or_else(|| panic!("`{name}` is no topology"));
    let (_, mut topology) = named_topology(known).expect("it is known");
    while !rest.is_empty() {
        let known = [
            DUAL_STACK, CALICO, ROUTED, OVERLAY, FARGATE, SPARED, GMSA, STORAGE, PAIRS, BOOTS,
        ];
        let next = known.into_iter().find(|suffix| rest.starts_with(suffix));
        let suffix = next.unwrap_or_else(|| panic!("`{name}`: `{rest}` is not known"));
        change(&mut topology, suffix);
        rest = &rest[suffix.len()..];
    }
    topology
}

fn change(topology: &mut Topology, suffix: &str) {
    if suffix == DUAL_STACK {
        topology.ip_families = IpFamilies::DualStack;
    }
    if suffix == CALICO {
        let objects = &mut topology.api.objects;
        objects.retain(|object| !of_flannel(object));
        objects.extend(listed("calico"));
    }
    if suffix == GMSA {
        let texts = [
            "admission-webhook.windows-gmsa.sigs.k8s.io",
            "webapp",
            "corp.example",
        ];
        let [webhook, name, domain] = texts.map(str::to_owned);
        topology.api.effects.push(Effect::CredentialSpecs {
            webhook,
            name,
            domain,
        });
        topology.api.objects.extend(listed("gmsa"));
    }
    if suffix == STORAGE {
        let nodes = topology.nodes.iter().map(|node| with_driver(&node.name));
        let nodes: Vec<_> = nodes.collect();
        topology.api.objects.extend(nodes);
        topology.api.objects.extend(listed("storage"));
    }
    if suffix == FARGATE {
        let nodes = ["fargate-ip-10-0-1-12", "fargate-ip-10-0-1-34"];
        topology.nodes.extend(nodes.map(fargate));
    }
    if suffix == SPARED {
        topology.nodes.extend(spared());
    }
    if suffix == PAIRS {
        *topology = topology.of_nodes(2 * topology.pools().len());
    }
    for node in &mut topology.nodes {
        match suffix {
            CALICO => {
                node.network.policies = true;
                node.network.forwards_node_ports = false;
            }
            ROUTED => node.network.mode = NetworkMode::L2Bridge,
            OVERLAY => node.network.mode = NetworkMode::Overlay,
            _ => {}
        }
    }
}

/// What a node registers, as AKS's do (`sim/src/topology/aks.yaml`).
fn with_driver(node: &str) -> Value {
    json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": node},
        "spec": {"drivers": [{"name": "disk.csi.azure.com", "nodeID": node},
            {"name": "file.csi.azure.com", "nodeID": node}]},
    })
}

/// A node of EKS Fargate.
fn fargate(name: &str) -> NodeSpec {
    let key = "eks.amazonaws.com/compute-type";
    let says = "Pod not supported: SchedulerName is not fargate-scheduler";
    NodeSpec {
        stand_in: Some(says.to_owned()),
        ..marked(name, Pool::Linux, [key, "fargate"], true)
    }
}

/// Nodes that are there for something else, whose names come before all others of their pool.
fn spared() -> [NodeSpec; 2] {
    let windows = "windows-2022".parse().expect("a pool");
    let (mode, priority) = (
        "kubernetes.azure.com/mode",
        "kubernetes.azure.com/scalesetpriority",
    );
    [
        marked("aks-system-0", Pool::Linux, [mode, "system"], false),
        marked("aks-spot-0", windows, [priority, "spot"], true),
    ]
}

/// A node with a label, and perhaps with a taint that says the same.
fn marked(name: &str, pool: Pool, [key, value]: [&str; 2], is_tainted: bool) -> NodeSpec {
    let mut node = NodeSpec::new(name, pool);
    node.labels.insert(key.to_owned(), value.to_owned());
    let taint = |key: &str, value: &str| TaintSpec {
        key: key.to_owned(),
        value: value.to_owned(),
        effect: "NoSchedule".to_owned(),
    };
    let of_pool = match pool {
        Pool::Linux => None,
        Pool::Windows(_) => Some(taint("os", "windows")),
    };
    let taints = of_pool.into_iter().chain([taint(key, value)]);
    node.taints = is_tainted.then(|| taints.collect());
    node
}

/// Whether an object belongs to Flannel.
fn of_flannel(object: &Value) -> bool {
    object["metadata"]["namespace"] == "kube-flannel"
}

/// The objects of a file, by which the tool recognises what a cluster has.
fn listed(file: &str) -> Vec<Value> {
    let path = table::folder().join(format!("clusters/{file}.yaml"));
    let text = std::fs::read_to_string(path).expect("text");
    let list: Value = serde_saphyr::from_str(&text).expect("objects");
    list["items"].as_array().cloned().expect("a list")
}
