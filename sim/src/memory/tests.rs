use std::io::Write;

use serde_json::json;

use super::*;
use crate::topology::{Build, NodeSpec, Pool, Topology};

/// Which outcomes a sweep of requests had, and how often.
type Counts = BTreeMap<String, usize>;

fn pools() -> [Pool; 4] {
    let [old, middle, new] = Build::ALL.map(Pool::Windows);
    [Pool::Linux, old, middle, new]
}

/// A node of Linux and of each build of Windows, with a web server and a prober each, behind one
/// Service.
fn matrix() -> Memory {
    let topology = Topology {
        nodes: pools()
            .map(|pool| NodeSpec::new(pool.to_string(), pool))
            .to_vec(),
        outside: true,
        ..Topology::hybrid()
    };
    let mut memory = Memory::new(&topology, 0);
    for pool in pools() {
        for (name, args) in [
            ("web", json!(["netexec", "--http-port=80"])),
            ("prober", json!(["pause"])),
        ] {
            let pod = json!({"kind": "Pod",
                "metadata": {"namespace": "test", "name": format!("{name}-{pool}"), "labels": {"app": name}},
                "spec": {"nodeName": pool.to_string(),
                    "containers": [{"name": "main", "image": "registry.k8s.io/e2e-test-images/agnhost:2.66.1", "args": args}]}});
            memory.apply(&pod).expect("a pod");
        }
        let host = json!({"hostNetwork": true, "nodeName": pool.to_string(),
            "securityContext": {"windowsOptions": {"hostProcess": true}},
            "containers": [{"name": "main", "image": "registry.k8s.io/e2e-test-images/agnhost:2.66.1"}]});
        let name = format!("host-{pool}");
        let pod =
            json!({"kind": "Pod", "metadata": {"namespace": "test", "name": name}, "spec": host});
        memory.apply(&pod).expect("a pod");
    }
    let service = json!({"kind": "Service", "metadata": {"namespace": "test", "name": "web"},
        "spec": {"type": "NodePort", "selector": {"app": "web"},
            "ports": [{"port": 8080, "targetPort": 80}]}});
    memory.apply(&service).expect("a Service");
    memory
}

fn curl(memory: &Memory, pod: &str, url: &str) -> Reply {
    let windows = pod.contains("windows");
    let program = if windows {
        "C:\\Windows\\System32\\curl.exe"
    } else {
        "curl"
    };
    session(
        memory,
        pod,
        program,
        &format!("connect-timeout = 5\nurl = \"{url}\"\n"),
    )
}

fn session(memory: &Memory, pod: &str, program: &str, lines: &str) -> Reply {
    let head = "silent\nshow-error\nheader = \"Connection: close\"\n";
    let request = Request {
        namespace: "test".to_owned(),
        pod: pod.to_owned(),
        argv: [program, "-q", "-K", "-"].map(str::to_owned).to_vec(),
        stdin: format!("{head}{lines}").into_bytes(),
        ..Request::default()
    };
    memory.exec(&request).expect("the pod runs")
}

/// A pod of agnhost that runs one of its commands.
fn agnhost(node: Pool, name: &str, args: &[&str]) -> Value {
    json!({"kind": "Pod", "metadata": {"namespace": "test", "name": name, "labels": {"app": name}},
        "spec": {"nodeName": node.to_string(), "containers": [{"name": "main",
            "image": "registry.k8s.io/e2e-test-images/agnhost:2.66.1", "args": args}]}})
}

fn word(reply: &Reply) -> String {
    match reply {
        Reply::Ended { code: 0, .. } => "answered".to_owned(),
        Reply::Ended { code: 6, .. } => "no such name".to_owned(),
        Reply::Ended { code: 28, .. } => "timed out".to_owned(),
        other => format!("{other:?}"),
    }
}

/// From each pod and node to each pod, to the Service by address, by name and by a longer name, and
/// to its port on each node.
fn sweep(memory: &Memory) -> BTreeMap<&'static str, Counts> {
    let address = |kind, name: &str| memory.address(kind, "test", name).expect("an address");
    let service = address("Service", "web");
    let port = memory.node_port("test", "web").expect("a node port");
    let mut counts: BTreeMap<&'static str, Counts> = BTreeMap::new();
    for pool in pools() {
        let mut look = |what, pod: &str, url: String| {
            let outcome = word(&curl(memory, &format!("{pod}-{pool}"), &url));
            *counts.entry(what).or_default().entry(outcome).or_default() += 1;
        };
        for to in pools() {
            let pod = address("Pod", &format!("web-{to}"));
            look("pod to pod", "prober", format!("http://{pod}/"));
            look("node to pod", "host", format!("http://{pod}/"));
            let node = address("Node", &to.to_string());
            look(
                "pod to node port",
                "prober",
                format!("http://{node}:{port}/"),
            );
            look(
                "node to node port",
                "host",
                format!("http://{node}:{port}/"),
            );
        }
        look(
            "pod to service",
            "prober",
            format!("http://{service}:8080/"),
        );
        look("node to service", "host", format!("http://{service}:8080/"));
        look("pod to short name", "prober", "http://web:8080/".to_owned());
        look(
            "pod to longer name",
            "prober",
            "http://web.test:8080/".to_owned(),
        );
        look(
            "pod to full name",
            "prober",
            "http://web.test.svc.cluster.local:8080/".to_owned(),
        );
        look(
            "pod to outside",
            "prober",
            "http://www.example.com/".to_owned(),
        );
    }
    counts
}

fn expected(counts: &[(&'static str, &[(&str, usize)])]) -> BTreeMap<&'static str, Counts> {
    let counts = counts.iter().map(|(what, counts)| {
        let counts = counts
            .iter()
            .map(|(word, count)| ((*word).to_owned(), *count));
        (*what, counts.collect())
    });
    counts.collect()
}

#[test]
fn a_matrix_of_three_builds_and_linux_has_the_documented_outcomes() {
    let seen = sweep(&matrix());
    let requests: usize = seen.values().flat_map(BTreeMap::values).sum();
    // Past the test harness, which keeps what passing tests print
    let _ = writeln!(
        std::io::stdout(),
        "requests in one sweep of the matrix: {requests}"
    );
    assert_eq!(requests, 88);
    let documented = expected(&[
        ("pod to pod", &[("answered", 16)]),
        ("node to pod", &[("answered", 16)]),
        ("pod to node port", &[("answered", 16)]),
        // A Windows node does not reach its own
        ("node to node port", &[("answered", 13), ("timed out", 3)]),
        ("pod to service", &[("answered", 4)]),
        ("node to service", &[("answered", 1), ("timed out", 3)]),
        ("pod to short name", &[("answered", 4)]),
        // On Windows a name with a dot is complete
        (
            "pod to longer name",
            &[("answered", 1), ("no such name", 3)],
        ),
        ("pod to full name", &[("answered", 4)]),
        ("pod to outside", &[("answered", 4)]),
    ]);
    assert_eq!(seen, documented);
}

#[test]
fn the_same_requests_have_the_same_replies_and_a_lifted_fault_leaves_nothing() {
    let mut memory = matrix();
    let healthy = sweep(&memory);
    let fault = FaultKind::KubeProxyDead.on(Pool::Windows(Build::Ws2022));
    memory.break_with([fault].into_iter().collect());
    let broken = sweep(&memory);
    assert_ne!(broken, healthy);
    assert_eq!(broken["pod to pod"], healthy["pod to pod"]);
    memory.break_with(FaultSet::default());
    assert_eq!(sweep(&memory), healthy);
    assert_eq!(sweep(&matrix()), healthy);
}

#[test]
fn deleted_objects_are_gone() {
    let mut memory = matrix();
    let service = memory
        .address("Service", "test", "web")
        .expect("an address");
    let url = format!("http://{service}:8080/");
    for pool in pools() {
        memory
            .delete("Pod", "test", &format!("web-{pool}"))
            .expect("a kind");
    }
    assert!(matches!(
        curl(&memory, "prober-linux", &url),
        Reply::Ended { code: 7, .. }
    ));
    memory.delete("Service", "test", "web").expect("a kind");
    assert_eq!(word(&curl(&memory, "prober-linux", &url)), "timed out");
    assert_eq!(
        word(&curl(&memory, "prober-linux", "http://web:8080/")),
        "no such name"
    );
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    let mut memory = matrix();
    let mut error = |object: Value| {
        memory
            .apply(&object)
            .expect_err("no such thing")
            .to_string()
    };
    assert_eq!(
        error(json!({"kind": "Deployment"})),
        "`Deployment` is no kind that a cluster in memory knows"
    );
    let pod = |node: &str, image: &str| {
        json!({"kind": "Pod", "metadata": {"name": "a"},
            "spec": {"nodeName": node, "containers": [{"name": "main", "image": image}]}})
    };
    assert_eq!(
        error(pod("nowhere", "agnhost")),
        "the pod `default/a` is on no node of this cluster: `nowhere`"
    );
    assert!(
        error(pod(
            "linux",
            "mcr.microsoft.com/windows/servercore:ltsc2022"
        ))
        .contains("no match for platform")
    );
    assert!(
        error(json!({"kind": "Service", "spec": {"ports": 1}}))
            .starts_with("failed to read the Service")
    );
    let request = Request {
        pod: "nobody".to_owned(),
        ..Request::default()
    };
    assert!(matches!(
        memory.exec(&request),
        Err(MemoryError::Container { .. })
    ));
}

#[test]
fn what_is_refused_leaves_what_there_is() {
    let mut memory = matrix();
    let before = sweep(&memory);
    let web = |change: &dyn Fn(&mut Value)| {
        let mut pod = agnhost(Pool::Linux, "web-linux", &["netexec", "--http-port=80"]);
        change(&mut pod);
        pod
    };
    let nowhere = web(&|pod| pod["spec"]["nodeName"] = "nowhere".into());
    let other = web(&|pod| pod["spec"]["containers"][0]["image"] = "example.com/other:1".into());
    let second = web(&|pod| {
        let containers = pod["spec"]["containers"].as_array_mut().expect("a list");
        containers.push(json!({"name": "more", "image": "example.com/other:1"}));
    });
    for refused in [nowhere, other, second] {
        assert!(memory.apply(&refused).is_err(), "{refused}");
        assert_eq!(sweep(&memory), before, "{refused}");
    }
    // On a node that is full there is the address of the one that is replaced
    let fillers = (0..1000).map(|number| agnhost(Pool::Linux, &format!("p{number}"), &["pause"]));
    let refused = fillers
        .map(|pod| memory.apply(&pod))
        .find_map(Result::err)
        .expect("it fills up");
    assert!(matches!(refused, MemoryError::Address(_)), "{refused}");
    let again = agnhost(Pool::Linux, "p0", &["netexec", "--http-port=80"]);
    memory.apply(&again).expect("in the place of another");
    let address = memory.address("Pod", "test", "p0").expect("an address");
    let reply = curl(&memory, "prober-linux", &format!("http://{address}/"));
    assert_eq!(word(&reply), "answered");
}

#[test]
fn only_pods_that_run_and_pass_their_probes_are_ready() {
    let get = |path: &str| json!({"httpGet": {"path": path, "port": "web"}});
    for (args, probe, ready) in [
        // A pause serves nothing; nobody asks it
        (&["pause"][..], Value::Null, true),
        (&["netexec", "--http-port=80"], Value::Null, true),
        (&["netexec", "--http-port=80"], get("/hostname"), true),
        (&["netexec", "--http-port=80"], get("/shell"), false),
        (&["netexec", "--http-port=8080"], get("/hostname"), false),
        (
            &["netexec", "--http-port=80"],
            json!({"tcpSocket": {"port": 80}}),
            true,
        ),
        (&["pause"], json!({"tcpSocket": {"port": 80}}), false),
        (
            &["pause"],
            json!({"exec": {"command": ["/agnhost", "dns-suffix"]}}),
            true,
        ),
        (
            &["pause"],
            json!({"exec": {"command": ["/agnhost", "connect", "127.0.0.1:80"]}}),
            false,
        ),
        // It ends
        (&["dns-suffix"], Value::Null, false),
    ] {
        for pool in pools() {
            let mut memory = matrix();
            let mut pod = agnhost(pool, "looked-at", args);
            let container = &mut pod["spec"]["containers"][0];
            container["ports"] = json!([{"name": "web", "containerPort": 80}]);
            if !probe.is_null() {
                container["readinessProbe"] = probe.clone();
            }
            memory.apply(&pod).expect("a pod");
            for (name, too, expected) in [("some", false, ready), ("all", true, true)] {
                let service = json!({"kind": "Service",
                    "metadata": {"namespace": "test", "name": name},
                    "spec": {"selector": {"app": "looked-at"}, "ports": [{"port": 80}],
                        "publishNotReadyAddresses": too}});
                memory.apply(&service).expect("a Service");
                let key = Key::new("test", name);
                let mut slices = memory.world.slices.of(&key);
                let slice = slices.next().expect("a derived slice");
                let seen: Vec<bool> = slice.endpoints.iter().map(|each| each.ready).collect();
                assert_eq!(
                    seen,
                    [expected],
                    "{args:?} with {probe} on {pool}, `{name}`"
                );
            }
        }
    }
}

#[test]
fn services_by_the_hundred_have_addresses_and_node_ports_of_their_own_until_none_is_left() {
    let mut memory = matrix();
    let service = |number: usize| {
        json!({"kind": "Service", "metadata": {"namespace": "test", "name": format!("s{number}")},
            "spec": {"type": "NodePort", "ports": [{"port": 80}]}})
    };
    let (mut addresses, mut ports) = (BTreeSet::new(), BTreeSet::new());
    // One is taken by the Service of the matrix
    for number in 1..2768 {
        memory.apply(&service(number)).expect("there are enough");
        let name = format!("s{number}");
        addresses.insert(
            memory
                .address("Service", "test", &name)
                .expect("an address"),
        );
        ports.insert(memory.node_port("test", &name).expect("a node port"));
    }
    assert_eq!((addresses.len(), ports.len()), (2767, 2767));
    let none = memory.apply(&service(2768)).expect_err("the range is full");
    assert_eq!(
        none.to_string(),
        "no node port is left for the Service `test/s2768`"
    );
    memory.delete("Service", "test", "s7").expect("a kind");
    memory
        .apply(&service(2768))
        .expect("one has been given back");
}

#[test]
fn a_hole_lets_connections_open_and_swallows_large_answers() {
    let mut memory = matrix();
    let long = "a".repeat(3000);
    for (hole, stalls) in [
        ("mtu-black-hole=linux", true),
        ("mtu-black-hole=windows", true),
        ("mtu-black-hole=node/windows-2019", false),
    ] {
        let [linux, .., windows] = pools();
        for (from, to) in [(linux, windows), (windows, linux)] {
            let web = memory
                .address("Pod", "test", &format!("web-{to}"))
                .expect("an address");
            memory.break_with([hole.parse().expect("a fault")].into_iter().collect());
            let ask = |path: &str| {
                let lines = format!("max-time = 5\nurl = \"http://{web}/{path}\"\n");
                session(&memory, &format!("prober-{from}"), "curl", &lines)
            };
            assert_eq!(word(&ask("hostname")), "answered", "{hole}: {from} to {to}");
            let large = ask(&format!("echo?msg={long}"));
            if !stalls {
                assert_eq!(word(&large), "answered", "{hole}: {from} to {to}");
                continue;
            }
            let Reply::Ended { stderr, code, .. } = large else {
                panic!("{hole}: {from} to {to}: {large:?}")
            };
            let text = String::from_utf8_lossy(&stderr).trim_end().to_owned();
            // lib/multi.c: the timer fires a millisecond late
            let expected =
                "curl: (28) Operation timed out after 5001 milliseconds with 0 bytes received";
            assert_eq!(
                (code, text.as_str()),
                (28, expected),
                "{hole}: {from} to {to}"
            );
        }
    }
}

/// N08: KEP-3503, withdrawn in 1.33: the API takes `hostNetwork` of any pod, and Windows gives it to
/// `HostProcess` pods alone.
#[test]
fn n08_ordinary_windows_pods_are_not_on_their_nodes_network() {
    let mut memory = matrix();
    for pool in pools() {
        let mut pod = agnhost(pool, "ordinary", &["pause"]);
        pod["spec"]["hostNetwork"] = true.into();
        memory.apply(&pod).expect("a pod");
        let node = memory.address("Node", "", &pool.to_string());
        let on_node = memory.address("Pod", "test", "ordinary") == node;
        assert_eq!(on_node, pool == Pool::Linux, "{pool}");
        let host = memory.address("Pod", "test", &format!("host-{pool}"));
        assert_eq!(host, node, "HostProcess on {pool}");
    }
}
