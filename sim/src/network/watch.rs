//! One watch each of Services and `EndpointSlices`, as far as packets need them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;

use crate::cluster::Cluster;
use crate::pods::watch::{Change, follow};
use crate::world::{self, Key, ServicePort};

/// Starts the watches.
pub(crate) fn begin(cluster: &Arc<Cluster>) {
    let all = Arc::clone(cluster);
    cluster.spawn(async move {
        let api = Api::<Service>::all(all.client.clone());
        follow(api, |change| {
            all.change(|world| apply(&mut world.services, change, service));
        })
        .await;
    });
    let all = Arc::clone(cluster);
    cluster.spawn(async move {
        let api = Api::<EndpointSlice>::all(all.client.clone());
        follow(api, |change| {
            all.change(|world| apply(&mut world.slices, change, slice));
        })
        .await;
    });
}

fn apply<K, V>(known: &mut BTreeMap<Key, V>, change: Change<K>, read: impl Fn(&K) -> V) {
    match change {
        Change::Is(key, object) => {
            known.insert(key, read(&object));
        }
        Change::Gone(key, _) => {
            known.remove(&key);
        }
        Change::OnlyThese(keys) => known.retain(|key, _| keys.contains(key)),
    }
}

fn service(service: &Service) -> world::Service {
    let spec = service.spec.clone().unwrap_or_default();
    let port = |number: i32| u16::try_from(number).ok();
    let ports = spec
        .ports
        .unwrap_or_default()
        .into_iter()
        .filter_map(|each| {
            if each
                .protocol
                .as_deref()
                .is_some_and(|protocol| protocol != "TCP")
            {
                return None;
            }
            Some(ServicePort {
                name: each.name.unwrap_or_default(),
                port: port(each.port)?,
                node_port: each.node_port.and_then(port).filter(|port| *port != 0),
            })
        });
    // "None" of headless Services is no address and falls out here
    let addresses = spec.cluster_ips.unwrap_or_default();
    world::Service {
        addresses: addresses
            .iter()
            .filter_map(|address| address.parse().ok())
            .collect(),
        ports: ports.collect(),
    }
}

fn slice(slice: &EndpointSlice) -> world::Slice {
    let labels = slice.metadata.labels.clone().unwrap_or_default();
    let ports = slice.ports.iter().flatten().filter_map(|port| {
        let number = u16::try_from(port.port?).ok()?;
        Some((port.name.clone().unwrap_or_default(), number))
    });
    let ready = slice.endpoints.iter().flatten().filter(|endpoint| {
        endpoint
            .conditions
            .as_ref()
            .and_then(|conditions| conditions.ready)
            .unwrap_or(true)
    });
    let ready = ready
        .flat_map(|endpoint| endpoint.addresses.iter())
        .filter_map(|address| address.parse::<IpAddr>().ok());
    world::Slice {
        service: labels
            .get("kubernetes.io/service-name")
            .cloned()
            .unwrap_or_default(),
        ports: ports.collect(),
        ready: ready.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn objects_are_read_as_far_as_packets_need() {
        let read = service(&serde_json::from_value(json!({
            "spec": {"clusterIPs": ["10.96.1.2"], "ports": [
                {"name": "http", "port": 80, "targetPort": 8080, "nodePort": 30080, "protocol": "TCP"},
                {"name": "dns", "port": 53, "protocol": "UDP"},
            ]}
        })).expect("a Service"));
        assert_eq!(read.addresses, [IpAddr::from([10, 96, 1, 2])]);
        assert_eq!(read.ports.len(), 1);
        assert_eq!(read.ports[0].node_port, Some(30080));
        let headless = json!({"spec": {"clusterIPs": ["None"]}});
        assert!(
            service(&serde_json::from_value(headless).expect("a Service"))
                .addresses
                .is_empty()
        );
    }

    #[test]
    fn backends_that_are_not_ready_are_left_out() {
        let read = slice(
            &serde_json::from_value(json!({
                "metadata": {"labels": {"kubernetes.io/service-name": "web"}},
                "addressType": "IPv4",
                "ports": [{"name": "", "port": 80}],
                "endpoints": [
                    {"addresses": ["10.244.1.4"], "conditions": {"ready": true}},
                    {"addresses": ["10.244.1.5"], "conditions": {"ready": false}},
                    {"addresses": ["10.244.1.6"]},
                    {"addresses": ["not an address"]},
                ]
            }))
            .expect("a slice"),
        );
        assert_eq!(read.service, "web");
        assert_eq!(
            read.ready,
            [IpAddr::from([10, 244, 1, 4]), IpAddr::from([10, 244, 1, 6])]
        );
    }

    #[test]
    fn a_new_list_replaces_what_was_known() {
        let mut known = BTreeMap::from([(Key::new("a", "old"), 1)]);
        apply(
            &mut known,
            Change::<Service>::Is(Key::new("a", "new"), Box::default()),
            |_| 2,
        );
        apply(
            &mut known,
            Change::<Service>::OnlyThese([Key::new("a", "new")].into()),
            |_| 3,
        );
        assert_eq!(known, BTreeMap::from([(Key::new("a", "new"), 2)]));
    }
}
