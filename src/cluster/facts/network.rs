//! Facts about the network: signs of products, and Services with the cluster's DNS.

use std::collections::BTreeSet;

use futures::future::join_all;
use serde_json::Value as Json;
use winconform_core::facts::products::{
    ConfigMapSign, DaemonSetSign, PROXY_CONFIG_MAPS, Rules, texts,
};
use winconform_core::facts::{ClusterDns, DnsEndpoint};

use super::read::{Unread, find, fold, list, path_of};
use crate::cluster::objects::status::{items, word};
use crate::transport::{Api, encode};

pub(super) const DAEMON_SETS: &str = "/apis/apps/v1/daemonsets";
pub(super) const SERVICES: &str = "/api/v1/services";
const SLICES: &str = "/apis/discovery.k8s.io/v1";

pub(super) async fn daemon_sets(api: &Api) -> Result<Vec<DaemonSetSign>, Unread> {
    list(api, DAEMON_SETS, |set| Some(DaemonSetSign::read(set))).await
}

/// Every ConfigMap that may be a sign of a product, each requested by name.
pub(super) async fn config_maps(api: &Api) -> Vec<ConfigMapSign> {
    let mut names: BTreeSet<_> = Rules::built_in().config_maps();
    names.extend(PROXY_CONFIG_MAPS.map(|(name, _)| ("kube-system", name)));
    join_all(names.into_iter().map(|(namespace, name)| async move {
        let read = find(api, &config_map(namespace, name)).await;
        ConfigMapSign {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            data: read
                .map(|map| map.map(|map| texts(&map["data"])))
                .map_err(|unread| unread.reason),
        }
    }))
    .await
}

pub(super) fn config_map(namespace: &str, name: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/configmaps/{name}")
}

#[derive(Default)]
pub(super) struct Services {
    /// Services of type LoadBalancer that have an address.
    pub(super) with_address: u64,
    /// Services of type LoadBalancer that wait for one.
    pub(super) pending: u64,
    /// The Services that may be the cluster's DNS, likeliest first.
    dns: BTreeSet<(u8, String, Vec<String>)>,
}

pub(super) async fn services(api: &Api) -> Result<Services, Unread> {
    fold(api, SERVICES, "", |services: &mut Services, service| {
        let spec = &service["spec"];
        if spec["type"] == "LoadBalancer" {
            match items(&service["status"]["loadBalancer"]["ingress"]).next() {
                Some(_) => services.with_address += 1,
                None => services.pending += 1,
            }
        }
        let path = path_of(service);
        // Kubernetes' own name, OpenShift's, then the label that every installer sets
        let rank = match path.as_str() {
            "kube-system/kube-dns" => 0,
            "openshift-dns/dns-default" => 1,
            _ if service["metadata"]["labels"]["k8s-app"] == "kube-dns" => 2,
            _ => return,
        };
        let mut addresses: Vec<_> = items(&spec["clusterIPs"]).map(word).collect();
        // A headless Service has no address to query
        addresses.retain(|address| address != "None");
        if !addresses.is_empty() {
            services.dns.insert((rank, path, addresses));
        }
    })
    .await
}

/// The cluster's DNS with its endpoints, and where both were read; `None` without a Service.
pub(super) async fn dns(
    api: &Api,
    services: &Result<Services, Unread>,
) -> Result<(Option<ClusterDns>, String), Unread> {
    let services = services.as_ref().map_err(Clone::clone)?;
    let Some((_, service, addresses)) = services.dns.first() else {
        return Ok((None, SERVICES.to_owned()));
    };
    let (namespace, name) = service.split_once('/').unwrap_or_default();
    let path = format!("{SLICES}/namespaces/{}/endpointslices", encode(namespace));
    let query = format!(
        "&labelSelector={}",
        encode(&format!("kubernetes.io/service-name={name}"))
    );
    let mut endpoints = fold(api, &path, &query, |list: &mut Vec<DnsEndpoint>, slice| {
        let labels = &slice["metadata"]["labels"];
        if labels["kubernetes.io/service-name"] == name {
            list.extend(items(&slice["endpoints"]).flat_map(endpoint));
        }
    })
    .await?;
    endpoints.sort_by(|a, b| a.address.cmp(&b.address));
    // Some controllers create a slice for each port
    endpoints.dedup();
    let dns = ClusterDns {
        service: service.clone(),
        addresses: addresses.clone(),
        endpoints,
    };
    Ok((Some(dns), format!("{SERVICES}, {path}")))
}

fn endpoint(endpoint: &Json) -> impl Iterator<Item = DnsEndpoint> {
    items(&endpoint["addresses"]).map(|address| DnsEndpoint {
        address: word(address),
        node: endpoint["nodeName"].as_str().map(str::to_owned),
        // An absent condition means ready (discovery.k8s.io/v1 EndpointConditions)
        ready: endpoint["conditions"]["ready"] != false,
    })
}
