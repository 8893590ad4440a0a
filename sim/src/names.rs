//! What a name resolves to: a cluster DNS that knows every Service, as seen by Linux and by Windows
//! resolvers.
//!
//! It needs no `CoreDNS` pod, knows no name outside the cluster, and answers addresses alone.

use std::net::IpAddr;

use crate::network::Origin;
use crate::topology::Os;
use crate::world::{Key, World};

const SUFFIX: &str = "svc.cluster.local";

/// The address behind a name or a literal address.
pub(crate) fn resolve(world: &World, from: &Origin, name: &str) -> Option<IpAddr> {
    let literal = name.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = literal.parse() {
        return Some(address);
    }
    if name.eq_ignore_ascii_case("localhost") {
        return Some([127, 0, 0, 1].into());
    }
    let Origin::Pod(pod) = from else {
        // A node asks its own name server, which knows nothing of the cluster
        return None;
    };
    let os = world.nodes.get(&world.pods.get(pod)?.node)?.pool.os();
    let namespace = &pod.namespace;
    let searched: Vec<String> = match (name.strip_suffix('.'), os) {
        (Some(absolute), _) => vec![absolute.to_owned()],
        // dns-pod-service.md: on Windows a name with a dot is an FQDN, and there is one suffix only
        (None, Os::Windows) if name.contains('.') => vec![name.to_owned()],
        (None, Os::Windows) => vec![format!("{name}.{namespace}.{SUFFIX}"), name.to_owned()],
        (None, Os::Linux) => vec![
            format!("{name}.{namespace}.{SUFFIX}"),
            format!("{name}.{SUFFIX}"),
            format!("{name}.cluster.local"),
            name.to_owned(),
        ],
    };
    searched.iter().find_map(|full| address_of(world, full))
}

fn address_of(world: &World, full: &str) -> Option<IpAddr> {
    let lower = full.to_ascii_lowercase();
    let (service, namespace) = lower
        .strip_suffix(SUFFIX)?
        .strip_suffix('.')?
        .split_once('.')?;
    world
        .services
        .get(&Key::new(namespace, service))?
        .addresses
        .first()
        .copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{Build, Pool};
    use crate::world::{Node, Pod, Service};

    fn found(pool: Pool, name: &str) -> bool {
        let mut world = World::default();
        world.nodes.insert(
            "node".to_owned(),
            Node {
                pool,
                address: [127, 77, 0, 1].into(),
                kubelet_port: 1,
                pod_network: [10, 244, 1],
            },
        );
        world.pods.insert(
            Key::new("default", "pod"),
            Pod {
                uid: "1".to_owned(),
                node: "node".to_owned(),
                address: [10, 244, 1, 4].into(),
                host_network: false,
                listening: [].into(),
            },
        );
        let service = Service {
            addresses: vec![[10, 96, 0, 1].into()],
            ports: vec![],
        };
        world
            .services
            .insert(Key::new("default", "kubernetes"), service);
        resolve(&world, &Origin::Pod(Key::new("default", "pod")), name).is_some()
    }

    #[test]
    fn windows_completes_names_without_dots_alone() {
        let windows = Pool::Windows(Build::Ws2022);
        let full = "kubernetes.default.svc.cluster.local";
        for (name, on_linux, on_windows) in [
            ("kubernetes", true, true),
            ("kubernetes.default", true, false),
            ("kubernetes.default.svc", true, false),
            (full, true, true),
            ("kubernetes.default.svc.cluster.local.", true, true),
            ("www.example.com", false, false),
            ("", false, false),
            ("10.1.2.3", true, true),
        ] {
            assert_eq!(found(Pool::Linux, name), on_linux, "`{name}` on Linux");
            assert_eq!(found(windows, name), on_windows, "`{name}` on Windows");
        }
    }
}
