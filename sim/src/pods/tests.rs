//! Lives of pods in paused time, as an API server is told of them.

use std::sync::Arc;

use serde_json::{Value, json};

use super::facets::scene::Scene;
use super::facets::stub::path;
use super::run::PodRun;
use crate::world::Key;

const AGNHOST: &str = "registry.k8s.io/e2e-test-images/agnhost:2.66.1";

/// A cluster and what is asked of its pods.
struct Life(Scene);

impl Life {
    async fn begin() -> Self {
        Self(Scene::begin().await)
    }

    /// A pod of one container, `main`, on a node.
    fn create(&self, node: &str, name: &str, container: Value) {
        self.create_with(node, name, container, json!({}));
    }

    fn create_with(&self, node: &str, name: &str, mut container: Value, mut spec: Value) {
        container["name"] = json!("main");
        container["image"] = json!(AGNHOST);
        spec["nodeName"] = json!(node);
        spec["containers"] = json!([container]);
        let meta = json!({"name": name, "namespace": "test", "uid": name, "generation": 1});
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec});
        self.0.stub.state().create(pod);
    }

    fn pod(&self, name: &str) -> Value {
        self.0.stub.state().objects[&path("test", name)].clone()
    }

    fn container(&self, name: &str) -> Value {
        self.pod(name)["status"]["containerStatuses"][0].clone()
    }

    /// What was told of the pod for a reason.
    fn told(&self, name: &str, reason: &str) -> Vec<String> {
        let state = self.0.stub.state();
        let of =
            |event: &&Value| event["involvedObject"]["name"] == name && event["reason"] == reason;
        let events = state.objects.values().filter(of);
        let words = events.map(|event| event["message"].as_str().unwrap_or_default().to_owned());
        words.collect()
    }
}

#[tokio::test(start_paused = true)]
async fn probes_reach_what_they_name_from_the_node() {
    let life = Life::begin().await;
    let netexec = json!(["netexec", "--http-port=80"]);
    life.create("ws2022-a", "web", json!({"args": netexec}));
    life.0.pass(30).await;
    let web = life.pod("web")["status"]["podIP"].clone();
    let get = |host: &Value, port: u16, path: &str| json!({"httpGet": {"host": host, "port": port, "path": path}});
    let open = |host: &Value, port: u16| json!({"tcpSocket": {"host": host, "port": port}});
    let probed = [
        ("elsewhere", json!(["pause"]), get(&web, 80, "/"), Ok(())),
        (
            "missing",
            json!(["pause"]),
            get(&web, 80, "/shell"),
            Err("HTTP probe failed with statuscode: 501"),
        ),
        ("opened", json!(["pause"]), open(&web, 80), Ok(())),
        (
            "nobody",
            json!(["pause"]),
            open(&json!("10.244.1.250"), 80),
            Err("dial tcp 10.244.1.250:80: i/o timeout"),
        ),
    ];
    for (name, args, probe, _) in &probed {
        let mut probe = probe.clone();
        // It listens by then
        probe["initialDelaySeconds"] = json!(10);
        life.create(
            "linux",
            name,
            json!({"args": args, "readinessProbe": probe}),
        );
    }
    life.0.pass(60).await;
    for (name, _, _, expected) in probed {
        let ready = &life.container(name)["ready"];
        assert_eq!(ready, expected.is_ok(), "{name}");
        let told = life.told(name, "Unhealthy");
        let Err(words) = expected else {
            assert!(told.is_empty(), "{name}: {told:?}");
            continue;
        };
        let own = life.pod(name)["status"]["podIP"].clone();
        let words = words.replace("IP", own.as_str().expect("an address"));
        let words = format!("Readiness probe failed: {words}");
        assert!(
            told.iter().any(|told| told.starts_with(&words)),
            "{name}: {told:?}"
        );
    }
    life.0.end().await;
}

impl Life {
    fn run(&self, name: &str) -> Arc<PodRun> {
        let cluster = &self.0.cluster;
        let key = Key::new("test", name);
        let mut nodes = cluster.nodes.values();
        let run = nodes.find_map(|node| cluster.runs(node).get(&key).map(Arc::clone));
        run.expect("it runs")
    }

    /// A file of the pod's container, as a program there reads it now.
    fn file(&self, name: &str, path: &str) -> Option<String> {
        let run = self.run(name);
        let place = run.book().container("main")?.place.clone()?;
        let bytes = place.files.read(path).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn config_map(&self, value: Option<&str>) {
        let path = "/api/v1/namespaces/test/configmaps/settings".to_owned();
        let objects = &mut self.0.stub.state().objects;
        match value {
            Some(value) => {
                let object = json!({"metadata": {"name": "settings"}, "data": {"key": value}});
                objects.insert(path, object)
            }
            None => objects.remove(&path),
        };
    }
}

#[tokio::test(start_paused = true)]
async fn volumes_follow_what_they_are_made_of_and_parts_of_them_do_not() {
    let life = Life::begin().await;
    life.config_map(Some("1"));
    let from = json!({"configMapKeyRef": {"name": "settings", "key": "key"}});
    let mount = |name: &str, path: &str| json!({"name": name, "mountPath": path});
    let mut part = mount("settings", "/part");
    part["subPath"] = json!("key");
    let container = json!({"args": ["pause"],
        "env": [{"name": "KEY", "valueFrom": from}],
        "volumeMounts": [mount("settings", "/whole"), part, mount("all", "/all")]});
    let settings = json!({"name": "settings"});
    let labels = json!([{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]);
    let sources = json!([{"configMap": settings}, {"downwardAPI": {"items": labels}}]);
    let volumes = json!([{"name": "settings", "configMap": settings},
        {"name": "all", "projected": {"sources": sources}}]);
    life.create_with("linux", "reader", container, json!({"volumes": volumes}));
    let seen = || {
        let file = |path: &str| life.file("reader", path).unwrap_or_default();
        [file("/whole/key"), file("/all/key"), file("/part")]
    };
    life.0.pass(30).await;
    assert_eq!(seen(), ["1", "1", "1"]);
    life.config_map(Some("2"));
    life.0.pass(20).await;
    assert_eq!(seen(), ["1", "1", "1"], "nothing has happened to the pod");
    life.0.pass(60).await;
    assert_eq!(seen(), ["2", "2", "1"]);
    // A change of the pod itself makes the kubelet look at once
    life.config_map(Some("3"));
    let mut pod = life.pod("reader");
    pod["metadata"]["labels"] = json!({"a": "b"});
    let path = path("test", "reader");
    life.0.stub.state().tell("MODIFIED", &path, pod);
    life.0.pass(2).await;
    assert_eq!(seen(), ["3", "3", "1"]);
    assert_eq!(
        life.file("reader", "/all/labels").as_deref(),
        Some("a=\"b\"")
    );
    // What is gone stays as it was, and is asked for until it is there again
    life.config_map(None);
    life.0.pass(300).await;
    assert_eq!(seen(), ["3", "3", "1"]);
    let words =
        "MountVolume.SetUp failed for volume \"settings\" : configmap \"settings\" not found";
    let told = life.told("reader", "FailedMount");
    assert!(told.iter().any(|told| told == words), "{told:?}");
    life.config_map(Some("4"));
    life.0.pass(150).await;
    assert_eq!(seen(), ["4", "4", "1"]);
    let run = life.run("reader");
    let place = run
        .book()
        .container("main")
        .and_then(|main| main.place.clone());
    assert_eq!(place.expect("it runs").env["KEY"], "1");
    life.0.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_reads_its_changed_labels_at_once() {
    let life = Life::begin().await;
    let items = json!([{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]);
    let container = json!({"args": ["pause"],
        "volumeMounts": [{"name": "own", "mountPath": "/own"}]});
    let volumes = json!([{"name": "own", "downwardAPI": {"items": items}}]);
    life.create_with("linux", "reader", container, json!({"volumes": volumes}));
    life.0.pass(30).await;
    for turn in 0..20 {
        let mut pod = life.pod("reader");
        pod["metadata"]["labels"] = json!({"turn": turn.to_string()});
        let path = path("test", "reader");
        life.0.stub.state().tell("MODIFIED", &path, pod);
        life.0.pass(1).await;
        let text = format!("turn=\"{turn}\"");
        assert_eq!(life.file("reader", "/own/labels"), Some(text));
    }
    life.0.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_was_waiting_when_its_pod_ended_is_terminated() {
    let life = Life::begin().await;
    let fails = json!({"command": ["sh", "-c", "exit 3"]});
    for name in ["evicted", "deleted"] {
        life.create("linux", name, fails.clone());
    }
    life.create_with(
        "linux",
        "late",
        fails,
        json!({"activeDeadlineSeconds": 245}),
    );
    // Its init container never ends well, and it never begins
    let init = json!([{"name": "first", "image": AGNHOST, "command": ["sh", "-c", "exit 4"]}]);
    let never = json!({"initContainers": init});
    life.create_with("linux", "uninitialized", json!({"args": ["pause"]}), never);
    life.0.pass(150).await;
    for name in ["evicted", "deleted", "late"] {
        let state = &life.container(name)["state"]["waiting"]["reason"];
        assert_eq!(*state, "CrashLoopBackOff", "{name}");
    }
    life.0.stub.state().delete(&path("test", "deleted"));
    // Past its next run, and what is not told of that at once
    life.0.pass(90).await;
    let fault = "memory-pressure".parse().expect("a fault");
    life.0.set(&[fault]);
    life.0.pass(120).await;
    for (name, reason) in [("evicted", "Evicted"), ("late", "DeadlineExceeded")] {
        let status = &life.pod(name)["status"];
        assert_eq!(
            (&status["phase"], &status["reason"]),
            (&json!("Failed"), &json!(reason))
        );
        let container = life.container(name);
        let ended = &container["state"]["terminated"];
        let lost = "The container could not be located when the pod was terminated";
        assert_eq!(ended["exitCode"], 137, "{name}: {ended}");
        assert_eq!(ended["reason"], "ContainerStatusUnknown", "{name}");
        assert_eq!(ended["message"], lost, "{name}");
        assert!(ended["finishedAt"].is_null(), "{name}: {ended}");
        assert_eq!(
            container["lastState"]["terminated"]["exitCode"], 3,
            "{name}"
        );
    }
    let deleted = life.container("deleted");
    assert_eq!(deleted["state"]["terminated"]["exitCode"], 3, "{deleted}");
    assert_eq!(
        deleted["state"]["terminated"]["reason"], "Error",
        "{deleted}"
    );
    let status = &life.pod("uninitialized")["status"];
    let first = &status["initContainerStatuses"][0]["state"]["terminated"];
    assert_eq!(first["reason"], "ContainerStatusUnknown", "{status}");
    let waiting = &life.container("uninitialized")["state"]["waiting"]["reason"];
    assert_eq!(*waiting, "PodInitializing", "{status}");
    life.0.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_status_is_sent_when_it_is_another_and_not_at_each_look() {
    let life = Life::begin().await;
    let probe = |path: &str| json!({"httpGet": {"path": path, "port": 80}, "periodSeconds": 1});
    let args = json!(["netexec", "--http-port=80"]);
    for (name, node) in [("web", "linux"), ("windows", "ws2022-a")] {
        let healthz = probe("/healthz");
        let container = json!({"args": args, "readinessProbe": healthz, "livenessProbe": healthz});
        life.create(node, name, container);
    }
    let never =
        json!({"args": args, "readinessProbe": {"tcpSocket": {"port": 81}, "periodSeconds": 1}});
    life.create("linux", "unready", never);
    let sent = |name: &str| life.0.stub.state().reports[&path("test", name)];
    life.0.pass(30).await;
    // Without a sandbox, with one, and with a container that runs; then it is ready, or never
    let begun = [("web", 4), ("windows", 4), ("unready", 3)];
    assert_eq!(begun.map(|(name, _)| (name, sent(name))), begun);
    life.0.pass(600).await;
    assert_eq!(begun.map(|(name, _)| (name, sent(name))), begun);
    // What others set is set right again, once
    let say_ready = |status: &str| {
        let mut pod = life.pod("web");
        for condition in pod["status"]["conditions"].as_array_mut().expect("some") {
            if condition["type"] == "Ready" {
                condition["status"] = json!(status);
            }
        }
        life.0
            .stub
            .state()
            .tell("MODIFIED", &path("test", "web"), pod);
    };
    for (status, reports) in [("True", 4), ("False", 5)] {
        say_ready(status);
        life.0.pass(60).await;
        assert_eq!(sent("web"), reports, "{status}");
    }
    for (name, _) in begun {
        life.0.stub.state().delete(&path("test", name));
    }
    life.0.pass(60).await;
    // And what has ended
    let lived = [("web", 6), ("windows", 5), ("unready", 4)];
    assert_eq!(lived.map(|(name, _)| (name, sent(name))), lived);
    life.0.end().await;
}

/// N08: KEP-3503, withdrawn in 1.33: the API takes `hostNetwork` of any pod, and Windows gives it to
/// `HostProcess` pods alone.
#[tokio::test(start_paused = true)]
async fn n08_ordinary_windows_pods_are_not_on_their_nodes_network() {
    let life = Life::begin().await;
    let ordinary = json!({});
    let host_process = json!({"windowsOptions": {"hostProcess": true}});
    let pods = [
        ("linux", "linux", &ordinary, true),
        ("ws2022-a", "ordinary", &ordinary, false),
        ("ws2022-a", "host-process", &host_process, true),
    ];
    for (node, name, security_context, _) in pods {
        let spec = json!({"hostNetwork": true, "securityContext": security_context});
        life.create_with(node, name, json!({"args": ["pause"]}), spec);
    }
    life.0.pass(30).await;
    for (_, name, _, on_node) in pods {
        let status = &life.pod(name)["status"];
        assert!(status["podIP"].is_string(), "{name}");
        assert_eq!(status["podIP"] == status["hostIP"], on_node, "{name}");
    }
    life.0.end().await;
}
