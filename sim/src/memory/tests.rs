use serde_json::json;

use super::*;
use crate::topology::{Build, NodeSpec, Pool};

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
                    "containers": [{"name": "main", "image": "registry.k8s.io/e2e-test-images/agnhost:2.55", "args": args}]}});
            memory.apply(&pod).expect("a pod");
        }
        let host = json!({"hostNetwork": true, "nodeName": pool.to_string(),
            "securityContext": {"windowsOptions": {"hostProcess": true}},
            "containers": [{"name": "main", "image": "registry.k8s.io/e2e-test-images/agnhost:2.55"}]});
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
    let argv = [
        program,
        "-s",
        "-S",
        "-q",
        "-g",
        "--connect-timeout",
        "5",
        url,
    ];
    let request = Request {
        namespace: "test".to_owned(),
        pod: pod.to_owned(),
        argv: argv.map(str::to_owned).to_vec(),
        ..Request::default()
    };
    memory.exec(&request).expect("the pod runs")
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
