//! The load balancer, as the real API server and its controllers see it.

use hybrid_sim::Topology;
use k8s_openapi::api::core::v1::Service;
use kube::api::DeleteParams;
use kube::runtime::wait::Condition;
use kube::{Api, ResourceExt};
use serde_json::json;

use super::scene::{Scene, create, until};

const FINALIZER: &str = "service.kubernetes.io/load-balancer-cleanup";

fn address(service: &Service) -> Option<String> {
    let status = service.status.as_ref()?.load_balancer.as_ref()?;
    status.ingress.as_ref()?.first()?.ip.clone()
}

fn is_addressed() -> impl Condition<Service> {
    |service: Option<&Service>| service.and_then(address).is_some()
}

fn is_held() -> impl Condition<Service> {
    |service: Option<&Service>| {
        service.is_some_and(|service| service.finalizers().iter().any(|name| name == FINALIZER))
    }
}

fn is_gone() -> impl Condition<Service> {
    |service: Option<&Service>| service.is_none()
}

#[tokio::test(flavor = "multi_thread")]
async fn services_are_given_addresses_and_let_go() {
    let topology = Topology {
        load_balancer: true,
        ..Topology::hybrid()
    };
    let test = "services_are_given_addresses_and_let_go";
    let exhausted = "load-balancer-exhausted";
    let Some(scene) = Scene::begin_with(topology, test, "balanced", &[exhausted]).await else {
        return;
    };
    let system: Api<Service> = Api::namespaced(scene.client.clone(), "kube-system");
    let ingress = system.get("hybrid-sim-ingress").await.expect("it is there");
    assert!(address(&ingress).is_some_and(|ip| ip.starts_with("198.18.")));
    let services = scene.api::<Service>();
    let service = |name: &str, kind: &str| {
        json!({"metadata": {"name": name},
            "spec": {"type": kind, "ports": [{"port": 80}], "selector": {"a": "b"}}})
    };
    create::<Service>(&services, service("plain", "ClusterIP")).await;
    create::<Service>(&services, service("waits", "LoadBalancer")).await;
    let waits = until(services.clone(), "waits", is_held()).await;
    assert_eq!(address(&waits), None);
    let fault = exhausted.parse().expect("a fault");
    scene.joined.faults().lift(&fault);
    let given = until(services.clone(), "waits", is_addressed()).await;
    assert_ne!(address(&given), address(&ingress));
    let plain = services.get("plain").await.expect("it is there");
    assert_eq!((plain.finalizers().len(), address(&plain)), (0, None));
    let now = DeleteParams::default();
    services.delete("waits", &now).await.expect("it is deleted");
    until_gone(&services, "waits").await;
    // A leaving simulator releases the Services that still exist
    create::<Service>(&services, service("stays", "LoadBalancer")).await;
    until(services.clone(), "stays", is_addressed()).await;
    scene.end().await;
    let left = system.get_opt("hybrid-sim-ingress").await;
    assert!(left.expect("an answer").is_none());
    until_gone(&services, "stays").await;
}

async fn until_gone(services: &Api<Service>, name: &str) {
    let gone = kube::runtime::wait::await_condition(services.clone(), name, is_gone());
    let gone = tokio::time::timeout(super::scene::DEADLINE, gone).await;
    assert!(matches!(gone, Ok(Ok(_))), "{name} is there still");
}
