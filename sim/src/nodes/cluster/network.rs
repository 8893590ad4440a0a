//! One watch each of Services, `EndpointSlices`, `NetworkPolicies` and namespaces, which keeps what packets need of
//! them.

use std::fmt::Debug;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{LoadBalancerIngress, Namespace, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;

use super::Cluster;
use crate::pods::reporting::watch::{Change, follow};
use crate::world::{self, Endpoint, Protocol, ServicePort, World};

/// Starts the watches.
pub(crate) fn begin(cluster: &Arc<Cluster>) {
    keep(cluster, |world, change| match change {
        Change::Is(key, object) => world.services.insert(key, service(&object)),
        Change::Gone(key) => {
            world.services.delete(&key);
            world.slices.forget(&key);
        }
    });
    keep(cluster, |world, change| match change {
        Change::Is(key, object) => world.slices.insert(key, slice(&object)),
        Change::Gone(key) => world.slices.remove(&key),
    });
    keep::<NetworkPolicy>(cluster, |world, change| {
        let policies = Arc::make_mut(&mut world.policies);
        match change {
            Change::Is(key, object) => policies.insert(key, object.spec.unwrap_or_default()),
            Change::Gone(key) => policies.remove(&key),
        };
    });
    keep::<Namespace>(cluster, |world, change| {
        let namespaces = Arc::make_mut(&mut world.namespaces);
        match change {
            Change::Is(key, object) => {
                namespaces.insert(key.name, object.metadata.labels.unwrap_or_default())
            }
            Change::Gone(key) => namespaces.remove(&key.name),
        };
    });
}

/// Starts a watch that keeps objects of a kind in the world.
fn keep<K>(cluster: &Arc<Cluster>, take: impl Fn(&mut World, Change<K>) + Send + Sync + 'static)
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    let shared = Arc::clone(cluster);
    cluster.spawn(async move {
        let api = Api::<K>::all(shared.client.clone());
        follow(api, |change| shared.change(|world| take(world, change))).await;
    });
}

/// The addresses that a load balancer gave a Service.
pub(crate) fn ingress(service: &Service) -> impl Iterator<Item = &LoadBalancerIngress> {
    let status = service.status.as_ref();
    let given = status.and_then(|status| status.load_balancer.as_ref()?.ingress.as_ref());
    given.into_iter().flatten()
}

pub(crate) fn service(service: &Service) -> world::Service {
    let spec = service.spec.clone().unwrap_or_default();
    let preserves = service.annotations().get("preserve-destination");
    let port = |number: i32| u16::try_from(number).ok();
    let ports = spec.ports.into_iter().flatten().filter_map(|each| {
        Some(ServicePort {
            name: each.name.unwrap_or_default(),
            protocol: Protocol::named(each.protocol.as_deref())?,
            port: port(each.port)?,
            node_port: each.node_port.and_then(port).filter(|port| *port != 0),
        })
    });
    let ingress = ingress(service)
        // KEP-1860: with ipMode Proxy, packets to the address go to the load balancer
        .filter(|ingress| ingress.ip_mode.as_deref() != Some("Proxy"))
        .filter_map(|ingress| ingress.ip.clone());
    let external = ingress.chain(spec.external_ips.unwrap_or_default());
    // A headless Service's "None" is no address, so parsing drops it
    let addresses = spec.cluster_ips.into_iter().flatten();
    let parsed = |address: String| address.parse().ok();
    world::Service {
        addresses: addresses.filter_map(parsed).collect(),
        external: external.filter_map(parsed).collect(),
        ports: ports.collect(),
        sticky: spec.session_affinity.as_deref() == Some("ClientIP"),
        internal_local: spec.internal_traffic_policy.as_deref() == Some("Local"),
        external_local: spec.external_traffic_policy.as_deref() == Some("Local"),
        preserves_destination: preserves.is_some_and(|value| value == "true"),
        external_name: spec
            .external_name
            .filter(|_| spec.type_.as_deref() == Some("ExternalName"))
            .map(|name| name.trim_end_matches('.').to_ascii_lowercase()),
    }
}

pub(crate) fn slice(slice: &EndpointSlice) -> world::Slice {
    let service = slice.labels().get("kubernetes.io/service-name");
    let ports = slice.ports.iter().flatten().filter_map(|port| {
        let number = u16::try_from(port.port?).ok()?;
        Some((port.name.clone().unwrap_or_default(), number))
    });
    let endpoints = slice.endpoints.iter().flatten().flat_map(|endpoint| {
        let conditions = endpoint.conditions.clone().unwrap_or_default();
        let ready = conditions.ready.unwrap_or(true);
        let template = Endpoint {
            address: [0, 0, 0, 0].into(),
            node: endpoint.node_name.clone(),
            hostname: endpoint.hostname.clone(),
            ready,
            serving_last: !ready
                && conditions.serving.unwrap_or(false)
                && conditions.terminating.unwrap_or(false),
        };
        endpoint.addresses.iter().filter_map(move |address| {
            Some(Endpoint {
                address: address.parse().ok()?,
                ..template.clone()
            })
        })
    });
    world::Slice {
        service: service.cloned().unwrap_or_default(),
        ports: ports.collect(),
        endpoints: endpoints.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::net::IpAddr;

    #[test]
    fn objects_are_read_as_far_as_packets_need() {
        let read = service(&serde_json::from_value(json!({
            "spec": {"clusterIPs": ["10.96.1.2"], "ports": [
                {"name": "http", "port": 80, "targetPort": 8080, "nodePort": 30080, "protocol": "TCP"},
                {"name": "dns", "port": 53, "protocol": "UDP"},
            ]}
        })).expect("a Service"));
        assert_eq!(read.addresses, [IpAddr::from([10, 96, 1, 2])]);
        assert_eq!(read.ports[0].node_port, Some(30080));
        assert_eq!(read.ports[1].protocol, Protocol::Udp);
        let headless = json!({"spec": {"clusterIPs": ["None"]}});
        assert!(
            service(&serde_json::from_value(headless).expect("a Service"))
                .addresses
                .is_empty()
        );
    }

    #[test]
    fn backends_are_read_with_their_conditions() {
        let read = slice(
            &serde_json::from_value(json!({
                "metadata": {"labels": {"kubernetes.io/service-name": "web"}},
                "addressType": "IPv4",
                "ports": [{"name": "", "port": 80}],
                "endpoints": [
                    {"addresses": ["10.244.1.4"], "conditions": {"ready": true}},
                    {"addresses": ["10.244.1.5"], "conditions": {"ready": false}},
                    {"addresses": ["10.244.1.6"], "nodeName": "linux", "hostname": "web-0"},
                    {"addresses": ["10.244.1.7"],
                     "conditions": {"ready": false, "serving": true, "terminating": true}},
                    {"addresses": ["not an address"]},
                ]
            }))
            .expect("a slice"),
        );
        assert_eq!(read.service, "web");
        let last = |byte: u8| IpAddr::from([10, 244, 1, byte]);
        let told: Vec<_> = read
            .endpoints
            .iter()
            .map(|each| (each.address, each.ready, each.serving_last))
            .collect();
        let expected = [
            (last(4), true, false),
            (last(5), false, false),
            (last(6), true, false),
            (last(7), false, true),
        ];
        assert_eq!(told, expected);
        assert_eq!(read.endpoints[2].node.as_deref(), Some("linux"));
        assert_eq!(read.endpoints[2].hostname.as_deref(), Some("web-0"));
    }
}
