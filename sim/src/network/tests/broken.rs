//! What each fault changes in the outcome of connections, and that lifting it heals.

use super::*;

/// The outcomes of all connections that a fault could turn.
fn sweep(world: &World) -> BTreeMap<String, Outcome> {
    let mut seen = BTreeMap::new();
    let mut look = |name: String, request: Request| {
        seen.insert(name, connect(world, &request));
    };
    for from in ["linux", "prober", "other", "web"] {
        let origin = from_pod(from);
        for (to, address, port) in [
            ("pod", [10, 244, 2, 5], 80),
            ("linux-pod", [10, 244, 1, 9], 80),
            ("vip", VIP, 8080),
            ("linux-node-port", LINUX_NODE, NODE_PORT),
            ("windows-node-port", WINDOWS_NODE, NODE_PORT),
            ("outside", [203, 0, 113, 80], 80),
        ] {
            let tcp = Request::tcp(origin.clone(), address.into(), port, 1);
            let large = Request {
                payload: 20_000,
                ..tcp.clone()
            };
            look(format!("{from} {to} large"), large);
            look(format!("{from} {to}"), tcp);
        }
        let udp = Request::udp(origin.clone(), [10, 244, 2, 5].into(), 81, 0);
        look(format!("{from} pod udp"), udp);
        let dns = Request::udp(origin, [8, 8, 8, 8].into(), 53, 0);
        look(format!("{from} outside dns"), dns);
    }
    for from in ["linux", "win-a"] {
        let vip = Request::tcp(from_node(from), VIP.into(), 8080, 1);
        look(format!("node-{from} vip"), vip);
    }
    seen
}

/// A world with a second backend, a listener for UDP, and one on Linux.
fn full() -> World {
    let mut world = healthy();
    let both = vec![on("win-a", [10, 244, 2, 5]), on("linux", [10, 244, 1, 9])];
    backed_by(&mut world, both);
    let web = world.pods.get_mut(&key("web")).expect("it is there");
    web.listening_udp.insert(81, Page::Netexec);
    let linux = world.pods.get_mut(&key("linux")).expect("it is there");
    linux.listening.insert(80, Page::Netexec);
    world
}

/// The connections that turn under a fault; that they turn back when it is lifted.
fn turned(fault: &str) -> Vec<(String, Outcome)> {
    let mut world = full();
    let healthy = sweep(&world);
    world.faults = [fault.parse().expect(fault)].into_iter().collect();
    let broken = sweep(&world);
    world.faults = FaultSet::default();
    assert_eq!(sweep(&world), healthy, "{fault} is lifted");
    let turned = broken
        .into_iter()
        .filter(|(name, seen)| healthy[name] != *seen);
    turned.collect()
}

fn names(turned: &[(String, Outcome)]) -> Vec<&str> {
    turned.iter().map(|(name, _)| name.as_str()).collect()
}

/// Whether a fault turns exactly what a condition tells, all of it to one outcome.
fn turns(fault: &str, to: &Outcome, pattern: impl Fn(&str) -> bool) {
    let expected: Vec<String> = sweep(&full())
        .into_keys()
        .filter(|name| pattern(name))
        .collect();
    let seen = turned(fault);
    assert_eq!(names(&seen), expected, "{fault}");
    assert!(
        seen.iter().all(|(_, outcome)| outcome == to),
        "{fault}: {seen:?}"
    );
}

/// Where a connection of the sweep starts and what it is to.
fn ends(name: &str) -> (&str, &str) {
    name.split_once(' ').expect("two words")
}

fn on_windows(name: &str) -> bool {
    matches!(ends(name).0, "prober" | "other" | "web")
}

#[test]
fn a_dead_kube_proxy_takes_services_from_its_nodes() {
    turns("kube-proxy-dead=linux", &Outcome::TimedOut, |name| {
        let (from, to) = ends(name);
        matches!(from, "linux" | "node-linux") && to.starts_with("vip")
            || to.starts_with("linux-node-port")
    });
}

#[test]
fn a_closed_node_port_is_one_nodes() {
    turns("node-port-closed=node/linux", &Outcome::TimedOut, |name| {
        ends(name).1.starts_with("linux-node-port")
    });
}

#[test]
fn cut_traffic_is_lost_both_ways_or_one_way() {
    let direct = |name: &str, from_windows: bool| {
        let (from, to) = ends(name);
        let to_linux = to.starts_with("linux-pod") || to.starts_with("linux-node-port");
        let to_windows = to.starts_with("pod") || to.starts_with("windows-node-port");
        (from_windows && on_windows(name) && to_linux) || (from == "linux" && to_windows)
    };
    let both = turned("traffic-cut=linux:windows");
    let one_way = turned("traffic-cut-one-way=linux:windows");
    assert!(
        both.iter()
            .chain(&one_way)
            .all(|(_, seen)| *seen == Outcome::TimedOut)
    );
    for name in sweep(&full()).keys() {
        let name = name.as_str();
        let (all, some) = (names(&both), names(&one_way));
        assert!(
            all.contains(&name) || !direct(name, true) && !direct(name, false),
            "{name}"
        );
        assert!(some.contains(&name) || !direct(name, false), "{name}");
        // One way, Windows still opens connections to Linux
        let opens = on_windows(name) && ends(name).1.starts_with("linux-pod");
        assert!(!opens || !some.contains(&name), "{name}");
    }
}

#[test]
fn dropped_udp_spares_dns() {
    turns("udp-dropped=windows", &Outcome::TimedOut, |name| {
        on_windows(name) && ends(name).1 == "pod udp" && ends(name).0 != "web"
    });
}

#[test]
fn something_captive_answers_for_the_outside_over_tcp() {
    turns("captive-proxy=windows", &Outcome::WrongAnswer, |name| {
        on_windows(name) && matches!(ends(name).1, "outside" | "outside large")
    });
}

#[test]
fn a_captive_service_answers_for_virtual_addresses() {
    turns("service-answers-wrong", &Outcome::WrongAnswer, |name| {
        ends(name).1.starts_with("vip")
    });
}

#[test]
fn a_hole_swallows_what_is_large_on_its_way_from_and_to_its_node() {
    let seen = turned("mtu-black-hole=linux");
    let turned = names(&seen);
    for way in ["linux pod", "linux outside", "other linux-pod"] {
        assert!(
            turned.contains(&format!("{way} large").as_str()),
            "{way}: {seen:?}"
        );
    }
    // The node port's node answers for a backend that is on the client's own node
    assert!(turned.contains(&"prober linux-node-port large"), "{seen:?}");
    assert!(
        seen.iter()
            .all(|(name, seen)| name.ends_with("large") && *seen == Outcome::Stalled),
        "{seen:?}"
    );
    for way in ["linux linux-pod", "other pod", "prober outside"] {
        assert!(
            !turned.contains(&format!("{way} large").as_str()),
            "{way} is far from it"
        );
    }
    let small = Request {
        payload: 1360,
        ..Request::tcp(from_pod("linux"), [10, 244, 2, 5].into(), 80, 0)
    };
    let world = World {
        faults: ["mtu-black-hole".parse().expect("a fault")]
            .into_iter()
            .collect(),
        ..full()
    };
    assert!(is_web(&connect(&world, &small)), "40 bytes of headers fit");
    let above = Request {
        payload: 1361,
        ..small
    };
    assert_eq!(connect(&world, &above), Outcome::Stalled);
    let back = Request {
        from: from_pod("other"),
        to: [10, 244, 1, 9].into(),
        ..above
    };
    assert_eq!(
        connect(&world, &back),
        Outcome::Stalled,
        "at the answering end"
    );
    let datagram = Request {
        protocol: Protocol::Udp,
        from: from_pod("linux"),
        port: 81,
        ..back.clone()
    };
    let to = |request: &Request, payload| Request {
        to: [10, 244, 2, 5].into(),
        payload,
        ..request.clone()
    };
    assert!(
        is_web(&connect(&world, &to(&datagram, 1372))),
        "28 bytes of headers"
    );
    assert_eq!(connect(&world, &to(&datagram, 1373)), Outcome::TimedOut);
}

#[test]
fn a_rewritten_source_is_the_nodes() {
    let seen = turned("source-rewritten=node/win-b");
    assert!(!seen.is_empty());
    for (name, outcome) in &seen {
        assert_eq!(ends(name).0, "other", "{name}");
        assert!(
            matches!(outcome, Outcome::Answered { source, .. } if *source == IpAddr::from(OTHER_WINDOWS_NODE)),
            "{name} {outcome:?}"
        );
    }
}

#[test]
fn a_sticking_address_and_a_broken_hairpin() {
    let mut world = full();
    let backend = |world: &World, turn| {
        connect(
            world,
            &Request::tcp(from_pod("other"), VIP.into(), 8080, turn),
        )
    };
    assert_ne!(backend(&world, 0), backend(&world, 1));
    let itself = Request::tcp(from_pod("linux"), VIP.into(), 8080, 1);
    let node = IpAddr::from(LINUX_NODE);
    assert!(
        matches!(connect(&world, &itself), Outcome::Answered { source, .. } if source == node),
        "masqueraded"
    );
    let fault = |text: &str| -> FaultSet { [text.parse().expect(text)].into_iter().collect() };
    world.faults = fault("vip-sticks");
    assert_eq!(backend(&world, 0), backend(&world, 1));
    world.faults = fault("hairpin-broken=linux");
    assert_eq!(connect(&world, &itself), Outcome::TimedOut);
    assert!(is_web(&backend(&world, 0)));
    world.faults = FaultSet::default();
    assert!(matches!(connect(&world, &itself), Outcome::Answered { .. }));
}

#[test]
fn a_stale_backend_goes_on_being_chosen() {
    let mut world = full();
    backed_by(&mut world, vec![on("win-a", [10, 244, 2, 5])]);
    world.pods.remove(&key("linux"));
    let tries = |world: &World, from: &str| {
        let try_one = |turn| connect(world, &Request::tcp(from_pod(from), VIP.into(), 8080, turn));
        (0..2).filter(|turn| is_web(&try_one(*turn))).count()
    };
    assert_eq!(tries(&world, "other"), 2);
    world.faults = ["endpoint-stale=node/win-b".parse().expect("a fault")]
        .into_iter()
        .collect();
    assert_eq!((tries(&world, "other"), tries(&world, "prober")), (1, 2));
    world.faults = FaultSet::default();
    assert_eq!(tries(&world, "other"), 2);
}

#[test]
fn a_vanished_node_is_reached_by_nobody() {
    let seen = turned("node-vanishes=node/win-a");
    let direct = names(&seen).contains(&"linux pod") && names(&seen).contains(&"prober linux-pod");
    assert!(direct, "{seen:?}");
    assert!(
        seen.iter().all(|(_, seen)| *seen == Outcome::TimedOut),
        "{seen:?}"
    );
}
