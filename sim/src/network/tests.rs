mod documented;
mod families;
mod faults;
mod limits;

use super::*;
use crate::fault::{FaultKind, FaultSet, Place, ProductFault};
use crate::topology::{Build, Pool};
use crate::world::{Endpoint, Nodes, Service, ServicePort, Slice, Told};
use std::collections::BTreeMap;

const WS2022: Pool = Pool::Windows(Build::Ws2022);
const VIP: [u8; 4] = [10, 96, 3, 4];
const WINDOWS_NODE: [u8; 4] = [127, 77, 1, 2];
const OTHER_WINDOWS_NODE: [u8; 4] = [127, 77, 1, 3];
const LINUX_NODE: [u8; 4] = [127, 77, 1, 1];
const NODE_PORT: u16 = 30080;

/// One Linux node and two of Windows 2022; `web` on `win-a` behind a Service 8080 → 80, a prober on
/// each.
fn healthy() -> World {
    let node = |pool, address: [u8; 4], third| Node::new(pool, address, 10250, [10, 244, third]);
    let pod = |node: &str, address: [u8; 4], listening: &[u16]| Pod {
        listening: listening
            .iter()
            .map(|port| (*port, Page::WinWebserver))
            .collect(),
        ..Pod::new(node, address, Told::default())
    };
    let port = ServicePort {
        name: "http".to_owned(),
        protocol: Protocol::Tcp,
        port: 8080,
        node_port: Some(NODE_PORT),
    };
    let service = Service {
        addresses: vec![VIP.into()],
        ports: vec![port],
        ..Service::default()
    };
    let slice = Slice {
        service: "web".to_owned(),
        ports: BTreeMap::from([("http".to_owned(), 80)]),
        endpoints: vec![on("win-a", [10, 244, 2, 5])],
    };
    let mut world = World {
        nodes: Nodes::from_iter([
            ("linux".to_owned(), node(Pool::Linux, LINUX_NODE, 1)),
            ("win-a".to_owned(), node(WS2022, WINDOWS_NODE, 2)),
            ("win-b".to_owned(), node(WS2022, OTHER_WINDOWS_NODE, 3)),
        ]),
        ..World::default()
    };
    for (name, pod) in [
        ("linux", pod("linux", [10, 244, 1, 9], &[])),
        ("prober", pod("win-a", [10, 244, 2, 9], &[])),
        ("other", pod("win-b", [10, 244, 3, 9], &[])),
        ("web", pod("win-a", [10, 244, 2, 5], &[80])),
    ] {
        world.pods.insert(key(name), pod);
    }
    world.services.insert(key("web"), service);
    world.slices.insert(key("web-1"), slice);
    world
}

fn key(name: &str) -> Key {
    Key::new("test", name)
}

fn on(node: &str, address: [u8; 4]) -> Endpoint {
    Endpoint {
        node: Some(node.to_owned()),
        ..Endpoint::ready(address)
    }
}

/// The slice of `web` with these endpoints instead of its own.
fn backed_by(world: &mut World, endpoints: Vec<Endpoint>) {
    let slice = Slice {
        service: "web".to_owned(),
        ports: BTreeMap::from([("http".to_owned(), 80)]),
        endpoints,
    };
    world.slices.insert(key("web-1"), slice);
}

fn broken(fault: ProductFault) -> World {
    World {
        faults: FaultSet::from_iter([fault]),
        ..healthy()
    }
}

fn from_pod(name: &str) -> Origin {
    Origin::Pod(Key::new("test", name))
}

fn from_node(name: &str) -> Origin {
    Origin::Node(name.to_owned())
}

fn go(world: &World, from: &Origin, address: [u8; 4], port: u16) -> Outcome {
    connect(world, &Request::tcp(from.clone(), address.into(), port, 0))
}

fn is_web(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Answered { backend: Backend::Pod { pod, .. }, .. } if pod.name == "web")
}

#[test]
fn pods_reach_pods_from_everywhere() {
    for from in [
        from_pod("linux"),
        from_pod("prober"),
        from_pod("other"),
        from_node("linux"),
    ] {
        assert!(
            is_web(&go(&healthy(), &from, [10, 244, 2, 5], 80)),
            "{from:?}"
        );
        assert_eq!(go(&healthy(), &from, [10, 244, 2, 5], 81), Outcome::Refused);
    }
    assert!(is_web(&go(
        &healthy(),
        &from_node("win-a"),
        [10, 244, 2, 5],
        80
    )));
    assert!(is_web(&go(
        &healthy(),
        &from_pod("web"),
        [127, 0, 0, 1],
        80
    )));
    assert_eq!(
        go(&healthy(), &from_pod("prober"), [127, 0, 0, 1], 80),
        Outcome::Refused
    );
}

#[test]
fn service_ips_answer_pods_and_linux_nodes_but_not_windows_nodes() {
    for from in [
        from_pod("linux"),
        from_pod("prober"),
        from_pod("other"),
        from_node("linux"),
    ] {
        assert!(is_web(&go(&healthy(), &from, VIP, 8080)), "{from:?}");
        assert_eq!(
            go(&healthy(), &from, VIP, 80),
            Outcome::TimedOut,
            "not a port of the Service"
        );
    }
    for from in [from_node("win-a"), from_node("win-b")] {
        assert_eq!(go(&healthy(), &from, VIP, 8080), Outcome::TimedOut);
    }
}

#[test]
fn node_ports_answer_except_a_windows_node_itself() {
    for address in [LINUX_NODE, WINDOWS_NODE, OTHER_WINDOWS_NODE] {
        for from in [from_pod("linux"), from_pod("prober"), from_node("linux")] {
            assert!(
                is_web(&go(&healthy(), &from, address, NODE_PORT)),
                "{from:?} {address:?}"
            );
        }
    }
    assert_eq!(
        go(&healthy(), &from_node("win-a"), WINDOWS_NODE, NODE_PORT),
        Outcome::TimedOut
    );
    assert!(is_web(&go(
        &healthy(),
        &from_node("win-b"),
        WINDOWS_NODE,
        NODE_PORT
    )));
    assert!(is_web(&go(
        &healthy(),
        &from_node("linux"),
        LINUX_NODE,
        NODE_PORT
    )));
}

#[test]
fn a_windows_node_without_pods_forwards_no_node_port() {
    let mut world = healthy();
    world.pods.remove(&Key::new("test", "other"));
    assert_eq!(
        go(&world, &from_node("linux"), OTHER_WINDOWS_NODE, NODE_PORT),
        Outcome::TimedOut
    );
    assert!(is_web(&go(
        &world,
        &from_node("linux"),
        WINDOWS_NODE,
        NODE_PORT
    )));
}

#[test]
fn no_ready_backend_refuses_on_linux_and_is_silent_on_windows() {
    let mut world = healthy();
    backed_by(&mut world, vec![]);
    assert_eq!(go(&world, &from_pod("linux"), VIP, 8080), Outcome::Refused);
    assert_eq!(
        go(&world, &from_pod("prober"), VIP, 8080),
        Outcome::TimedOut
    );
}

#[test]
fn turns_go_round_the_backends() {
    let mut world = healthy();
    let both = vec![on("win-a", [10, 244, 2, 5]), on("win-b", [10, 244, 3, 9])];
    backed_by(&mut world, both);
    let turn = |turn| {
        let request = Request::tcp(from_pod("linux"), VIP.into(), 8080, turn);
        connect(&world, &request)
    };
    assert!(is_web(&turn(0)) && is_web(&turn(2)));
    assert_eq!(turn(1), Outcome::Refused, "the prober serves nothing");
}

#[test]
fn a_windows_pod_cannot_reach_itself_through_its_service() {
    assert_eq!(
        go(&healthy(), &from_pod("web"), VIP, 8080),
        Outcome::TimedOut
    );
    assert!(is_web(&go(
        &healthy(),
        &from_pod("web"),
        [10, 244, 2, 5],
        80
    )));
}

#[test]
fn kubelets_answer_and_closed_ports_differ_by_system() {
    let kubelet = Backend::Kubelet {
        node: "win-a".to_owned(),
    };
    assert_eq!(
        go(&healthy(), &from_pod("linux"), WINDOWS_NODE, 10250),
        Outcome::Answered {
            backend: kubelet,
            source: [10, 244, 1, 9].into()
        }
    );
    assert_eq!(
        go(&healthy(), &from_pod("linux"), WINDOWS_NODE, 9),
        Outcome::TimedOut
    );
    assert_eq!(
        go(&healthy(), &from_node("win-a"), WINDOWS_NODE, 9),
        Outcome::Refused
    );
    assert_eq!(
        go(&healthy(), &from_pod("prober"), LINUX_NODE, 9),
        Outcome::Refused
    );
}

#[test]
fn nobody_is_at_unknown_addresses() {
    assert_eq!(
        go(&healthy(), &from_pod("linux"), [10, 244, 2, 77], 80),
        Outcome::NoRoute
    );
    assert_eq!(
        go(&healthy(), &from_pod("prober"), [10, 244, 2, 77], 80),
        Outcome::TimedOut
    );
    assert_eq!(
        go(&healthy(), &from_pod("linux"), [192, 0, 2, 1], 80),
        Outcome::TimedOut
    );
    assert_eq!(
        go(&healthy(), &from_pod("gone"), VIP, 8080),
        Outcome::NoRoute
    );
    let v6 = "fd00::1".parse().expect("an address");
    let request = Request::tcp(from_pod("linux"), v6, 80, 0);
    assert_eq!(connect(&healthy(), &request), Outcome::Unreachable);
}

/// 40 bytes of headers of TCP and 28 of UDP are in the packet, too.
#[test]
fn a_hole_swallows_what_is_larger_than_its_packets() {
    let mut world = broken("mtu-black-hole".parse().expect("a fault"));
    let web = world.pods.get_mut(&key("web")).expect("it is there");
    web.listening_udp.insert(81, Page::Netexec);
    let address = [10, 244, 2, 5].into();
    for (request, fits, lost) in [
        (
            Request::tcp(from_pod("linux"), address, 80, 0),
            1360,
            Outcome::Stalled,
        ),
        (
            Request::udp(from_pod("linux"), address, 81, 0),
            1372,
            Outcome::TimedOut,
        ),
    ] {
        let sent = |payload| {
            let request = request.clone();
            connect(&world, &Request { payload, ..request })
        };
        assert!(is_web(&sent(fits)));
        assert_eq!(sent(fits + 1), lost);
    }
}
