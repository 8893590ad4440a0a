//! What a name resolves to: the cluster's DNS and the outside DNS, as the resolvers of Linux and Windows see
//! them.
//!
//! The records follow the DNS specification (kubernetes/dns, docs/specification.md) and `CoreDNS` with its
//! default Corefile. Queries travel over the simulated network: a resolver that cannot reach its server gets
//! no answer. In a cluster without the Service `kube-dns`, a DNS answers from everywhere.

mod zone;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use k8s_openapi::api::core::v1::PodDNSConfig;

use crate::fault::FaultKind;
use crate::network::{self, Origin, Outcome, Request};
use crate::topology::Os;
use crate::world::{Lag, World};

/// The resolver that a program uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resolver {
    /// The system's: libc's, or Windows' DNS client (which curl uses too). musl's has other time-outs, and no
    /// program here uses it.
    System,
    /// c-ares, which some builds of curl on Linux use.
    Cares,
}

/// A lookup of the addresses of both families, with two queries in parallel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Query<'a> {
    pub(crate) name: &'a str,
    pub(crate) by: Resolver,
    /// Rotates the order of several addresses.
    pub(crate) turn: u64,
}

impl<'a> Query<'a> {
    /// A lookup of the addresses of both families by the system's resolver.
    pub(crate) fn address(name: &'a str) -> Self {
        Self {
            name,
            by: Resolver::System,
            turn: 0,
        }
    }
}

/// The result of a lookup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lookup {
    /// The complete names that the resolver asked for, in order.
    pub(crate) asked: Vec<String>,
    /// The addresses of the last name that the resolver asked for.
    pub(crate) answer: Result<Vec<IpAddr>, NotFound>,
    pub(crate) took: Duration,
}

/// Why a name has no address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotFound {
    /// No complete form of the name has an address.
    NoSuchName,
    /// No server answers.
    TimedOut,
}

/// How long an ordinary answer takes.
const PROMPT: Duration = Duration::from_millis(2);

/// How long an answer of the cluster's DNS takes under the fault `dns-slow`: every resolver waits for it, and
/// Windows has asked three times by then.
const SLOW: Duration = Duration::from_secs(4);

/// The suffixes that complete names, and the server to ask.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    /// `None` if there is no server to ask.
    pub(crate) server: Option<IpAddr>,
    pub(crate) searches: Vec<String>,
    pub(crate) ndots: u32,
}

impl Settings {
    /// Adds what a pod's `dnsConfig` says (kubelet, pkg/kubelet/network/dns/dns.go, `appendDNSConfig`).
    fn append(&mut self, config: &PodDNSConfig) {
        let mut servers = config.nameservers.iter().flatten();
        self.server = self.server.or_else(|| servers.next()?.parse().ok());
        for search in config.searches.iter().flatten() {
            let search = search.trim_end_matches('.');
            if !self.searches.iter().any(|known| known == search) {
                self.searches.push(search.to_owned());
            }
        }
        for option in config.options.iter().flatten() {
            if option.name.as_deref() == Some("ndots") {
                let ndots = option.value.as_deref().and_then(|value| value.parse().ok());
                self.ndots = ndots.unwrap_or(self.ndots);
            }
        }
    }
}

/// The resolver settings of a pod or a node: its `/etc/resolv.conf`, or what `ipconfig /all` prints.
pub(crate) fn settings(world: &World, from: &Origin) -> Settings {
    let nodes_own = || Settings {
        server: Some(world.network.nodes_resolver),
        searches: Vec::new(),
        ndots: 1,
    };
    let (key, host) = match from {
        Origin::Pod(key) => (key, false),
        Origin::HostPod(key) => (key, true),
        Origin::Node(_) => return nodes_own(),
        Origin::Outside => return Settings::default(),
    };
    let Some(pod) = world.pods.get(key) else {
        return Settings::default();
    };
    let os = world.nodes.get(&pod.node).map(|node| node.pool.os());
    let policy = pod.told.dns_policy.as_str();
    // windows-networking.md: ClusterFirstWithHostNet is not supported on Windows
    let is_supported =
        || os == Some(Os::Linux) || world.suffers(FaultKind::HostDnsAnswers, &pod.node);
    let mut settings = match policy {
        "Default" => nodes_own(),
        "None" => Settings {
            ndots: 1,
            ..Settings::default()
        },
        _ if !host || policy == "ClusterFirstWithHostNet" && is_supported() => {
            of_cluster(world, &key.namespace, &pod.node)
        }
        _ => nodes_own(),
    };
    if world.suffers(FaultKind::DnsConfigIgnored, &pod.node) {
        settings = of_cluster(world, &key.namespace, &pod.node);
    } else {
        settings.append(&pod.told.dns_config);
    }
    if os == Some(Os::Windows) && !world.suffers(FaultKind::PartialNamesResolve, &pod.node) {
        // dns-pod-service.md: on Windows there is only one DNS suffix, that of the pod's namespace
        settings.searches.truncate(1);
    }
    settings
}

/// The settings of the policy `ClusterFirst` (kubelet, pkg/kubelet/network/dns/dns.go).
fn of_cluster(world: &World, namespace: &str, node: &str) -> Settings {
    let domain = if world.suffers(FaultKind::DnsSuffixWrong, node) {
        WRONG_DOMAIN
    } else {
        &world.network.domain
    };
    Settings {
        server: Some(world.services.dns().unwrap_or(UNKNOWN_SERVER)),
        searches: vec![
            format!("{namespace}.svc.{domain}"),
            format!("svc.{domain}"),
            domain.to_owned(),
        ],
        ndots: 5,
    }
}

/// The domain under the fault `dns-suffix-wrong`.
const WRONG_DOMAIN: &str = "cluster.invalid";

/// The DNS server of a cluster that has no Service for it.
const UNKNOWN_SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 96, 0, 10));

/// Looks up the addresses of a name.
pub(crate) fn lookup(world: &World, from: &Origin, query: &Query<'_>) -> Lookup {
    let settings = settings(world, from);
    let os = from.os(world);
    let takes = |server| delay(world, from, server, query.turn);
    let reply = settings
        .server
        .map(|server| (server, heard(query.by, os, takes(server))));
    let mut given = Lookup {
        asked: Vec::new(),
        answer: Err(NotFound::TimedOut),
        took: Duration::ZERO,
    };
    for name in candidates(&settings, os, query) {
        given.asked.push(name.clone());
        let Some((server, (in_time, after))) = reply else {
            break;
        };
        given.took += after;
        if !in_time {
            break;
        }
        let mut addresses = zone::answer(world, server, &name, query.turn);
        given.answer = Err(NotFound::NoSuchName);
        // A name without addresses may have some in another complete form
        if addresses.is_empty() {
            continue;
        }
        let is_own = zone::is_cluster(world, server) && zone::within(world, &name).is_some();
        if is_own && suffers(world, from, FaultKind::DnsWrongAddress) {
            zone::lie(&mut addresses);
        }
        given.answer = Ok(addresses);
        break;
    }
    if given.asked.is_empty() {
        // A resolver sends no query for an empty name
        given.answer = Err(NotFound::NoSuchName);
    }
    given
}

/// The addresses of a name or a literal address as a resolver returns them, best first, and how long that
/// takes.
pub(crate) fn resolve(
    world: &World,
    from: &Origin,
    query: &Query<'_>,
) -> Result<(Vec<IpAddr>, Duration), (NotFound, Duration)> {
    let name = query.name;
    let literal = name.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = literal.parse() {
        return Ok((vec![address], Duration::ZERO));
    }
    if name.eq_ignore_ascii_case("localhost") {
        let loopback = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
        return Ok((loopback.to_vec(), Duration::ZERO));
    }
    let Lookup { answer, took, .. } = lookup(world, from, query);
    let mut addresses = answer.map_err(|why| (why, took))?;
    let has_ipv6 = network::has_ipv6(world, from);
    addresses.sort_by_key(|address| rank(*address, has_ipv6));
    Ok((addresses, took))
}

/// RFC 6724, section 6, rules 1 and 6 with the table of section 2.1: unreachable addresses come last, and
/// unique local addresses come after IPv4. musl, Go and Windows use this table; glibc's older one puts IPv6
/// first.
fn rank(address: IpAddr, has_ipv6: bool) -> u8 {
    match address {
        IpAddr::V6(_) if !has_ipv6 => 3,
        IpAddr::V6(address) if address.is_unique_local() => 2,
        IpAddr::V4(_) => 1,
        IpAddr::V6(_) => 0,
    }
}

fn suffers(world: &World, from: &Origin, kind: FaultKind) -> bool {
    from.node(world)
        .is_some_and(|node| world.suffers(kind, node))
}

/// The complete names to ask for, in order.
fn candidates(settings: &Settings, os: Os, query: &Query<'_>) -> Vec<String> {
    let name = query.name.to_ascii_lowercase();
    if name.is_empty() {
        return Vec::new();
    }
    if let Some(absolute) = name.strip_suffix('.') {
        return vec![absolute.to_owned()];
    }
    let dots = u32::try_from(name.matches('.').count()).unwrap_or(u32::MAX);
    let completed = settings
        .searches
        .iter()
        .map(|suffix| format!("{name}.{suffix}"));
    let as_it_is = std::iter::once(name.clone());
    match (query.by, os) {
        // dns-pod-service.md: Windows takes a name with a dot for complete. If it has more than one suffix,
        // which only the fault `partial-names-resolve` gives it, it tries them afterwards
        (Resolver::System, Os::Windows) if dots > 0 => {
            let completed = completed.filter(|_| settings.searches.len() > 1);
            as_it_is.chain(completed).collect()
        }
        // resolv.conf(5): a name with at least `ndots` dots is first asked for unchanged
        (_, Os::Linux) if dots >= settings.ndots => as_it_is.chain(completed).collect(),
        _ => completed.chain(as_it_is).collect(),
    }
}

/// Whether a resolver gets an answer that takes this long, or never comes (`None`); and after how long it has
/// the answer or gives up. An answer that comes after the resolver repeats its query is lost.
fn heard(by: Resolver, os: Os, takes: Option<Duration>) -> (bool, Duration) {
    let patience: &[u64] = match (by, os) {
        // Microsoft, "DNS client resolution timeouts" (2834226): it repeats queries, and takes any answer
        (_, Os::Windows) => &[10],
        // resolv.conf(5): `timeout:5`, `attempts:2`
        (Resolver::System, Os::Linux) => &[5, 5],
        // c-ares from 1.20, ares_process.c: 2 s, doubled in each of three rounds; c-ares shortens them at
        // random, and this model does not
        (Resolver::Cares, Os::Linux) => &[2, 4, 8],
    };
    let mut at = Duration::ZERO;
    for patience in patience.iter().copied().map(Duration::from_secs) {
        if let Some(takes) = takes.filter(|takes| *takes < patience) {
            return (true, at + takes);
        }
        at += patience;
    }
    (false, at)
}

/// After how long a server's answer arrives; `None` if it does not. Until the network of a new pod passes
/// queries, they are lost, and are repeated.
fn delay(world: &World, from: &Origin, server: IpAddr, turn: u64) -> Option<Duration> {
    let slow = zone::is_cluster(world, server) && suffers(world, from, FaultKind::DnsSlow);
    let lag = match from {
        Origin::Pod(key) => world.pods.get(key).and_then(|pod| pod.dns_lag),
        _ => None,
    };
    let lost = lag.map(Lag::left).unwrap_or_default();
    let takes = lost + if slow { SLOW } else { PROMPT };
    answers(world, from, server, turn).then_some(takes)
}

/// Whether a server's answers arrive.
fn answers(world: &World, from: &Origin, server: IpAddr, turn: u64) -> bool {
    if zone::is_cluster(world, server) && suffers(world, from, FaultKind::DnsDown) {
        return false;
    }
    if zone::server(world).is_none() && server == UNKNOWN_SERVER {
        return true;
    }
    // Whether or not the node reaches other Services
    if matches!(from, Origin::HostPod(_)) && suffers(world, from, FaultKind::HostDnsAnswers) {
        return true;
    }
    let question = Request::udp(from.clone(), server, 53, turn);
    matches!(network::connect(world, &question), Outcome::Answered { .. })
}

#[cfg(test)]
mod tests;
