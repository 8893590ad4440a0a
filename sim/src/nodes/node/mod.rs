//! A node as the API server sees it: its object, its lease, and in `status.rs` its status.

mod binder;
mod boot;
mod keep;
mod status;

pub(crate) use keep::keep;
#[cfg(test)]
pub(crate) use keep::renew;
pub(crate) use status::{DISK_KI, allocatable, kubelet, runtime};

use std::collections::BTreeMap;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::fault::{FaultKind, FaultSet};
use crate::nodes::cluster::{Cluster, NodeState};
use crate::topology::{self, Build};

/// The namespace of all node leases.
pub(crate) const LEASES: &str = "kube-node-lease";

/// The label by which a simulator recognises the nodes of an earlier one.
pub(crate) const MANAGED: (&str, &str) = ("app.kubernetes.io/managed-by", "hybrid-sim");

const BUILD_LABEL: &str = "node.kubernetes.io/windows-build";

/// The labels of a node's operating system and architecture, with their old names, which a kubelet still sets
/// (kubernetes 1.37.0, `pkg/kubelet/kubelet_node_status.go`, `initialNode`).
const SYSTEM_LABELS: [&str; 4] = [
    "kubernetes.io/os",
    "kubernetes.io/arch",
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/arch",
];

/// The annotation that a controller attaches this node's volumes, which the same function sets.
const ATTACHED: (&str, &str) = (
    "volumes.kubernetes.io/controller-managed-attach-detach",
    "true",
);

const TAINT: (&str, &str, &str) = ("os", "windows", "NoSchedule");

/// kubelet, `nodeLeaseDurationSeconds`.
const LEASE_SECONDS: i32 = 40;

/// A node's own labels, without faults.
pub(crate) fn labels(name: &str, spec: &topology::NodeSpec) -> BTreeMap<String, String> {
    let pool = spec.pool;
    let mut labels = BTreeMap::from([
        ("kubernetes.io/hostname".to_owned(), name.to_owned()),
        (MANAGED.0.to_owned(), MANAGED.1.to_owned()),
    ]);
    let system = [pool.os().name(), "amd64"].into_iter().cycle();
    labels.extend(
        SYSTEM_LABELS
            .into_iter()
            .zip(system)
            .map(|(label, value)| (label.to_owned(), value.to_owned())),
    );
    if let Some(build) = pool.build() {
        labels.insert(BUILD_LABEL.to_owned(), build.label());
    }
    labels.extend(spec.labels.clone());
    labels
}

/// The labels that a node has under these faults; `None` for a label that must be missing.
fn carried(node: &NodeState, faults: &FaultSet) -> BTreeMap<String, Option<String>> {
    let mut labels: BTreeMap<String, Option<String>> = node
        .labels
        .iter()
        .map(|(label, value)| (label.clone(), Some(value.clone())))
        .collect();
    if let Some(build) = node.pool.build()
        && node.suffers(FaultKind::NodeLabelWrong, faults)
    {
        let other = Build::ALL.into_iter().find(|other| *other != build);
        labels.insert(BUILD_LABEL.to_owned(), other.map(Build::label));
    }
    if node.suffers(FaultKind::NodeLabelsMissing, faults) {
        labels.extend(SYSTEM_LABELS.map(|label| (label.to_owned(), None)));
    }
    labels
}

/// The taints that the topology and the faults give a node.
fn taints(node: &NodeState, faults: &FaultSet) -> Vec<Taint> {
    let of = |key: &str, value: &str, effect: &str| Taint {
        key: key.to_owned(),
        value: (!value.is_empty()).then(|| value.to_owned()),
        effect: effect.to_owned(),
        time_added: None,
    };
    let mut taints = match &node.spec.taints {
        Some(taints) => taints
            .iter()
            .map(|taint| of(&taint.key, &taint.value, &taint.effect))
            .collect(),
        None if node.pool.build().is_some() => vec![of(TAINT.0, TAINT.1, TAINT.2)],
        None => Vec::new(),
    };
    if node.suffers(FaultKind::Untainted, faults) {
        taints.retain(|taint| taint.key != TAINT.0);
    }
    taints
}

/// Whether a node of the API server is this simulator's: no other simulator gives its pods the same
/// addresses.
pub(crate) fn is_own(known: &Node, node: &NodeState) -> bool {
    let cidrs = known.spec.as_ref().and_then(|spec| spec.pod_cidrs.as_ref());
    cidrs == Some(&node.view.pod_cidrs())
}

/// Creates a node, its status and its lease.
pub(crate) async fn register(cluster: &Cluster, node: &NodeState) -> kube::Result<()> {
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    let faults = cluster.faults.current();
    let labels = carried(node, &faults).into_iter();
    let labels = labels.filter_map(|(label, value)| Some((label, value?)));
    let labels: BTreeMap<String, String> = labels.collect();
    let cidrs = node.view.pod_cidrs();
    let mut annotations = node.spec.annotations.clone();
    annotations.insert(ATTACHED.0.to_owned(), ATTACHED.1.to_owned());
    let object: Node = read(json!({
        "metadata": {
            "name": node.name, "labels": labels, "annotations": annotations,
        },
        "spec": {
            "podCIDR": cidrs.first(), "podCIDRs": cidrs, "taints": taints(node, &faults),
        },
    }));
    let post = PostParams::default();
    let created = cluster.insist("node", || nodes.create(&post, &object));
    let created = match created.await {
        // It comes from an earlier try without an answer, or from another simulator
        Err(kube::Error::Api(status)) if status.code == 409 => {
            let existing = cluster.insist("node", || nodes.get(&node.name)).await?;
            if !is_own(&existing, node) {
                return Err(kube::Error::Api(status));
            }
            existing
        }
        other => other?,
    };
    let uid = created.metadata.uid.unwrap_or_default();
    node.uid.get_or_init(|| uid.clone());
    report(cluster, node).await?;
    let lease: Lease = read(json!({
        "metadata": {"name": node.name, "ownerReferences": [
            {"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": uid}]},
        "spec": {
            "holderIdentity": node.name, "leaseDurationSeconds": LEASE_SECONDS,
            "renewTime": MicroTime(node.wall.time()),
        },
    }));
    let leases: Api<Lease> = Api::namespaced(cluster.client.clone(), LEASES);
    let held = cluster.insist("lease", || leases.create(&post, &lease));
    held.await.map(drop)
}

/// Converts JSON of the API into an object.
pub(crate) fn read<T: DeserializeOwned>(object: Value) -> T {
    serde_json::from_value(object).expect("written as the type has it")
}

/// Sets a node's labels and its own taints. The API server keeps the taints as one list, in which controllers
/// set theirs too: this must not drop what they set meanwhile.
async fn mark(
    cluster: &Cluster,
    name: &str,
    labels: &BTreeMap<String, Option<String>>,
    before: &[Taint],
    now: Vec<Taint>,
) -> kube::Result<()> {
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    loop {
        let node = cluster.insist("node", || nodes.get(name)).await?;
        let others = node.spec.and_then(|spec| spec.taints).unwrap_or_default();
        let ours = |taint: &Taint| before.iter().chain(&now).any(|one| one.key == taint.key);
        let others = others.into_iter().filter(|taint| !ours(taint));
        let taints: Vec<_> = others.chain(now.iter().cloned()).collect();
        let version = node.metadata.resource_version;
        let patch = Patch::Merge(json!({
            "metadata": {"labels": labels, "resourceVersion": version},
            "spec": {"taints": taints},
        }));
        let params = PatchParams::default();
        let marked = cluster.insist("labels and taints", || nodes.patch(name, &params, &patch));
        match marked.await {
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            other => return other.map(drop),
        }
    }
}

async fn report(cluster: &Cluster, node: &NodeState) -> kube::Result<()> {
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    let mut status = status::status(node, &cluster.version, &cluster.faults.current());
    // A strategic merge by type would turn two addresses of one type into the second twice (kubernetes,
    // `pkg/util/node/node.go`, `fixupPatchForNodeStatusAddresses`)
    if let Some(addresses) = status["addresses"].as_array_mut() {
        addresses.push(json!({"$patch": "replace"}));
    }
    let patch = Patch::Strategic(json!({ "status": status }));
    let params = PatchParams::default();
    let (name, what) = (&node.name, "node status");
    let reported = cluster.insist(what, || nodes.patch_status(name, &params, &patch));
    reported.await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodes::cluster::tests::node_of;
    use crate::topology::{NodeSpec, Os, Pool};

    fn node(pool: Pool) -> NodeState {
        node_of(NodeSpec::new("n", pool))
    }

    fn label(pool: Pool, faults: &FaultSet, label: &str) -> Option<String> {
        carried(&node(pool), faults).remove(label).flatten()
    }

    #[test]
    fn a_wrong_label_is_another_build_on_its_pool_alone() {
        let ws2022 = Pool::Windows(Build::Ws2022);
        let faults = FaultSet::from_iter([FaultKind::NodeLabelWrong.on(ws2022)]);
        for (pool, faults, build) in [
            (ws2022, &faults, Some("10.0.17763")),
            (ws2022, &FaultSet::default(), Some("10.0.20348")),
            (Pool::Windows(Build::Ws2025), &faults, Some("10.0.26100")),
            (Pool::Linux, &faults, None),
        ] {
            assert_eq!(label(pool, faults, BUILD_LABEL).as_deref(), build);
        }
    }

    #[test]
    fn labels_name_the_system_unless_they_are_missing() {
        let healthy = FaultSet::default();
        let missing = FaultSet::from_iter([FaultKind::NodeLabelsMissing.on(Pool::Linux)]);
        let windows = Pool::Windows(Build::Ws2019);
        for name in ["kubernetes.io/os", "beta.kubernetes.io/os"] {
            let os = label(Pool::Linux, &healthy, name);
            assert_eq!(os.as_deref(), Some(Os::Linux.name()));
            assert_eq!(label(Pool::Linux, &missing, name), None);
            let os = label(windows, &missing, name);
            assert_eq!(os.as_deref(), Some(Os::Windows.name()));
        }
        let arch = label(Pool::Linux, &healthy, "kubernetes.io/arch");
        assert_eq!(arch.as_deref(), Some("amd64"));
        assert_eq!(label(Pool::Linux, &missing, "kubernetes.io/arch"), None);
        let host = label(Pool::Linux, &missing, "kubernetes.io/hostname");
        assert_eq!(host.as_deref(), Some("n"));
    }

    #[test]
    fn windows_nodes_alone_are_tainted() {
        let windows = Pool::Windows(Build::Ws2025);
        let healthy = FaultSet::default();
        let bare = FaultSet::from_iter([FaultKind::Untainted.on(windows)]);
        let told = taints(&node(windows), &healthy);
        let [tainted] = told.as_slice() else {
            panic!("{told:?}")
        };
        assert_eq!(
            (
                tainted.key.as_str(),
                tainted.value.as_deref(),
                tainted.effect.as_str()
            ),
            ("os", Some("windows"), "NoSchedule")
        );
        assert_eq!(taints(&node(windows), &bare), []);
        assert_eq!(taints(&node(Pool::Linux), &healthy), []);
        let own = NodeSpec {
            taints: Some(vec![topology::TaintSpec {
                key: "gpu".to_owned(),
                value: String::new(),
                effect: "NoExecute".to_owned(),
            }]),
            ..NodeSpec::new("n", windows)
        };
        let told = taints(&node_of(own), &bare);
        assert_eq!(
            (told[0].key.as_str(), told[0].value.as_ref()),
            ("gpu", None)
        );
    }
}
