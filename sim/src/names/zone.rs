//! What DNS servers know: the cluster's, and those outside.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

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
            // CoreDNS' plugin loadbalance turns the order of the addresses, of A and of AAAA
            let address =
                |each: &Data, v6| matches!(each, Data::Address(own) if own.is_ipv6() == v6);
            for v6 in [false, true] {
                let own = |each: &Data| address(each, v6);
                if let (Some(first), Some(last)) =
                    (data.iter().position(own), data.iter().rposition(own))
                {
                    let run = &mut data[first..=last];
                    let by = usize::try_from(turn % run.len() as u64).unwrap_or(0);
                    run.rotate_left(by);
                }
            }
            Answer::Found(data)
        }
    }
}

/// An address of RFC 5737 or RFC 3849 that nobody has.
pub(super) fn lie(data: &mut [Data]) {
    for each in data {
        if let Data::Address(address) = each {
            *address = match address {
                IpAddr::V4(_) => [192, 0, 2, 66].into(),
                IpAddr::V6(_) => Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0x66).into(),
            };
        }
    }
}

fn outside(world: &World, name: &str, record: RecordType) -> Answer {
    let mut known = world.network.outside.iter();
    let known = known.find(|each| each.names.iter().any(|own| own == name));
    match (known, record) {
        (None, _) => Answer::NoSuchName,
        (Some(known), _) => match of_type(vec![known.address], record) {
            none if none.is_empty() => Answer::NoData,
            data => Answer::Found(data),
        },
    }
}

/// The records below the cluster's domain; `None` where there is no such name (`CoreDNS`,
/// `plugin/kubernetes/parse.go`, `parseRequest`, and `kubernetes.go`, `findPods` and
/// `findServices`).
fn in_cluster(world: &World, rest: &str, record: RecordType) -> Option<Vec<Data>> {
    let mut labels: Vec<&str> = rest.split('.').collect();
    let zone = labels.pop().filter(|zone| ["svc", "pod"].contains(zone))?;
    // Names that lead to others are there, and have nothing of their own
    let Some(namespace) = labels.pop() else {
        return Some(Vec::new());
    };
    let known = || has_namespace(world, namespace);
    let Some(name) = labels.pop() else {
        return known().then(Vec::new);
    };
    if zone == "pod" {
        // The Corefile's `pods insecure`: any address, whoever has it, and nobody looks at what
        // stands before it
        let address = dashed(name).filter(|_| labels.len() <= 2 && known())?;
        return Some(of_type(vec![address], record));
    }
    let key = Key::new(namespace, name);
    let service = world.services.get(&key)?;
    match labels[..] {
        [] => addresses(world, &key, service, record, 0),
        [host] => {
            let own = backends(world, &key)
                .filter(|_| service.external_name.is_none())
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
        RecordType::Host => true,
        RecordType::Srv | RecordType::Ptr => false,
    });
    let mut wanted: Vec<IpAddr> = wanted.collect();
    wanted.sort_by_key(IpAddr::is_ipv6);
    wanted.into_iter().map(Data::Address).collect()
}

/// `CoreDNS` 1.15, `plugin/backend_lookup.go`: `maxCnameChainLength`.
const LONGEST_CHAIN: u32 = 10;

fn addresses(
    world: &World,
    key: &Key,
    service: &Service,
    record: RecordType,
    before: u32,
) -> Option<Vec<Data>> {
    if let Some(target) = &service.external_name {
        return Some(followed(world, target, record, before));
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

/// The CNAME to a target with what it leads to. `plugin/backend_lookup.go`: into the cluster it is told
/// with addresses or not at all; out of it, whatever is found there.
fn followed(world: &World, target: &str, record: RecordType, before: u32) -> Vec<Data> {
    let cname = || Data::Name(target.to_owned());
    if before > LONGEST_CHAIN {
        return Vec::new();
    }
    let inside = target
        .strip_suffix(&world.network.domain)
        .and_then(|rest| rest.strip_suffix('.'));
    let Some(rest) = inside else {
        let found = match outside(world, target, record) {
            Answer::Found(found) => found,
            _ => Vec::new(),
        };
        return [vec![cname()], found].concat();
    };
    let next = match chained(world, rest) {
        Some((key, service)) => addresses(world, &key, service, record, before + 1),
        None => in_cluster(world, rest, record),
    };
    match next {
        Some(found) if !found.is_empty() => [vec![cname()], found].concat(),
        _ => Vec::new(),
    }
}

/// The Service of a name of the form `SERVICE.NAMESPACE.svc`.
fn chained<'a>(world: &'a World, rest: &str) -> Option<(Key, &'a Service)> {
    let (name, namespace) = rest.strip_suffix(".svc")?.split_once('.')?;
    let key = Key::new(namespace, name);
    let service = world.services.get(&key)?;
    Some((key, service))
}

/// The ready backends of a headless Service.
fn of_hosts<'a>(
    world: &'a World,
    key: &Key,
    service: &Service,
) -> impl Iterator<Item = (&'a crate::world::Slice, &'a Endpoint)> {
    let headless = service.addresses.is_empty() && service.external_name.is_none();
    backends(world, key).filter(move |_| headless)
}

/// The ready backends of any Service.
fn backends<'a>(
    world: &'a World,
    key: &Key,
) -> impl Iterator<Item = (&'a crate::world::Slice, &'a Endpoint)> {
    world
        .slices
        .of(key)
        .flat_map(|slice| slice.endpoints.iter().map(move |each| (slice, each)))
        .filter(|(_, each)| each.ready)
}

/// Whether there is a namespace: a cluster in memory has those too that only objects name.
fn has_namespace(world: &World, name: &str) -> bool {
    world.namespaces.contains_key(name)
        || world.services.within(name).next().is_some()
        || world.pods.within(name).next().is_some()
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

/// `CoreDNS`, `plugin/kubernetes/kubernetes.go`, `findPods`: `10-1-2-3`, or `fd00--1` for colons.
fn dashed(label: &str) -> Option<IpAddr> {
    let first = label
        .replace('-', ".")
        .parse::<Ipv4Addr>()
        .map(IpAddr::from);
    let second = || {
        label
            .replace('-', ":")
            .parse::<Ipv6Addr>()
            .map(IpAddr::from)
    };
    first.or_else(|_| second()).ok()
}

/// The name in the reverse zones that an address has.
pub(super) fn reversed(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => {
            let [a, b, c, d] = address.octets();
            format!("{d}.{c}.{b}.{a}.in-addr.arpa")
        }
        IpAddr::V6(address) => {
            let nibbles = address.octets().into_iter().rev();
            let nibbles = nibbles.map(|byte| format!("{:x}.{:x}.", byte & 15, byte >> 4));
            format!("{}ip6.arpa", nibbles.collect::<String>())
        }
    }
}

fn reverse(world: &World, name: &str) -> Option<Vec<Data>> {
    let address: IpAddr = match name.strip_suffix(".in-addr.arpa") {
        Some(reversed) => {
            let octets: Vec<&str> = reversed.rsplit('.').collect();
            octets.join(".").parse::<Ipv4Addr>().ok()?.into()
        }
        None => {
            let nibbles = name.strip_suffix(".ip6.arpa")?.rsplit('.');
            let nibbles = nibbles.map(|nibble| u8::from_str_radix(nibble, 16).ok());
            let nibbles: Vec<u8> = nibbles.collect::<Option<_>>()?;
            let full = nibbles.len() == 32 && nibbles.iter().all(|nibble| *nibble < 16);
            let value = nibbles
                .iter()
                .fold(0, |all: u128, one| all << 4 | u128::from(*one));
            Ipv6Addr::from(full.then_some(value)?).into()
        }
    };
    let full =
        |Key { namespace, name }: &Key| format!("{name}.{namespace}.svc.{}", world.network.domain);
    let service = world.services.at(address);
    if let Some((key, _)) = service.filter(|(_, own)| own.addresses.contains(&address)) {
        return Some(vec![Data::Name(full(key))]);
    }
    // plugin/kubernetes/reverse.go, `serviceRecordForIP`: else the backend's name, once for each
    // Service that has it
    let found = world.slices.with(address).into_iter().flat_map(|key| {
        let own = backends(world, key).filter(|(_, each)| each.address == address);
        own.map(move |(_, each)| Data::Name(format!("{}.{}", host_label(each), full(key))))
    });
    let found: Vec<Data> = found.collect();
    (!found.is_empty()).then_some(found)
}
