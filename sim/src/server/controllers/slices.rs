//! Endpoint slices: the pods that a Service selects (kubernetes 1.37.0,
//! `staging/src/k8s.io/endpointslice/`), one slice per Service and family of addresses, which is enough for a thousand
//! pods.

use std::time::Duration;

use serde_json::{Value, json};

use super::pods::{is_going, is_over, is_ready};
use super::{Work, made, owned_by};
use crate::families;
use crate::server::kinds::Kind;
use crate::server::state::State;
use crate::server::store::Object;
use crate::world::Key;

/// By whom slices are managed that are made here.
const MANAGER: (&str, &str) = (
    "endpointslice.kubernetes.io/managed-by",
    "endpointslice-controller.k8s.io",
);

/// From how many endpoints on changes are told together, and for how long they are gathered: a
/// slice is told as a whole, so that each of many costs more than the one before. A real controller
/// gathers only when asked, and then those of all Services (kube-controller-manager,
/// `--endpointslice-updates-batch-period`, 0 unless it is set).
const MANY: usize = 20;
const BATCH: Duration = Duration::from_secs(1);

pub(super) fn look(state: &mut State, key: &Key) {
    let service = state.store.get("services", key);
    let slices = service
        .into_iter()
        .flat_map(|service| existing(state, service));
    let told = slices.filter_map(|(_, slice)| slice["endpoints"].as_array().map(Vec::len));
    if told.max().is_none_or(|told| told < MANY) {
        return tell(state, key);
    }
    let work = Work::ManyEndpoints(key.clone());
    if !state.is_awaited(&work) {
        state.later(BATCH, work);
    }
}

/// The slices that are told of a Service.
fn existing(state: &State, service: &Value) -> impl Iterator<Item = (Key, Object)> + use<> {
    let slices = made(&state.store, "endpointslices", service).into_iter();
    slices.filter(|(_, slice)| slice["metadata"]["labels"][MANAGER.0] == MANAGER.1)
}

/// Tells the endpoints of a Service as they are.
pub(super) fn tell(state: &mut State, key: &Key) {
    let Some(service) = state.store.get("services", key).cloned() else {
        return;
    };
    let selector = service["spec"]["selector"].as_object();
    let Some(selector) = selector.filter(|own| !own.is_empty()) else {
        return;
    };
    if service["spec"]["type"] == "ExternalName" || is_going(&service) {
        return;
    }
    let pods: Vec<&Value> = state
        .store
        .pods_with(&key.namespace, selector)
        .map(AsRef::as_ref)
        .filter(|pod| !is_over(pod) && pod["status"]["podIP"].is_string())
        .collect();
    let unready_too = service["spec"]["publishNotReadyAddresses"] == true;
    let ports = ports(&service, &pods);
    let families = service["spec"]["ipFamilies"].as_array();
    let families = families.into_iter().flatten().filter_map(Value::as_str);
    let of_families: Vec<(String, Vec<Value>)> = families
        .map(|family| {
            let of_pod = |pod: &&Value| {
                let address = address(pod, family)?;
                Some(endpoint(state, &service, pod, address, unready_too))
            };
            (family.to_owned(), pods.iter().filter_map(of_pod).collect())
        })
        .collect();
    for (family, endpoints) in of_families {
        keep(state, key, &service, &family, (endpoints, ports.clone()));
    }
}

/// A pod's address of a family.
fn address<'p>(pod: &'p Value, family: &str) -> Option<&'p str> {
    let own = pod["status"]["podIPs"].as_array();
    let own = own
        .into_iter()
        .flatten()
        .filter_map(|own| own["ip"].as_str());
    let mut all = own.chain(pod["status"]["podIP"].as_str());
    all.find(|own| own.contains(':') == (family == families::IPV6))
}

/// Makes the slice of a Service and a family, or has it be as it is now.
fn keep(
    state: &mut State,
    key: &Key,
    service: &Value,
    family: &str,
    (endpoints, ports): (Vec<Value>, Vec<Value>),
) {
    let same = existing(state, service).find(|(_, slice)| slice["addressType"] == *family);
    if let Some((at, _)) = same {
        state.edit("endpointslices", &at, |slice| {
            slice["endpoints"] = json!(endpoints);
            slice["ports"] = json!(ports);
        });
        return;
    }
    let mut labels = service["metadata"]["labels"].clone();
    labels["kubernetes.io/service-name"] = json!(key.name);
    labels[MANAGER.0] = json!(MANAGER.1);
    if service["spec"]["clusterIP"] == "None" {
        labels["service.kubernetes.io/headless"] = json!("");
    }
    let slice = json!({
        "metadata": {"generateName": format!("{}-", key.name), "labels": labels,
            "ownerReferences": owned_by(Kind::named("services"), service)},
        "addressType": family, "endpoints": endpoints, "ports": ports,
    });
    let kind = Kind::named("endpointslices");
    if let Err(refusal) = state.create(kind, &key.namespace, slice, false) {
        tracing::debug!(?refusal, service = %key, "no slice can be made");
    }
}

/// Whether a Service selects a pod.
pub(super) fn selects(service: &Value, pod: &Value) -> bool {
    let selector = service["spec"]["selector"].as_object();
    let labels = &pod["metadata"]["labels"];
    selector.is_some_and(|own| {
        !own.is_empty()
            && own
                .iter()
                .all(|(name, value)| labels.get(name) == Some(value))
    })
}

/// Whether a slice tells of a pod otherwise than of what it was before.
pub(super) fn differ(before: &Value, pod: &Value) -> bool {
    const FIELDS: [&str; 7] = [
        "/metadata/labels",
        "/metadata/uid",
        "/spec/containers",
        "/spec/hostname",
        "/spec/nodeName",
        "/status/podIP",
        "/status/podIPs",
    ];
    let states = |pod: &Value| (is_ready(pod), is_going(pod), is_over(pod));
    states(before) != states(pod)
        || FIELDS
            .iter()
            .any(|field| before.pointer(field) != pod.pointer(field))
}

/// `staging/src/k8s.io/endpointslice/utils.go`, `podToEndpoint`.
fn endpoint(
    state: &State,
    service: &Value,
    pod: &Value,
    address: &str,
    unready_too: bool,
) -> Value {
    let meta = &pod["metadata"];
    let (serving, terminating) = (is_ready(pod), is_going(pod));
    let mut endpoint = json!({
        "addresses": [address],
        "conditions": {"ready": unready_too || (serving && !terminating), "serving": serving,
            "terminating": terminating},
        "nodeName": pod["spec"]["nodeName"],
        "targetRef": {"kind": "Pod", "namespace": meta["namespace"], "name": meta["name"], "uid": meta["uid"]},
    });
    let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
    let node = state.store.get("nodes", &Key::new("", node));
    let zone = node.and_then(|node| node["metadata"]["labels"].get("topology.kubernetes.io/zone"));
    if let Some(zone) = zone {
        endpoint["zone"] = zone.clone();
    }
    let hostname = pod["spec"]["hostname"]
        .as_str()
        .filter(|name| !name.is_empty());
    if let Some(hostname) = hostname
        && pod["spec"]["subdomain"] == service["metadata"]["name"]
    {
        endpoint["hostname"] = json!(hostname);
    }
    endpoint
}

/// The ports of a Service as its pods have them; one whose name no pod knows is left out.
fn ports(service: &Value, pods: &[&Value]) -> Vec<Value> {
    let ports = service["spec"]["ports"].as_array();
    let mut all = Vec::new();
    for port in ports.into_iter().flatten() {
        let target = match &port["targetPort"] {
            Value::String(name) => pods.iter().find_map(|pod| {
                let containers = pod["spec"]["containers"].as_array();
                let mut ports = containers
                    .into_iter()
                    .flatten()
                    .filter_map(|one| one["ports"].as_array())
                    .flatten();
                let same =
                    |own: &&Value| own["name"] == **name && own["protocol"] == port["protocol"];
                ports.find(same).map(|own| own["containerPort"].clone())
            }),
            Value::Null => Some(port["port"].clone()),
            number => Some(number.clone()),
        };
        let Some(target) = target else { continue };
        let name = port["name"].as_str().unwrap_or_default();
        let mut told = json!({"name": name, "protocol": port["protocol"], "port": target});
        if let Some(app) = port.get("appProtocol") {
            told["appProtocol"] = app.clone();
        }
        all.push(told);
    }
    all
}
