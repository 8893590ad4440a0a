//! What each fault changes of connections and names, and what it leaves as it is: `changes.txt` has all of
//! it, for a place of one Windows node and for all of Linux. `WINCONFORM_TEST_WRITE=1` writes it anew.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use k8s_openapi::api::networking::v1::NetworkPolicy;
use serde_json::json;

use super::families::modern;
use super::*;
use crate::fault::Parameter;
use crate::names::{self, Query};
use crate::world::policy::Policy;

/// By who asks and what is asked: what was seen.
type Observed = BTreeMap<String, String>;

const BALANCER: [u8; 4] = [192, 0, 2, 100];

/// What policies do with the prober, and whom they select.
const POLICIES: [(&str, u8); 2] = [("closed", 6), ("open", 7)];

/// The cluster of both families, with `site` on Linux beside `web`, a Service for both and one whose
/// backend has gone, a name server, a load balancer, and policies.
fn cluster() -> World {
    let mut world = modern();
    let mut node = world.nodes.get("win-a").expect("it is there").clone();
    node.network.policies = true;
    world.nodes.insert("win-a".to_owned(), node);
    let servers = [("web", "win-a", 2, 5), ("site", "linux", 1, 5)].into_iter();
    let selected = POLICIES.map(|(name, last)| (name, "win-a", 2, last));
    for (name, on, third, last) in servers.chain(selected) {
        let told = Told {
            labels: [("app".to_owned(), name.to_owned())].into(),
            ..Told::default()
        };
        let node = world.nodes.get(on).expect("it is there");
        let mut pod = Pod::new(on, [10, 244, third, last], told).on(node);
        pod.listening = [(80, Page::Netexec)].into();
        pod.listening_udp = [(81, Page::Netexec)].into();
        world.pods.insert(key(name), pod);
    }
    let mut web = world
        .services
        .get(&key("web"))
        .expect("it is there")
        .clone();
    web.external = vec![BALANCER.into()];
    world.services.insert(key("web"), web);
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
    let all = json!([{"from": [{"podSelector": {}}]}]);
    for ((name, _), ingress) in POLICIES.into_iter().zip([json!([]), all]) {
        let policy = json!({"metadata": {}, "spec": {"policyTypes": ["Ingress"],
            "podSelector": {"matchLabels": {"app": name}}, "ingress": ingress}});
        let policy: NetworkPolicy = serde_json::from_value(policy).expect("a policy");
        Arc::make_mut(&mut world.policies).insert(key(name), Policy::by(&policy));
    }
    world
}

/// An outcome in a word; who answered and whom it saw, but not what it printed.
fn word(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Answered { backend, source } => match backend {
            Backend::Pod { pod, .. } => format!("{} to {source}", pod.name),
            other => format!("{other:?} to {source}"),
        },
        other => format!("{other:?}"),
    }
}

fn observe(world: &World) -> Observed {
    let six = |pod: &str| world.pods.get(&key(pod)).and_then(|pod| pod.address6);
    let six = |pod: &str| IpAddr::from(six(pod).expect("it has one"));
    let node6 = world.nodes.get("win-a").and_then(|node| node.address6);
    let v4 = |address: [u8; 4]| IpAddr::from(address);
    let (web, site, outside) = ([10, 244, 2, 5], [10, 244, 1, 5], [203, 0, 113, 80]);
    let vip6 = world.services.get(&key("web")).expect("it").addresses[1];
    let (tcp, udp, ping) = (Protocol::Tcp, Protocol::Udp, Protocol::Icmp);
    let ways = [
        ("web", tcp, v4(web), 80, 0),
        ("web, much", tcp, v4(web), 80, 4000),
        ("web, UDP", udp, v4(web), 81, 0),
        ("web, ping", ping, v4(web), 0, 0),
        ("web, IPv6", tcp, six("web"), 80, 0),
        ("site", tcp, v4(site), 80, 0),
        ("site, IPv6", tcp, six("site"), 80, 0),
        ("Service", tcp, v4(VIP), 8080, 0),
        ("Service, IPv6", tcp, vip6, 8080, 0),
        ("Service without backends", tcp, v4([10, 96, 2, 2]), 80, 0),
        ("node port of win-a", tcp, v4(WINDOWS_NODE), NODE_PORT, 0),
        (
            "node port of win-a, IPv6",
            tcp,
            node6.expect("it").into(),
            NODE_PORT,
            0,
        ),
        (
            "node port of win-b",
            tcp,
            v4(OTHER_WINDOWS_NODE),
            NODE_PORT,
            0,
        ),
        ("node port of linux", tcp, v4(LINUX_NODE), NODE_PORT, 0),
        ("load balancer", tcp, v4(BALANCER), 8080, 0),
        ("outside", tcp, v4(outside), 80, 0),
        ("outside, ping", ping, v4(outside), 0, 0),
        ("closed by policy", tcp, v4([10, 244, 2, 6]), 80, 0),
        ("open by policy", tcp, v4([10, 244, 2, 7]), 80, 0),
    ];
    let origins = [
        ("pod of win-a", from_pod("prober")),
        ("pod of win-b", from_pod("other")),
        ("pod of linux", from_pod("linux")),
        ("win-a", from_node("win-a")),
        ("linux", from_node("linux")),
        ("web", from_pod("web")),
        ("site", from_pod("site")),
        ("outside", Origin::Outside),
    ];
    let mut seen = Observed::new();
    for (from, origin) in &origins {
        for (to, protocol, address, port, payload) in &ways {
            let request = Request {
                protocol: *protocol,
                payload: *payload,
                ..Request::tcp(origin.clone(), *address, *port, 0)
            };
            seen.insert(format!("{from} to {to}"), word(&connect(world, &request)));
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
            let told = format!("{:?} after {:?}", lookup.answer, lookup.took);
            seen.insert(format!("{from} asks for {name}"), told);
        }
    }
    seen
}

/// A place of one node, and all of the other system's, as far as the fault can be there; faults of pods
/// change no connection.
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
fn each_fault_changes_what_is_listed_and_nothing_else() {
    let mut world = cluster();
    let healthy = observe(&world);
    let mut text = String::new();
    for fault in ProductFault::catalogue().flat_map(|info| places(info.kind)) {
        world.faults = [fault.clone()].into_iter().collect();
        let broken = observe(&world);
        let changed = healthy
            .iter()
            .filter(|(what, before)| broken[*what] != **before);
        let mut changed = changed.peekable();
        if changed.peek().is_some() {
            writeln!(text, "{fault}").expect("a string");
        }
        for (what, before) in changed {
            let after = &broken[what];
            writeln!(text, "  {what}: {before}; now {after}").expect("a string");
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/network/tests/changes.txt");
    if std::env::var_os("WINCONFORM_TEST_WRITE").is_some() {
        std::fs::write(&path, &text).expect("it can be written");
    }
    let listed = std::fs::read_to_string(&path).expect("text");
    let differs = listed
        .lines()
        .zip(text.lines())
        .find(|(one, other)| one != other);
    assert!(listed == text, "changes.txt lists another: {differs:?}");
}
