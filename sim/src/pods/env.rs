//! The variables of a container (kubernetes 1.37.0, `pkg/kubelet/kubelet_pods.go`,
//! `makeEnvironmentVariables`): what its spec says, without the links to Services.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Container, EnvVarSource};

use super::command;
use super::refer::{self, Data, Missing};
use super::run::PodRun;
use crate::cluster::Cluster;
use crate::node;

/// Variables by name.
pub(crate) type Env = BTreeMap<String, String>;

/// The variables of a container, or why it cannot have them.
pub(crate) async fn of(
    cluster: &Cluster,
    run: &PodRun,
    container: &Container,
) -> Result<Arc<Env>, Missing> {
    let mut env = Env::new();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    for source in container.env_from.iter().flatten() {
        let (found, optional) = if let Some(map) = &source.config_map_ref {
            let found = refer::config_map(cluster, run, &map.name).await;
            (found, map.optional)
        } else if let Some(secret) = &source.secret_ref {
            let found = refer::secret(cluster, run, &secret.name).await;
            (found, secret.optional)
        } else {
            continue;
        };
        let Some(data) = forgiven(found, optional)? else {
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

/// What `optional` forgives: that the object is not there.
pub(crate) fn forgiven(
    found: Result<Data, Missing>,
    optional: Option<bool>,
) -> Result<Option<Data>, Missing> {
    match found {
        Ok(data) => Ok(Some(data)),
        Err(missing) if missing.absent && optional == Some(true) => Ok(None),
        Err(missing) => Err(missing),
    }
}

async fn from(
    cluster: &Cluster,
    run: &PodRun,
    container: &Container,
    source: &EnvVarSource,
) -> Result<Option<String>, Missing> {
    if let Some(selector) = &source.field_ref {
        return refer::field(run, selector).map(Some);
    }
    if let Some(selector) = &source.resource_field_ref {
        let spec = run.pod.spec.clone().unwrap_or_default();
        let has = |name: &str| node::allocatable(&run.node, name);
        return refer::resource(&spec, Some(container), selector, has).map(Some);
    }
    let (kind, name, key, optional, found) = if let Some(map) = &source.config_map_key_ref {
        let found = refer::config_map(cluster, run, &map.name).await;
        ("ConfigMap", &map.name, &map.key, map.optional, found)
    } else if let Some(secret) = &source.secret_key_ref {
        let found = refer::secret(cluster, run, &secret.name).await;
        ("Secret", &secret.name, &secret.key, secret.optional, found)
    } else {
        return Ok(Some(String::new()));
    };
    let Some(mut data) = forgiven(found, optional)? else {
        return Ok(None);
    };
    match data.remove(key) {
        Some(value) => Ok(Some(String::from_utf8_lossy(&value).into_owned())),
        None if optional == Some(true) => Ok(None),
        None => Err(Missing::text(format!(
            "couldn't find key {key} in {kind} {}/{name}",
            run.key.namespace
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn optional_forgives_absence_alone() {
        let absent = Missing {
            text: "no".to_owned(),
            absent: true,
        };
        assert_eq!(forgiven(Err(absent.clone()), Some(true)), Ok(None));
        assert!(forgiven(Err(absent), None).is_err());
        let other = Missing::text("no".to_owned());
        assert!(forgiven(Err(other), Some(true)).is_err());
    }
}
