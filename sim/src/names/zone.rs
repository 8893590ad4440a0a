//! The records of the DNS servers: the cluster's, and those outside.

use std::net::{IpAddr, Ipv6Addr};

use crate::world::{CLUSTER_DNS, Endpoint, Key, World};

/// The virtual address of the cluster's DNS.
pub(super) fn server(world: &World) -> Option<IpAddr> {
    let service = world.services.get(&dns_service(world)?)?;
    service.addresses.first().copied()
}

fn dns_service(world: &World) -> Option<Key> {
    let keys = CLUSTER_DNS.map(|(namespace, name)| Key::new(namespace, name));
    keys.into_iter()
        .find(|key| world.services.get(key).is_some())
}

/// Whether an address is the cluster's DNS: its virtual address, or a backend's.
pub(super) fn is_cluster(world: &World, queried: IpAddr) -> bool {
    match server(world) {
        None => queried == super::UNKNOWN_SERVER,
        Some(address) if address == queried => true,
        Some(_) => dns_service(world).is_some_and(|service| {
            let mut slices = world.slices.for_service(&service);
            slices.any(|slice| slice.endpoints.iter().any(|each| each.address == queried))
        }),
    }
}

/// The addresses that a server has for a complete name; empty where it has no such name or no address for it.
pub(super) fn answer(world: &World, server: IpAddr, name: &str, turn: u64) -> Vec<IpAddr> {
    let in_domain = within(world, name).filter(|_| is_cluster(world, server));
    let Some(rest) = in_domain else {
        return outside(world, name);
    };
    let addresses = in_cluster(world, rest, 0);
    let (mut ipv6, mut ipv4): (Vec<_>, Vec<_>) = addresses.into_iter().partition(IpAddr::is_ipv6);
    // CoreDNS' plugin loadbalance rotates the addresses of A and those of AAAA
    for run in [&mut ipv4, &mut ipv6] {
        if !run.is_empty() {
            let by = usize::try_from(turn % run.len() as u64).unwrap_or(0);
            run.rotate_left(by);
        }
    }
    ipv4.extend(ipv6);
    ipv4
}

/// The part of a complete name before the cluster's domain.
pub(super) fn within<'a>(world: &World, name: &'a str) -> Option<&'a str> {
    name.strip_suffix(&world.network.domain)?.strip_suffix('.')
}

/// Replaces addresses by ones of RFC 5737 or RFC 3849 that no system has.
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
    let known = known.find(|each| each.names.iter().any(|one| one == name));
    known.map(|each| each.address).into_iter().collect()
}

/// `CoreDNS` 1.15, `plugin/backend_lookup.go`: `maxCnameChainLength`.
const LONGEST_CHAIN: u32 = 10;

/// The addresses of a Service or of one of its backends, by the name below the cluster's domain; `before`
/// counts the CNAMEs that led here (`CoreDNS`, `plugin/kubernetes/parse.go`, `parseRequest`, and
/// `kubernetes.go`, `findServices`).
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
    // A headless Service has its endpoints' addresses
    let endpoints = world
        .slices
        .for_service(&key)
        .flat_map(|slice| &slice.endpoints);
    let ready = endpoints.filter(|each| each.ready);
    let matching = ready.filter(|each| host.is_none_or(|host| host_label(each) == host));
    matching.map(|each| each.address).collect()
}

/// The first label of a backend's DNS name: its pod's `hostname`, else one formed from its address.
fn host_label(endpoint: &Endpoint) -> String {
    endpoint.hostname.clone().unwrap_or_else(|| {
        let dashes = endpoint.address.to_string().replace(['.', ':'], "-");
        // plugin/kubernetes/kubernetes.go, `endpointHostname`: no label may end in a dash
        let end = if dashes.ends_with('-') { "0" } else { "" };
        dashes + end
    })
}
