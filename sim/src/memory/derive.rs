//! What controllers and whoever provisions a cluster would add.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::json;

use super::{FAMILIES, Memory, derived};
use crate::families;
use crate::topology::Topology;
use crate::world::{self, Endpoint, Key, Slice};

impl Memory {
    /// What the `EndpointSlice` controller makes, one slice per Service and family: the pods that a
    /// Service selects, as far as they have an address of the family.
    pub(super) fn derive_slices(&mut self) {
        let mut made = Vec::new();
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
            for family in FAMILIES {
                let own = spec.ip_families.iter().flatten().any(|own| own == family);
                let second = family == families::IPV6;
                let endpoints = pods.iter().filter_map(|(name, pod)| {
                    let named = pod.told.host_name.as_ref();
                    let address = pod.addresses().find(|own| own.is_ipv6() == second)?;
                    Some(Endpoint {
                        node: Some(pod.node.clone()),
                        hostname: named
                            .filter(|(_, subdomain)| *subdomain == key.name)
                            .map(|(hostname, _)| hostname.clone()),
                        ready: unready_too || !self.unready.contains(*name),
                        ..Endpoint::ready(address)
                    })
                });
                let slice = Slice {
                    service: key.name.clone(),
                    ports: ports.clone(),
                    endpoints: endpoints.collect(),
                };
                made.push((derived(key, family), own.then_some(slice)));
            }
        }
        for (key, slice) in made {
            match slice {
                Some(slice) => self.world.slices.insert(key, slice),
                None => self.world.slices.remove(&key),
            }
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
        // kubeadm: the tenth address of the first family's range (`GetDNSIP`), and of that alone
        let [a, b, c] = node.view.pod_network;
        let own = node.view.addresses_of(Ipv4Addr::new(a, b, c, 2)).next();
        let (service, own) = match own {
            Some(own @ IpAddr::V6(_)) => ("fd00:10:96::a", own.to_string()),
            _ => ("10.96.0.10", format!("{a}.{b}.{c}.2")),
        };
        let family = node.view.families.first();
        let ports = json!([{"name": "dns", "port": 53, "protocol": "UDP"},
            {"name": "dns-tcp", "port": 53, "protocol": "TCP"}]);
        let node = node.name.clone();
        let at = |name: &str| {
            json!({"namespace": "kube-system", "name": name,
            "labels": {"kubernetes.io/service-name": "kube-dns"}})
        };
        for object in [
            json!({"kind": "Service", "metadata": at("kube-dns"),
                "spec": {"clusterIPs": [service], "ports": ports}}),
            json!({"kind": "EndpointSlice", "metadata": at("kube-dns-1"), "addressType": family,
                "ports": ports, "endpoints": [{"addresses": [own],
                    "nodeName": node, "conditions": {"ready": true}}]}),
        ] {
            self.apply(&object).expect("objects of our own read");
        }
    }
}
