//! A node as the API server sees it: its object, its status, its lease.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::{
    DaemonEndpoint, Node, NodeAddress, NodeCondition, NodeDaemonEndpoints, NodeSpec, NodeStatus,
    NodeSystemInfo, Taint,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, OwnerReference, Time};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;

use crate::clock;
use crate::cluster::{Cluster, NodeState, insist};
use crate::fault::{FaultSet, ProductFault};
use crate::topology::{Build, Pool};

/// The namespace of all node leases.
pub(crate) const LEASES: &str = "kube-node-lease";

/// The label by which a later simulator knows what an earlier one has left.
pub(crate) const MANAGED: (&str, &str) = ("app.kubernetes.io/managed-by", "hybrid-sim");

const BUILD_LABEL: &str = "node.kubernetes.io/windows-build";

/// kubelet, `nodeLeaseDurationSeconds`; it renews at a quarter of that, whatever the simulator's
/// speed.
const LEASE_SECONDS: i32 = 40;
const RENEWAL: Duration = Duration::from_secs(10);

/// kubelet, `nodeStatusReportFrequency`.
const HEARTBEAT: Duration = Duration::from_mins(5);

/// The labels that are a node's own, without faults.
pub(crate) fn labels(name: &str, pool: Pool) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::from([
        ("kubernetes.io/os".to_owned(), pool.os().name().to_owned()),
        ("kubernetes.io/arch".to_owned(), "amd64".to_owned()),
        ("kubernetes.io/hostname".to_owned(), name.to_owned()),
        (MANAGED.0.to_owned(), MANAGED.1.to_owned()),
    ]);
    if let Some(build) = pool.build() {
        labels.insert(BUILD_LABEL.to_owned(), build.label());
    }
    labels
}

/// The build label as the faults have it.
fn build_label(pool: Pool, faults: &FaultSet) -> Option<String> {
    let build = pool.build()?;
    if faults.has(ProductFault::NodeLabelWrong(pool)) {
        let other = Build::ALL.into_iter().find(|other| *other != build);
        return other.map(Build::label);
    }
    Some(build.label())
}

/// Creates the node, its status and its lease.
pub(crate) async fn register(
    cluster: &Cluster,
    node: &NodeState,
    version: &str,
) -> kube::Result<()> {
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    let mut labels = node.labels.clone();
    labels.extend(
        build_label(node.pool, &cluster.faults.current())
            .map(|build| (BUILD_LABEL.to_owned(), build)),
    );
    let [a, b, c] = node.view.pod_network;
    let cidr = format!("{a}.{b}.{c}.0/24");
    let object = Node {
        metadata: ObjectMeta {
            name: Some(node.name.clone()),
            labels: Some(labels),
            ..ObjectMeta::default()
        },
        spec: Some(NodeSpec {
            pod_cidr: Some(cidr.clone()),
            pod_cidrs: Some(vec![cidr]),
            taints: node.pool.build().map(|_| {
                vec![Taint {
                    key: "os".to_owned(),
                    value: Some("windows".to_owned()),
                    effect: "NoSchedule".to_owned(),
                    time_added: None,
                }]
            }),
            ..NodeSpec::default()
        }),
        status: None,
    };
    let post = PostParams::default();
    let created = insist("node", || nodes.create(&post, &object)).await?;
    report(&nodes, node, version).await?;
    let lease = Lease {
        metadata: ObjectMeta {
            name: Some(node.name.clone()),
            owner_references: Some(vec![OwnerReference {
                api_version: "v1".to_owned(),
                kind: "Node".to_owned(),
                name: node.name.clone(),
                uid: created.metadata.uid.unwrap_or_default(),
                ..OwnerReference::default()
            }]),
            ..ObjectMeta::default()
        },
        spec: Some(LeaseSpec {
            holder_identity: Some(node.name.clone()),
            lease_duration_seconds: Some(LEASE_SECONDS),
            renew_time: Some(MicroTime(Timestamp::now())),
            ..LeaseSpec::default()
        }),
    };
    let leases: Api<Lease> = Api::namespaced(cluster.client.clone(), LEASES);
    insist("lease", || leases.create(&post, &lease)).await?;
    Ok(())
}

/// Keeps the node alive: lease, heartbeats, and the label that a fault may change.
pub(crate) fn keep(cluster: &Arc<Cluster>, node: &Arc<NodeState>, version: &str) {
    let (all, own) = (Arc::clone(cluster), Arc::clone(node));
    cluster.spawn(async move { renew(&all, &own).await });

    let (all, own, version) = (Arc::clone(cluster), Arc::clone(node), version.to_owned());
    cluster.spawn(async move {
        let nodes: Api<Node> = Api::all(all.client.clone());
        loop {
            clock::elapse(HEARTBEAT).await;
            if let Err(error) = report(&nodes, &own, &version).await {
                tracing::warn!(node = own.name, %error, "heartbeat is not taken");
            }
        }
    });

    let (all, own) = (Arc::clone(cluster), Arc::clone(node));
    cluster.spawn(async move { relabel(&all, &own).await });
}

async fn renew(cluster: &Cluster, node: &NodeState) {
    let leases: Api<Lease> = Api::namespaced(cluster.client.clone(), LEASES);
    loop {
        clock::elapse(RENEWAL).await;
        let renewed = insist("lease", || {
            let patch = json!({"spec": {"renewTime": MicroTime(Timestamp::now())}});
            let leases = &leases;
            async move {
                leases
                    .patch(&node.name, &PatchParams::default(), &Patch::Merge(patch))
                    .await
            }
        });
        if let Err(error) = renewed.await {
            tracing::warn!(node = node.name, %error, "lease is not taken");
        }
    }
}

async fn relabel(cluster: &Cluster, node: &NodeState) {
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    let mut changes = cluster.faults.changes();
    let mut carried = build_label(node.pool, &changes.borrow_and_update().clone());
    while changes.changed().await.is_ok() {
        let label = build_label(node.pool, &changes.borrow_and_update().clone());
        if label == carried {
            continue;
        }
        let patch = Patch::Merge(json!({"metadata": {"labels": {BUILD_LABEL: label}}}));
        let params = PatchParams::default();
        let patched = insist("label", || nodes.patch(&node.name, &params, &patch));
        if let Err(error) = patched.await {
            tracing::warn!(node = node.name, %error, "label is not taken");
        }
        carried = label;
    }
}

async fn report(nodes: &Api<Node>, node: &NodeState, version: &str) -> kube::Result<()> {
    let patch = Patch::Strategic(json!({"status": status(node, version)}));
    let params = PatchParams::default();
    insist("node status", || {
        nodes.patch_status(&node.name, &params, &patch)
    })
    .await?;
    Ok(())
}

fn status(node: &NodeState, version: &str) -> NodeStatus {
    let quantities = |memory: &str, pods: &str| {
        let pairs = [
            ("cpu", "4"),
            ("memory", memory),
            ("pods", pods),
            ("ephemeral-storage", "100Gi"),
        ];
        pairs
            .map(|(name, amount)| (name.to_owned(), Quantity(amount.to_owned())))
            .into()
    };
    let address = |kind: &str, address: String| NodeAddress {
        type_: kind.to_owned(),
        address,
    };
    NodeStatus {
        addresses: Some(vec![
            address("InternalIP", node.view.address.to_string()),
            address("Hostname", node.name.clone()),
        ]),
        daemon_endpoints: Some(NodeDaemonEndpoints {
            kubelet_endpoint: Some(DaemonEndpoint {
                port: i32::from(node.view.kubelet_port),
            }),
        }),
        capacity: Some(quantities("16Gi", "110")),
        // 2 GiB kept for the system, as the documents advise for Windows
        allocatable: Some(quantities("14Gi", "110")),
        conditions: Some(conditions()),
        node_info: Some(info(node, version)),
        // Kubernetes 1.36: exec reaches this kubelet as WebSocket instead of SPDY
        declared_features: Some(vec!["ExtendWebSocketsToKubelet".to_owned()]),
        ..NodeStatus::default()
    }
}

fn conditions() -> Vec<NodeCondition> {
    // kubelet, pkg/kubelet/nodestatus/setters.go
    [
        (
            "MemoryPressure",
            "False",
            "KubeletHasSufficientMemory",
            "kubelet has sufficient memory available",
        ),
        (
            "DiskPressure",
            "False",
            "KubeletHasNoDiskPressure",
            "kubelet has no disk pressure",
        ),
        (
            "PIDPressure",
            "False",
            "KubeletHasSufficientPID",
            "kubelet has sufficient PID available",
        ),
        (
            "Ready",
            "True",
            "KubeletReady",
            "kubelet is posting ready status",
        ),
    ]
    .map(|(kind, status, reason, message)| NodeCondition {
        type_: kind.to_owned(),
        status: status.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_heartbeat_time: Some(Time(clock::now())),
        last_transition_time: Some(Time(clock::now())),
    })
    .into()
}

fn info(node: &NodeState, version: &str) -> NodeSystemInfo {
    let (os_image, kernel) = match node.pool {
        Pool::Linux => (
            "Debian GNU/Linux 13 (trixie)".to_owned(),
            "6.12.48+deb13-amd64",
        ),
        Pool::Windows(build) => (
            format!("Windows Server {} Datacenter", build.year()),
            build.kernel_version(),
        ),
    };
    NodeSystemInfo {
        operating_system: node.pool.os().name().to_owned(),
        architecture: "amd64".to_owned(),
        os_image,
        kernel_version: kernel.to_owned(),
        container_runtime_version: "containerd://2.1.0".to_owned(),
        kubelet_version: version.to_owned(),
        machine_id: node.name.clone(),
        system_uuid: node.name.clone(),
        ..NodeSystemInfo::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Os;

    #[test]
    fn a_wrong_label_is_another_build_on_its_pool_alone() {
        let ws2022 = Pool::Windows(Build::Ws2022);
        let faults = FaultSet::from_iter([ProductFault::NodeLabelWrong(ws2022)]);
        assert_eq!(build_label(ws2022, &faults).as_deref(), Some("10.0.17763"));
        assert_eq!(
            build_label(ws2022, &FaultSet::default()).as_deref(),
            Some("10.0.20348")
        );
        assert_eq!(
            build_label(Pool::Windows(Build::Ws2025), &faults).as_deref(),
            Some("10.0.26100")
        );
        assert_eq!(build_label(Pool::Linux, &faults), None);
    }

    #[test]
    fn labels_name_the_system() {
        let labels = labels("a", Pool::Linux);
        assert_eq!(
            labels.get("kubernetes.io/os").map(String::as_str),
            Some(Os::Linux.name())
        );
        assert!(!labels.contains_key(BUILD_LABEL));
    }
}
