//! How the API server decides which IP families a new Service has: kubernetes 1.37.0,
//! `pkg/registry/core/service/storage/alloc.go`, `initIPFamilyFields`.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ServiceSpec;
use serde_json::{Value, json};

use super::refusal::Cause;
use crate::topology::IpFamilies;

pub(crate) const IPV4: &str = "IPv4";
pub(crate) const IPV6: &str = "IPv6";

/// Completes `ipFamilyPolicy` and `ipFamilies`, or says why the Service is refused.
pub(crate) fn complete(spec: &mut ServiceSpec, cluster: IpFamilies) -> Result<(), Cause> {
    let given = spec.cluster_ips.clone().unwrap_or_default();
    let headless = given.first().is_some_and(|first| first == "None");
    let bare = headless && spec.selector.as_ref().is_none_or(BTreeMap::is_empty);
    let usual = if bare {
        "RequireDualStack"
    } else {
        "SingleStack"
    };
    let policy = spec
        .ip_family_policy
        .get_or_insert_with(|| usual.to_owned());
    let invalid = |field: &str, value: &Value, why: &str| {
        Err(Cause::invalid(&format!("spec.{field}"), value, why))
    };
    let families = spec.ip_families.get_or_insert_default();
    for (count, what) in [
        (given.len(), "cluster IPs"),
        (families.len(), "IP families"),
    ] {
        if policy == "SingleStack" && count == 2 {
            let why = format!(
                "must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified"
            );
            return invalid("ipFamilyPolicy", &json!(policy), &why);
        }
    }
    let dual = cluster == IpFamilies::DualStack;
    let known = |family: &str| family == IPV4 || dual && family == IPV6;
    for (at, address) in given.iter().enumerate().skip(families.len()) {
        let family = match address.as_str() {
            "None" => break,
            address if address.contains(':') => IPV6,
            _ => IPV4,
        };
        if !known(family) {
            let why = format!("{family} is not configured on this cluster");
            // The server names the whole list
            return invalid(&format!("clusterIPs[{at}]"), &json!(given), &why);
        }
        families.push(family.to_owned());
    }
    // A headless Service without a selector may have families that the cluster lacks
    if !bare {
        if policy == "RequireDualStack" && !dual {
            let why = "this cluster is not configured for dual-stack services";
            return invalid("ipFamilyPolicy", &json!(policy), why);
        }
        if let Some(at) = families.iter().position(|family| !known(family)) {
            let why = "not configured on this cluster";
            return invalid(&format!("ipFamilies[{at}]"), &json!(families[at]), why);
        }
    }
    if families.is_empty() {
        families.push(IPV4.to_owned());
    }
    let more = policy != "SingleStack" && (bare || dual);
    if families.len() == 1 && more {
        let other = if families[0] == IPV4 { IPV6 } else { IPV4 };
        families.push(other.to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(spec: Value, cluster: IpFamilies) -> Result<(String, Vec<String>), String> {
        let mut spec: ServiceSpec = serde_json::from_value(spec).expect("a spec");
        complete(&mut spec, cluster).map_err(|refused| refused.to_string())?;
        let policy = spec.ip_family_policy.expect("it is set");
        Ok((policy, spec.ip_families.expect("they are set")))
    }

    #[test]
    fn policies_and_families_are_the_servers() {
        let selector = json!({"app": "web"});
        let (single, prefer, require) = ("SingleStack", "PreferDualStack", "RequireDualStack");
        let (first, second, both) = (&[IPV4][..], &[IPV6][..], &[IPV4, IPV6][..]);
        for (spec, policy, on_single, on_dual) in [
            (json!({}), single, first, first),
            (json!({"ipFamilyPolicy": prefer}), prefer, first, both),
            (
                json!({"ipFamilyPolicy": prefer, "ipFamilies": [IPV4]}),
                prefer,
                first,
                both,
            ),
            (
                json!({"clusterIPs": ["None"], "selector": selector}),
                single,
                first,
                first,
            ),
            // Only its endpoints decide which families it has
            (json!({"clusterIPs": ["None"]}), require, both, both),
            (json!({"clusterIPs": ["10.96.0.10"]}), single, first, first),
        ] {
            for (cluster, families) in [
                (IpFamilies::IPv4, on_single),
                (IpFamilies::DualStack, on_dual),
            ] {
                let families = families.iter().map(|&family| family.to_owned()).collect();
                let expected = Ok((policy.to_owned(), families));
                assert_eq!(
                    completed(spec.clone(), cluster),
                    expected,
                    "{spec} on {cluster:?}"
                );
            }
        }
        for (spec, families) in [
            (json!({"ipFamilies": [IPV6]}), second),
            (json!({"ipFamilyPolicy": require}), both),
            (
                json!({"ipFamilyPolicy": require, "ipFamilies": [IPV6]}),
                &[IPV6, IPV4],
            ),
            (json!({"clusterIPs": ["fd00:10:96::7"]}), second),
        ] {
            let seen = completed(spec.clone(), IpFamilies::DualStack)
                .expect("it is taken")
                .1;
            assert_eq!(seen, families, "{spec}");
        }
    }

    #[test]
    fn what_the_cluster_cannot_do_is_refused_in_the_servers_words() {
        let mixed = json!({"ipFamilyPolicy": "SingleStack", "ipFamilies": [IPV4, IPV6]});
        for (spec, cluster, expected) in [
            (
                json!({"ipFamilyPolicy": "RequireDualStack"}),
                IpFamilies::IPv4,
                "spec.ipFamilyPolicy: Invalid value: \"RequireDualStack\": this cluster is not configured \
                 for dual-stack services",
            ),
            (
                json!({"ipFamilies": [IPV6]}),
                IpFamilies::IPv4,
                "spec.ipFamilies[0]: Invalid value: \"IPv6\": not configured on this cluster",
            ),
            (
                json!({"clusterIPs": ["fd00:10:96::7"]}),
                IpFamilies::IPv4,
                "spec.clusterIPs[0]: Invalid value: [\"fd00:10:96::7\"]: IPv6 is not configured on this \
                 cluster",
            ),
            (
                mixed,
                IpFamilies::DualStack,
                "spec.ipFamilyPolicy: Invalid value: \"SingleStack\": must be 'RequireDualStack' or \
                 'PreferDualStack' when multiple IP families are specified",
            ),
        ] {
            assert_eq!(completed(spec, cluster), Err(expected.to_owned()));
        }
    }
}
