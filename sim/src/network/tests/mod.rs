mod documented;
mod families;
mod listed;

use super::*;
use crate::fault::{FaultKind, FaultSet, ProductFault};
use crate::topology::{Build, Pool};
use crate::world::{Endpoint, Nodes, Service, ServicePort, Slice, Told};
use std::collections::BTreeMap;

const WS2022: Pool = Pool::Windows(Build::Ws2022);
const VIP: [u8; 4] = [10, 96, 3, 4];
const WINDOWS_NODE: [u8; 4] = [127, 77, 1, 2];
const OTHER_WINDOWS_NODE: [u8; 4] = [127, 77, 1, 3];
const LINUX_NODE: [u8; 4] = [127, 77, 1, 1];
const NODE_PORT: u16 = 30080;

/// One Linux node and two of Windows Server 2022; `web` on `win-a` behind a Service 8080 → 80, and a prober
/// on each node.
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

/// Replaces the endpoints of `web` by these.
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

fn is_web(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Answered { backend: Backend::Pod { pod, .. }, .. } if pod.name == "web")
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

/// The headers take 40 bytes of a TCP packet, and 28 of a UDP packet.
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
