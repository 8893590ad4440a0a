//! What a pod's fields refer to: its own fields, `ConfigMap`s, Secrets.

use std::collections::BTreeMap;
use std::net::IpAddr;

use k8s_openapi::api::core::v1::{ConfigMap, ObjectFieldSelector, Secret};
use kube::Api;

use super::run::PodRun;
use crate::cluster::Cluster;

/// The content of a `ConfigMap` or Secret.
pub(crate) type Data = BTreeMap<String, Vec<u8>>;

/// A `ConfigMap`'s content, or the kubelet's words for its absence (its caches name the resource in
/// the singular: `pkg/kubelet/util/manager/watch_based_manager.go`).
pub(crate) async fn config_map(
    cluster: &Cluster,
    run: &PodRun,
    name: &str,
) -> Result<Data, Missing> {
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), &run.key.namespace);
    let found = cluster.insist("ConfigMap", || maps.get_opt(name)).await;
    let map = found.map_err(|error| Missing::other(&error))?;
    let map = map.ok_or_else(|| Missing::object("configmap", name))?;
    let texts = map.data.into_iter().flatten();
    let texts = texts.map(|(key, text)| (key, text.into_bytes()));
    let bytes = map.binary_data.into_iter().flatten();
    Ok(texts
        .chain(bytes.map(|(key, bytes)| (key, bytes.0)))
        .collect())
}

/// A Secret's content, or the kubelet's words for its absence.
pub(crate) async fn secret(cluster: &Cluster, run: &PodRun, name: &str) -> Result<Data, Missing> {
    let secrets: Api<Secret> = Api::namespaced(cluster.client.clone(), &run.key.namespace);
    let found = cluster.insist("Secret", || secrets.get_opt(name)).await;
    let secret = found.map_err(|error| Missing::other(&error))?;
    let secret = secret.ok_or_else(|| Missing::object("secret", name))?;
    let data = secret.data.into_iter().flatten();
    Ok(data.map(|(key, bytes)| (key, bytes.0)).collect())
}

/// Why something that was referred to cannot be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Missing {
    pub(crate) text: String,
    /// Whether the object is not there; `optional` forgives nothing else.
    pub(crate) absent: bool,
}

impl Missing {
    fn object(kind: &str, name: &str) -> Self {
        Self {
            text: format!("{kind} \"{name}\" not found"),
            absent: true,
        }
    }

    fn other(error: &kube::Error) -> Self {
        Self::text(match error {
            kube::Error::Api(status) => status.message.clone(),
            other => other.to_string(),
        })
    }

    pub(crate) fn text(text: String) -> Self {
        Self {
            text,
            absent: false,
        }
    }
}

/// The value of a `fieldRef` (kubelet, `podFieldSelectorRuntimeValue`; `pkg/fieldpath`).
pub(crate) fn field(run: &PodRun, selector: &ObjectFieldSelector) -> Result<String, Missing> {
    let path = selector.field_path.as_str();
    let spec = run.pod.spec.as_ref();
    let node = &run.node.view;
    let own: Vec<_> = run
        .address()
        .into_iter()
        .flat_map(|address| node.addresses_of(address))
        .collect();
    let host: Vec<_> = node.addresses().collect();
    let first = |of: &[IpAddr]| of.first().map(ToString::to_string).unwrap_or_default();
    let all = |of: &[IpAddr]| {
        let each: Vec<String> = of.iter().map(ToString::to_string).collect();
        each.join(",")
    };
    Ok(match path {
        "metadata.name" => run.key.name.clone(),
        "metadata.namespace" => run.key.namespace.clone(),
        "metadata.uid" => run.uid.clone(),
        "spec.nodeName" => run.node.name.clone(),
        "spec.serviceAccountName" => {
            let account = spec.and_then(|spec| spec.service_account_name.clone());
            account.unwrap_or_default()
        }
        "status.hostIP" => first(&host),
        "status.hostIPs" => all(&host),
        "status.podIP" => first(&own),
        "status.podIPs" => all(&own),
        other => return Err(Missing::text(format!("unsupported fieldPath: {other}"))),
    })
}
