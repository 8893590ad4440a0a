//! The cluster's DNS as far as objects tell of it.
//!
//! A control plane of its own has none; whoever provisions a cluster adds it. So the simulated
//! nodes bring the Service `kube-dns` and its endpoint, on a Linux node (kubernetes/kubernetes
//! `cluster/addons/dns/coredns`: these names and labels). Nothing answers there.

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{DeleteParams, PostParams};
use kube::{Api, Client};
use serde_json::json;

use crate::cluster::insist;
use crate::node::MANAGED;
use crate::traces::Traces;

const NAMESPACE: &str = "kube-system";
const SERVICE: &str = "kube-dns";
const SLICE: &str = "kube-dns-simulated";
const KINDS: (&str, &str) = ("service", "endpointslice");

/// Adds the DNS, unless the cluster has one.
pub(crate) async fn add(
    client: &Client,
    traces: &Traces,
    node: &str,
    pod_network: [u8; 3],
) -> kube::Result<()> {
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
        "endpoints": [{"addresses": [format!("{a}.{b}.{c}.2")], "nodeName": node,
            "conditions": {"ready": true, "serving": true, "terminating": false}}],
    });
    let service: Service = from(service);
    let slice: EndpointSlice = from(slice);
    let created = PostParams::default();
    traces.left(KINDS.0, SERVICE);
    if !there(insist("service", || services.create(&created, &service)).await)? {
        traces.gone(KINDS.0, SERVICE);
    }
    traces.left(KINDS.1, SLICE);
    if !there(insist("endpoint slice", || slices.create(&created, &slice)).await)? {
        traces.gone(KINDS.1, SLICE);
    }
    Ok(())
}

/// Removes what [`add`] added for one of these nodes; that of other simulators stays.
pub(crate) async fn remove(client: &Client, traces: &Traces, nodes: &[String]) -> kube::Result<()> {
    let services: Api<Service> = Api::namespaced(client.clone(), NAMESPACE);
    let slices: Api<EndpointSlice> = Api::namespaced(client.clone(), NAMESPACE);
    let now = DeleteParams::default();
    if nodes.is_empty() {
        return Ok(());
    }
    let slice = slices.get_opt(SLICE).await?;
    if slice.is_some_and(|slice| is_of(&slice, nodes)) {
        services
            .delete(SERVICE, &now)
            .await
            .map(drop)
            .or_else(absent)?;
        traces.gone(KINDS.0, SERVICE);
        slices.delete(SLICE, &now).await.map(drop).or_else(absent)?;
        traces.gone(KINDS.1, SLICE);
    }
    Ok(())
}

/// Whether one of these nodes is the one that the endpoint is on.
fn is_of(slice: &EndpointSlice, nodes: &[String]) -> bool {
    let endpoints = slice.endpoints.iter().flatten();
    endpoints
        .filter_map(|endpoint| endpoint.node_name.as_ref())
        .any(|node| nodes.contains(node))
}

fn from<T: serde::de::DeserializeOwned>(object: serde_json::Value) -> T {
    serde_json::from_value(object).expect("written as the type has it")
}

/// Whether it is ours. That something is there already is as good: another simulator was quicker.
fn there<T>(created: kube::Result<T>) -> kube::Result<bool> {
    match created {
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
        other => other.map(|_| true),
    }
}

fn absent(error: kube::Error) -> kube::Result<()> {
    match error {
        kube::Error::Api(status) if status.code == 404 => Ok(()),
        other => Err(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dns_of_another_simulator_is_not_ours() {
        let slice: EndpointSlice = from(json!({
            "metadata": {"name": SLICE}, "addressType": "IPv4",
            "endpoints": [{"addresses": ["10.1.2.2"], "nodeName": "a-linux-a"}],
        }));
        let of = |node: &str| is_of(&slice, &["w".to_owned(), node.to_owned()]);
        assert!(of("a-linux-a") && !of("linux-a"));
    }
}
