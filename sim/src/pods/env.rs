//! The variables of a container (kubernetes 1.37.0, `pkg/kubelet/kubelet_pods.go`,
//! `makeEnvironmentVariables`): what its spec says, and the links to Services.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Container, EnvVarSource};

use super::command;
use super::refer::{self, Data, Missing};
use super::run::PodRun;
use crate::cluster::Cluster;
use crate::lock::locked;
use crate::network::Protocol;
use crate::node;
use crate::world::{Key, ServicePort, Services};

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
    let links = {
        let spec = run.pod.spec.as_ref();
        let all = spec.and_then(|spec| spec.enable_service_links);
        let own = Some(&*run.key.namespace).filter(|_| all.unwrap_or(true));
        let world = cluster.world();
        locked(&cluster.links).of(&world.services, own)
    };
    for variable in container.env.iter().flatten() {
        let value = match (&variable.value, &variable.value_from) {
            (Some(value), _) if !value.is_empty() => {
                let known = |name: &str| env.get(name).or_else(|| links.get(name));
                command::expanded(value, |name| known(name).cloned())
            }
            (_, Some(source)) => match from(cluster, run, container, source).await? {
                Some(value) => value,
                None => continue,
            },
            _ => String::new(),
        };
        env.insert(variable.name.clone(), value);
    }
    if env.is_empty() {
        return Ok(links);
    }
    // What the container says itself counts
    let mut whole = Env::clone(&links);
    whole.extend(env);
    Ok(cluster.shared(whole))
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

/// The links to Services, kept until one of these changes: all pods of a namespace have the same.
#[derive(Default)]
pub(crate) struct Links {
    version: u64,
    /// By namespace; by none of pods that do without its Services.
    known: HashMap<Option<String>, Arc<Env>>,
}

impl Links {
    fn of(&mut self, services: &Services, namespace: Option<&str>) -> Arc<Env> {
        if self.version != services.version() {
            self.version = services.version();
            self.known.clear();
        }
        let known = self.known.entry(namespace.map(str::to_owned));
        Arc::clone(known.or_insert_with(|| links(services, namespace).into()))
    }
}

/// `getServiceEnvVarMap`: the API server for everybody, and the namespace's Services unless the pod
/// does without.
fn links(services: &Services, namespace: Option<&str>) -> Env {
    let master = Key::new("default", "kubernetes");
    let mut env = Env::new();
    let api = services.get(&master).map(|own| (&master, own));
    let own = namespace.map(|namespace| services.within(namespace));
    for (key, service) in api.into_iter().chain(own.into_iter().flatten()) {
        if let Some(address) = service.addresses.first() {
            env.extend(links_to(&key.name, *address, &service.ports));
        }
    }
    env
}

/// `pkg/kubelet/envvars/envvars.go`, `FromServices`.
fn links_to(service: &str, address: IpAddr, ports: &[ServicePort]) -> Env {
    let upper = |text: &str| text.replace('-', "_").to_uppercase();
    let prefix = upper(service);
    let mut env = Env::from([(format!("{prefix}_SERVICE_HOST"), address.to_string())]);
    for (index, each) in ports.iter().enumerate() {
        let (name, port) = (&each.name, each.port);
        let protocol = match each.protocol {
            Protocol::Udp => "udp",
            _ => "tcp",
        };
        let whole = match address {
            IpAddr::V4(address) => format!("{protocol}://{address}:{port}"),
            IpAddr::V6(address) => format!("{protocol}://[{address}]:{port}"),
        };
        if index == 0 {
            env.insert(format!("{prefix}_SERVICE_PORT"), port.to_string());
            env.insert(format!("{prefix}_PORT"), whole.clone());
        }
        if !name.is_empty() {
            let named = format!("{prefix}_SERVICE_PORT_{}", upper(name));
            env.insert(named, port.to_string());
        }
        let of_port = format!("{prefix}_PORT_{port}_{}", protocol.to_uppercase());
        env.insert(format!("{of_port}_PROTO"), protocol.to_owned());
        env.insert(format!("{of_port}_PORT"), port.to_string());
        env.insert(format!("{of_port}_ADDR"), address.to_string());
        env.insert(of_port, whole);
    }
    env
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::Service;

    #[test]
    fn links_to_a_service() {
        let port = |name: &str, port| ServicePort {
            name: name.to_owned(),
            port,
            ..ServicePort::default()
        };
        let env = links_to(
            "my-web",
            [10, 96, 0, 7].into(),
            &[port("http", 80), port("", 81)],
        );
        for (name, value) in [
            ("MY_WEB_SERVICE_HOST", "10.96.0.7"),
            ("MY_WEB_SERVICE_PORT", "80"),
            ("MY_WEB_SERVICE_PORT_HTTP", "80"),
            ("MY_WEB_PORT", "tcp://10.96.0.7:80"),
            ("MY_WEB_PORT_81_TCP_ADDR", "10.96.0.7"),
        ] {
            assert_eq!(env.get(name).map(String::as_str), Some(value), "{name}");
        }
        assert_eq!(env.len(), 12);
    }

    #[test]
    fn links_are_kept_until_a_service_changes() {
        let service = |last: u8| Service {
            addresses: vec![[10, 96, 0, last].into()],
            ..Service::default()
        };
        let mut services = Services::default();
        let mut links = Links::default();
        services.insert(Key::new("default", "kubernetes"), service(1));
        services.insert(Key::new("a", "one"), service(2));
        let first = links.of(&services, Some("a"));
        assert!(first.contains_key("ONE_SERVICE_HOST"));
        assert!(Arc::ptr_eq(&first, &links.of(&services, Some("a"))));
        for other in [Some("b"), None] {
            let names: Vec<String> = links.of(&services, other).keys().cloned().collect();
            assert_eq!(names, ["KUBERNETES_SERVICE_HOST"]);
        }
        services.insert(Key::new("a", "two"), service(3));
        assert_eq!(links.of(&services, Some("a")).len(), 3);
        services.remove(&Key::new("a", "one"));
        assert_eq!(links.of(&services, Some("a")).len(), 2);
    }

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
