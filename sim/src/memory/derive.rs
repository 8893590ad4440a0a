//! What controllers and whoever provisions a cluster would add.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::json;

use super::{Memory, derived};
use crate::topology::Topology;
use crate::world::{self, Endpoint, Key, Slice};

impl Memory {
    /// What the `EndpointSlice` controller makes, one slice per Service: the pods that a Service
    /// selects.
    pub(super) fn derive_slices(&mut self) {
        for (key, service) in &self.selecting {
            let spec = service.spec.clone().unwrap_or_default();
            let selector = spec.selector.unwrap_or_default();
            let pods: Vec<(&Key, &world::Pod)> = self
                .world
                .pods
                .iter()
                .filter(|(pod, _)| pod.namespace == key.namespace)
                .filter(|(_, pod)| {
                    let has = |(name, value)| pod.told.labels.get(name) == Some(value);
                    selector.iter().all(has)
                })
                .collect();
            let ports: BTreeMap<String, u16> = spec
                .ports
                .iter()
                .flatten()
                .filter_map(|port| {
                    let number = |port: i32| u16::try_from(port).ok();
                    let target = match &port.target_port {
                        None => number(port.port)?,
                        Some(IntOrString::Int(target)) => number(*target)?,
                        Some(IntOrString::String(name)) => pods.iter().find_map(|(_, pod)| {
                            let named = pod.told.ports.iter().find(|port| port.name == *name);
                            named.map(|port| port.port)
                        })?,
                    };
                    Some((port.name.clone().unwrap_or_default(), target))
                })
                .collect();
            let unready_too = spec.publish_not_ready_addresses == Some(true);
            let endpoints = pods.iter().map(|(name, pod)| {
                let named = pod.told.host_name.as_ref();
                Endpoint {
                    node: Some(pod.node.clone()),
                    hostname: named
                        .filter(|(_, subdomain)| *subdomain == key.name)
                        .map(|(hostname, _)| hostname.clone()),
                    ready: unready_too || !self.unready.contains(*name),
                    ..Endpoint::ready(pod.address)
                }
            });
            let slice = Slice {
                service: key.name.clone(),
                ports,
                endpoints: endpoints.collect(),
            };
            self.world.slices.insert(derived(key), slice);
        }
    }

    pub(super) fn add_dns(&mut self, topology: &Topology) {
        let mut linux = topology
            .nodes
            .iter()
            .filter(|spec| spec.pool.build().is_none());
        let Some(node) = linux.next().and_then(|spec| self.nodes.get(&spec.name)) else {
            return;
        };
        let [a, b, c] = node.view.pod_network;
        let ports = json!([{"name": "dns", "port": 53, "protocol": "UDP"},
            {"name": "dns-tcp", "port": 53, "protocol": "TCP"}]);
        let node = node.name.clone();
        let at = |name: &str| {
            json!({"namespace": "kube-system", "name": name,
            "labels": {"kubernetes.io/service-name": "kube-dns"}})
        };
        for object in [
            json!({"kind": "Service", "metadata": at("kube-dns"),
                "spec": {"clusterIPs": ["10.96.0.10"], "ports": ports}}),
            json!({"kind": "EndpointSlice", "metadata": at("kube-dns-1"), "addressType": "IPv4",
                "ports": ports, "endpoints": [{"addresses": [format!("{a}.{b}.{c}.2")],
                    "nodeName": node, "conditions": {"ready": true}}]}),
        ] {
            self.apply(&object).expect("objects of our own read");
        }
    }
}
