//! A load balancer and its controller, as a cloud has one (k8s.io/cloud-provider
//! `controllers/service/controller.go`): its finalizer keeps a Service until the balancer is removed, and the
//! Service's status holds the address that it gives.
//!
//! One Service of its own always gets an address, as an ingress controller's does; it shows that the cluster
//! has a load balancer.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use k8s_openapi::api::core::v1::Service;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::wait::await_condition;
use kube::{Api, ResourceExt};
use ordered_watch as watch;
use serde_json::json;
use tokio::time::timeout;

use super::gone;
use crate::fault::FaultKind;
use crate::nodes::cluster::{Cluster, network};
use crate::nodes::node::MANAGED;
use crate::pods::reporting::watch::{Change, follow};
use crate::world::Key;

/// k8s.io/cloud-provider `service/helpers/helper.go`, `LoadBalancerCleanupFinalizer`.
const FINALIZER: &str = "service.kubernetes.io/load-balancer-cleanup";

/// RFC 2544: addresses for benchmarks, which no real system has.
const ADDRESSES: (Ipv4Addr, Ipv4Addr) = (
    Ipv4Addr::new(198, 18, 0, 1),
    Ipv4Addr::new(198, 19, 255, 254),
);

const NAMESPACE: &str = "kube-system";
const OWN: &str = "hybrid-sim-ingress";

/// How long a load balancer takes to be created, and to be removed; clouds take minutes.
const TAKES: Duration = Duration::from_secs(10);

/// How long its own Service may take to get an address.
const READY: Duration = Duration::from_secs(15);

type Known = BTreeMap<Key, Arc<Service>>;

/// Starts the controller; returns when its own Service has an address, or after a warning.
pub(super) async fn begin(cluster: &Arc<Cluster>) -> kube::Result<()> {
    let (tells, known) = watch::channel(Known::new());
    let api = Api::<Service>::all(cluster.client.clone());
    cluster.spawn(async move {
        follow(api, |change| {
            tells.send_modify(|known| apply(known, change));
        })
        .await;
    });
    let shared = Arc::clone(cluster);
    cluster.spawn(async move { control(&shared, known).await });
    let service = serde_json::from_value(json!({
        "metadata": {"name": OWN, "labels": {MANAGED.0: MANAGED.1}},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 443}]},
    }));
    let service: Service = service.map_err(kube::Error::SerdeError)?;
    let services: Api<Service> = Api::namespaced(cluster.client.clone(), NAMESPACE);
    cluster.traces.left("service", OWN);
    let post = PostParams::default();
    let created = cluster.insist("service", || services.create(&post, &service));
    // A Service of another simulator, or of a killed one, serves as well
    gone(created.await)?;
    let addressed = |service: Option<&Service>| service.is_some_and(has_address);
    let ready = timeout(READY, await_condition(services, OWN, addressed)).await;
    if !matches!(ready, Ok(Ok(_))) {
        tracing::warn!("the load balancer's own Service has no address yet");
    }
    Ok(())
}

fn apply(known: &mut Known, change: Change<Service>) {
    match change {
        Change::Is(key, service) => drop(known.insert(key, Arc::from(service))),
        Change::Gone(key) => drop(known.remove(&key)),
    }
}

/// Serves the Services whenever one of them or a fault changes.
async fn control(cluster: &Cluster, mut known: watch::Receiver<Known>) {
    let mut faults = cluster.faults.changes();
    let mut given = BTreeMap::new();
    loop {
        let services = known.borrow_and_update().clone();
        let exhausted = FaultKind::LoadBalancerExhausted;
        let exhausted = faults.borrow_and_update().any(exhausted);
        give(&mut given, &services, exhausted);
        let tended = services.iter().map(|(key, service)| {
            let address = given.get(key).copied();
            async move {
                if let Err(error) = tend(cluster, key, service, address).await {
                    // The Service's next change triggers another try
                    tracing::debug!(%key, %error, "the load balancer's controller");
                }
            }
        });
        join_all(tended).await;
        let changed = tokio::select! {
            biased;
            changed = known.changed() => changed,
            changed = faults.changed() => changed,
        };
        if changed.is_err() {
            return;
        }
    }
}

/// Gives addresses to the Services that want one, and forgets Services that are gone.
fn give(given: &mut BTreeMap<Key, Ipv4Addr>, services: &Known, exhausted: bool) {
    given.retain(|key, _| services.contains_key(key));
    let external = |service: &Arc<Service>| network::service(service).external;
    let mut taken: BTreeSet<IpAddr> = services.values().flat_map(external).collect();
    taken.extend(given.values().map(|address| IpAddr::V4(*address)));
    for (key, service) in services {
        let is_own = key.namespace == NAMESPACE && key.name == OWN;
        let waits = is_balanced(service) && !has_address(service) && !given.contains_key(key);
        if waits
            && (is_own || !exhausted)
            && let Some(address) = free(|address| taken.contains(&address.into()))
        {
            taken.insert(address.into());
            given.insert(key.clone(), address);
        }
    }
}

/// The first address of the balancer's range that is not taken.
pub(crate) fn free(taken: impl Fn(Ipv4Addr) -> bool) -> Option<Ipv4Addr> {
    let range = u32::from(ADDRESSES.0)..=u32::from(ADDRESSES.1);
    range.map(Ipv4Addr::from).find(|address| !taken(*address))
}

/// Does the next step for a Service.
async fn tend(
    cluster: &Cluster,
    key: &Key,
    service: &Service,
    address: Option<Ipv4Addr>,
) -> kube::Result<()> {
    let held = is_held(service);
    let deleted = service.metadata.deletion_timestamp.is_some();
    if deleted && held {
        cluster.clock.pass(TAKES).await;
        return hold(cluster, service, false).await;
    }
    if deleted || !is_balanced(service) {
        return Ok(());
    }
    if !held {
        return hold(cluster, service, true).await;
    }
    let Some(address) = address.filter(|_| !has_address(service)) else {
        return Ok(());
    };
    cluster.clock.pass(TAKES).await;
    let ingress = json!([{"ip": address.to_string(), "ipMode": "VIP"}]);
    let patch = Patch::Merge(json!({"status": {"loadBalancer": {"ingress": ingress}}}));
    let services: Api<Service> = Api::namespaced(cluster.client.clone(), &key.namespace);
    let (name, params) = (&key.name, PatchParams::default());
    let patched = cluster.insist("service", || services.patch_status(name, &params, &patch));
    gone(patched.await)
}

/// Sets or removes the finalizer on a Service, unless the Service has changed meanwhile.
async fn hold(cluster: &Cluster, service: &Service, held: bool) -> kube::Result<()> {
    let mut names = service.finalizers().to_vec();
    names.retain(|name| name != FINALIZER);
    names.extend(held.then(|| FINALIZER.to_owned()));
    let namespace = service.namespace().unwrap_or_default();
    let services: Api<Service> = Api::namespaced(cluster.client.clone(), &namespace);
    let (name, params) = (service.name_any(), PatchParams::default());
    let version = service.resource_version();
    let meta = json!({"resourceVersion": version, "finalizers": names});
    let patch = Patch::Merge(json!({"metadata": meta}));
    let patched = cluster.insist("service", || services.patch(&name, &params, &patch));
    gone(patched.await)
}

/// Releases all Services, including those of others that got its addresses: nothing else removes its
/// finalizer.
pub(super) async fn remove(cluster: &Cluster) -> kube::Result<()> {
    let services: Api<Service> = Api::namespaced(cluster.client.clone(), NAMESPACE);
    gone(services.delete(OWN, &DeleteParams::default()).await)?;
    let api: Api<Service> = Api::all(cluster.client.clone());
    let params = ListParams::default();
    let listed = cluster.insist("services", || api.list(&params)).await?;
    for service in listed.items {
        if is_ours(&service) {
            hold(cluster, &service, false).await?;
        }
    }
    cluster.traces.gone("service", OWN);
    Ok(())
}

fn is_held(service: &Service) -> bool {
    service.finalizers().iter().any(|name| name == FINALIZER)
}

/// Whether a simulated load balancer serves the Service: it has an address of the range, or waits for one.
fn is_ours(service: &Service) -> bool {
    let range = ADDRESSES.0..=ADDRESSES.1;
    let ours = |address: &IpAddr| matches!(address, IpAddr::V4(v4) if range.contains(v4));
    is_held(service)
        && (!has_address(service) || network::service(service).external.iter().any(ours))
}

/// Whether the cluster's own load balancer serves the Service: that is so without a class
/// (`loadBalancerClass`, v1).
fn is_balanced(service: &Service) -> bool {
    let spec = service.spec.as_ref();
    spec.is_some_and(|spec| {
        let families = spec.ip_families.as_deref().unwrap_or_default();
        spec.type_.as_deref() == Some("LoadBalancer")
            && spec.load_balancer_class.is_none()
            && families.iter().any(|family| family == "IPv4")
    })
}

fn has_address(service: &Service) -> bool {
    network::ingress(service).next().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(kind: &str, address: Option<&str>) -> Arc<Service> {
        let ingress = address.map(|address| json!([{"ip": address}]));
        let service = serde_json::from_value(json!({
            "spec": {"type": kind, "ipFamilies": ["IPv4"], "ports": [{"port": 80}]},
            "status": {"loadBalancer": {"ingress": ingress}},
        }));
        Arc::new(service.expect("a Service"))
    }

    #[test]
    fn who_waits_is_given_what_nobody_has() {
        let services: Known = [
            ("a", "addressed", "LoadBalancer", Some("198.18.0.1")),
            ("a", "plain", "ClusterIP", None),
            ("a", "waits", "LoadBalancer", None),
            ("b", "waits", "LoadBalancer", None),
            (NAMESPACE, OWN, "LoadBalancer", None),
        ]
        .map(|(namespace, name, kind, at)| (Key::new(namespace, name), service(kind, at)))
        .into();
        let mut given = BTreeMap::new();
        let own = Key::new(NAMESPACE, OWN);
        give(&mut given, &services, true);
        assert_eq!(given, [(own, Ipv4Addr::new(198, 18, 0, 2))].into());
        give(&mut given, &services, false);
        let last: Vec<_> = given.values().map(|address| address.octets()[3]).collect();
        assert_eq!(last, [3, 4, 2]);
        let before = given.clone();
        give(&mut given, &services, false);
        assert_eq!(given, before);
        give(&mut given, &Known::new(), false);
        assert!(given.is_empty());
    }
}
