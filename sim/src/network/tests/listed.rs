//! The outcomes of all kinds of connections and look-ups: `outcomes.txt` lists those of a healthy cluster,
//! and the differences in each variant that a documented limitation is about, and under each fault, placed on
//! one Windows node and on all of Linux. `WINCONFORM_TEST_WRITE=1` rewrites it.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use k8s_openapi::api::networking::v1::NetworkPolicy;
use serde_json::json;

use super::families::{self, dual};
use super::*;
use crate::fault::Parameter;
use crate::names::{self, Query};
use crate::topology::NetworkMode;
use crate::world::PodPort;

/// What was observed, by origin and destination.
type Observed = BTreeMap<String, String>;

const BALANCER: [u8; 4] = [192, 0, 2, 100];

/// The policies, each with the last byte of the address of the pod that it selects.
const POLICIES: [(&str, u8); 4] = [("closed", 6), ("open", 7), ("own", 8), ("foreign", 9)];

/// A dual-stack cluster whose Windows nodes have a mode and a build: `site` on Linux beside `web`, a Service
/// for both, one whose backend has gone, a name server, a load balancer, a host port, and policies: one admits
/// nothing, one admits the pod on Linux to port 80, one admits the pods' namespace, and one another.
fn cluster(mode: NetworkMode, build: Build) -> World {
    let mut world = dual(mode, build);
    let policies = |node: &mut Node| node.network.policies = true;
    change_node(&mut world, "win-a", policies);
    let servers = [("web", "win-a", 2, 5), ("site", "linux", 1, 5)].into_iter();
    let selected = POLICIES.map(|(name, last)| (name, "win-a", 2, last));
    for (name, on, third, last) in servers.chain(selected) {
        let host_port = PodPort {
            protocol: Protocol::Tcp,
            port: 80,
            host_port: Some(8080).filter(|_| name == "web"),
        };
        let told = Told {
            labels: [("app".to_owned(), name.to_owned())].into(),
            ports: vec![host_port],
            ..Told::default()
        };
        let node = world.nodes.get(on).expect("it is there");
        let mut pod = Pod::new(on, [10, 244, third, last], told).on(node);
        pod.listening = [(80, Page::Netexec)].into();
        pod.listening_udp = [(81, Page::Netexec)].into();
        world.pods.insert(key(name), pod);
    }
    let mut friend = world.pods.get(&key("linux")).expect("it").clone();
    friend.told = Arc::new(Told {
        labels: [("app".to_owned(), "friend".to_owned())].into(),
        ..Told::default()
    });
    world.pods.insert(key("linux"), friend);
    change_service(&mut world, "web", |web| {
        web.external = vec![BALANCER.into()];
    });
    let both = vec![on("win-a", [10, 244, 2, 5]), on("linux", [10, 244, 1, 5])];
    let left = vec![on("linux", [10, 244, 1, 5])];
    let dns = vec![on("linux", [10, 244, 1, 2])];
    let at = |name| Key::new("kube-system", name);
    for (key, address, port, protocol, endpoints) in [
        (key("both"), [10, 96, 2, 1], 80, Protocol::Tcp, both),
        (key("gone"), [10, 96, 2, 2], 80, Protocol::Tcp, left),
        (at("kube-dns"), [10, 96, 0, 10], 53, Protocol::Udp, dns),
    ] {
        let port = ServicePort {
            protocol,
            port,
            ..ServicePort::default()
        };
        let service = Service {
            addresses: vec![address.into()],
            ports: vec![port.clone()],
            ..Service::default()
        };
        let slice = Slice {
            service: key.name.clone(),
            ports: [(String::new(), port.port)].into(),
            endpoints,
        };
        world.slices.insert(key.clone(), slice);
        world.services.insert(key, service);
    }
    let empty = Slice {
        service: "gone".to_owned(),
        ..Slice::default()
    };
    world.slices.insert(key("gone"), empty);
    let selector =
        json!({"matchExpressions": [{"key": "app", "operator": "In", "values": ["friend"]}]});
    let friends = json!([{"from": [{"podSelector": selector}], "ports": [{"port": 80}]}]);
    let of = |namespace: &str| json!([{"from": [{"namespaceSelector": {"matchLabels": {"is": namespace}}}]}]);
    let labels = [("is".to_owned(), "ours".to_owned())].into();
    Arc::make_mut(&mut world.namespaces).insert(key("").namespace, labels);
    let rules = [json!([]), friends, of("ours"), of("theirs")];
    for ((name, _), ingress) in POLICIES.into_iter().zip(rules) {
        let policy = json!({"metadata": {}, "spec": {"policyTypes": ["Ingress"],
            "podSelector": {"matchLabels": {"app": name}}, "ingress": ingress}});
        let policy: NetworkPolicy = serde_json::from_value(policy).expect("a policy");
        Arc::make_mut(&mut world.policies).insert(key(name), policy.spec.unwrap_or_default());
    }
    world
}

fn change_node(world: &mut World, name: &str, change: impl Fn(&mut Node)) {
    let mut node = world.nodes.get(name).expect("it is there").clone();
    change(&mut node);
    world.nodes.insert(name.to_owned(), node);
}

fn change_service(world: &mut World, name: &str, change: impl Fn(&mut Service)) {
    let mut service = world.services.get(&key(name)).expect("it").clone();
    change(&mut service);
    world.services.insert(key(name), service);
}

/// The healthy cluster with a change.
fn otherwise(change: impl Fn(&mut World)) -> World {
    let mut world = cluster(NetworkMode::L2Bridge, Build::Ws2022);
    change(&mut world);
    world
}

/// The same with Windows nodes of a build, each changed.
fn nodes(build: Build, change: impl Fn(&mut Node)) -> World {
    let mut world = cluster(NetworkMode::L2Bridge, build);
    for name in ["win-a", "win-b"] {
        change_node(&mut world, name, &change);
    }
    world
}

fn dsr(node: &mut Node) {
    node.network.dsr = true;
}

/// The same with a change of one Service, `web` or `both`.
fn service(mut world: World, name: &str, change: impl Fn(&mut Service)) -> World {
    change_service(&mut world, name, change);
    world
}

/// Gives `web` this number of backends, all of them the same pod.
fn backends(world: &mut World, count: usize) {
    backed_by(world, vec![on("win-a", [10, 244, 2, 5]); count]);
}

/// Adds Services before `web`, until there are `count` load balancers before it.
fn services_before(mut world: World, count: u16) -> World {
    let web = world.services.get(&key("web")).expect("it").clone();
    let known: Vec<Key> = world.services.keys().cloned().collect();
    for known in known.iter().filter(|known| known.name != "kube-dns") {
        world.services.remove(known);
    }
    // The name server's Service counts as one
    for number in 1..count {
        let [high, low] = number.to_be_bytes();
        let other = Service {
            addresses: vec![[10, 97, high, low].into()],
            ports: vec![ServicePort::default()],
            ..Service::default()
        };
        world
            .services
            .insert(key(&format!("other-{number}")), other);
    }
    world.services.insert(key("web"), web);
    world
}

/// Sources: the rows of docs/simulated-network.md, and the code of each rule.
fn variants() -> Vec<(&'static str, World)> {
    use Build::{Ws2019, Ws2022, Ws2025};
    let revised = |number, also: fn(&mut Node)| {
        nodes(Ws2019, move |node| {
            node.revision = number;
            also(node);
        })
    };
    let overlay = |node: &mut Node| node.network.mode = NetworkMode::Overlay;
    let local = |service: &mut Service| service.external_local = true;
    let preserved = |service: &mut Service| service.preserves_destination = true;
    let sticky = |build| service(nodes(build, |_| ()), "both", |both| both.sticky = true);
    vec![
        ("transparent", cluster(NetworkMode::Transparent, Ws2022)),
        ("overlay", cluster(NetworkMode::Overlay, Ws2022)),
        ("DSR", nodes(Ws2022, dsr)),
        ("2019", nodes(Ws2019, |_| ())),
        ("2019 before 17763.1432", revised(1431, |_| ())),
        ("2019, overlay, before 17763.379", revised(378, overlay)),
        ("2019, overlay, 17763.379", revised(379, overlay)),
        ("2025", nodes(Ws2025, |_| ())),
        (
            "win-b without pods",
            otherwise(|world| world.pods.remove(&key("other"))),
        ),
        ("no backends", otherwise(|world| backends(world, 0))),
        ("1024 backends", otherwise(|world| backends(world, 1024))),
        ("1025 backends", otherwise(|world| backends(world, 1025))),
        (
            "externalTrafficPolicy: Local",
            service(nodes(Ws2022, |_| ()), "web", local),
        ),
        (
            "externalTrafficPolicy: Local, DSR",
            service(nodes(Ws2022, dsr), "web", local),
        ),
        (
            "externalTrafficPolicy: Local, local-policy-drops=node/win-a",
            World {
                faults: places(FaultKind::LocalPolicyDrops).into_iter().collect(),
                ..service(nodes(Ws2022, |_| ()), "web", local)
            },
        ),
        (
            "internalTrafficPolicy: Local",
            service(nodes(Ws2022, |_| ()), "web", |web| {
                web.internal_local = true;
            }),
        ),
        (
            "preserve-destination",
            service(nodes(Ws2022, |_| ()), "web", preserved),
        ),
        (
            "preserve-destination, DSR",
            service(nodes(Ws2022, dsr), "web", preserved),
        ),
        ("sessionAffinity", sticky(Ws2022)),
        ("sessionAffinity, 2019", sticky(Ws2019)),
        ("sessionAffinity, 2025", sticky(Ws2025)),
        (
            "no host ports",
            nodes(Ws2022, |node| node.network.host_ports = false),
        ),
        (
            "policies are not kept",
            nodes(Ws2022, |node| node.network.policies = false),
        ),
        (
            "IPv6 alone at the Service",
            service(nodes(Ws2022, |_| ()), "web", |web| {
                web.addresses.remove(0);
            }),
        ),
        (
            "255 Services before, 17763.1216",
            services_before(revised(1216, |_| ()), 255),
        ),
        (
            "256 Services before, 17763.1216",
            services_before(revised(1216, |_| ()), 256),
        ),
        (
            "256 Services before, 17763.1216, DSR",
            services_before(revised(1216, dsr), 256),
        ),
        (
            "256 Services before, 2019",
            services_before(nodes(Ws2019, |_| ()), 256),
        ),
        (
            "256 Services before",
            services_before(nodes(Ws2022, |_| ()), 256),
        ),
    ]
}

/// A short form of an outcome: what answered and the source that it saw, but not what it printed.
fn word(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Answered { backend, source } => match backend {
            Backend::Pod { pod, .. } => format!("{} to {source}", pod.name),
            other => format!("{other:?} to {source}"),
        },
        Outcome::BrokenOff { .. } => "broken off".to_owned(),
        other => format!("{other:?}"),
    }
}

#[expect(clippy::too_many_lines, reason = "a table: a line for each way")]
fn observe(world: &World) -> Observed {
    // The addresses of the healthy cluster, whether anything has them here or not
    let at = |text: &str| -> IpAddr { text.parse().expect("an address") };
    let v4 = |address: [u8; 4]| IpAddr::from(address);
    let (tcp, udp, ping) = (Protocol::Tcp, Protocol::Udp, Protocol::Icmp);
    let (web, web6) = (v4([10, 244, 2, 5]), at("fd00:10:244:f402::5"));
    let (own, other) = (v4(WINDOWS_NODE), v4(OTHER_WINDOWS_NODE));
    let (linux, linux6) = (v4(LINUX_NODE), at("fd00:10::7f4d:101"));
    let own6 = at("fd00:10::7f4d:102");
    let ways = [
        ("web", tcp, web, 80),
        ("web, another port", tcp, web, 81),
        ("web, UDP", udp, web, 81),
        ("web, UDP, another port", udp, web, 80),
        ("web, ping", ping, web, 0),
        ("web, IPv6", tcp, web6, 80),
        ("web, IPv6, another port", tcp, web6, 81),
        ("web, IPv6, ping", ping, web6, 0),
        ("site", tcp, v4([10, 244, 1, 5]), 80),
        ("site, IPv6", tcp, at("fd00:10:244:f401::5"), 80),
        ("itself", tcp, at("127.0.0.1"), 80),
        ("itself, IPv6", tcp, at("::1"), 80),
        ("nobody", tcp, v4([10, 244, 2, 77]), 80),
        ("nobody, IPv6", tcp, at("fd00:10:244:f402::4d"), 80),
        ("Service", tcp, v4(VIP), 8080),
        ("Service, another port", tcp, v4(VIP), 80),
        ("Service, ping", ping, v4(VIP), 0),
        ("Service, IPv6", tcp, at(families::VIP6), 8080),
        ("Service without backends", tcp, v4([10, 96, 2, 2]), 80),
        ("node port of win-a", tcp, own, NODE_PORT),
        ("node port of win-a, IPv6", tcp, own6, NODE_PORT),
        ("node port of win-b", tcp, other, NODE_PORT),
        ("node port of linux", tcp, linux, NODE_PORT),
        ("node port of linux, IPv6", tcp, linux6, NODE_PORT),
        ("host port of win-a", tcp, own, 8080),
        ("closed port of win-a", tcp, own, 9),
        ("closed port of linux", tcp, linux, 9),
        ("kubelet of win-a", tcp, own, 10250),
        ("load balancer", tcp, v4(BALANCER), 8080),
        ("outside", tcp, v4([203, 0, 113, 80]), 80),
        ("outside, ping", ping, v4([203, 0, 113, 80]), 0),
        ("outside, nobody", tcp, v4([192, 0, 2, 1]), 80),
        ("closed by policy", tcp, v4([10, 244, 2, 6]), 80),
        ("open by policy", tcp, v4([10, 244, 2, 7]), 80),
        ("open to the namespace", tcp, v4([10, 244, 2, 8]), 80),
        ("open to another namespace", tcp, v4([10, 244, 2, 9]), 80),
        ("open by policy, UDP", udp, v4([10, 244, 2, 7]), 81),
    ];
    let origins = [
        ("pod of win-a", from_pod("prober")),
        ("pod of win-b", from_pod("other")),
        ("pod of linux", from_pod("linux")),
        ("win-a", from_node("win-a")),
        ("win-b", from_node("win-b")),
        ("linux", from_node("linux")),
        ("web", from_pod("web")),
        ("site", from_pod("site")),
        ("pod that is gone", from_pod("gone")),
        ("outside", Origin::Outside),
    ];
    let mut seen = Observed::new();
    for (from, origin) in &origins {
        // These origins only try their own destinations
        let few = matches!(*from, "web" | "site" | "pod that is gone");
        let is_asked = |to: &str| !few || matches!(to, "web" | "site" | "itself" | "Service");
        for (to, protocol, address, port) in ways.iter().filter(|(to, ..)| is_asked(to)) {
            let request = Request {
                protocol: *protocol,
                ..Request::tcp(origin.clone(), *address, *port, 0)
            };
            let mut told = word(&connect(world, &request));
            // A payload larger than a packet may have another outcome
            let much = word(&connect(
                world,
                &Request {
                    payload: 4000,
                    ..request
                },
            ));
            if much != told {
                told = format!("{told}, {much} if it is much");
            }
            seen.insert(format!("{from} to {to}"), told);
        }
        for turn in 1..3 {
            let balancer = Request::tcp(origin.clone(), v4(BALANCER), 8080, turn);
            let told = word(&connect(world, &balancer));
            seen.insert(format!("{from} to load balancer, turn {turn}"), told);
        }
        let turns = (0..30).map(|turn| {
            let request = Request::tcp(origin.clone(), v4([10, 96, 2, 1]), 80, turn);
            word(&connect(world, &request))
        });
        let reached: BTreeSet<String> = turns.collect();
        let reached: Vec<String> = reached.into_iter().collect();
        seen.insert(format!("{from} to a Service of two"), reached.join(", "));
        for name in [
            "web",
            "web.test",
            "web.test.svc.cluster.local",
            "www.example.com",
        ] {
            let lookup = names::lookup(world, origin, &Query::address(name));
            let answer = match &lookup.answer {
                Ok(found) => format!("Found({found:?})"),
                Err(why) => format!("{why:?}"),
            };
            let told = format!("{answer} after {:?}", lookup.took);
            seen.insert(format!("{from} asks for {name}"), told);
        }
    }
    seen
}

/// The places of a fault to list: one Windows node, and all Linux nodes, if the fault can have them; none for
/// faults of pods, which change no connection.
fn places(kind: FaultKind) -> Vec<ProductFault> {
    let places: &[&str] = match kind.info().parameter {
        Parameter::None => &[""],
        Parameter::WindowsNodes => &["=node/win-a"],
        Parameter::Nodes => &["=node/win-a", "=linux"],
        Parameter::Way => &["=node/win-a:linux"],
        Parameter::Pods | Parameter::WindowsPods => &[],
    };
    let name = kind.info().name;
    let faults = places.iter().map(|place| format!("{name}{place}").parse());
    faults.map(|fault| fault.expect("a fault")).collect()
}

#[test]
fn outcomes_are_as_they_are_listed() {
    let healthy = cluster(NetworkMode::L2Bridge, Build::Ws2022);
    let faulty = ProductFault::catalogue().flat_map(|info| places(info.kind));
    let faulty = faulty.map(|fault| {
        let name = fault.to_string();
        let held = [fault].into_iter().collect();
        let world = World {
            faults: held,
            ..healthy.clone()
        };
        (name, world)
    });
    let variants = variants().into_iter();
    let variants = variants.map(|(name, world)| (name.to_owned(), world));
    let usual = observe(&healthy);
    let mut text = "healthy\n".to_owned();
    for (what, seen) in &usual {
        writeln!(text, "  {what}: {seen}").expect("a string");
    }
    for (name, world) in variants.chain(faulty) {
        let seen = observe(&world);
        let other = usual
            .iter()
            .filter(|(what, before)| seen[*what] != **before);
        writeln!(text, "{name}").expect("a string");
        for (what, before) in other {
            writeln!(text, "  {what}: {before}; now {}", seen[what]).expect("a string");
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/network/tests/outcomes.txt");
    if std::env::var_os("WINCONFORM_TEST_WRITE").is_some() {
        std::fs::write(&path, &text).expect("it can be written");
    }
    let listed = std::fs::read_to_string(&path).expect("text");
    let differs = listed
        .lines()
        .zip(text.lines())
        .find(|(one, other)| one != other);
    assert!(listed == text, "outcomes.txt lists another: {differs:?}");
}
