//! What DNS servers know: the cluster's, and those outside.

use std::net::{IpAddr, Ipv4Addr};

use super::{Answer, Data, RecordType};
use crate::network::Protocol;
use crate::world::{Endpoint, Key, Service, World};

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
            .of(&dns_service())
            .any(|slice| slice.endpoints.iter().any(|each| each.address == asked)),
    }
}

/// Whether a complete name lies in the cluster's domain.
pub(super) fn is_own(world: &World, name: &str) -> bool {
    name.strip_suffix(&world.network.domain)
        .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// What a server says of a complete name.
pub(super) fn answer(
    world: &World,
    server: IpAddr,
    name: &str,
    record: RecordType,
    turn: u64,
) -> Answer {
    if !is_cluster(world, server) {
        return outside(world, name, record);
    }
    let found = if record == RecordType::Ptr {
        reverse(world, name)
    } else {
        match name.strip_suffix(&world.network.domain) {
            Some("") => Some(Vec::new()),
            Some(rest) if rest.ends_with('.') => {
                in_cluster(world, rest.trim_end_matches('.'), record)
            }
            _ => return outside(world, name, record),
        }
    };
    match found {
        None => Answer::NoSuchName,
        Some(data) if data.is_empty() => Answer::NoData,
        Some(mut data) => {
            // CoreDNS' plugin loadbalance turns the order
            let by = usize::try_from(turn % data.len() as u64).unwrap_or(0);
            if data.iter().all(|each| matches!(each, Data::Address(_))) {
                data.rotate_left(by);
            }
            Answer::Found(data)
        }
    }
}

/// An address of RFC 5737 that nobody has.
pub(super) fn lie(data: &mut [Data]) {
    for each in data {
        if let Data::Address(address) = each {
            *address = [192, 0, 2, 66].into();
        }
    }
}

fn outside(world: &World, name: &str, record: RecordType) -> Answer {
    let mut known = world.network.outside.iter();
    let known = known.find(|each| each.names.iter().any(|own| own == name));
    match (known, record) {
        (None, _) => Answer::NoSuchName,
        (Some(known), RecordType::A) => Answer::Found(vec![Data::Address(known.address)]),
        (Some(_), _) => Answer::NoData,
    }
}

/// The records below the cluster's domain; `None` where there is no such name.
fn in_cluster(world: &World, rest: &str, record: RecordType) -> Option<Vec<Data>> {
    let mut labels: Vec<&str> = rest.split('.').collect();
    let zone = labels.pop()?;
    let namespace = labels.pop()?;
    if zone == "pod" {
        // The Corefile's `pods insecure`: any address, whoever has it
        let address = labels.pop().filter(|_| labels.is_empty())?;
        let address = address.replace('-', ".").parse::<Ipv4Addr>().ok()?;
        return Some(of_type(vec![address.into()], record));
    }
    if zone != "svc" {
        return None;
    }
    let key = Key::new(namespace, labels.pop()?);
    let service = world.services.get(&key)?;
    match labels[..] {
        [] => addresses(world, &key, service, record),
        [host] => {
            let own = of_hosts(world, &key, service)
                .filter(|(_, each)| host_label(each) == host)
                .map(|(_, each)| each.address)
                .collect::<Vec<_>>();
            (!own.is_empty()).then(|| of_type(own, record))
        }
        [port, protocol] => srv(world, &key, service, port, protocol, record),
        _ => None,
    }
}

fn of_type(addresses: Vec<IpAddr>, record: RecordType) -> Vec<Data> {
    let wanted = addresses.into_iter().filter(|address| match record {
        RecordType::A => address.is_ipv4(),
        RecordType::Aaaa => address.is_ipv6(),
        _ => false,
    });
    wanted.map(Data::Address).collect()
}

fn addresses(world: &World, key: &Key, service: &Service, record: RecordType) -> Option<Vec<Data>> {
    if let Some(external) = &service.external_name {
        let mut data = vec![Data::Name(external.clone())];
        if let Answer::Found(found) = outside(world, external, record) {
            data.extend(found);
        }
        return Some(data);
    }
    if !service.addresses.is_empty() {
        return Some(of_type(service.addresses.clone(), record));
    }
    let ready: Vec<IpAddr> = of_hosts(world, key, service)
        .map(|(_, each)| each.address)
        .collect();
    // CoreDNS knows a headless Service by its endpoints
    (!ready.is_empty()).then(|| of_type(ready, record))
}

/// The ready backends of a headless Service.
fn of_hosts<'a>(
    world: &'a World,
    key: &Key,
    service: &Service,
) -> impl Iterator<Item = (&'a crate::world::Slice, &'a Endpoint)> {
    let headless = service.addresses.is_empty() && service.external_name.is_none();
    world
        .slices
        .of(key)
        .filter(move |_| headless)
        .flat_map(|slice| slice.endpoints.iter().map(move |each| (slice, each)))
        .filter(|(_, each)| each.ready)
}

/// The first label of a backend's own name: its pod's `hostname`, else its address.
fn host_label(endpoint: &Endpoint) -> String {
    endpoint
        .hostname
        .clone()
        .unwrap_or_else(|| endpoint.address.to_string().replace('.', "-"))
}

fn srv(
    world: &World,
    key: &Key,
    service: &Service,
    port: &str,
    protocol: &str,
    record: RecordType,
) -> Option<Vec<Data>> {
    let port = port.strip_prefix('_')?;
    let protocol = match protocol {
        "_tcp" => Protocol::Tcp,
        "_udp" => Protocol::Udp,
        _ => return None,
    };
    let mut ports = service.ports.iter();
    let named = ports.find(|each| each.name == port && each.protocol == protocol)?;
    let Key { namespace, name } = key;
    let own = format!("{name}.{namespace}.svc.{}", world.network.domain);
    let data = |weight, port, target| Data::Srv {
        weight,
        port,
        target,
    };
    let found: Vec<Data> = if service.addresses.is_empty() {
        let hosts: Vec<_> = of_hosts(world, key, service)
            .filter_map(|(slice, each)| Some((*slice.ports.get(&named.name)?, host_label(each))))
            .collect();
        // CoreDNS, plugin/backend_lookup.go, `SRV`: a hundred among them, one at least
        let share = 100_usize.checked_div(hosts.len()).unwrap_or(0);
        let share = u16::try_from(share).unwrap_or(1).max(1);
        let hosts = hosts.into_iter();
        hosts
            .map(|(port, host)| data(share, port, format!("{host}.{own}")))
            .collect()
    } else {
        vec![data(100, named.port, own.clone())]
    };
    match (found.is_empty(), record) {
        (true, _) => None,
        (false, RecordType::Srv) => Some(found),
        (false, _) => Some(Vec::new()),
    }
}

fn reverse(world: &World, name: &str) -> Option<Vec<Data>> {
    let reversed = name.strip_suffix(".in-addr.arpa")?;
    let octets: Vec<&str> = reversed.rsplit('.').collect();
    let address: Ipv4Addr = octets.join(".").parse().ok()?;
    let (Key { namespace, name }, _) = world
        .services
        .at(address.into())
        .filter(|(_, service)| service.addresses.contains(&address.into()))?;
    let full = format!("{name}.{namespace}.svc.{}", world.network.domain);
    Some(vec![Data::Name(full)])
}
