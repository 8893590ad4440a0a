use super::*;
use crate::topology::{Build, Pool};
use crate::world::{Endpoint, Key, Node, Pod, Service, Slice, Told};

const WINDOWS: Pool = Pool::Windows(Build::Ws2022);
const CLUSTER_DNS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 96, 0, 10));
const NODES_DNS: IpAddr = IpAddr::V4(Ipv4Addr::new(8, 8, 8, 8));

/// A pod in the namespace `app`, the only one on its node.
fn pod_on(pool: Pool, host_network: bool, told: Told) -> (World, Origin) {
    let mut world = World::default();
    let node = Node::new(pool, [127, 77, 0, 1], 1, [10, 244, 1]);
    world.nodes.insert("node".to_owned(), node);
    let key = Key::new("app", "pod");
    let pod = Pod {
        host_network,
        ..Pod::new("node", [10, 244, 1, 4], told)
    };
    world.pods.insert(key.clone(), pod);
    let origin = if host_network {
        Origin::HostPod(key)
    } else {
        Origin::Pod(key)
    };
    (world, origin)
}

#[test]
fn kubelets_keep_the_address_of_a_dns_that_is_gone() {
    for pool in [Pool::Linux, WINDOWS] {
        let (mut world, origin) = pod_on(pool, false, Told::default());
        assert_eq!(settings(&world, &origin).server, Some(CLUSTER_DNS));
        let own = IpAddr::V4(Ipv4Addr::new(10, 97, 1, 2));
        let service = Service {
            addresses: vec![own],
            ..Service::default()
        };
        let key = Key::new("kube-system", "kube-dns");
        world.services.insert(key.clone(), service);
        assert_eq!(settings(&world, &origin).server, Some(own));
        world.services.remove(&key);
        assert_eq!(settings(&world, &origin).server, Some(own));
        let query = Query::address("kubernetes.default");
        let answer = lookup(&world, &origin, &query).answer;
        assert_eq!(answer, Err(NotFound::TimedOut));
    }
}

/// A Service with an address, a headless one with two ready backends, and `ExternalName` Services.
fn with_services(world: &mut World) {
    let external = |name: &str| Service {
        external_name: Some(name.to_owned()),
        ..Service::default()
    };
    let web = Service {
        addresses: vec![[10, 96, 3, 4].into()],
        ..Service::default()
    };
    let headless = Service::default();
    for (name, service) in [
        ("web", web),
        ("db", headless.clone()),
        ("empty", headless),
        ("out", external("www.example.com")),
        ("lost", external("www.nowhere.example")),
    ] {
        world.services.insert(Key::new("app", name), service);
    }
    let named = |name: &str, last| Endpoint {
        hostname: Some(name.to_owned()),
        ..Endpoint::ready([10, 244, 1, last])
    };
    let slice = Slice {
        service: "db".to_owned(),
        ports: [("http".to_owned(), 8080)].into(),
        endpoints: vec![
            named("db-0", 5),
            Endpoint::ready([10, 244, 1, 6]),
            Endpoint {
                ready: false,
                ..named("db-2", 7)
            },
        ],
    };
    world.slices.insert(Key::new("app", "db-1"), slice);
}

fn found(pool: Pool, name: &str) -> bool {
    let mut world = World::default();
    let node = Node::new(pool, [127, 77, 0, 1], 1, [10, 244, 1]);
    world.nodes.insert("node".to_owned(), node);
    let pod = Pod::new("node", [10, 244, 1, 4], Told::default());
    world.pods.insert(Key::new("default", "pod"), pod);
    let service = Service {
        addresses: vec![[10, 96, 0, 1].into()],
        ..Service::default()
    };
    world
        .services
        .insert(Key::new("default", "kubernetes"), service);
    let origin = Origin::Pod(Key::new("default", "pod"));
    resolve(&world, &origin, &Query::address(name)).is_ok()
}

#[test]
fn windows_completes_names_without_dots_alone() {
    let windows = Pool::Windows(Build::Ws2022);
    let full = "kubernetes.default.svc.cluster.local";
    for (name, on_linux, on_windows) in [
        ("kubernetes", true, true),
        ("kubernetes.default", true, false),
        ("kubernetes.default.svc", true, false),
        (full, true, true),
        ("kubernetes.default.svc.cluster.local.", true, true),
        ("www.nowhere.example", false, false),
        ("www.example.com", true, true),
        ("", false, false),
        ("10.1.2.3", true, true),
    ] {
        assert_eq!(found(Pool::Linux, name), on_linux, "`{name}` on Linux");
        assert_eq!(found(windows, name), on_windows, "`{name}` on Windows");
    }
}

fn addresses(all: &[&str]) -> Result<Vec<IpAddr>, NotFound> {
    let of = |text: &&str| text.parse().expect("an address");
    match all {
        [] => Err(NotFound::NoSuchName),
        all => Ok(all.iter().map(of).collect()),
    }
}

/// DNS specification (kubernetes/dns, docs/specification.md, schema 1.1.0): 2.3 for Services with an
/// address, 2.4 for headless ones, 2.5 for external names.
#[test]
fn addresses_are_those_of_the_dns_specification() {
    let (mut world, origin) = pod_on(Pool::Linux, false, Told::default());
    with_services(&mut world);
    let slice = Slice {
        service: "web".to_owned(),
        ports: [("http".to_owned(), 8080)].into(),
        endpoints: vec![Endpoint::ready([10, 244, 1, 8])],
    };
    world.slices.insert(Key::new("app", "web-1"), slice);
    for (name, expected) in [
        ("web.app.svc", &["10.96.3.4"][..]),
        // The ready backends
        ("db.app.svc", &["10.244.1.5", "10.244.1.6"]),
        ("db-0.db.app.svc", &["10.244.1.5"]),
        ("10-244-1-6.db.app.svc", &["10.244.1.6"]),
        ("10-244-1-5.db.app.svc", &[]),
        ("db-2.db.app.svc", &[]),
        ("db-0.web.app.svc", &[]),
        ("empty.app.svc", &[]),
        // plugin/kubernetes/kubernetes.go, `findServices`: backends have names under any Service
        ("10-244-1-8.web.app.svc", &["10.244.1.8"]),
        ("10-244-1-8.out.app.svc", &[]),
        ("svc", &[]),
        ("app.svc", &[]),
        ("web.other.svc", &[]),
        ("web.app", &[]),
        ("out.app.svc", &["203.0.113.80"]),
        ("lost.app.svc", &[]),
    ] {
        let full = format!("{name}.cluster.local.");
        let seen = lookup(&world, &origin, &Query::address(&full));
        assert_eq!(seen.answer, addresses(expected), "{full}");
    }
    let second = Query {
        turn: 1,
        ..Query::address("db.app.svc.cluster.local.")
    };
    assert_eq!(
        lookup(&world, &origin, &second).answer,
        addresses(&["10.244.1.6", "10.244.1.5"]),
        "the next turn begins with the next"
    );
}

/// System: resolv.conf(5) on Linux; on Windows dns-pod-service.md, "DNS resolution on Windows nodes".
#[test]
fn resolvers_complete_names_each_in_its_way() {
    // `{}` is the name unchanged
    let all = [
        "{}.app.svc.cluster.local",
        "{}.svc.cluster.local",
        "{}.cluster.local",
    ];
    let suffix = &all[..1];
    let last = |completed: &[&'static str]| [completed, &["{}"]].concat();
    let first = |completed: &[&'static str]| [&["{}"], completed].concat();
    for (pool, by, name, expected) in [
        (Pool::Linux, Resolver::System, "a", last(&all)),
        (Pool::Linux, Resolver::System, "a.b.c.d.e", last(&all)),
        (Pool::Linux, Resolver::System, "a.b.c.d.e.f", first(&all)),
        (WINDOWS, Resolver::System, "a", last(suffix)),
        (WINDOWS, Resolver::System, "a.b", vec!["{}"]),
        (WINDOWS, Resolver::System, "a.b.c.d.e.f", vec!["{}"]),
    ] {
        let (world, origin) = pod_on(pool, false, Told::default());
        let query = Query {
            by,
            ..Query::address(name)
        };
        let seen = lookup(&world, &origin, &query);
        let expected: Vec<String> = expected
            .iter()
            .map(|form| form.replace("{}", name))
            .collect();
        assert_eq!(seen.asked, expected, "{by:?} for `{name}` on {pool}");
        assert_eq!(seen.answer, Err(NotFound::NoSuchName));
        let absolute = format!("{}.", name.to_uppercase());
        let query = Query {
            by,
            ..Query::address(&absolute)
        };
        assert_eq!(
            lookup(&world, &origin, &query).asked,
            [name],
            "{by:?} for `{absolute}`"
        );
    }
}

/// kubelet, pkg/kubelet/network/dns/dns.go: `GetPodDNS`; dns-pod-service.md: on Windows
/// `ClusterFirstWithHostNet` is not supported, and there is one suffix.
#[test]
fn settings_follow_the_policy_of_the_pod() {
    let full = [
        "app.svc.cluster.local",
        "svc.cluster.local",
        "cluster.local",
    ];
    let cluster = |searches: &[&'static str]| (CLUSTER_DNS, searches.to_vec(), 5);
    let nodes = (NODES_DNS, Vec::new(), 1);
    for (pool, host, policy, expected) in [
        (Pool::Linux, false, "", cluster(&full)),
        (WINDOWS, false, "", cluster(&full[..1])),
        (Pool::Linux, false, "ClusterFirst", cluster(&full)),
        (Pool::Linux, true, "ClusterFirst", nodes.clone()),
        (WINDOWS, true, "ClusterFirst", nodes.clone()),
        (Pool::Linux, true, "ClusterFirstWithHostNet", cluster(&full)),
        (WINDOWS, true, "ClusterFirstWithHostNet", nodes.clone()),
        (Pool::Linux, false, "Default", nodes.clone()),
        (WINDOWS, false, "Default", nodes),
    ] {
        let what = format!("`{policy}` on {pool}, on the node's network: {host}");
        let told = Told {
            dns_policy: policy.to_owned(),
            ..Told::default()
        };
        let (world, origin) = pod_on(pool, host, told);
        let (server, searches, ndots) = expected;
        let expected = Settings {
            server: Some(server),
            searches: searches.into_iter().map(str::to_owned).collect(),
            ndots,
        };
        assert_eq!(settings(&world, &origin), expected, "{what}");
    }
    let (world, _) = pod_on(Pool::Linux, false, Told::default());
    assert_eq!(settings(&world, &Origin::Outside), Settings::default());
}

#[test]
fn an_answer_counts_as_long_as_it_is_waited_for() {
    for (by, os, millis, expected) in [
        (Resolver::System, Os::Linux, Some(4_000), (true, 4_000)),
        (Resolver::System, Os::Linux, Some(5_000), (false, 10_000)),
        (Resolver::System, Os::Linux, None, (false, 10_000)),
        (Resolver::Cares, Os::Linux, Some(3_000), (true, 5_000)),
        (Resolver::Cares, Os::Linux, None, (false, 14_000)),
        (Resolver::System, Os::Windows, Some(9_999), (true, 9_999)),
        (Resolver::System, Os::Windows, Some(10_000), (false, 10_000)),
    ] {
        let (in_time, after) = heard(by, os, millis.map(Duration::from_millis));
        assert_eq!(
            (in_time, after.as_millis()),
            expected,
            "{by:?} on {os:?}, {millis:?} ms"
        );
    }
}

/// `CoreDNS` 1.15, `plugin/backend_lookup.go`: it returns a CNAME into the cluster with addresses or not at
/// all, and follows at most eleven in a row (`maxCnameChainLength`).
#[test]
fn external_names_lead_into_the_cluster_too() {
    let (mut world, origin) = pod_on(Pool::Linux, false, Told::default());
    with_services(&mut world);
    let full = |name: &str| format!("{name}.app.svc.cluster.local");
    let mut alias = |name: &str, target: &str| {
        let service = Service {
            external_name: Some(target.to_owned()),
            ..Service::default()
        };
        world.services.insert(Key::new("app", name), service);
    };
    alias("to-web", &full("web"));
    alias("to-alias", &full("to-web"));
    alias("to-host", &full("db-0.db"));
    alias("to-nothing", &full("nobody"));
    alias("to-empty", &full("empty"));
    alias("itself", &full("itself"));
    alias("ring-a", &full("ring-b"));
    alias("ring-b", &full("ring-a"));
    alias("out-twice", &full("out"));
    alias("step-0", &full("web"));
    for step in 1..=11 {
        alias(
            &format!("step-{step}"),
            &full(&format!("step-{}", step - 1)),
        );
    }
    let ask = |name: &str| {
        let full = format!("{}.", full(name));
        lookup(&world, &origin, &Query::address(&full)).answer
    };
    for (asked, expected) in [
        ("to-web", &["10.96.3.4"][..]),
        ("to-alias", &["10.96.3.4"]),
        ("to-host", &["10.244.1.5"]),
        ("out-twice", &["203.0.113.80"]),
        ("to-nothing", &[]),
        ("to-empty", &[]),
        ("itself", &[]),
        ("ring-a", &[]),
        // Ten CNAMEs before the last one are the most
        ("step-10", &["10.96.3.4"]),
        ("step-11", &[]),
    ] {
        assert_eq!(ask(asked), addresses(expected), "{asked}");
    }
    let (found, _) = resolve(&world, &origin, &Query::address("to-alias")).expect("an address");
    assert_eq!(found, [IpAddr::from([10, 96, 3, 4])]);
}

/// `web` has both families, `only` has IPv6, `db` has one backend in each.
fn in_both_families(pool: Pool) -> (World, Origin) {
    let (mut world, origin) = pod_on(pool, false, Told::default());
    with_services(&mut world);
    let node = world.nodes.get("node").expect("it is there").clone();
    let node = node.of_families(crate::topology::IpFamilies::DualStack);
    let key = Key::new("app", "pod");
    let pod = world.pods.get(&key).expect("it is there").clone();
    let pod = pod.on(&node);
    world.pods.insert(key, pod);
    world.nodes.insert("node".to_owned(), node);
    let service = |addresses: &[&str]| Service {
        addresses: addresses
            .iter()
            .map(|own| own.parse().expect("one"))
            .collect(),
        ..Service::default()
    };
    let both = service(&["10.96.3.4", "fd00:10:96::304"]);
    world.services.insert(Key::new("app", "web"), both);
    let only = service(&["fd00:10:96::7"]);
    world.services.insert(Key::new("app", "only"), only);
    let slice = Slice {
        service: "db".to_owned(),
        endpoints: vec![Endpoint::ready(
            "fd00:10:244::".parse::<IpAddr>().expect("one"),
        )],
        ..Slice::default()
    };
    world.slices.insert(Key::new("app", "db-2"), slice);
    (world, origin)
}

/// DNS specification, 2.3.1 and 2.4.1: "<kind>" of A and AAAA.
#[test]
fn both_families_are_found_at_once() {
    let (world, origin) = in_both_families(Pool::Linux);
    for (name, expected) in [
        ("web", &["10.96.3.4", "fd00:10:96::304"][..]),
        ("only", &["fd00:10:96::7"]),
        ("fd00-10-244--0.db", &["fd00:10:244::"]),
    ] {
        let seen = lookup(&world, &origin, &Query::address(name));
        assert_eq!(seen.answer, addresses(expected), "{name}");
    }
}

/// RFC 6724, sections 2.1 and 6.
#[test]
fn addresses_are_tried_in_the_order_of_their_policy() {
    let global = "2001:db8::1";
    for (pool, expected) in [
        // Unique local addresses come after IPv4
        (Pool::Linux, ["10.96.3.4", "fd00:10:96::304"]),
        (WINDOWS, ["10.96.3.4", "fd00:10:96::304"]),
    ] {
        let (world, origin) = in_both_families(pool);
        let (found, _) = resolve(&world, &origin, &Query::address("web")).expect("addresses");
        let expected = expected.map(|text| text.parse::<IpAddr>().expect("an address"));
        assert_eq!(found, expected, "{pool}");
        let literal = resolve(&world, &origin, &Query::address("[fd00::1]"))
            .expect("it is one")
            .0;
        assert_eq!(literal, ["fd00::1".parse::<IpAddr>().expect("an address")]);
    }
    let ranks = |has_ipv6| {
        let mut all = [global, "fd00::1", "10.0.0.1"].map(|text| text.parse().expect("one"));
        all.sort_by_key(|address: &IpAddr| rank(*address, has_ipv6));
        all.map(|address| address.to_string())
    };
    assert_eq!(ranks(true), [global, "10.0.0.1", "fd00::1"]);
    assert_eq!(ranks(false)[0], "10.0.0.1");
}

/// The time is the same from everywhere: see `heard` for each resolver's.
#[test]
fn every_name_that_is_asked_for_costs_its_time() {
    use crate::fault::{FaultSet, Place};
    let asked = |pool, by, fault: FaultKind, name: &str| {
        let (mut world, origin) = pod_on(pool, false, Told::default());
        with_services(&mut world);
        world.faults = FaultSet::from_iter([fault.on(Place::Everywhere)]);
        let query = Query {
            by,
            ..Query::address(name)
        };
        let seen = lookup(&world, &origin, &query);
        let found = seen.answer.is_ok();
        (seen.asked.len(), found, seen.took.as_secs())
    };
    let (linux, slow, down) = (Pool::Linux, FaultKind::DnsSlow, FaultKind::DnsDown);
    let system = Resolver::System;
    for (pool, by, fault, name, expected) in [
        (linux, system, slow, "web", (1, true, 4)),
        (linux, system, slow, "web.app", (2, true, 8)),
        (linux, system, slow, "nobody", (4, false, 16)),
        (WINDOWS, system, slow, "web", (1, true, 4)),
        (
            WINDOWS,
            system,
            slow,
            "web.app.svc.cluster.local",
            (1, true, 4),
        ),
        (linux, system, down, "web", (1, false, 10)),
        (linux, Resolver::Cares, down, "web", (1, false, 14)),
        (WINDOWS, system, down, "web", (1, false, 10)),
    ] {
        assert_eq!(
            asked(pool, by, fault, name),
            expected,
            "{by:?}, {fault:?} on {pool}: {name}"
        );
    }
}

#[test]
fn a_pods_own_config_counts_as_its_policy_says() {
    use crate::fault::{FaultSet, Place};
    let config = serde_json::json!({"nameservers": ["10.97.0.1", "1.1.1.1"],
        "searches": ["default.svc.cluster.local."], "options": [{"name": "ndots", "value": "2"}]});
    let of = |pool, policy: &str, fault: Option<FaultKind>| {
        let told = Told {
            dns_policy: policy.to_owned(),
            dns_config: serde_json::from_value(config.clone()).expect("a config"),
            ..Told::default()
        };
        let (mut world, origin) = pod_on(pool, false, told);
        if let Some(kind) = fault {
            world.faults = FaultSet::from_iter([kind.on(Place::Everywhere)]);
        }
        let seen = settings(&world, &origin);
        let server = seen.server.map(|server| server.to_string());
        (
            server.unwrap_or_default(),
            seen.searches.join(" "),
            seen.ndots,
        )
    };
    let seen =
        |server: &str, searches: &str, ndots| (server.to_owned(), searches.to_owned(), ndots);
    let (own, first) = ("default.svc.cluster.local", "app.svc.cluster.local");
    let all = format!("{first} svc.cluster.local cluster.local {own}");
    for pool in [Pool::Linux, WINDOWS] {
        assert_eq!(of(pool, "None", None), seen("10.97.0.1", own, 2));
    }
    assert_eq!(of(Pool::Linux, "", None), seen("10.96.0.10", &all, 2));
    assert_eq!(of(WINDOWS, "", None), seen("10.96.0.10", first, 2));
    let ignored = of(WINDOWS, "None", Some(FaultKind::DnsConfigIgnored));
    assert_eq!(ignored, seen("10.96.0.10", first, 5));
}
