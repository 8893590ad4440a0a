//! What a pod's fields refer to: its own fields, its containers' resources, `ConfigMap`s, Secrets.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{
    ConfigMap, Container, ObjectFieldSelector, PodSpec, ResourceFieldSelector, Secret,
};
use kube::Api;

use super::resources::{milli, stated};
use crate::nodes::cluster::Cluster;
use crate::pods::course::run::PodRun;

/// The content of a `ConfigMap` or Secret.
pub(crate) type Data = BTreeMap<String, Vec<u8>>;

/// A kind of object that has data for pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DataKind {
    ConfigMap,
    Secret,
}

/// Returns the content of an object, `None` if it is missing and `optional`, or else the kubelet's
/// error for its absence (the kubelet's caches name the resource in the singular:
/// `pkg/kubelet/util/manager/watch_based_manager.go`).
pub(crate) async fn data(
    cluster: &Cluster,
    run: &PodRun,
    kind: DataKind,
    name: &str,
    optional: Option<bool>,
) -> Result<Option<Data>, String> {
    let (client, namespace) = (cluster.client.clone(), &run.key.namespace);
    let (singular, reply) = match kind {
        DataKind::ConfigMap => {
            let maps: Api<ConfigMap> = Api::namespaced(client, namespace);
            let reply = cluster.insist("ConfigMap", || maps.get_opt(name)).await;
            let content = |map: ConfigMap| {
                let texts = map.data.into_iter().flatten();
                let texts = texts.map(|(key, text)| (key, text.into_bytes()));
                let bytes = map.binary_data.into_iter().flatten();
                texts
                    .chain(bytes.map(|(key, bytes)| (key, bytes.0)))
                    .collect()
            };
            ("configmap", reply.map(|map| map.map(content)))
        }
        DataKind::Secret => {
            let secrets: Api<Secret> = Api::namespaced(client, namespace);
            let reply = cluster.insist("Secret", || secrets.get_opt(name)).await;
            let content = |secret: Secret| {
                let data = secret.data.into_iter().flatten();
                data.map(|(key, bytes)| (key, bytes.0)).collect()
            };
            ("secret", reply.map(|secret| secret.map(content)))
        }
    };
    match reply {
        Ok(None) if optional != Some(true) => Err(format!("{singular} \"{name}\" not found")),
        Ok(reply) => Ok(reply),
        Err(error) => Err(words(error)),
    }
}

/// The message of an API server's error, or of another error.
pub(crate) fn words(error: kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message,
        other => other.to_string(),
    }
}

/// The value of a `fieldRef` (kubelet, `podFieldSelectorRuntimeValue`; `pkg/fieldpath`).
pub(crate) fn field(run: &PodRun, selector: &ObjectFieldSelector) -> Result<String, String> {
    let path = selector.field_path.as_str();
    // The pod as last seen: labels and annotations change
    let pod = Arc::clone(&run.book().pod);
    let spec = pod.spec.as_ref();
    let node = &run.node.view;
    let ips: Vec<_> = run
        .address()
        .into_iter()
        .flat_map(|address| node.addresses_of(address))
        .collect();
    let host: Vec<_> = node.addresses().collect();
    let first = |of: &[IpAddr]| of.first().map(ToString::to_string).unwrap_or_default();
    let joined = |of: &[IpAddr]| {
        let each: Vec<String> = of.iter().map(ToString::to_string).collect();
        each.join(",")
    };
    let one = |map: Option<&BTreeMap<String, String>>, key: &str| {
        let value = map.and_then(|map| map.get(key));
        value.cloned().unwrap_or_default()
    };
    let (labels, annotations) = (&pod.metadata.labels, &pod.metadata.annotations);
    if let Some((path, key)) = path
        .strip_suffix("']")
        .and_then(|path| path.split_once("['"))
    {
        return match path {
            "metadata.labels" => Ok(one(labels.as_ref(), key)),
            "metadata.annotations" => Ok(one(annotations.as_ref(), key)),
            _ => Err(format!(
                "fieldPath \"{}\" does not support subscript",
                selector.field_path
            )),
        };
    }
    Ok(match path {
        "metadata.name" => run.key.name.clone(),
        "metadata.namespace" => run.key.namespace.clone(),
        "metadata.uid" => run.uid.clone(),
        "metadata.labels" => listed(labels.as_ref()),
        "metadata.annotations" => listed(annotations.as_ref()),
        "spec.nodeName" => run.node.name.clone(),
        "spec.serviceAccountName" => {
            let account = spec.and_then(|spec| spec.service_account_name.clone());
            account.unwrap_or_default()
        }
        "status.hostIP" => first(&host),
        "status.hostIPs" => joined(&host),
        "status.podIP" => first(&ips),
        "status.podIPs" => joined(&ips),
        other => return Err(format!("unsupported fieldPath: {other}")),
    })
}

/// Formats a map with one line per key, in order, with quoted values (`pkg/fieldpath`, `FormatMap`).
fn listed(map: Option<&BTreeMap<String, String>>) -> String {
    let lines: Vec<String> = map
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={value:?}"))
        .collect();
    lines.join("\n")
}

/// The value of a `resourceFieldRef` (`pkg/api/v1/resource/helpers.go`): divided and rounded up. A
/// limit that is not set is the node's allocatable amount.
pub(crate) fn resource(
    spec: &PodSpec,
    current: Option<&Container>,
    selector: &ResourceFieldSelector,
    allocatable: impl Fn(&str) -> Option<i128>,
) -> Result<String, String> {
    let named = selector.container_name.as_deref();
    let named = named.filter(|name| !name.is_empty());
    let init = spec.init_containers.iter().flatten();
    let mut containers = spec.containers.iter().chain(init);
    let container = match named {
        Some(name) => containers.find(|container| container.name == name),
        None => current,
    };
    let container = container.ok_or_else(|| {
        let name = named.unwrap_or_default();
        format!("container {name} not found")
    })?;
    let unsupported = || format!("unsupported container resource : {}", selector.resource);
    let (list, name) = selector.resource.split_once('.').ok_or_else(unsupported)?;
    let limit = match list {
        "limits" => true,
        "requests" => false,
        _ => return Err(unsupported()),
    };
    let stated = stated(container.resources.as_ref(), limit, name);
    let amount = stated.or_else(|| allocatable(name).filter(|_| limit));
    let amount = amount.unwrap_or(0);
    let divisor = selector.divisor.as_ref().and_then(milli);
    let divisor = divisor.filter(|divisor| *divisor > 0).unwrap_or(1000);
    let rounded = amount.div_euclid(divisor) + i128::from(amount.rem_euclid(divisor) != 0);
    Ok(rounded.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn resources_are_divided_and_rounded_up() {
        let spec = json!({"containers": [{"name": "a", "resources":
            {"requests": {"cpu": "250m", "memory": "100Mi"}}}]});
        let spec: PodSpec = serde_json::from_value(spec).expect("a spec");
        let value = |resource: &str, divisor: &str| {
            let selector = json!({"resource": resource, "divisor": divisor});
            let selector = serde_json::from_value(selector).expect("a selector");
            let own = spec.containers.first();
            resource_of(&spec, own, &selector)
        };
        assert_eq!(value("requests.cpu", "0"), Ok("1".to_owned()));
        assert_eq!(value("requests.cpu", "1m"), Ok("250".to_owned()));
        assert_eq!(value("requests.memory", "1Mi"), Ok("100".to_owned()));
        // Without a limit: what the node has
        assert_eq!(value("limits.cpu", "1"), Ok("4".to_owned()));
        assert!(value("cpu", "1").is_err());
    }

    fn resource_of(
        spec: &PodSpec,
        own: Option<&Container>,
        selector: &ResourceFieldSelector,
    ) -> Result<String, String> {
        resource(spec, own, selector, |_| Some(4000))
    }

    #[test]
    fn maps_are_listed_quoted() {
        let map = [("b", "2\""), ("a", "1")].map(|(k, v)| (k.to_owned(), v.to_owned()));
        assert_eq!(listed(Some(&map.into())), "a=\"1\"\nb=\"2\\\"\"");
    }
}
