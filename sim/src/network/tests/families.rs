//! Both IP families: which nodes and pods have which, and what IPv6 reaches.
//!
//! N06 and N07: dual-stack.md, "Windows support" ("You can use IPv4/IPv6 dual-stack networking with
//! `l2bridge` networks"; "Overlay (VXLAN) networks on Windows do not support dual-stack networking");
//! hcsshim, hcn/hcnglobals.go: "HNS 11.10+ supports Ipv6 dual stack".

use super::*;
use crate::topology::{IpFamilies, NetworkMode, NetworkSpec};

pub(super) const VIP6: &str = "fd00:10:96::304";

fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

/// The healthy cluster with both families where Windows supports them, and `web` as a dual-stack Service.
pub(super) fn dual(mode: NetworkMode, build: Build) -> World {
    let mut world = healthy();
    for name in ["linux", "win-a", "win-b"] {
        let node = world.nodes.get(name).expect("it is there");
        let pool = match node.pool {
            Pool::Linux => Pool::Linux,
            Pool::Windows(_) => Pool::Windows(build),
        };
        let spec = NetworkSpec {
            mode,
            ..NetworkSpec::default()
        };
        let node = Node::new(pool, node.address, 10250, node.pod_network)
            .connected(spec)
            .of_families(IpFamilies::DualStack);
        world.nodes.insert(name.to_owned(), node);
    }
    let mut endpoints = vec![on("win-a", [10, 244, 2, 5])];
    for name in ["linux", "prober", "other", "web"] {
        let pod = world.pods.get(&key(name)).expect("it is there").clone();
        let node = world.nodes.get(&pod.node).expect("it is there");
        let pod = pod.on(node);
        if let Some(second) = pod.address6.filter(|_| name == "web") {
            endpoints.push(Endpoint {
                address: second.into(),
                ..endpoints[0].clone()
            });
        }
        world.pods.insert(key(name), pod);
    }
    backed_by(&mut world, endpoints);
    let mut service = world
        .services
        .get(&key("web"))
        .expect("it is there")
        .clone();
    service.addresses.push(address(VIP6));
    world.services.insert(key("web"), service);
    world
}

fn modern() -> World {
    dual(NetworkMode::L2Bridge, Build::Ws2022)
}

fn second(world: &World, pod: &str) -> Option<IpAddr> {
    let pod = world.pods.get(&key(pod)).expect("it is there");
    pod.address6.map(IpAddr::from)
}

fn ask(world: &World, from: &Origin, to: IpAddr, port: u16) -> Outcome {
    connect(world, &Request::tcp(from.clone(), to, port, 0))
}

#[test]
fn n07_windows_has_both_families_on_l2bridge_from_2022_on_alone() {
    for (mode, build, has) in [
        (NetworkMode::L2Bridge, Build::Ws2019, false),
        (NetworkMode::L2Bridge, Build::Ws2022, true),
        (NetworkMode::L2Bridge, Build::Ws2025, true),
        (NetworkMode::Overlay, Build::Ws2025, false),
        (NetworkMode::Transparent, Build::Ws2025, false),
    ] {
        let world = dual(mode, build);
        assert_eq!(
            second(&world, "web").is_some(),
            has,
            "{mode:?} on {build:?}"
        );
        // The cluster assigns a node's own address and its part of the pod network
        let node = world.nodes.get("win-a").expect("it is there");
        assert_eq!(node.addresses().count(), 2);
        assert_eq!(node.pod_cidrs(), ["10.244.2.0/24", "fd00:10:244:f402::/64"]);
        assert!(
            second(&world, "linux").is_some(),
            "Linux has it in every mode"
        );
    }
}

#[test]
fn without_an_address_of_the_family_there_is_no_way() {
    let world = healthy();
    for from in [from_pod("linux"), from_node("win-a"), Origin::Outside] {
        assert_eq!(
            ask(&world, &from, address(VIP6), 8080),
            Outcome::Unreachable
        );
    }
    let nobody = address("fd00:10:244:f402::4d");
    let there = modern();
    assert_eq!(
        ask(&there, &from_pod("linux"), nobody, 80),
        Outcome::NoRoute
    );
    assert_eq!(
        ask(&there, &from_pod("other"), nobody, 80),
        Outcome::TimedOut
    );
}

#[test]
fn large_packets_are_of_both_families() {
    let mut world = modern();
    let web = second(&world, "web").expect("it has one");
    world.faults = FaultSet::from_iter([FaultKind::MtuBlackHole.on(WS2022)]);
    // IPv6's header is 20 bytes longer
    for (payload, passes) in [(1340, true), (1341, false)] {
        let request = Request {
            payload,
            ..Request::tcp(from_pod("other"), web, 80, 0)
        };
        assert_eq!(is_web(&connect(&world, &request)), passes, "{payload}");
    }
}
