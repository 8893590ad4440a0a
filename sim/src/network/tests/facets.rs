//! What each fault of the network changes: exactly what its line of the catalogue says, on every
//! place it can have; and lifting it heals.
//!
//! Everything that can be observed of a small cluster is observed with and without the fault. An
//! observation has a subject and facets, as the patterns of the catalogue have.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::networking::v1::NetworkPolicy;
use serde_json::json;

use super::*;
use crate::fault::Parameter;
use crate::names::{self, Query};
use crate::topology::{IpFamilies, NetworkSpec, Os};
use crate::world::policy::Policy;

/// What is observed, as `subject facet=value …`, and what was seen.
type Observed = BTreeMap<Observation, String>;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Observation {
    subject: &'static str,
    facets: BTreeMap<&'static str, String>,
}

fn observation(subject: &'static str, facets: &[(&'static str, &dyn ToString)]) -> Observation {
    let facets = facets
        .iter()
        .map(|(key, value)| (*key, value.to_string()))
        .collect();
    Observation { subject, facets }
}

const POOLS: [Pool; 4] = [
    Pool::Linux,
    Pool::Windows(Build::Ws2019),
    Pool::Windows(Build::Ws2022),
    Pool::Windows(Build::Ws2025),
];

/// Which of the pools it is.
fn number(pool: Pool) -> u8 {
    let at = POOLS.iter().position(|each| *each == pool);
    u8::try_from(at.expect("a pool of the cluster")).expect("few pools")
}

/// Where the cloud's load balancer answers for the web server of a pool.
fn balancer(pool: Pool) -> IpAddr {
    [192, 0, 2, 100 + number(pool)].into()
}

/// What policies do with the prober, and whom they select.
const POLICIES: [(&str, &str); 2] = [("deny", "closed"), ("allow", "open")];

/// What fits into a packet, and what does not.
const SIZES: [(&str, usize); 2] = [("small", 0), ("large", 4000)];

/// What changes by a fault of connections and names: patterns of what can be observed, a subject and the
/// values it must have. `PLACE`, `FROM` and `TO` stand for the fault's own.
#[expect(
    clippy::too_many_lines,
    clippy::match_same_arms,
    reason = "a table: an arm for each fault"
)]
fn changed_by(kind: FaultKind) -> &'static [&'static str] {
    match kind {
        FaultKind::KubeProxyDead => &[
            "connection via=cluster-ip from=PLACE",
            "connection via=node-port to=PLACE",
            "connection via=load-balancer from=PLACE",
            "connection via=load-balancer from=outside to=PLACE",
            "balance via=cluster-ip from=PLACE",
            "hairpin via=cluster-ip from=PLACE",
            "stale via=cluster-ip from=PLACE",
            "lookup from=PLACE",
        ],
        FaultKind::Ipv6ProxyDead => &[
            "connection via=cluster-ip family=ipv6 from=PLACE",
            "connection via=node-port family=ipv6 to=PLACE",
        ],
        FaultKind::Ipv6Dropped => &[
            "connection family=ipv6 from=PLACE crosses=nodes",
            "connection family=ipv6 to=PLACE crosses=nodes",
        ],
        FaultKind::NodePortClosed => &["connection via=node-port to=PLACE"],
        FaultKind::TrafficCut => &[
            "connection from=FROM to=TO",
            "connection from=TO to=FROM",
            "source from=FROM to=TO",
            "source from=TO to=FROM",
            "lookup from=FROM dns=TO",
            "lookup from=TO dns=FROM",
        ],
        FaultKind::TrafficCutOneWay => &[
            "connection from=FROM to=TO",
            "source from=FROM to=TO",
            "lookup from=FROM dns=TO",
        ],
        FaultKind::DnsDown => &["lookup from=PLACE"],
        FaultKind::DnsSuffixWrong => &["lookup from=PLACE name=short"],
        FaultKind::DnsWrongAddress => &["lookup from=PLACE name=short|partial|full"],
        FaultKind::PartialNamesResolve => &["lookup from=PLACE name=partial"],
        FaultKind::DnsSlow => &["lookup from=PLACE"],
        FaultKind::VipSticks => &["balance via=cluster-ip from=PLACE"],
        FaultKind::EndpointStale => &["stale via=cluster-ip from=PLACE"],
        FaultKind::MtuBlackHole => &[
            "connection from=PLACE size=large crosses=nodes",
            "connection to=PLACE size=large crosses=nodes",
        ],
        FaultKind::SourceRewritten => &["source from=PLACE", "policy rule=allow at=PLACE"],
        FaultKind::HairpinBroken => &["hairpin via=cluster-ip from=PLACE"],
        FaultKind::OwnAddressDead => &["hairpin via=pod-ip from=PLACE"],
        FaultKind::PolicyIgnored => &["policy rule=deny at=PLACE"],
        FaultKind::PolicyClosed => &["policy rule=allow at=PLACE"],
        FaultKind::UdpDropped => &["connection from=PLACE protocol=udp"],
        FaultKind::PingDropped => &["connection from=PLACE protocol=icmp"],
        FaultKind::OutboundPingAnswers => {
            &["connection from=PLACE source=pod to=outside protocol=icmp"]
        }
        FaultKind::OutboundCut => &["connection from=PLACE to=outside"],
        FaultKind::CaptiveProxy => &["connection from=PLACE to=outside protocol=tcp"],
        FaultKind::ServiceAnswersWrong => &[
            "connection via=cluster-ip protocol=tcp",
            "balance via=cluster-ip",
            "hairpin via=cluster-ip",
            "stale via=cluster-ip",
        ],
        FaultKind::LoadBalancerDead => &["connection via=load-balancer from=outside"],
        FaultKind::NodeServiceIpAnswers => &["connection via=cluster-ip from=PLACE source=node"],
        FaultKind::NodeServiceIpResets => &["connection via=cluster-ip from=PLACE source=node"],
        FaultKind::LocalNodePortAnswers => {
            &["connection via=node-port from=PLACE source=node crosses=nothing"]
        }
        // Of pods and nodes: see `pods/tests/faults.rs`, and the rows of `faults/`
        _ => &[],
    }
}

/// The faults that are of connections and names, and so are seen in full without pods that come
/// and go.
fn of_the_network() -> impl Iterator<Item = FaultKind> {
    let kinds = ProductFault::catalogue().map(|info| info.kind);
    kinds.filter(|kind| !changed_by(*kind).is_empty())
}

/// The name server's address, and the one at which its Service answers.
const DNS: [[u8; 4]; 2] = [[10, 128, 1, 2], [10, 96, 0, 10]];

/// A node of each pool with a web server, a prober and two servers that policies select; a Service
/// in each family per web server, one for all, and one whose only backend has gone.
fn cluster() -> World {
    let mut world = World::default();
    for pool in POOLS {
        let spec = NetworkSpec {
            policies: true,
            ..NetworkSpec::default()
        };
        let last = number(pool) + 1;
        let node = Node::new(pool, [127, 77, 0, last], 10250, [10, 128, last])
            .connected(spec)
            .of_families(IpFamilies::DualStack);
        for (name, place) in [("prober", 3), ("web", 4), ("closed", 5), ("open", 6)] {
            let told = Told {
                labels: BTreeMap::from([("app".to_owned(), name.to_owned())]),
                ..Told::default()
            };
            let mut pod = Pod::new(&pool.to_string(), [10, 128, last, place], told).on(&node);
            if name != "prober" {
                pod.listening = BTreeMap::from([(80, Page::Netexec)]);
                pod.listening_udp = BTreeMap::from([(81, Page::Netexec)]);
            }
            world.pods.insert(key(&format!("{name}-{pool}")), pod);
        }
        world.nodes.insert(pool.to_string(), node);
    }
    for pool in POOLS {
        let (web, last) = (format!("web-{pool}"), number(pool));
        let six = [0xfd00, 0x10, 0x96, 0, 0, 0, 0, 0x10 + u16::from(last)];
        serve(
            &mut world,
            &web,
            [10, 96, 1, last].into(),
            30100 + u16::from(last),
            &[pool],
        );
        serve(
            &mut world,
            &format!("six-{pool}"),
            six.into(),
            30200 + u16::from(last),
            &[pool],
        );
        // The balancer sends to the node of the only backend
        let mut service = world.services.get(&key(&web)).expect("just made").clone();
        service.external.push(balancer(pool));
        service.external_local = true;
        world.services.insert(key(&web), service);
    }
    serve(&mut world, "all", [10, 96, 2, 1].into(), 30301, &POOLS);
    serve(
        &mut world,
        "gone",
        [10, 96, 2, 2].into(),
        30302,
        &[Pool::Linux],
    );
    let left = Slice {
        service: "gone".to_owned(),
        ..Slice::default()
    };
    world.slices.insert(key("gone-1"), left);
    dns(&mut world);
    let prober = json!([{"from": [{"podSelector": {"matchLabels": {"app": "prober"}}}]}]);
    for ((_, name), ingress) in POLICIES.into_iter().zip([json!([]), prober]) {
        let policy = json!({"metadata": {},
            "spec": {"podSelector": {"matchLabels": {"app": name}}, "policyTypes": ["Ingress"],
                "ingress": ingress}});
        let policy: NetworkPolicy = serde_json::from_value(policy).expect("a policy");
        Arc::make_mut(&mut world.policies).insert(key(name), Policy::by(&policy));
    }
    world
}

/// Adds a Service at an address, with the web servers of these pools behind it.
fn serve(world: &mut World, name: &str, address: IpAddr, node_port: u16, pools: &[Pool]) {
    let port = |name: &str, protocol, port, node_port| ServicePort {
        name: name.to_owned(),
        protocol,
        port,
        node_port: Some(node_port),
    };
    let service = Service {
        addresses: vec![address],
        ports: vec![
            port("http", Protocol::Tcp, 80, node_port),
            port("udp", Protocol::Udp, 81, node_port),
        ],
        ..Service::default()
    };
    let endpoints = pools.iter().filter_map(|pool| {
        let pod = world.pods.get(&key(&format!("web-{pool}")))?;
        Some(Endpoint {
            node: Some(pod.node.clone()),
            ..Endpoint::ready(pod.like(address)?)
        })
    });
    let slice = Slice {
        service: name.to_owned(),
        ports: BTreeMap::from([("http".to_owned(), 80), ("udp".to_owned(), 81)]),
        endpoints: endpoints.collect(),
    };
    world.slices.insert(key(&format!("{name}-1")), slice);
    world.services.insert(key(name), service);
}

/// Adds the cluster's name server, on the Linux node.
fn dns(world: &mut World) {
    let [own, virtual_address] = DNS;
    let at = |name: &str| Key::new("kube-system", name);
    let port = ServicePort {
        name: "dns".to_owned(),
        protocol: Protocol::Udp,
        port: 53,
        node_port: None,
    };
    let service = Service {
        addresses: vec![virtual_address.into()],
        ports: vec![port],
        ..Service::default()
    };
    let slice = Slice {
        service: "kube-dns".to_owned(),
        ports: BTreeMap::from([("dns".to_owned(), 53)]),
        endpoints: vec![on(&Pool::Linux.to_string(), own)],
    };
    world.services.insert(at("kube-dns"), service);
    world.slices.insert(at("kube-dns-1"), slice);
}

/// The address of a pod of a pool in a family.
fn pod_address(world: &World, name: &str, six: bool) -> Option<IpAddr> {
    let pod = world.pods.get(&key(name))?;
    pod.addresses().find(|address| address.is_ipv6() == six)
}

/// The address of a pool's node in a family.
fn node_address(world: &World, pool: Pool, six: bool) -> IpAddr {
    let node = world.nodes.get(&pool.to_string()).expect("a node");
    let mut addresses = node.addresses();
    let found = addresses.find(|address| address.is_ipv6() == six);
    found.expect("it has both")
}

/// The address of a Service, and its node port.
fn service_address(world: &World, name: &str) -> (IpAddr, u16) {
    let service = world.services.get(&key(name)).expect("a Service");
    let port = service.ports[0].node_port.expect("a node port");
    (service.addresses[0], port)
}

/// An outcome in a word; who answered, but not what it printed.
fn word(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Answered { backend, .. } => match backend {
            Backend::Pod { pod, .. } => format!("answered by {}", pod.name),
            other => format!("answered by {other:?}"),
        },
        other => format!("{other:?}"),
    }
}

/// The connections from one pod or node to the servers of all pools, in each family that those have,
/// and to the outside.
fn connections(world: &World, from: Pool, (source, origin): (&str, &Origin), seen: &mut Observed) {
    let mut ways: Vec<(String, &str, &str, Protocol, IpAddr, u16)> = Vec::new();
    let (tcp, udp, icmp) = (Protocol::Tcp, Protocol::Udp, Protocol::Icmp);
    for to in POOLS {
        let crosses = if from == to { "nothing" } else { "nodes" };
        for (six, service) in [(false, format!("web-{to}")), (true, format!("six-{to}"))] {
            // Windows Server 2019 has no IPv6
            let Some(direct) = pod_address(world, &format!("web-{to}"), six) else {
                continue;
            };
            let (service, node_port) = service_address(world, &service);
            let node = node_address(world, to, six);
            let own = [
                ("pod-ip", tcp, direct, 80),
                ("pod-ip", udp, direct, 81),
                ("pod-ip", icmp, direct, 0),
                ("cluster-ip", tcp, service, 80),
                ("cluster-ip", udp, service, 81),
                ("node-port", tcp, node, node_port),
            ];
            let balanced = ("load-balancer", tcp, balancer(to), 80);
            for (via, protocol, ip, port) in own.into_iter().chain((!six).then_some(balanced)) {
                ways.push((to.to_string(), crosses, via, protocol, ip, port));
            }
        }
    }
    for (protocol, port) in [(tcp, 80), (icmp, 0)] {
        let outside = "outside".to_owned();
        let address = [203, 0, 113, 80].into();
        ways.push((outside, "nodes", "gateway", protocol, address, port));
    }
    for (to, crosses, via, protocol, ip, port) in &ways {
        for (size, payload) in SIZES {
            let request = Request {
                protocol: *protocol,
                payload,
                ..Request::tcp(origin.clone(), *ip, *port, 0)
            };
            let spoken = match protocol {
                Protocol::Tcp => "tcp",
                Protocol::Udp => "udp",
                Protocol::Icmp => "icmp",
            };
            let observation = observation(
                "connection",
                &[
                    ("from", &from),
                    ("source", &source),
                    ("to", to),
                    ("via", via),
                    ("protocol", &spoken),
                    ("size", &size),
                    ("crosses", crosses),
                    ("family", &if ip.is_ipv6() { "ipv6" } else { "ipv4" }),
                ],
            );
            seen.insert(observation, word(&connect(world, &request)));
        }
    }
}

/// The connections of a client outside to each pool's server, by its balancer and its node.
fn from_outside(world: &World, seen: &mut Observed) {
    for to in POOLS {
        let (_, port) = service_address(world, &format!("web-{to}"));
        let node = node_address(world, to, false);
        for (via, ip, port) in [
            ("load-balancer", balancer(to), 80),
            ("node-port", node, port),
        ] {
            let observation = observation(
                "connection",
                &[
                    ("from", &"outside"),
                    ("to", &to),
                    ("via", &via),
                    ("protocol", &"tcp"),
                    ("size", &"small"),
                ],
            );
            let request = Request::tcp(Origin::Outside, ip, port, 0);
            seen.insert(observation, word(&connect(world, &request)));
        }
    }
}

/// Whether what was observed of a subject is what it is for.
fn works(observation: &Observation, seen: &str) -> bool {
    match observation.subject {
        "lookup" => seen.starts_with("Found"),
        "balance" => seen != "1 backends",
        "source" => seen != "-",
        "policy" if observation.facets["rule"] == "deny" => seen == "TimedOut",
        // There is nobody to be reached
        "stale" => false,
        _ => seen.starts_with("answered"),
    }
}

fn observe(world: &World) -> Observed {
    let mut seen = Observed::new();
    from_outside(world, &mut seen);
    let pod = |name: &str| pod_address(world, name, false).expect("an address");
    let service = |name: &str| service_address(world, name).0;
    for from in POOLS {
        let prober = from_pod(&format!("prober-{from}"));
        let web = from_pod(&format!("web-{from}"));
        let node = from_node(&from.to_string());
        for (source, origin) in [("pod", &prober), ("node", &node)] {
            connections(world, from, (source, origin), &mut seen);
        }
        let gone = Request::tcp(prober.clone(), service("gone"), 80, 0);
        seen.insert(
            observation("stale", &[("from", &from), ("via", &"cluster-ip")]),
            word(&connect(world, &gone)),
        );
        let name = format!("web-{from}");
        for (via, own) in [("cluster-ip", service(&name)), ("pod-ip", pod(&name))] {
            let own = Request::tcp(web.clone(), own, 80, 0);
            seen.insert(
                observation("hairpin", &[("from", &from), ("via", &via)]),
                word(&connect(world, &own)),
            );
        }
        // On one node, so that nothing but policies is in between
        for (rule, name) in POLICIES {
            let to = pod(&format!("{name}-{from}"));
            seen.insert(
                observation("policy", &[("at", &from), ("rule", &rule)]),
                word(&connect(world, &Request::tcp(prober.clone(), to, 80, 0))),
            );
        }
        let turns = (0..30).map(|turn| {
            let request = Request::tcp(prober.clone(), service("all"), 80, turn);
            word(&connect(world, &request))
        });
        let reached: BTreeSet<String> = turns.collect();
        seen.insert(
            observation("balance", &[("from", &from), ("via", &"cluster-ip")]),
            format!("{} backends", reached.len()),
        );
        // Of all that answers, who is asking
        for to in POOLS {
            let request = Request::tcp(prober.clone(), pod(&format!("web-{to}")), 80, 0);
            let source = match connect(world, &request) {
                Outcome::Answered { source, .. } => source.to_string(),
                _ => "-".to_owned(),
            };
            seen.insert(
                observation("source", &[("from", &from), ("to", &to)]),
                source,
            );
        }
        let short = format!("web-{}", Pool::Linux);
        let partial = format!("{short}.test");
        let full = format!("{partial}.svc.cluster.local");
        for (kind, name) in [
            ("short", short.as_str()),
            ("partial", partial.as_str()),
            ("full", full.as_str()),
            ("outside", "www.example.com"),
        ] {
            let lookup = names::lookup(world, &prober, &Query::address(name));
            seen.insert(
                observation(
                    "lookup",
                    &[("from", &from), ("name", &kind), ("dns", &Pool::Linux)],
                ),
                format!("{:?} after {:?}", lookup.answer, lookup.took),
            );
        }
    }
    seen
}

/// Whether a pattern of the catalogue is about an observation.
fn is_about(pattern: &str, fault: &ProductFault, observation: &Observation) -> bool {
    let mut words = pattern.split(' ');
    words.next() == Some(observation.subject)
        && words.all(|word| {
            let (key, value) = word.split_once('=').expect("facets are pairs");
            let Some(seen) = observation.facets.get(key) else {
                return false;
            };
            let place = match value {
                "PLACE" | "FROM" => &fault.place,
                "TO" => fault.towards.as_ref().expect("a way has two ends"),
                value => return value.split('|').any(|value| value == seen),
            };
            let pool = seen.parse::<Pool>();
            pool.is_ok_and(|pool| place.has_node(seen, pool))
        })
}

/// Every place the fault can have in this cluster.
fn places(kind: FaultKind) -> Vec<ProductFault> {
    let windows = POOLS.into_iter().filter(|pool| pool.os() == Os::Windows);
    let name = kind.info().name;
    let node = |pool: Pool| Place::Node(pool.to_string()).to_string();
    let written: Vec<String> = match kind.info().parameter {
        Parameter::None => vec![name.to_owned()],
        Parameter::WindowsNodes | Parameter::WindowsPods => windows
            .flat_map(|pool| [format!("{name}={pool}"), format!("{name}={}", node(pool))])
            .chain([name.to_owned()])
            .collect(),
        Parameter::Nodes | Parameter::Pods => POOLS
            .into_iter()
            .flat_map(|pool| [format!("{name}={pool}"), format!("{name}={}", node(pool))])
            .chain([name.to_owned(), format!("{name}=windows")])
            .collect(),
        Parameter::Way => POOLS
            .into_iter()
            .flat_map(|from| POOLS.map(|to| (from, to)))
            .filter(|(from, to)| from != to)
            .map(|(from, to)| format!("{name}={from}:{to}"))
            .collect(),
    };
    written
        .iter()
        .map(|text| text.parse().expect("a fault"))
        .collect()
}

#[test]
fn each_fault_of_the_network_changes_what_it_says_and_nothing_else() {
    let mut world = cluster();
    let healthy = observe(&world);
    let mut wrong = Vec::new();
    for kind in of_the_network() {
        let mut ever = false;
        for fault in places(kind) {
            world.faults = [fault.clone()].into_iter().collect();
            let broken = observe(&world);
            for (observation, before) in &healthy {
                let after = &broken[observation];
                let meant = changed_by(kind)
                    .iter()
                    .any(|pattern| is_about(pattern, &fault, observation));
                ever |= before != after;
                // What is meant need not change where it did not work before
                if before != after && !meant {
                    wrong.push(format!(
                        "{fault}: {observation:?}: {before}, now {after}, which it does not say"
                    ));
                }
                if before == after && meant && works(observation, before) {
                    wrong.push(format!(
                        "{fault}: {observation:?}: {before} as before, which it says it changes"
                    ));
                }
            }
            world.faults = FaultSet::default();
            assert_eq!(observe(&world), healthy, "{fault} leaves nothing behind");
        }
        if !ever {
            wrong.push(format!(
                "{} changes nothing that is observed",
                kind.info().name
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
