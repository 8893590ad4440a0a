//! The variables of a container (kubernetes 1.37.0, `pkg/kubelet/kubelet_pods.go`,
//! `makeEnvironmentVariables`): those of its spec, and the address of Service `kubernetes`; no other links to
//! Services.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Container, EnvVarSource};

use super::command;
use super::refer::{self, DataKind};
use crate::fault::FaultKind;
use crate::nodes::cluster::Cluster;
use crate::nodes::node;
use crate::pods::course::run::PodRun;
use crate::world::Key;

/// Variables by name.
pub(crate) type Env = BTreeMap<String, String>;

/// Returns the variables of a container, or why it cannot have them.
pub(crate) async fn variables(
    cluster: &Cluster,
    run: &PodRun,
    container: &Container,
) -> Result<Arc<Env>, String> {
    let mut env = Env::new();
    let world = cluster.world();
    let api_server = world.services.get(&Key::new("default", "kubernetes"));
    let address = api_server.and_then(|service| service.addresses.first());
    env.extend(address.map(|address| ("KUBERNETES_SERVICE_HOST".to_owned(), address.to_string())));
    let port = api_server.and_then(|service| service.ports.first());
    env.extend(port.map(|port| ("KUBERNETES_SERVICE_PORT".to_owned(), port.port.to_string())));
    if run.suffers(FaultKind::VariablesLost, cluster) {
        return Ok(Arc::new(env));
    }
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    for source in container.env_from.iter().flatten() {
        let (kind, name, optional) = match (&source.config_map_ref, &source.secret_ref) {
            (Some(map), _) => (DataKind::ConfigMap, &map.name, map.optional),
            (_, Some(secret)) => (DataKind::Secret, &secret.name, secret.optional),
            _ => continue,
        };
        let Some(data) = refer::data(cluster, run, kind, name, optional).await? else {
            continue;
        };
        let prefix = source.prefix.as_deref().unwrap_or_default();
        env.extend(
            data.into_iter()
                .map(|(key, value)| (format!("{prefix}{key}"), text(value))),
        );
    }
    for variable in container.env.iter().flatten() {
        let value = match (&variable.value, &variable.value_from) {
            (Some(value), _) if !value.is_empty() => {
                command::expanded(value, |name| env.get(name).cloned())
            }
            (_, Some(source)) => match from(cluster, run, container, source).await? {
                Some(value) => value,
                None => continue,
            },
            _ => String::new(),
        };
        env.insert(variable.name.clone(), value);
    }
    Ok(Arc::new(env))
}

async fn from(
    cluster: &Cluster,
    run: &PodRun,
    container: &Container,
    source: &EnvVarSource,
) -> Result<Option<String>, String> {
    if let Some(selector) = &source.field_ref {
        return refer::field(run, selector).map(Some);
    }
    if let Some(selector) = &source.resource_field_ref {
        let spec = run.pod.spec.clone().unwrap_or_default();
        let has = |name: &str| node::allocatable(&run.node, name);
        return refer::resource(&spec, Some(container), selector, has).map(Some);
    }
    let (kind, name, key, optional) = match (&source.config_map_key_ref, &source.secret_key_ref) {
        (Some(map), _) => (DataKind::ConfigMap, &map.name, &map.key, map.optional),
        (_, Some(secret)) => (DataKind::Secret, &secret.name, &secret.key, secret.optional),
        _ => return Ok(Some(String::new())),
    };
    let Some(mut data) = refer::data(cluster, run, kind, name, optional).await? else {
        return Ok(None);
    };
    match data.remove(key) {
        Some(value) => Ok(Some(String::from_utf8_lossy(&value).into_owned())),
        None if optional == Some(true) => Ok(None),
        None => Err(format!(
            "couldn't find key {key} in {kind:?} {}/{name}",
            run.key.namespace
        )),
    }
}
