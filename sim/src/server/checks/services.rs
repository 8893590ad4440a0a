//! The addresses and node ports of Services.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::ServiceSpec;
use serde::Deserialize;
use serde_json::{Value, json};

use super::refusal::{Cause, Refusal};
use super::{families, given};
use crate::base::fields::Fields;
use crate::server::kinds::Kind;
use crate::server::storage::state::State;
use crate::world::{Key, is_cluster_dns};

/// The address that kubeadm gives to the cluster's DNS: the tenth.
const DNS: &str = "10.96.0.10";

/// Keeps the addresses and node ports that an update leaves out.
pub(crate) fn keep(body: &mut Value, old: &Value) {
    let (is, was) = (&mut body["spec"], &old["spec"]);
    if is["type"] == "ExternalName" || was["type"] == "ExternalName" {
        return;
    }
    let is_internal = is["type"] == "ClusterIP";
    for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        if is.get(field).is_none_or(Value::is_null) && was.get(field).is_some() {
            is[field] = was[field].clone();
        }
    }
    for port in is.items_mut("ports") {
        if is_internal {
            port.remove("nodePort");
            continue;
        }
        let same =
            |other: &&Value| other["port"] == port["port"] && other["protocol"] == port["protocol"];
        let before = was["ports"].items().find(same);
        if let Some(number) = before.and_then(|before| before.get("nodePort"))
            && port.get("nodePort").is_none()
        {
            port["nodePort"] = number.clone();
        }
    }
}

/// Gives a Service the addresses and node ports that it lacks, or says what is wrong with its values.
pub(crate) fn complete(state: &mut State, key: &Key, body: &mut Value) -> Result<(), Refusal> {
    let spec = &mut body["spec"];
    if spec["type"] == "ExternalName" {
        return Ok(());
    }
    if spec.get("clusterIPs").is_none() && !spec["clusterIP"].text().is_empty() {
        spec["clusterIPs"] = json!([spec["clusterIP"]]);
    }
    let refused = |cause| Refusal::invalid(Kind::named("services"), &key.name, &[cause]);
    let invalid =
        |field: &str, value: &Value, why: &str| refused(Cause::invalid(field, value, why));
    let mut typed = ServiceSpec::deserialize(&*spec).map_err(Refusal::bad)?;
    families::complete(&mut typed, state.families).map_err(refused)?;
    let mut addresses = typed.cluster_ips.unwrap_or_default();
    let taken = used(state, key).flat_map(|spec| spec["clusterIPs"].items());
    let taken: BTreeSet<String> = taken.map(|ip| ip.text().to_owned()).collect();
    if addresses.first().is_none_or(|first| first != "None") {
        let is_taken = |ip: &&String| taken.contains(*ip);
        let is_outside = |ip: &&String| !ip.parse().is_ok_and(given::is_in_range);
        let twice = addresses.iter().find(is_taken);
        let twice = twice.map(|ip| (ip, "provided IP is already allocated"));
        let why = "the provided network does not match the current range";
        let outside = addresses.iter().find(is_outside).map(|ip| (ip, why));
        if let Some((ip, why)) = twice.or(outside) {
            let why = format!("failed to allocate IP {ip}: {why}");
            return Err(invalid("spec.clusterIPs", &json!([ip]), &why));
        }
        for family in typed.ip_families.iter().flatten().skip(addresses.len()) {
            let full = || Refusal::internal("failed to allocate a serviceIP: range is full");
            addresses.push(allocated(state, key, family, &taken).ok_or_else(full)?);
        }
    }
    spec["ipFamilies"] = json!(typed.ip_families);
    spec["ipFamilyPolicy"] = json!(typed.ip_family_policy);
    spec["clusterIP"] = json!(addresses.first());
    spec["clusterIPs"] = json!(addresses);
    let without = spec["allocateLoadBalancerNodePorts"] == false;
    if spec["type"] != "NodePort" && (spec["type"] != "LoadBalancer" || without) {
        return Ok(());
    }
    let number = |port: &Value| port["nodePort"].number();
    let others = used(state, key).flat_map(|spec| spec["ports"].items());
    let others: BTreeSet<i64> = others.map(number).collect();
    let mut taken = others.clone();
    taken.extend(spec["ports"].items().map(number));
    for (at, port) in spec.items_mut("ports").enumerate() {
        let wanted = port["nodePort"].number();
        if wanted == 0 {
            let given = state.given.node_port(|at| taken.contains(&at.into()));
            let full = || Refusal::internal("failed to allocate a nodePort: range is full");
            let given = given.ok_or_else(full)?;
            port["nodePort"] = json!(given);
            taken.insert(given.into());
            continue;
        }
        let why = if !(30_000..=32_767).contains(&wanted) {
            "provided port is not in the valid range. The range of valid ports is 30000-32767"
        } else if others.contains(&wanted) {
            "provided port is already allocated"
        } else {
            continue;
        };
        let field = format!("spec.ports[{at}].nodePort");
        return Err(invalid(&field, &json!(wanted), why));
    }
    Ok(())
}

/// Allocates an address of a family that no other Service has.
fn allocated(
    state: &mut State,
    key: &Key,
    family: &str,
    taken: &BTreeSet<String>,
) -> Option<String> {
    let is_dns = is_cluster_dns(&key.namespace, &key.name);
    match is_dns && family != families::IPV6 && !taken.contains(DNS) {
        true => Some(DNS.to_owned()),
        false => state.given.address(family, |at| taken.contains(at)),
    }
}

/// The specs of all other Services.
fn used<'a>(state: &'a State, key: &'a Key) -> impl Iterator<Item = &'a Value> {
    let each = state.store.all("services", "");
    each.filter(move |(other, _)| *other != key)
        .map(|(_, service)| &service["spec"])
}
