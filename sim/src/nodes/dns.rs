//! The cluster's DNS as far as objects tell of it.
//!
//! A control plane of its own has none; whoever provisions a cluster adds it. So the simulated
//! nodes bring the Service `kube-dns` and its endpoint, on a Linux node (kubernetes/kubernetes
//! `cluster/addons/dns/coredns`: these names and labels). Nothing answers there.

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

const NAMESPACE: &str = "kube-system";
const SERVICE: &str = "kube-dns";
const SLICE: &str = "kube-dns-simulated";
const KINDS: (&str, &str) = ("service", "endpointslice");

/// Adds the DNS, unless the cluster has one.
pub(crate) async fn add(cluster: &Cluster, node: &str, pod_network: [u8; 3]) -> kube::Result<()> {
    let client = &cluster.client;
    let services: Api<Service> = Api::namespaced(client.clone(), NAMESPACE);
    let slices: Api<EndpointSlice> = Api::namespaced(client.clone(), NAMESPACE);
    if services.get_opt(SERVICE).await?.is_some() {
        return Ok(());
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

/// Creates an object, which is this simulator's unless another was quicker, and that is as good.
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

/// Its endpoint on a node.
fn endpoints(pod_network: &str, node: &str) -> Value {
    json!([{"addresses": [format!("{pod_network}2")], "nodeName": node,
        "conditions": {"ready": true, "serving": true, "terminating": false}}])
}

/// Removes what [`add`] added for one of these nodes; that of other simulators stays. While others
/// are joined, one of their nodes takes the endpoint over, and with it who removes the DNS.
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

/// Puts the endpoint on a Linux node of another simulator; whether there is one.
async fn hand_over(
    cluster: &Cluster,
    slices: &Api<EndpointSlice>,
    nodes: &[String],
) -> kube::Result<bool> {
    let all: Api<Node> = Api::all(cluster.client.clone());
    let params = (ListParams::default(), PatchParams::default());
    loop {
        let found = cluster.insist("nodes", || all.list(&params.0));
        let found = found.await?.items;
        let heir = found
            .iter()
            .find_map(|node| Some((node, heir_to(node, nodes)?)));
        let Some((node, network)) = heir else {
            return Ok(false);
        };
        let name = node.name_any();
        let patch = Patch::Merge(json!({"endpoints": endpoints(&network, &name)}));
        let handed = cluster.insist("endpoint slice", || slices.patch(SLICE, &params.1, &patch));
        match handed.await {
            // Another simulator has removed it meanwhile
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(false),
            other => drop(other?),
        }
        // Who leaves removes its nodes before it looks whether the DNS is its own: one that is still
        // there has yet to look
        let still = cluster.insist("node", || all.get_opt(&name));
        if still.await?.is_some_and(|now| now.uid() == node.uid()) {
            return Ok(true);
        }
    }
}

/// The beginning of the addresses of a node's pods, if it can have the DNS: a Linux node of a
/// simulator that runs, and none of these.
fn heir_to(node: &Node, nodes: &[String]) -> Option<String> {
    let has = |label: (&str, &str)| node.labels().get(label.0).is_some_and(|is| is == label.1);
    let of_another = has(MANAGED) && !nodes.contains(&node.name_any());
    let linux = has(("kubernetes.io/os", "linux"));
    let conditions = node.status.iter().flat_map(|status| &status.conditions);
    let mut conditions = conditions.flatten();
    // A killed simulator's nodes stay, and are not Ready after a while
    let ready = conditions.any(|one| one.type_ == "Ready" && one.status == "True");
    let cidr = node.spec.as_ref()?.pod_cidr.as_ref()?;
    let network = &cidr[..=cidr.rfind('.')?];
    (of_another && linux && ready).then(|| network.to_owned())
}

/// Whether one of these nodes is the one that the endpoint is on.
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
