//! The addresses and node ports of Services.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::ServiceSpec;
use serde::Deserialize;
use serde_json::{Value, json};

use super::kinds::Kind;
use super::refusal::{Cause, Refusal};
use super::state::State;
use crate::world::Key;
use crate::{families, given};

/// The service of the API server itself has the first address of the range (kubernetes 1.37.0,
/// `pkg/controlplane/instance.go`).
pub(super) const KUBERNETES: &str = "10.96.0.1";
/// As kubeadm gives it to the cluster's DNS: the tenth.
const DNS: &str = "10.96.0.10";

/// What a client need not say again.
pub(super) fn keep(body: &mut Value, old: &Value) {
    let (is, was) = (&mut body["spec"], &old["spec"]);
    if is["type"] == "ExternalName" || was["type"] == "ExternalName" {
        return;
    }
    for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        if is.get(field).is_none_or(Value::is_null) && was.get(field).is_some() {
            is[field] = was[field].clone();
        }
    }
    if is["type"] == "ClusterIP" {
        for port in is["ports"].as_array_mut().into_iter().flatten() {
            port.as_object_mut().map(|port| port.remove("nodePort"));
        }
        return;
    }
    let before = was["ports"].as_array().cloned().unwrap_or_default();
    for port in is["ports"].as_array_mut().into_iter().flatten() {
        let same = before
            .iter()
            .find(|other| other["port"] == port["port"] && other["protocol"] == port["protocol"]);
        if port.get("nodePort").is_none()
            && let Some(number) = same.and_then(|same| same.get("nodePort"))
        {
            port["nodePort"] = number.clone();
        }
    }
}

/// Gives a Service the addresses and node ports that it lacks, or says what is wrong with its own.
pub(super) fn complete(state: &mut State, key: &Key, body: &mut Value) -> Result<(), Refusal> {
    let kind = Kind::named("services");
    let spec = &mut body["spec"];
    if spec["type"] == "ExternalName" {
        return Ok(());
    }
    if spec.get("clusterIPs").is_none()
        && let Some(own) = spec["clusterIP"].as_str().filter(|own| !own.is_empty())
    {
        spec["clusterIPs"] = json!([own]);
    }
    let mut typed = ServiceSpec::deserialize(&*spec).map_err(Refusal::bad)?;
    families::complete(&mut typed, state.families)
        .map_err(|refused| Cause::invalid(&refused.field, &refused.value, &refused.why))
        .map_err(|cause| Refusal::invalid(kind, &key.name, vec![cause]))?;
    let mut addresses = typed.cluster_ips.unwrap_or_default();
    let taken: BTreeSet<String> = used(state, key)
        .flat_map(|spec| strings(&spec["clusterIPs"]))
        .map(str::to_owned)
        .collect();
    let is_headless = addresses.first().is_some_and(|first| first == "None");
    let mut own = addresses.iter().filter(|_| !is_headless);
    if let Some(own) = own.find(|own| taken.contains(*own)) {
        let why = format!("failed to allocate IP {own}: provided IP is already allocated");
        let cause = Cause::invalid("spec.clusterIPs", &json!([own]), &why);
        return Err(Refusal::invalid(kind, &key.name, vec![cause]));
    }
    let mut own = addresses.iter().filter(|_| !is_headless);
    let is_in_range = |own: &str| own.parse().is_ok_and(given::is_in_range);
    if let Some(own) = own.find(|own| !is_in_range(own)) {
        let why = format!(
            "failed to allocate IP {own}: the provided network does not match the current range"
        );
        let cause = Cause::invalid("spec.clusterIPs", &json!([own]), &why);
        return Err(Refusal::invalid(kind, &key.name, vec![cause]));
    }
    let wanted = typed.ip_families.iter().flatten().skip(addresses.len());
    for family in wanted.filter(|_| !is_headless) {
        let own = allocated(state, key, family, &taken);
        addresses.push(
            own.ok_or_else(|| Refusal::internal("failed to allocate a serviceIP: range is full"))?,
        );
    }
    spec["ipFamilies"] = json!(typed.ip_families);
    spec["ipFamilyPolicy"] = json!(typed.ip_family_policy);
    spec["clusterIP"] = json!(addresses.first());
    spec["clusterIPs"] = json!(addresses);
    let without = spec["allocateLoadBalancerNodePorts"] == false;
    if spec["type"] == "NodePort" || (spec["type"] == "LoadBalancer" && !without) {
        node_ports(state, key, spec)?;
    }
    Ok(())
}

/// An address of a family that no other Service has.
fn allocated(
    state: &mut State,
    key: &Key,
    family: &str,
    taken: &BTreeSet<String>,
) -> Option<String> {
    let is_dns = key.namespace == "kube-system" && key.name == "kube-dns";
    if family == families::IPV6 {
        let given = state.given.address6(|at| taken.contains(&at.to_string()));
        return given.map(|at| at.to_string());
    }
    if is_dns && !taken.contains(DNS) {
        return Some(DNS.to_owned());
    }
    let given = state.given.address(|at| taken.contains(&at.to_string()));
    given.map(|at| at.to_string())
}

fn node_ports(state: &mut State, key: &Key, spec: &mut Value) -> Result<(), Refusal> {
    let kind = Kind::named("services");
    let of = |spec: &Value| -> Vec<u64> {
        let ports = spec["ports"].as_array();
        ports
            .into_iter()
            .flatten()
            .filter_map(|port| port["nodePort"].as_u64())
            .collect()
    };
    let mut taken: Vec<u64> = used(state, key).flat_map(of).collect();
    let ports = spec["ports"].as_array_mut();
    for (at, port) in ports.into_iter().flatten().enumerate() {
        let field = format!("spec.ports[{at}].nodePort");
        match port["nodePort"].as_u64().filter(|own| *own != 0) {
            Some(own) if !(30_000..=32_767).contains(&own) => {
                let why = "provided port is not in the valid range. The range of valid ports is \
                           30000-32767";
                let cause = Cause::invalid(&field, &json!(own), why);
                return Err(Refusal::invalid(kind, &key.name, vec![cause]));
            }
            Some(own) if taken.contains(&own) => {
                let cause =
                    Cause::invalid(&field, &json!(own), "provided port is already allocated");
                return Err(Refusal::invalid(kind, &key.name, vec![cause]));
            }
            Some(_) => {}
            None => {
                let given = state.given.node_port(|at| taken.contains(&at.into()));
                let given = given.ok_or_else(|| {
                    Refusal::internal("failed to allocate a nodePort: range is full")
                })?;
                port["nodePort"] = json!(given);
                taken.push(given.into());
            }
        }
    }
    Ok(())
}

/// The specs of all other Services.
fn used<'a>(state: &'a State, key: &'a Key) -> impl Iterator<Item = &'a Value> {
    let all = state.store.all("services", "");
    all.filter(move |(other, _)| *other != key)
        .map(|(_, service)| &service["spec"])
}

fn strings(value: &Value) -> impl Iterator<Item = &str> {
    value
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}
