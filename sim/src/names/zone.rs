//! What DNS servers know: the cluster's, and those outside.

use std::net::{IpAddr, Ipv6Addr};

use crate::world::{Endpoint, Key, World};

/// The virtual address of the cluster's DNS.
pub(super) fn server(world: &World) -> Option<IpAddr> {
    let service = world.services.get(&dns_service())?;
    service.addresses.first().copied()
}

fn dns_service() -> Key {
    Key::new("kube-system", "kube-dns")
}

/// Whether a server is the cluster's DNS: by its virtual address, or directly.
pub(super) fn is_cluster(world: &World, asked: IpAddr) -> bool {
    match server(world) {
        None => asked == super::UNKNOWN_SERVER,
        Some(address) if address == asked => true,
        Some(_) => world
            .slices
            .for_service(&dns_service())
            .any(|slice| slice.endpoints.iter().any(|each| each.address == asked)),
    }
}

/// The addresses that a server has for a complete name; none where it says that there is no such name,
/// or nothing of it.
pub(super) fn answer(world: &World, server: IpAddr, name: &str, turn: u64) -> Vec<IpAddr> {
    let own = within(world, name).filter(|_| is_cluster(world, server));
    let Some(rest) = own else {
        return outside(world, name);
    };
    let found = in_cluster(world, rest, 0);
    let (mut second, mut all): (Vec<_>, Vec<_>) = found.into_iter().partition(IpAddr::is_ipv6);
    // CoreDNS' plugin loadbalance turns the order of the addresses, of A and of AAAA
    for run in [&mut all, &mut second] {
        if !run.is_empty() {
            let by = usize::try_from(turn % run.len() as u64).unwrap_or(0);
            run.rotate_left(by);
        }
    }
    all.extend(second);
    all
}

/// What stands before the cluster's domain in a complete name.
pub(super) fn within<'a>(world: &World, name: &'a str) -> Option<&'a str> {
    name.strip_suffix(&world.network.domain)?.strip_suffix('.')
}

/// Addresses of RFC 5737 or RFC 3849 that nobody has.
pub(super) fn lie(addresses: &mut [IpAddr]) {
    for address in addresses {
        *address = match address {
            IpAddr::V4(_) => [192, 0, 2, 66].into(),
            IpAddr::V6(_) => Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0x66).into(),
        };
    }
}

fn outside(world: &World, name: &str) -> Vec<IpAddr> {
    let mut known = world.network.outside.iter();
    let known = known.find(|each| each.names.iter().any(|own| own == name));
    known.map(|each| each.address).into_iter().collect()
}

/// `CoreDNS` 1.15, `plugin/backend_lookup.go`: `maxCnameChainLength`.
const LONGEST_CHAIN: u32 = 10;

/// The addresses of a Service, or of one of its backends, below the cluster's domain; `before` counts the
/// CNAMEs that led to it (`CoreDNS`, `plugin/kubernetes/parse.go`, `parseRequest`, and `kubernetes.go`,
/// `findServices`).
fn in_cluster(world: &World, rest: &str, before: u32) -> Vec<IpAddr> {
    let rest = rest.strip_suffix(".svc");
    let Some((rest, namespace)) = rest.and_then(|rest| rest.rsplit_once('.')) else {
        return Vec::new();
    };
    let (host, name) = match rest.rsplit_once('.') {
        Some((host, name)) => (Some(host), name),
        None => (None, rest),
    };
    let key = Key::new(namespace, name);
    let Some(service) = world.services.get(&key) else {
        return Vec::new();
    };
    if let Some(target) = &service.external_name {
        return match within(world, target) {
            _ if host.is_some() || before > LONGEST_CHAIN => Vec::new(),
            Some(rest) => in_cluster(world, rest, before + 1),
            None => outside(world, target),
        };
    }
    if host.is_none() && !service.addresses.is_empty() {
        return service.addresses.clone();
    }
    // A headless Service is known by its endpoints
    let endpoints = world
        .slices
        .for_service(&key)
        .flat_map(|slice| &slice.endpoints);
    let ready = endpoints.filter(|each| each.ready);
    let asked = ready.filter(|each| host.is_none_or(|host| host_label(each) == host));
    asked.map(|each| each.address).collect()
}

/// The first label of a backend's own name: its pod's `hostname`, else its address.
fn host_label(endpoint: &Endpoint) -> String {
    endpoint.hostname.clone().unwrap_or_else(|| {
        let dashes = endpoint.address.to_string().replace(['.', ':'], "-");
        // plugin/kubernetes/kubernetes.go, `endpointHostname`: no label ends in one
        let end = if dashes.ends_with('-') { "0" } else { "" };
        dashes + end
    })
}
