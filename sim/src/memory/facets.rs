//! What each fault of the network changes: exactly what its line of the catalogue says, on every
//! place it can have; and lifting it heals.
//!
//! Everything that can be observed of a small cluster is observed with and without the fault. An
//! observation has a subject and facets, as the patterns of the catalogue have.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use serde_json::json;

use super::{Key, Memory};
use crate::fault::{FaultKind, FaultSet, Place, ProductFault};
use crate::names::{self, Query};
use crate::network::{Backend, Origin, Outcome, Protocol, Request, connect};
use crate::pods::facets;
use crate::topology::{Build, IpFamilies, NodeSpec, Os, Pool, Topology};

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

/// Where the cloud's load balancer answers for the web server of a pool.
fn balancer(pool: Pool) -> IpAddr {
    let at = POOLS.iter().position(|each| *each == pool);
    let last = u8::try_from(at.expect("a pool of the cluster")).expect("few pools");
    [192, 0, 2, 100 + last].into()
}

const NAMESPACE: &str = "test";

/// What policies do with the prober, and whom they select.
const POLICIES: [(&str, &str); 2] = [("deny", "closed"), ("allow", "open")];

/// What fits into a packet, and what does not.
const SIZES: [(&str, usize); 2] = [("small", 0), ("large", 4000)];

/// The faults that are of connections and names, and so are seen in full without pods that come
/// and go.
fn of_the_network() -> impl Iterator<Item = FaultKind> {
    let kinds = ProductFault::catalogue().map(|info| info.kind);
    kinds.filter(|kind| facets::shows(*kind) == facets::Shows::InTheNetwork)
}

/// A node of each pool with a web server, a prober, a prober on the node's network and two servers
/// that policies select; a Service per web server, one for all, and one whose only backend was
/// deleted.
fn cluster() -> Memory {
    let nodes = POOLS.map(|pool| {
        let mut node = NodeSpec::new(pool.to_string(), pool);
        node.network.policies = true;
        node
    });
    let topology = Topology {
        nodes: nodes.to_vec(),
        ip_families: IpFamilies::DualStack,
        outside: true,
        ..Topology::hybrid()
    };
    let mut memory = Memory::new(&topology, 0);
    let mut pod = |name: String, pool: Pool, args: &[&str]| {
        let pod = json!({"kind": "Pod",
            "metadata": {"namespace": NAMESPACE, "name": name,
                "labels": {"of": pool.to_string(), "app": name.split('-').next()}},
            "spec": {"nodeName": pool.to_string(), "containers": [{"name": "main",
                "image": "registry.k8s.io/e2e-test-images/agnhost:2.66.1", "args": args}]}});
        memory.apply(&pod).expect("a pod");
    };
    for pool in POOLS {
        let netexec = ["netexec", "--http-port=80", "--udp-port=81"];
        pod(format!("web-{pool}"), pool, &netexec);
        pod(format!("prober-{pool}"), pool, &["pause"]);
        for (_, name) in POLICIES {
            pod(format!("{name}-{pool}"), pool, &netexec);
        }
    }
    pod(
        "gone-pod".to_owned(),
        Pool::Linux,
        &["netexec", "--http-port=80"],
    );
    for pool in POOLS {
        let service = json!({"kind": "Service",
            "metadata": {"namespace": NAMESPACE, "name": format!("six-{pool}")},
            "spec": {"type": "NodePort", "ipFamilies": ["IPv6"],
                "selector": {"app": "web", "of": pool.to_string()}, "ports": [
                {"name": "http", "port": 80, "targetPort": 80},
                {"name": "udp", "port": 81, "targetPort": 81, "protocol": "UDP"}]}});
        memory.apply(&service).expect("a Service");
    }
    let mut service = |name: String, selector: serde_json::Value, balancer: Option<IpAddr>| {
        let mut service = json!({"kind": "Service", "metadata": {"namespace": NAMESPACE, "name": name},
            "spec": {"type": "NodePort", "selector": selector, "ports": [
                {"name": "http", "port": 80, "targetPort": 80},
                {"name": "udp", "port": 81, "targetPort": 81, "protocol": "UDP"}]}});
        if let Some(address) = balancer {
            // The balancer sends to the node of the only backend
            service["spec"]["type"] = json!("LoadBalancer");
            service["spec"]["externalTrafficPolicy"] = json!("Local");
            service["status"]["loadBalancer"]["ingress"] = json!([{"ip": address.to_string()}]);
        }
        memory.apply(&service).expect("a Service");
    };
    for pool in POOLS {
        let one = json!({"app": "web", "of": pool.to_string()});
        service(format!("web-{pool}"), one, Some(balancer(pool)));
    }
    service("all".to_owned(), json!({"app": "web"}), None);
    service("gone".to_owned(), json!({"app": "gone"}), None);
    let prober = json!([{"from": [{"podSelector": {"matchLabels": {"app": "prober"}}}]}]);
    for ((_, name), ingress) in POLICIES.into_iter().zip([json!([]), prober]) {
        let policy = json!({"kind": "NetworkPolicy",
            "metadata": {"namespace": NAMESPACE, "name": name},
            "spec": {"podSelector": {"matchLabels": {"app": name}}, "policyTypes": ["Ingress"],
                "ingress": ingress}});
        memory.apply(&policy).expect("a policy");
    }
    memory
        .delete("Pod", NAMESPACE, "gone-pod")
        .expect("it was there");
    memory
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
fn connections(
    memory: &Memory,
    from: Pool,
    (source, origin): (&str, &Origin),
    seen: &mut Observed,
) {
    let address = |kind, name: &str, six: bool| {
        let mut all = memory.addresses(kind, NAMESPACE, name).into_iter();
        all.find(|address| address.is_ipv6() == six)
    };
    let mut ways: Vec<(String, &str, &str, Protocol, IpAddr, u16)> = Vec::new();
    let (tcp, udp, icmp) = (Protocol::Tcp, Protocol::Udp, Protocol::Icmp);
    for to in POOLS {
        let crosses = if from == to { "nothing" } else { "nodes" };
        for (six, service) in [(false, format!("web-{to}")), (true, format!("six-{to}"))] {
            // Windows Server 2019 has no IPv6
            let Some(direct) = address("Pod", &format!("web-{to}"), six) else {
                continue;
            };
            let node_port = memory.node_port(NAMESPACE, &service).expect("a node port");
            let node = address("Node", &to.to_string(), six).expect("an address");
            let service = address("Service", &service, six).expect("an address");
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
            seen.insert(observation, word(&connect(&memory.world, &request)));
        }
    }
}

/// The connections of a client outside to each pool's server, by its balancer and its node.
fn from_outside(memory: &Memory, seen: &mut Observed) {
    for to in POOLS {
        let node = memory.address("Node", NAMESPACE, &to.to_string());
        let port = memory.node_port(NAMESPACE, &format!("web-{to}"));
        let (node, port) = (node.expect("an address"), port.expect("a node port"));
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
            seen.insert(observation, word(&connect(&memory.world, &request)));
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

fn observe(memory: &Memory) -> Observed {
    let mut seen = Observed::new();
    from_outside(memory, &mut seen);
    let world = &memory.world;
    let address = |kind, name: &str| memory.address(kind, NAMESPACE, name).expect("an address");
    for from in POOLS {
        let prober = Origin::Pod(Key::new(NAMESPACE, &format!("prober-{from}")));
        let web = Origin::Pod(Key::new(NAMESPACE, &format!("web-{from}")));
        let node = Origin::Node(from.to_string());
        for (source, origin) in [("pod", &prober), ("node", &node)] {
            connections(memory, from, (source, origin), &mut seen);
        }
        let gone = Request::tcp(prober.clone(), address("Service", "gone"), 80, 0);
        seen.insert(
            observation("stale", &[("from", &from), ("via", &"cluster-ip")]),
            word(&connect(world, &gone)),
        );
        let name = format!("web-{from}");
        for (via, own) in [
            ("cluster-ip", address("Service", &name)),
            ("pod-ip", address("Pod", &name)),
        ] {
            let own = Request::tcp(web.clone(), own, 80, 0);
            seen.insert(
                observation("hairpin", &[("from", &from), ("via", &via)]),
                word(&connect(world, &own)),
            );
        }
        // On one node, so that nothing but policies is in between
        for (rule, name) in POLICIES {
            let to = address("Pod", &format!("{name}-{from}"));
            seen.insert(
                observation("policy", &[("at", &from), ("rule", &rule)]),
                word(&connect(world, &Request::tcp(prober.clone(), to, 80, 0))),
            );
        }
        let turns = (0..30).map(|turn| {
            let request = Request::tcp(prober.clone(), address("Service", "all"), 80, turn);
            word(&connect(world, &request))
        });
        let reached: BTreeSet<String> = turns.collect();
        seen.insert(
            observation("balance", &[("from", &from), ("via", &"cluster-ip")]),
            format!("{} backends", reached.len()),
        );
        // Of all that answers, who is asking
        for to in POOLS {
            let request = Request::tcp(prober.clone(), address("Pod", &format!("web-{to}")), 80, 0);
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
        let partial = format!("{short}.{NAMESPACE}");
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
    use crate::fault::Parameter;
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
    let mut memory = cluster();
    let healthy = observe(&memory);
    let mut wrong = Vec::new();
    for kind in of_the_network() {
        let mut ever = false;
        for fault in places(kind) {
            memory.break_with([fault.clone()].into_iter().collect::<FaultSet>());
            let broken = observe(&memory);
            for (observation, before) in &healthy {
                let after = &broken[observation];
                let meant = kind
                    .info()
                    .facets
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
            memory.break_with(FaultSet::default());
            assert_eq!(observe(&memory), healthy, "{fault} leaves nothing behind");
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
