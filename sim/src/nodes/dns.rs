//! The API objects of the cluster's DNS.
//!
//! A bare control plane has no DNS; the provisioner of a cluster adds it. So the simulated nodes create the
//! Service `kube-dns` and its endpoint on a Linux node (kubernetes/kubernetes `cluster/addons/dns/coredns`:
//! these names and labels). Nothing listens there.

use std::fmt::Debug;

use k8s_openapi::api::core::v1::{Node, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::nodes::cluster::Cluster;
use crate::nodes::join::gone;
use crate::nodes::node::{MANAGED, read};
use crate::world::CLUSTER_DNS;

const NAMESPACE: &str = "kube-system";
const SERVICE: &str = "kube-dns";
const SLICE: &str = "kube-dns-simulated";
const KINDS: (&str, &str) = ("service", "endpointslice");

/// Adds the DNS, unless the cluster has one.
pub(crate) async fn add(cluster: &Cluster, node: &str, pod_network: [u8; 3]) -> kube::Result<()> {
    let client = &cluster.client;
    let services: Api<Service> = Api::namespaced(client.clone(), NAMESPACE);
    let slices: Api<EndpointSlice> = Api::namespaced(client.clone(), NAMESPACE);
    for (namespace, name) in CLUSTER_DNS {
        let known: Api<Service> = Api::namespaced(client.clone(), namespace);
        if known.get_opt(name).await?.is_some() {
            return Ok(());
        }
    }
    let ports = |port| {
        json!([{"name": "dns", "port": port, "protocol": "UDP"},
        {"name": "dns-tcp", "port": port, "protocol": "TCP"}])
    };
    let service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": SERVICE, "labels": {
            "k8s-app": "kube-dns", "kubernetes.io/name": "CoreDNS", MANAGED.0: MANAGED.1}},
        "spec": {"ports": ports(53)},
    });
    let [a, b, c] = pod_network;
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {"name": SLICE, "labels": {
            "kubernetes.io/service-name": SERVICE, MANAGED.0: MANAGED.1}},
        "addressType": "IPv4",
        "ports": ports(53),
        "endpoints": endpoints(&format!("{a}.{b}.{c}."), node),
    });
    create(cluster, KINDS.0, &services, &read(service)).await?;
    create(cluster, KINDS.1, &slices, &read(slice)).await
}

/// Creates an object. It counts as this simulator's, unless another created it first, which serves as well.
async fn create<K>(
    cluster: &Cluster,
    kind: &'static str,
    api: &Api<K>,
    object: &K,
) -> kube::Result<()>
where
    K: Resource + Clone + Debug + DeserializeOwned + Serialize,
{
    let (name, params) = (object.name_any(), PostParams::default());
    cluster.traces.left(kind, &name);
    let created = cluster.insist(kind, || api.create(&params, object));
    match created.await {
        Err(kube::Error::Api(status)) if status.code == 409 => cluster.traces.gone(kind, &name),
        other => drop(other?),
    }
    Ok(())
}

/// The endpoint of the DNS on a node.
fn endpoints(pod_network: &str, node: &str) -> Value {
    json!([{"addresses": [format!("{pod_network}2")], "nodeName": node,
        "conditions": {"ready": true, "serving": true, "terminating": false}}])
}

/// Removes what [`add`] added for one of these nodes; another simulator's DNS stays. While others are joined,
/// one of their nodes takes over the endpoint, and its simulator then removes the DNS.
pub(crate) async fn remove(cluster: &Cluster, nodes: &[String]) -> kube::Result<()> {
    let Cluster { client, traces, .. } = cluster;
    let services: Api<Service> = Api::namespaced(client.clone(), NAMESPACE);
    let slices: Api<EndpointSlice> = Api::namespaced(client.clone(), NAMESPACE);
    if nodes.is_empty() {
        return Ok(());
    }
    let slice = slices.get_opt(SLICE).await?;
    if !slice.is_some_and(|slice| is_of(&slice, nodes)) {
        return Ok(());
    }
    let now = DeleteParams::default();
    let stays = hand_over(cluster, &slices, nodes).await?;
    if !stays {
        gone(services.delete(SERVICE, &now).await)?;
    }
    traces.gone(KINDS.0, SERVICE);
    if !stays {
        gone(slices.delete(SLICE, &now).await)?;
    }
    traces.gone(KINDS.1, SLICE);
    Ok(())
}

/// Moves the endpoint to a Linux node of another simulator; returns whether there is one.
async fn hand_over(
    cluster: &Cluster,
    slices: &Api<EndpointSlice>,
    nodes: &[String],
) -> kube::Result<bool> {
    let api: Api<Node> = Api::all(cluster.client.clone());
    let params = (ListParams::default(), PatchParams::default());
    loop {
        let listed = cluster.insist("nodes", || api.list(&params.0));
        let listed = listed.await?.items;
        let heir = listed
            .iter()
            .find_map(|node| Some((node, heir_to(node, nodes)?)));
        let Some((node, network)) = heir else {
            return Ok(false);
        };
        let name = node.name_any();
        let patch = Patch::Merge(json!({"endpoints": endpoints(&network, &name)}));
        let handed = cluster.insist("endpoint slice", || slices.patch(SLICE, &params.1, &patch));
        match handed.await {
            // Another simulator has just removed the slice
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(false),
            other => drop(other?),
        }
        // A leaving simulator deletes its nodes before it checks whether the DNS is its own: a node that
        // still exists means that its simulator has yet to check
        let still = cluster.insist("node", || api.get_opt(&name));
        if still.await?.is_some_and(|now| now.uid() == node.uid()) {
            return Ok(true);
        }
    }
}

/// The first bytes of the addresses of a node's pods, if the node can take the DNS: it must be a Linux node
/// of another running simulator.
fn heir_to(node: &Node, nodes: &[String]) -> Option<String> {
    let has = |label: (&str, &str)| node.labels().get(label.0).is_some_and(|is| is == label.1);
    let of_another = has(MANAGED) && !nodes.contains(&node.name_any());
    let linux = has(("kubernetes.io/os", "linux"));
    let conditions = node.status.iter().flat_map(|status| &status.conditions);
    let mut conditions = conditions.flatten();
    // The nodes of a killed simulator stay, and become NotReady after a while
    let ready = conditions.any(|one| one.type_ == "Ready" && one.status == "True");
    let cidr = node.spec.as_ref()?.pod_cidr.as_ref()?;
    let network = &cidr[..=cidr.rfind('.')?];
    (of_another && linux && ready).then(|| network.to_owned())
}

/// Whether the endpoint is on one of these nodes.
fn is_of(slice: &EndpointSlice, nodes: &[String]) -> bool {
    let endpoints = slice.endpoints.iter().flatten();
    let mut held = endpoints.filter_map(|endpoint| endpoint.node_name.as_ref());
    held.any(|node| nodes.contains(node))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dns_of_another_simulator_is_not_ours() {
        let slice: EndpointSlice = read(json!({
            "metadata": {"name": SLICE}, "addressType": "IPv4",
            "endpoints": [{"addresses": ["10.1.2.2"], "nodeName": "a-linux-a"}],
        }));
        let of = |node: &str| is_of(&slice, &["w".to_owned(), node.to_owned()]);
        assert!(of("a-linux-a") && !of("linux-a"));
    }
}
