//! The documented limitations of Windows, each where it holds and where it does not.

use super::*;
use crate::topology::NetworkMode;

fn with(change: impl Fn(&mut Node)) -> World {
    let mut world = healthy();
    for name in ["win-a", "win-b"] {
        change_node(&mut world, name, &change);
    }
    world
}

fn change_node(world: &mut World, name: &str, change: impl FnOnce(&mut Node)) {
    let mut node = world.nodes.get(name).expect("it is there").clone();
    change(&mut node);
    world.nodes.insert(name.to_owned(), node);
}

fn on_overlay() -> World {
    with(|node| node.network.mode = NetworkMode::Overlay)
}

fn with_dsr() -> World {
    with(|node| node.network.dsr = true)
}

fn of_build(build: Build) -> World {
    with(|node| *node = Node::new(Pool::Windows(build), node.address, 10250, node.pod_network))
}

fn source(outcome: &Outcome) -> Option<IpAddr> {
    match outcome {
        Outcome::Answered { source, .. } => Some(*source),
        _ => None,
    }
}

fn service(world: &mut World, change: impl Fn(&mut Service)) {
    let mut service = world
        .services
        .get(&key("web"))
        .expect("it is there")
        .clone();
    change(&mut service);
    world.services.insert(key("web"), service);
}

fn ping(world: &World, from: Origin, to: [u8; 4]) -> Outcome {
    connect(world, &Request::ping(from, to.into()))
}

#[test]
fn pings_leave_a_windows_network_in_mode_transparent_alone() {
    let outside = [8, 8, 8, 8];
    assert_eq!(
        ping(&healthy(), from_pod("prober"), outside),
        Outcome::TimedOut
    );
    let transparent = with(|node| node.network.mode = NetworkMode::Transparent);
    for (world, from) in [
        (healthy(), from_pod("linux")),
        (healthy(), from_node("win-a")),
        (transparent, from_pod("prober")),
    ] {
        assert!(
            source(&ping(&world, from.clone(), outside)).is_some(),
            "{from:?}"
        );
    }
    assert!(source(&ping(&healthy(), from_pod("prober"), [10, 244, 1, 9])).is_some());
}

#[test]
fn a_virtual_address_answers_pings_of_windows_pods_whatever_its_ports_do() {
    let mut world = healthy();
    backed_by(&mut world, vec![]);
    assert!(source(&ping(&world, from_pod("prober"), VIP)).is_some());
    assert_eq!(
        go(&world, &from_pod("prober"), VIP, 8080),
        Outcome::TimedOut
    );
    assert_eq!(ping(&world, from_pod("linux"), VIP), Outcome::TimedOut);
}

#[test]
fn on_overlay_a_windows_node_reaches_its_own_pods_alone() {
    let to_web = |world: &World, from: &str| go(world, &from_node(from), [10, 244, 2, 5], 80);
    assert!(is_web(&to_web(&on_overlay(), "win-a")));
    assert_eq!(to_web(&on_overlay(), "win-b"), Outcome::TimedOut);
    assert!(is_web(&to_web(&on_overlay(), "linux")));
    assert!(is_web(&to_web(&healthy(), "win-b")));
    assert!(is_web(&go(
        &on_overlay(),
        &from_pod("other"),
        [10, 244, 2, 5],
        80
    )));
}

#[test]
fn overlay_on_2019_needs_its_update() {
    let revised = |revision| {
        let mut world = of_build(Build::Ws2019);
        for name in ["win-a", "win-b"] {
            change_node(&mut world, name, |node| {
                node.network.mode = NetworkMode::Overlay;
                node.network.revision = revision;
            });
        }
        go(&world, &from_pod("other"), [10, 244, 2, 5], 80)
    };
    assert_eq!(revised(378), Outcome::TimedOut);
    assert!(is_web(&revised(379)));
}

#[test]
fn more_than_1024_backends_are_too_many_for_windows() {
    let mut world = healthy();
    let many = |count: usize| vec![on("win-a", [10, 244, 2, 5]); count];
    for (count, on_windows) in [(1024, true), (1025, false)] {
        backed_by(&mut world, many(count));
        assert_eq!(
            is_web(&go(&world, &from_pod("prober"), VIP, 8080)),
            on_windows
        );
        assert!(is_web(&go(&world, &from_pod("linux"), VIP, 8080)));
    }
}

#[test]
fn external_traffic_policy_local_needs_dsr_on_windows() {
    let local = |mut world: World| {
        service(&mut world, |service| service.external_local = true);
        world
    };
    let ask = |world: &World, node| go(world, &from_pod("linux"), node, NODE_PORT);
    let client = IpAddr::from([10, 244, 1, 9]);
    let without = local(healthy());
    assert_eq!(
        source(&ask(&without, WINDOWS_NODE)),
        Some(WINDOWS_NODE.into())
    );
    assert!(
        is_web(&ask(&without, OTHER_WINDOWS_NODE)),
        "forwarded all the same"
    );
    let with = local(with_dsr());
    assert_eq!(source(&ask(&with, WINDOWS_NODE)), Some(client));
    assert_eq!(ask(&with, OTHER_WINDOWS_NODE), Outcome::TimedOut);
    let from_other = go(&with, &from_pod("other"), LINUX_NODE, NODE_PORT);
    assert_eq!(from_other, Outcome::TimedOut, "Linux keeps it too");
}

#[test]
fn internal_traffic_policy_local_knows_no_other_node() {
    let mut world = healthy();
    service(&mut world, |service| service.internal_local = true);
    assert!(is_web(&go(&world, &from_pod("prober"), VIP, 8080)));
    for from in ["other", "linux"] {
        assert_eq!(go(&world, &from_pod(from), VIP, 8080), Outcome::TimedOut);
    }
}

#[test]
fn session_affinity_needs_windows_server_2022() {
    let distinct = |mut world: World, from: &str| {
        service(&mut world, |service| service.sticky = true);
        let both = vec![on("win-a", [10, 244, 2, 5]), on("win-b", [10, 244, 3, 9])];
        backed_by(&mut world, both);
        let ask = |turn| {
            connect(
                &world,
                &Request::tcp(from_pod(from), VIP.into(), 8080, turn),
            )
        };
        (1..8).any(|turn| ask(turn) != ask(0))
    };
    assert!(distinct(of_build(Build::Ws2019), "prober"));
    assert!(!distinct(of_build(Build::Ws2022), "prober"));
    assert!(!distinct(of_build(Build::Ws2025), "prober"));
    assert!(!distinct(of_build(Build::Ws2019), "linux"));
}

#[test]
fn who_a_backend_sees_behind_a_virtual_address() {
    let seen = |world: &World| source(&go(world, &from_pod("prober"), VIP, 8080));
    let own = Some(IpAddr::from([10, 244, 2, 9]));
    assert_eq!(seen(&healthy()), own);
    assert_eq!(
        seen(&on_overlay()),
        Some([10, 244, 2, 2].into()),
        "the source VIP"
    );
    let mut old = of_build(Build::Ws2019);
    assert_eq!(seen(&old), own);
    change_node(&mut old, "win-a", |node| node.network.revision = 1431);
    assert_eq!(seen(&old), Some(WINDOWS_NODE.into()));
}

#[test]
fn a_pod_reaches_itself_through_its_service_on_overlay_without_dsr() {
    let itself = |world: &World| go(world, &from_pod("web"), VIP, 8080);
    assert!(is_web(&itself(&on_overlay())));
    assert_eq!(itself(&healthy()), Outcome::TimedOut);
    assert_eq!(itself(&with_dsr()), Outcome::TimedOut);
}

#[test]
fn host_ports_are_the_plugins_to_keep() {
    let told = Told {
        ports: vec![crate::world::PodPort {
            protocol: Protocol::Tcp,
            port: 80,
            host_port: Some(8080),
        }],
        ..Told::default()
    };
    let pod = Pod {
        listening: BTreeMap::from([(80, Page::WinWebserver)]),
        ..Pod::new("win-a", [10, 244, 2, 5], told)
    };
    let ask = |world: &mut World| {
        world.pods.insert(key("web"), pod.clone());
        go(world, &from_pod("linux"), WINDOWS_NODE, 8080)
    };
    assert!(is_web(&ask(&mut healthy())));
    let mut without = with(|node| node.network.host_ports = false);
    assert_eq!(ask(&mut without), Outcome::TimedOut);
}

#[test]
fn udp_goes_as_tcp_does() {
    let mut world = healthy();
    let web = world.pods.get_mut(&key("web")).expect("it is there");
    web.listening_udp.insert(81, Page::Netexec);
    let ask = |world: &World, port| {
        connect(
            world,
            &Request::udp(from_pod("other"), [10, 244, 2, 5].into(), port, 0),
        )
    };
    assert!(is_web(&ask(&world, 81)));
    assert_eq!(ask(&world, 80), Outcome::Refused, "TCP's port is not UDP's");
}

#[test]
fn load_balancers_take_clients_from_outside_to_nodes_with_backends() {
    let mut world = healthy();
    let balancer = [203, 0, 113, 200];
    service(&mut world, |service| {
        service.external = vec![balancer.into()];
    });
    let ask = |world: &World, turn| {
        connect(
            world,
            &Request::tcp(Origin::Outside, balancer.into(), 8080, turn),
        )
    };
    assert!((0..3).all(|turn| is_web(&ask(&world, turn))));
    assert!(is_web(&go(&world, &from_pod("linux"), balancer, 8080)));
    assert_eq!(go(&world, &Origin::Outside, VIP, 8080), Outcome::TimedOut);
    assert_eq!(
        go(&world, &Origin::Outside, [10, 244, 2, 5], 80),
        Outcome::TimedOut
    );
}

#[test]
fn policies_hold_where_the_cni_keeps_them() {
    let policy = serde_json::json!({"spec": {"podSelector": {"matchLabels": {"app": "web"}},
        "ingress": [{"from": [{"podSelector": {"matchExpressions": [
            {"key": "app", "operator": "In", "values": ["friend"]}]}}],
            "ports": [{"port": 80}]}]}});
    let policy: k8s_openapi::api::networking::v1::NetworkPolicy =
        serde_json::from_value(policy).expect("a policy");
    let labelled = |world: &mut World, name: &str, app: &str| {
        let mut pod = world.pods.get(&key(name)).expect("it is there").clone();
        let labels = [("app".to_owned(), app.to_owned())].into();
        pod.told = std::sync::Arc::new(Told {
            labels,
            ..Told::default()
        });
        world.pods.insert(key(name), pod);
    };
    let mut world = with(|node| node.network.policies = true);
    labelled(&mut world, "web", "web");
    labelled(&mut world, "linux", "friend");
    let policies = [(key("web"), crate::world::policy::Policy::by(&policy))].into();
    world.policies = std::sync::Arc::new(policies);
    let to_web = |world: &World, from| is_web(&go(world, &from_pod(from), [10, 244, 2, 5], 80));
    assert!(to_web(&world, "linux"));
    assert_eq!(
        go(&world, &from_pod("prober"), [10, 244, 2, 5], 80),
        Outcome::TimedOut
    );
    assert!(
        is_web(&go(&world, &from_node("win-a"), [10, 244, 2, 5], 80)),
        "its own node"
    );
    let kept = |world: &mut World, kept| {
        change_node(world, "win-a", |node| node.network.policies = kept);
    };
    kept(&mut world, false);
    assert!(to_web(&world, "prober"));
}

/// N12: windows-networking.md, "Preserve-Destination": "Also disables node-node forwarding", with the
/// annotation and DSR; pkg/proxy/winkernel/proxier.go, `preserveDIP`.
#[test]
fn n12_preserved_destinations_are_forwarded_to_no_other_node() {
    let preserved = |mut world: World| {
        service(&mut world, |service| service.preserves_destination = true);
        world
    };
    let ask = |world: &World, node| go(world, &from_pod("linux"), node, NODE_PORT);
    let client = IpAddr::from([10, 244, 1, 9]);
    let with = preserved(with_dsr());
    assert_eq!(source(&ask(&with, WINDOWS_NODE)), Some(client));
    assert_eq!(ask(&with, OTHER_WINDOWS_NODE), Outcome::TimedOut);
    assert!(
        is_web(&ask(&with, LINUX_NODE)),
        "Linux knows no such annotation"
    );
    assert!(
        is_web(&go(&with, &from_pod("other"), VIP, 8080)),
        "of its own address nothing changes"
    );
    let without = preserved(healthy());
    assert!(
        is_web(&ask(&without, OTHER_WINDOWS_NODE)),
        "without DSR it is not kept"
    );
}

/// N17: Microsoft, common-problems.md, "The specified port already exists".
#[test]
fn n17_without_dsr_an_old_windows_runs_out_of_ports_for_load_balancers() {
    let asked = |mut world: World, before: u16| {
        let own = world
            .services
            .get(&key("web"))
            .expect("it is there")
            .clone();
        world.services.remove(&key("web"));
        for number in 0..before {
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
        world.services.insert(key("web"), own);
        is_web(&go(&world, &from_pod("prober"), VIP, 8080))
    };
    let old = |dsr| {
        let mut world = of_build(Build::Ws2019);
        for name in ["win-a", "win-b"] {
            change_node(&mut world, name, |node| {
                node.network.revision = 1216;
                node.network.dsr = dsr;
            });
        }
        world
    };
    assert!(asked(old(false), 255));
    assert!(!asked(old(false), 256));
    assert!(asked(old(true), 256), "DSR needs no ports");
    assert!(asked(of_build(Build::Ws2019), 256), "it has KB4551853");
    assert!(asked(healthy(), 256));
}

/// N24: kubernetes issue 131506 (HNS 15.4 of Windows Server 2025 keeps a load balancer as it was) and
/// 135802 (one that was taken away is not made again): what a connection meets then is what two of
/// the faults do, on that node alone.
#[test]
fn n24_stale_load_balancers_are_what_faults_of_one_node_do() {
    let on_a = |kind: FaultKind| kind.on(Place::Node("win-a".to_owned()));
    let mut kept = World {
        faults: FaultSet::from_iter([on_a(FaultKind::EndpointStale)]),
        ..of_build(Build::Ws2025)
    };
    backed_by(&mut kept, vec![on("win-b", [10, 244, 3, 9])]);
    let turn = |world: &World, from: &str, turn| {
        connect(world, &Request::tcp(from_pod(from), VIP.into(), 8080, turn))
    };
    assert!(
        (0..2).any(|at| is_web(&turn(&kept, "prober", at))),
        "it leads to who has gone"
    );
    assert!(!(0..2).any(|at| is_web(&turn(&kept, "other", at))));
    let lost = World {
        faults: FaultSet::from_iter([on_a(FaultKind::KubeProxyDead)]),
        ..of_build(Build::Ws2025)
    };
    assert_eq!(turn(&lost, "prober", 0), Outcome::TimedOut);
    assert!(is_web(&turn(&lost, "other", 0)));
    assert!(is_web(&go(&lost, &from_pod("prober"), [10, 244, 2, 5], 80)));
}
