//! A dual-stack cluster as its programs see it.

use serde_json::{Value, json};

use super::{Memory, MemoryError, Reply, Request};
use crate::topology::{Build, IpFamilies, NetworkMode, NodeSpec, Pool, Topology};

const MODERN: Pool = Pool::Windows(Build::Ws2022);
const OLD: Pool = Pool::Windows(Build::Ws2019);
const POOLS: [Pool; 3] = [Pool::Linux, OLD, MODERN];

/// A node each of Linux, Windows Server 2019 and 2022 and one of 2022 on overlay, with a web server
/// and a prober each.
fn cluster() -> Memory {
    let mut nodes: Vec<NodeSpec> = POOLS
        .map(|pool| NodeSpec::new(pool.to_string(), pool))
        .to_vec();
    let mut overlay = NodeSpec::new("overlay", MODERN);
    overlay.network.mode = NetworkMode::Overlay;
    nodes.push(overlay);
    let mut memory = cluster_of(nodes, IpFamilies::DualStack);
    for (name, spec) in [
        ("one", json!({})),
        ("both", json!({"ipFamilyPolicy": "RequireDualStack"})),
        ("six", json!({"ipFamilies": ["IPv6"]})),
    ] {
        memory.apply(&service(name, &spec)).expect("a Service");
    }
    memory
}

/// Nodes with a web server and a prober each.
fn cluster_of(nodes: Vec<NodeSpec>, ip_families: IpFamilies) -> Memory {
    let names: Vec<String> = nodes.iter().map(|node| node.name.clone()).collect();
    let topology = Topology {
        nodes,
        ip_families,
        ..Topology::hybrid()
    };
    let mut memory = Memory::new(&topology, 0);
    for node in names {
        for (name, args) in [
            ("web", json!(["netexec", "--http-port=80", "--udp-port=81"])),
            ("prober", json!(["pause"])),
        ] {
            let pod = json!({"kind": "Pod",
                "metadata": {"namespace": "test", "name": format!("{name}-{node}"), "labels": {"app": name}},
                "spec": {"nodeName": node, "containers": [{"name": "main",
                    "image": "registry.k8s.io/e2e-test-images/agnhost:2.66.1", "args": args}]}});
            memory.apply(&pod).expect("a pod");
        }
    }
    memory
}

fn service(name: &str, more: &Value) -> Value {
    let mut spec = json!({"selector": {"app": "web"},
        "ports": [{"name": "http", "port": 80}, {"name": "udp", "port": 81, "protocol": "UDP"}]});
    for (key, value) in more.as_object().expect("an object") {
        spec[key] = value.clone();
    }
    json!({"kind": "Service", "metadata": {"namespace": "test", "name": name}, "spec": spec})
}

fn run(memory: &Memory, node: &str, argv: &[&str]) -> (String, String, u32) {
    let request = Request {
        namespace: "test".to_owned(),
        pod: format!("prober-{node}"),
        argv: argv.iter().map(|&arg| arg.to_owned()).collect(),
        ..Request::default()
    };
    match memory.exec(&request).expect("the pod runs") {
        Reply::Ended {
            stdout,
            stderr,
            code,
            ..
        } => {
            let text = |bytes| String::from_utf8(bytes).expect("text");
            (text(stdout), text(stderr), code)
        }
        other => panic!("{other:?}"),
    }
}

/// A prober with Windows' own programs.
fn servercore(name: &str, node: &str) -> Value {
    json!({"kind": "Pod", "metadata": {"namespace": "test", "name": format!("prober-{name}")},
        "spec": {"nodeName": node, "containers": [{"name": "main",
            "image": "mcr.microsoft.com/windows/servercore:ltsc2022",
            "command": ["powershell", "-Command", "Start-Sleep -Seconds 86400"]}]}})
}

fn curl(node: &str) -> &'static str {
    match node {
        "linux" => "curl",
        _ => r"C:\Windows\System32\curl.exe",
    }
}

#[test]
fn services_have_the_addresses_of_their_families() {
    let memory = cluster();
    let families = |name| {
        let own = memory.addresses("Service", "test", name).into_iter();
        own.map(|own| own.is_ipv6()).collect::<Vec<_>>()
    };
    assert_eq!(families("one"), [false]);
    assert_eq!(families("both"), [false, true]);
    assert_eq!(families("six"), [true]);
    let both = super::Key::new("test", "both");
    let slices = memory.world.slices.of(&both);
    let backends: Vec<Vec<bool>> = slices
        .map(|slice| {
            slice
                .endpoints
                .iter()
                .map(|each| each.address.is_ipv6())
                .collect()
        })
        .collect();
    // Windows Server 2019 and overlay have no IPv6
    assert_eq!(backends, [vec![false; 4], vec![true; 2]]);
    let mut single = Memory::new(&Topology::hybrid(), 0);
    let refused = single.apply(&service(
        "both",
        &json!({"ipFamilyPolicy": "RequireDualStack"}),
    ));
    assert!(matches!(&refused, Err(MemoryError::Service { why, .. })
        if why.ends_with("this cluster is not configured for dual-stack services")));
}

#[test]
fn curl_takes_the_family_that_it_is_told() {
    let memory = cluster();
    let (linux, modern) = ("linux", "windows-2022");
    for (node, flag, url, code, says) in [
        (linux, "-4", "http://both/hostname", 0, "web-"),
        (linux, "-6", "http://both/hostname", 0, "web-"),
        (
            linux,
            "-4",
            "http://six/hostname",
            6,
            "Could not resolve host: six",
        ),
        (linux, "-6", "http://six/hostname", 0, "web-"),
        (linux, "-g", "http://six/hostname", 0, "web-"),
        (
            linux,
            "-6",
            "http://one/hostname",
            6,
            "Could not resolve host: one",
        ),
        (modern, "-6", "http://both/hostname", 0, "web-"),
        (modern, "-g", "http://six/hostname", 0, "web-"),
        (
            "windows-2019",
            "-6",
            "http://both/hostname",
            7,
            "both port 80",
        ),
        ("windows-2019", "-4", "http://both/hostname", 0, "web-"),
        ("overlay", "-g", "http://six/hostname", 7, "six port 80"),
        // What it prefers it need not reach
        ("overlay", "-g", "http://both/hostname", 0, "web-"),
    ] {
        let (out, err, seen) = run(&memory, node, &[curl(node), "-q", "-sS", flag, url]);
        let what = format!("{flag} {url} on {node}: {out} {err}");
        assert_eq!(seen, code, "{what}");
        assert!(out.contains(says) || err.contains(says), "{what}");
    }
    let web = memory.addresses("Pod", "test", "web-windows-2022")[1];
    for node in [linux, modern] {
        let own = memory.addresses("Pod", "test", &format!("prober-{node}"))[1];
        let url = format!("http://[{web}]/clientip");
        let (out, err, code) = run(&memory, node, &[curl(node), "-q", "-g", "-sS", &url]);
        assert_eq!(
            (out.as_str(), code),
            (format!("[{own}]:49152").as_str(), 0),
            "{err}"
        );
        let nobody = format!("http://[{web}]:99/");
        let (_, err, code) = run(&memory, node, &[curl(node), "-q", "-g", "-sS", &nobody]);
        assert!(
            code == 7 && err.contains(&format!("to {web} port 99")),
            "{err}"
        );
    }
}

#[test]
fn agnhost_dials_both_families() {
    let memory = cluster();
    let web = memory.addresses("Pod", "test", "web-linux")[1];
    for (node, to, code, says) in [
        ("linux", format!("[{web}]:80"), 0, ""),
        ("linux", "six:80".to_owned(), 0, ""),
        ("windows-2022", "six:80".to_owned(), 0, ""),
        (
            "windows-2022",
            format!("[{web}]:99"),
            1,
            "OTHER: dial tcp [",
        ),
        ("overlay", "six:80".to_owned(), 1, "unreachable network"),
    ] {
        let (_, err, seen) = run(&memory, node, &["agnhost", "connect", &to]);
        assert!(seen == code && err.contains(says), "{to} on {node}: {err}");
    }
    let from = memory.addresses("Pod", "test", "web-windows-2022")[0];
    for (protocol, port) in [("http", 80), ("udp", 81)] {
        let ask = |host: &str| {
            let url = format!(
                "http://{from}/dial?request=clientip&protocol={protocol}&host={host}&port={port}&tries=1"
            );
            run(&memory, "linux", &["curl", "-q", "-g", "-s", &url]).0
        };
        let own = memory.addresses("Pod", "test", "web-windows-2022")[1];
        assert_eq!(
            ask(&web.to_string()),
            format!("{{\"responses\":[\"[{own}]:49152\"]}}"),
            "{protocol}"
        );
        // ResolveTCPAddr takes IPv4 where there is one
        assert!(ask("both").contains("10."), "{protocol}");
    }
}

#[test]
fn ping_takes_the_family_that_it_is_told() {
    let mut memory = cluster();
    memory
        .apply(&servercore("core", "windows-2022"))
        .expect("a pod");
    memory.apply(&servercore("flat", "overlay")).expect("a pod");
    let web = memory.addresses("Pod", "test", "web-linux");
    let six = web[1].to_string();
    let (out, _, code) = run(&memory, "core", &["ping", "-n", "1", "-6", &six]);
    assert!(
        code == 0 && out.contains(&format!("Reply from {six}: time<1ms\r\n")),
        "{out}"
    );
    let (out, _, code) = run(&memory, "flat", &["ping", "-n", "1", &six]);
    assert!(code == 1 && out.contains("General failure."), "{out}");
    let four = web[0].to_string();
    let (_, _, code) = run(&memory, "core", &["ping", "-n", "1", "-6", &four]);
    assert_eq!(code, 1, "an IPv4 address is none");
    let busybox = json!({"kind": "Pod", "metadata": {"namespace": "test", "name": "prober-busybox"},
        "spec": {"nodeName": "linux", "containers": [{"name": "main",
            "image": "registry.k8s.io/e2e-test-images/busybox:1.37.0-1", "command": ["sleep", "86400"]}]}});
    memory.apply(&busybox).expect("a pod");
    let (out, _, code) = run(&memory, "busybox", &["ping", "-c", "1", "-6", &six]);
    assert!(
        code == 0 && out.contains(&format!("64 bytes from {six}: seq=0")),
        "{out}"
    );
}

#[test]
fn name_tools_show_both_families() {
    let memory = cluster();
    let both = memory.addresses("Service", "test", "both");
    let [four, six] = [both[0].to_string(), both[1].to_string()];
    let full = "both.test.svc.cluster.local";
    let (out, ..) = run(&memory, "linux", &["nslookup", full]);
    assert!(
        out.contains(&format!("Address: {four}\n")) && out.contains(&format!("Address: {six}\n"))
    );
    let (out, ..) = run(&memory, "linux", &["nslookup", "-type=AAAA", full]);
    assert!(!out.contains(&four) && out.contains(&six), "{out}");
    let mut memory = memory;
    memory
        .apply(&servercore("core", "windows-2022"))
        .expect("a pod");
    let servercore = |argv: &[&str]| run(&memory, "core", argv).0;
    let out = servercore(&["nslookup", "both"]);
    assert!(
        out.contains(&format!("Addresses:  {six}\r\n            {four}\r\n")),
        "{out}"
    );
    let out = servercore(&["powershell", "-Command", "Resolve-DnsName both"]);
    let (first, second) = (out.find("AAAA   30"), out.find(" A      30"));
    assert!(
        first.is_some() && first < second && out.contains(&six),
        "{out}"
    );
    let out = servercore(&["powershell", "-Command", "Resolve-DnsName both -Type AAAA"]);
    assert!(!out.contains(&four) && out.contains(&six), "{out}");
    let out = servercore(&["ipconfig", "/all"]);
    assert!(
        out.contains("   IPv6 Address. . . . . . . . . . . : fd00:10:244:"),
        "{out}"
    );
}

/// Whether each address is IPv6.
fn sixes(memory: &Memory, kind: &str, namespace: &str, name: &str) -> Vec<bool> {
    let own = memory.addresses(kind, namespace, name).into_iter();
    own.map(|own| own.is_ipv6()).collect()
}

#[test]
fn where_ipv6_is_first_it_is_what_everything_has_first() {
    let nodes = POOLS.map(|pool| NodeSpec::new(pool.to_string(), pool));
    let mut memory = cluster_of(nodes.to_vec(), IpFamilies::DualStackIPv6);
    for (name, spec) in [
        ("one", json!({})),
        ("both", json!({"ipFamilyPolicy": "PreferDualStack"})),
        ("four", json!({"ipFamilies": ["IPv4"]})),
    ] {
        memory.apply(&service(name, &spec)).expect("a Service");
    }
    assert_eq!(sixes(&memory, "Service", "test", "one"), [true]);
    assert_eq!(sixes(&memory, "Service", "test", "both"), [true, false]);
    assert_eq!(sixes(&memory, "Service", "test", "four"), [false]);
    for (node, first) in [
        ("linux", true),
        ("windows-2022", true),
        ("windows-2019", false),
    ] {
        let own = sixes(&memory, "Pod", "test", &format!("web-{node}"));
        let expected: &[bool] = if first { &[true, false] } else { &[false] };
        assert_eq!(own, expected, "{node}");
        assert_eq!(sixes(&memory, "Node", "", node), [true, false], "{node}");
    }
    let dns = memory.addresses("Service", "kube-system", "kube-dns");
    assert_eq!(
        dns,
        ["fd00:10:96::a"
            .parse::<std::net::IpAddr>()
            .expect("an address")]
    );
    let (out, ..) = run(&memory, "linux", &["cat", "/etc/resolv.conf"]);
    assert!(out.contains("nameserver fd00:10:96::a\n"), "{out}");
    let (out, ..) = run(&memory, "linux", &["cat", "/etc/hosts"]);
    let [six, four] = memory.addresses("Pod", "test", "prober-linux")[..] else {
        panic!("two addresses")
    };
    let lines = format!("{six}\tprober-linux\n{four}\tprober-linux\n");
    assert!(out.ends_with(&lines), "{out}");
    for (node, service, code) in [
        ("linux", "one", 0),
        ("linux", "four", 0),
        ("windows-2022", "one", 0),
        ("windows-2022", "both", 0),
        // It has no way to the name server
        ("windows-2019", "four", 6),
    ] {
        let url = format!("http://{service}/hostname");
        let (out, err, seen) = run(&memory, node, &[curl(node), "-q", "-sS", &url]);
        assert_eq!(seen, code, "{service} on {node}: {out}{err}");
    }
}

#[test]
fn with_ipv6_alone_linux_has_no_ipv4_and_windows_no_pods() {
    let nodes = [Pool::Linux, MODERN].map(|pool| NodeSpec::new(pool.to_string(), pool));
    let [linux, windows] = nodes;
    let mut memory = cluster_of(vec![linux.clone()], IpFamilies::IPv6);
    memory
        .apply(&service("one", &json!({})))
        .expect("a Service");
    assert_eq!(sixes(&memory, "Service", "test", "one"), [true]);
    assert_eq!(sixes(&memory, "Node", "", "linux"), [true]);
    let web = memory.addresses("Pod", "test", "web-linux");
    let [std::net::IpAddr::V6(own)] = web[..] else {
        panic!("{web:?}")
    };
    for (url, code) in [
        ("http://one/hostname".to_owned(), 0),
        (format!("http://[{own}]/hostname"), 0),
        ("http://10.129.1.2/hostname".to_owned(), 7),
    ] {
        let (out, err, seen) = run(&memory, "linux", &["curl", "-q", "-g", "-sS", &url]);
        assert_eq!(seen, code, "{url}: {err}");
        assert!(code != 0 || out == "web-linux", "{url}: {out}");
    }
    let (out, ..) = run(&memory, "linux", &["ip", "addr"]);
    let prober = memory.addresses("Pod", "test", "prober-linux")[0];
    assert!(
        out.contains(&format!("inet6 {prober}/64 scope global eth0\n")),
        "{out}"
    );
    assert!(!out.contains("inet 10."), "{out}");
    let refused = service("four", &json!({"ipFamilies": ["IPv4"]}));
    let refused = memory
        .apply(&refused)
        .expect_err("it is refused")
        .to_string();
    assert!(
        refused.contains("not configured on this cluster"),
        "{refused}"
    );

    let topology = Topology {
        nodes: vec![linux, windows],
        ip_families: IpFamilies::IPv6,
        ..Topology::hybrid()
    };
    let mut memory = Memory::new(&topology, 0);
    let refused = memory.apply(&servercore("core", "windows-2022"));
    let words = "no address for the pod `test/prober-core`: its node `windows-2022` runs Windows, where \
                 Kubernetes does not support single-stack \"IPv6-only\" networking";
    assert_eq!(refused.expect_err("it is refused").to_string(), words);
}
