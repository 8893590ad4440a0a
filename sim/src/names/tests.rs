use super::*;
use crate::network::Protocol;
use crate::topology::{Build, Pool};
use crate::world::{Endpoint, Key, Node, Pod, Service, ServicePort, Slice, Told};

const WINDOWS: Pool = Pool::Windows(Build::Ws2022);
const CLUSTER_DNS: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 96, 0, 10));
const NODES_DNS: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(8, 8, 8, 8));
/// Nobody is there.
const DEAD: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

/// A pod in the namespace `app`, alone on its node.
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

/// A Service with an address, a headless one with two ready backends, and external ones.
fn with_services(world: &mut World) {
    let port = |name: &str, protocol, port| ServicePort {
        name: name.to_owned(),
        protocol,
        port,
        node_port: None,
    };
    let ports = vec![
        port("http", Protocol::Tcp, 80),
        port("dns", Protocol::Udp, 53),
    ];
    let external = |name: &str| Service {
        external_name: Some(name.to_owned()),
        ..Service::default()
    };
    let web = Service {
        addresses: vec![[10, 96, 3, 4].into()],
        ports: ports.clone(),
        ..Service::default()
    };
    let headless = Service {
        ports,
        ..Service::default()
    };
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
    resolve(&world, &Origin::Pod(Key::new("default", "pod")), name, 0).is_ok()
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

/// DNS specification (kubernetes/dns, docs/specification.md, schema 1.1.0): 2.3 for Services with an
/// address, 2.4 for headless ones, 2.5 for external names; pods' names are those of `CoreDNS` with
/// `pods insecure`.
#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn records_are_those_of_the_dns_specification() {
    let (mut world, origin) = pod_on(Pool::Linux, false, Told::default());
    with_services(&mut world);
    let address = |octets: [u8; 4]| Data::Address(octets.into());
    let srv = |weight, port, target: &str| Data::Srv {
        weight,
        port,
        target: format!("{target}.app.svc.cluster.local"),
    };
    let found = Answer::Found;
    let outside = Data::Name("www.example.com".to_owned());
    for (name, record, expected) in [
        (
            "web.app.svc",
            RecordType::A,
            found(vec![address([10, 96, 3, 4])]),
        ),
        ("web.app.svc", RecordType::Aaaa, Answer::NoData),
        ("web.app.svc", RecordType::Srv, Answer::NoData),
        (
            "_http._tcp.web.app.svc",
            RecordType::Srv,
            found(vec![srv(100, 80, "web")]),
        ),
        (
            "_dns._udp.web.app.svc",
            RecordType::Srv,
            found(vec![srv(100, 53, "web")]),
        ),
        ("_http._tcp.web.app.svc", RecordType::A, Answer::NoData),
        (
            "_http._udp.web.app.svc",
            RecordType::Srv,
            Answer::NoSuchName,
        ),
        ("http._tcp.web.app.svc", RecordType::Srv, Answer::NoSuchName),
        // Those that are ready
        (
            "db.app.svc",
            RecordType::A,
            found(vec![address([10, 244, 1, 5]), address([10, 244, 1, 6])]),
        ),
        (
            "_http._tcp.db.app.svc",
            RecordType::Srv,
            found(vec![
                srv(50, 8080, "db-0.db"),
                srv(50, 8080, "10-244-1-6.db"),
            ]),
        ),
        // The slice has no such port
        ("_dns._udp.db.app.svc", RecordType::Srv, Answer::NoSuchName),
        (
            "db-0.db.app.svc",
            RecordType::A,
            found(vec![address([10, 244, 1, 5])]),
        ),
        (
            "10-244-1-6.db.app.svc",
            RecordType::A,
            found(vec![address([10, 244, 1, 6])]),
        ),
        ("10-244-1-5.db.app.svc", RecordType::A, Answer::NoSuchName),
        ("db-2.db.app.svc", RecordType::A, Answer::NoSuchName),
        ("db-0.web.app.svc", RecordType::A, Answer::NoSuchName),
        ("empty.app.svc", RecordType::A, Answer::NoSuchName),
        ("web.other.svc", RecordType::A, Answer::NoSuchName),
        ("web.app", RecordType::A, Answer::NoSuchName),
        (
            "out.app.svc",
            RecordType::A,
            found(vec![outside.clone(), address([203, 0, 113, 80])]),
        ),
        ("out.app.svc", RecordType::Aaaa, found(vec![outside])),
        (
            "lost.app.svc",
            RecordType::A,
            found(vec![Data::Name("www.nowhere.example".to_owned())]),
        ),
        (
            "10-1-2-3.app.pod",
            RecordType::A,
            found(vec![address([10, 1, 2, 3])]),
        ),
        ("a-b-c-d.app.pod", RecordType::A, Answer::NoSuchName),
    ] {
        let full = format!("{name}.cluster.local.");
        let query = Query {
            record,
            ..Query::address(&full)
        };
        let seen = lookup(&world, &origin, &query);
        assert_eq!(seen.answer, expected, "{record:?} of {full}");
    }
    for (name, expected) in [
        (
            "4.3.96.10.in-addr.arpa.",
            found(vec![Data::Name("web.app.svc.cluster.local".to_owned())]),
        ),
        ("9.9.96.10.in-addr.arpa.", Answer::NoSuchName),
    ] {
        let query = Query {
            record: RecordType::Ptr,
            ..Query::address(name)
        };
        assert_eq!(lookup(&world, &origin, &query).answer, expected, "{name}");
    }
    let second = Query {
        turn: 1,
        ..Query::address("db.app.svc.cluster.local.")
    };
    assert_eq!(
        lookup(&world, &origin, &second).answer,
        found(vec![address([10, 244, 1, 6]), address([10, 244, 1, 5])]),
        "the next turn begins with the next"
    );
}

/// System: resolv.conf(5) on Linux; on Windows dns-pod-service.md, "DNS resolution on Windows nodes".
/// The others: Kubernetes, test/e2e/windows/dns.go, and Microsoft, `nslookup set search`.
#[test]
fn resolvers_complete_names_each_in_its_way() {
    // `{}` is the name as it is
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
        (Pool::Linux, Resolver::Bind, "a", last(&all)),
        (Pool::Linux, Resolver::Bind, "a.b", first(&all)),
        (WINDOWS, Resolver::Bind, "a", last(suffix)),
        (WINDOWS, Resolver::Bind, "a.b", first(suffix)),
        (WINDOWS, Resolver::WindowsNslookup, "a", last(suffix)),
        (WINDOWS, Resolver::WindowsNslookup, "a.b", last(suffix)),
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
        assert_eq!(seen.answer, Answer::NoSuchName);
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
#[expect(clippy::too_many_lines, reason = "a table")]
fn settings_follow_the_policy_and_the_configuration_of_the_pod() {
    let config = || Told {
        nameservers: vec![[1, 1, 1, 1].into()],
        searches: vec!["own.example".to_owned()],
        ndots: Some(2),
        ..Told::default()
    };
    let full = [
        "app.svc.cluster.local",
        "svc.cluster.local",
        "cluster.local",
    ];
    let cluster = |searches: &[&'static str]| (vec![CLUSTER_DNS], searches.to_vec(), 5);
    let nodes = (vec![NODES_DNS], Vec::new(), 1);
    let own: IpAddr = [1, 1, 1, 1].into();
    for (pool, host, policy, told, expected) in [
        (Pool::Linux, false, "", Told::default(), cluster(&full)),
        (WINDOWS, false, "", Told::default(), cluster(&full[..1])),
        (
            Pool::Linux,
            false,
            "ClusterFirst",
            Told::default(),
            cluster(&full),
        ),
        (
            Pool::Linux,
            true,
            "ClusterFirst",
            Told::default(),
            nodes.clone(),
        ),
        (
            WINDOWS,
            true,
            "ClusterFirst",
            Told::default(),
            nodes.clone(),
        ),
        (
            Pool::Linux,
            true,
            "ClusterFirstWithHostNet",
            Told::default(),
            cluster(&full),
        ),
        (
            WINDOWS,
            true,
            "ClusterFirstWithHostNet",
            Told::default(),
            nodes.clone(),
        ),
        (
            Pool::Linux,
            false,
            "Default",
            Told::default(),
            nodes.clone(),
        ),
        (WINDOWS, false, "Default", Told::default(), nodes),
        (
            Pool::Linux,
            false,
            "None",
            config(),
            (vec![own], vec!["own.example"], 2),
        ),
        // test/e2e/windows/dns.go injects both so
        (
            WINDOWS,
            false,
            "None",
            config(),
            (vec![own], vec!["own.example"], 2),
        ),
        (
            Pool::Linux,
            false,
            "ClusterFirst",
            config(),
            (
                vec![CLUSTER_DNS, own],
                [&full[..], &["own.example"]].concat(),
                2,
            ),
        ),
        (
            WINDOWS,
            false,
            "ClusterFirst",
            config(),
            (vec![CLUSTER_DNS, own], full[..1].to_vec(), 2),
        ),
        (
            Pool::Linux,
            false,
            "Default",
            config(),
            (vec![NODES_DNS, own], vec!["own.example"], 2),
        ),
    ] {
        let what = format!("`{policy}` on {pool}, on the node's network: {host}");
        let told = Told {
            dns_policy: policy.to_owned(),
            ..told
        };
        let (world, origin) = pod_on(pool, host, told);
        let (servers, searches, ndots) = expected;
        let expected = Settings {
            servers,
            searches: searches.into_iter().map(str::to_owned).collect(),
            ndots,
        };
        assert_eq!(settings(&world, &origin), expected, "{what}");
    }
    let (world, _) = pod_on(Pool::Linux, false, Told::default());
    assert_eq!(settings(&world, &Origin::Outside), Settings::default());
}

/// resolv.conf(5): servers are asked in turn; who says that there is no such name is believed.
#[test]
fn the_next_server_is_asked_where_the_first_is_silent() {
    let name = "web.app.svc.cluster.local.";
    for pool in [Pool::Linux, WINDOWS] {
        let ask = |servers: &[IpAddr]| {
            let told = Told {
                dns_policy: "None".to_owned(),
                nameservers: servers.to_vec(),
                ..Told::default()
            };
            let (mut world, origin) = pod_on(pool, false, told);
            with_services(&mut world);
            lookup(&world, &origin, &Query::address(name))
        };
        let web = Answer::Found(vec![Data::Address([10, 96, 3, 4].into())]);
        let prompt = ask(&[CLUSTER_DNS, DEAD]);
        assert_eq!((prompt.server, &prompt.answer), (Some(CLUSTER_DNS), &web));
        let late = ask(&[DEAD, CLUSTER_DNS]);
        assert_eq!((late.server, &late.answer), (Some(CLUSTER_DNS), &web));
        assert!(late.took > prompt.took && late.took < PATIENCE);
        let outside = ask(&[NODES_DNS, CLUSTER_DNS]);
        assert_eq!(
            (outside.server, outside.answer),
            (Some(NODES_DNS), Answer::NoSuchName),
            "the node's own knows no name of the cluster"
        );
        let silent = ask(&[DEAD]);
        assert_eq!(
            (silent.server, silent.answer),
            (Some(DEAD), Answer::TimedOut)
        );
        assert_eq!(silent.took, PATIENCE);
        let none = ask(&[]);
        assert_eq!((none.server, none.answer), (None, Answer::TimedOut));
    }
}
