//! Endpoint slices: the pods that a Service selects (kubernetes 1.37.0, `staging/src/k8s.io/endpointslice/`),
//! in one slice per Service and address family, which suffices for a thousand pods.

use serde_json::{Value, json};

use super::pods::{is_going, is_over, is_ready};
use super::{BATCH, MANY, Work, counted, made, owned_by};
use crate::base::fields::Fields;
use crate::server::checks::families;
use crate::server::kinds::Kind;
use crate::server::storage::state::State;
use crate::server::storage::store::Object;
use crate::world::Key;

/// The label on slices that names this controller as their manager.
const MANAGER: (&str, &str) = (
    "endpointslice.kubernetes.io/managed-by",
    "endpointslice-controller.k8s.io",
);

pub(super) fn look(state: &mut State, key: &Key) {
    let Some(service) = state.store.get("services", key) else {
        return;
    };
    if existing(state, service).all(|(_, slice)| counted(slice["endpoints"].items().len()) < MANY) {
        return tell(state, key);
    }
    state.later_once(BATCH, Work::ManyEndpoints(key.clone()));
}

/// Returns the existing slices of a Service.
fn existing(state: &State, service: &Value) -> impl Iterator<Item = (Key, Object)> + use<> {
    let slices = made(&state.store, "endpointslices", service).into_iter();
    slices.filter(|(_, slice)| slice["metadata"]["labels"][MANAGER.0] == MANAGER.1)
}

/// Writes the current endpoints of a Service to its slices.
pub(super) fn tell(state: &mut State, key: &Key) {
    let Some(service) = state.store.get("services", key).cloned() else {
        return;
    };
    let selector = &service["spec"]["selector"];
    let has_selector = selector.fields().next().is_some();
    if !has_selector || service["spec"]["type"] == "ExternalName" || is_going(&service) {
        return;
    }
    let pods = state.store.selected(&key.namespace, selector);
    let pods = pods.filter(|(_, pod)| !is_over(pod) && pod["status"]["podIP"].is_string());
    let pods: Vec<Object> = pods.map(|(_, pod)| Object::clone(pod)).collect();
    let ports = json!(ports(&service, &pods));
    for family in service["spec"]["ipFamilies"].items().map(Fields::text) {
        let of_pod = |pod: &Object| {
            let address = address(pod, family)?;
            Some(endpoint(state, &service, pod, address))
        };
        let endpoints = pods.iter().filter_map(of_pod).collect();
        keep(state, key, &service, family, (endpoints, ports.clone()));
    }
}

/// Returns a pod's address of a family.
fn address<'p>(pod: &'p Value, family: &str) -> Option<&'p str> {
    let listed = pod["status"]["podIPs"].items().map(|one| one["ip"].text());
    let mut ips = listed.chain(pod["status"]["podIP"].as_str());
    ips.find(|ip| !ip.is_empty() && ip.contains(':') == (family == families::IPV6))
}

/// Creates or updates the slice of a Service and a family.
fn keep(
    state: &mut State,
    key: &Key,
    service: &Value,
    family: &str,
    (endpoints, ports): (Value, Value),
) {
    let same = existing(state, service).find(|(_, slice)| slice["addressType"] == *family);
    if let Some((at, _)) = same {
        state.edit("endpointslices", &at, |slice| {
            slice["endpoints"] = endpoints;
            slice["ports"] = ports;
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
            "ownerReferences": owned_by(service)},
        "addressType": family, "endpoints": endpoints, "ports": ports,
    });
    let kind = Kind::named("endpointslices");
    if let Err(refusal) = state.create(kind, &key.namespace, slice, false) {
        tracing::debug!(?refusal, service = %key, "no slice can be made");
    }
}

/// Whether a Service selects a pod.
pub(super) fn selects(service: &Value, pod: &Value) -> bool {
    let selector = &service["spec"]["selector"];
    selector.fields().next().is_some() && pod["metadata"]["labels"].includes(selector)
}

/// Whether a change of a pod changes a slice.
pub(super) fn differ(before: &Value, pod: &Value) -> bool {
    let differ = |within: &str, names: &[&str]| {
        let mut names = names.iter();
        names.any(|name| before[within].get(name) != pod[within].get(name))
    };
    let states = |pod: &Value| (is_ready(pod), is_going(pod), is_over(pod));
    states(before) != states(pod)
        || differ("metadata", &["labels", "uid"])
        || differ("spec", &["containers", "hostname", "nodeName"])
        || differ("status", &["podIP", "podIPs"])
}

/// Builds the endpoint of a pod (`staging/src/k8s.io/endpointslice/utils.go`, `podToEndpoint`).
fn endpoint(state: &State, service: &Value, pod: &Value, address: &str) -> Value {
    let (meta, spec) = (&pod["metadata"], &pod["spec"]);
    let unready_too = service["spec"]["publishNotReadyAddresses"] == true;
    let (serving, terminating) = (is_ready(pod), is_going(pod));
    let mut endpoint = json!({
        "addresses": [address],
        "conditions": {"ready": unready_too || (serving && !terminating), "serving": serving,
            "terminating": terminating},
        "nodeName": spec["nodeName"],
        "targetRef": {"kind": "Pod", "namespace": meta["namespace"], "name": meta["name"], "uid": meta["uid"]},
    });
    let node = state.store.global("nodes", spec["nodeName"].text());
    let zone = node.and_then(|node| node["metadata"]["labels"].get("topology.kubernetes.io/zone"));
    if let Some(zone) = zone {
        endpoint["zone"] = zone.clone();
    }
    let hostname = spec["hostname"].text();
    if !hostname.is_empty() && spec["subdomain"] == service["metadata"]["name"] {
        endpoint["hostname"] = json!(hostname);
    }
    endpoint
}

/// The ports of a Service, with the numbers that its pods have; leaves out a name that no pod has.
fn ports(service: &Value, pods: &[Object]) -> Vec<Value> {
    let containers = || {
        pods.iter()
            .flat_map(|pod| pod["spec"]["containers"].items())
    };
    let as_pods_have_it = |port: &Value| {
        let target = match &port["targetPort"] {
            Value::String(name) => {
                let mut known = containers().flat_map(|one| one["ports"].items());
                let same =
                    known.find(|it| it["name"] == **name && it["protocol"] == port["protocol"]);
                &same?["containerPort"]
            }
            Value::Null => &port["port"],
            number => number,
        };
        let name = port["name"].text();
        let mut entry = json!({"name": name, "protocol": port["protocol"], "port": target});
        if let Some(app) = port.get("appProtocol") {
            entry["appProtocol"] = app.clone();
        }
        Some(entry)
    };
    let listed = service["spec"]["ports"].items();
    listed.filter_map(as_pods_have_it).collect()
}
