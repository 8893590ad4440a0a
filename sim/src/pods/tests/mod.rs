//! Lives of pods in paused time, as they are reported to an API server.

mod ends;
mod faults;
mod scene;
mod stub;

use serde_json::{Value, json};

use scene::{AGNHOST, Scene};
use stub::path;

#[tokio::test(start_paused = true)]
async fn probes_reach_what_they_name_from_the_node() {
    let scene = Scene::begin().await;
    let netexec = json!(["netexec", "--http-port=80"]);
    scene.create("ws2022-a", "web", json!({"args": netexec}));
    scene.pass(30).await;
    let web = scene.pod("web")["status"]["podIP"].clone();
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
        scene.create(
            "linux",
            name,
            json!({"args": args, "readinessProbe": probe}),
        );
    }
    scene.pass(60).await;
    for (name, _, _, expected) in probed {
        let ready = &scene.container(name)["ready"];
        assert_eq!(ready, expected.is_ok(), "{name}");
        let told = scene.events_of(name, "Unhealthy");
        let Err(words) = expected else {
            assert!(told.is_empty(), "{name}: {told:?}");
            continue;
        };
        let own = scene.pod(name)["status"]["podIP"].clone();
        let words = words.replace("IP", own.as_str().expect("an address"));
        let words = format!("Readiness probe failed: {words}");
        assert!(
            told.iter().any(|told| told.starts_with(&words)),
            "{name}: {told:?}"
        );
    }
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn volumes_follow_what_they_are_made_of_and_parts_of_them_do_not() {
    let scene = Scene::begin().await;
    scene.config_map(Some("1"));
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
    scene.create_with("linux", "reader", container, json!({"volumes": volumes}));
    let seen = || {
        let file = |path: &str| scene.file("reader", path).unwrap_or_default();
        [file("/whole/key"), file("/all/key"), file("/part")]
    };
    scene.pass(30).await;
    assert_eq!(seen(), ["1", "1", "1"]);
    scene.config_map(Some("2"));
    scene.pass(20).await;
    assert_eq!(seen(), ["1", "1", "1"], "nothing has happened to the pod");
    scene.pass(60).await;
    assert_eq!(seen(), ["2", "2", "1"]);
    // A change of the pod itself makes the kubelet sync at once
    scene.config_map(Some("3"));
    let mut pod = scene.pod("reader");
    pod["metadata"]["labels"] = json!({"a": "b"});
    let path = path("test", "reader");
    scene.stub.state().tell("MODIFIED", &path, pod);
    scene.pass(2).await;
    assert_eq!(seen(), ["3", "3", "1"]);
    assert_eq!(
        scene.file("reader", "/all/labels").as_deref(),
        Some("a=\"b\"")
    );
    // A volume of a missing object stays as it was, and the kubelet retries until the object is back
    scene.config_map(None);
    scene.pass(300).await;
    assert_eq!(seen(), ["3", "3", "1"]);
    let words =
        "MountVolume.SetUp failed for volume \"settings\" : configmap \"settings\" not found";
    let told = scene.events_of("reader", "FailedMount");
    assert!(told.iter().any(|told| told == words), "{told:?}");
    scene.config_map(Some("4"));
    scene.pass(150).await;
    assert_eq!(seen(), ["4", "4", "1"]);
    assert_eq!(scene.place("reader").env["KEY"], "1");
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_optional_may_be_absent() {
    let scene = Scene::begin().await;
    for (name, optional) in [("may", true), ("must", false)] {
        let map = json!({"name": "nowhere", "key": "key", "optional": optional});
        let env = json!([{"name": "A", "valueFrom": {"configMapKeyRef": map}}]);
        let all = json!([{"configMapRef": {"name": "nowhere", "optional": optional}}]);
        let container = json!({"args": ["pause"], "env": env, "envFrom": all});
        scene.create("linux", name, container);
    }
    scene.pass(30).await;
    assert_eq!(scene.container("may")["ready"], true);
    let waiting = &scene.container("must")["state"]["waiting"];
    let words = json!({"reason": "CreateContainerConfigError",
        "message": "configmap \"nowhere\" not found"});
    assert_eq!(*waiting, words);
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_reads_its_changed_labels_at_once() {
    let scene = Scene::begin().await;
    let items = json!([{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]);
    let container = json!({"args": ["pause"],
        "volumeMounts": [{"name": "own", "mountPath": "/own"}]});
    let volumes = json!([{"name": "own", "downwardAPI": {"items": items}}]);
    scene.create_with("linux", "reader", container, json!({"volumes": volumes}));
    scene.pass(30).await;
    for turn in 0..20 {
        let mut pod = scene.pod("reader");
        pod["metadata"]["labels"] = json!({"turn": turn.to_string()});
        let path = path("test", "reader");
        scene.stub.state().tell("MODIFIED", &path, pod);
        scene.pass(1).await;
        let text = format!("turn=\"{turn}\"");
        assert_eq!(scene.file("reader", "/own/labels"), Some(text));
    }
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_was_waiting_when_its_pod_ended_is_terminated() {
    let scene = Scene::begin().await;
    let fails = json!({"command": ["sh", "-c", "exit 3"]});
    for name in ["evicted", "deleted"] {
        scene.create("linux", name, fails.clone());
    }
    scene.create_with(
        "linux",
        "late",
        fails,
        json!({"activeDeadlineSeconds": 245}),
    );
    // The init container never succeeds, so the main container never begins
    let init = json!([{"name": "first", "image": AGNHOST, "command": ["sh", "-c", "exit 4"]}]);
    let never = json!({"initContainers": init});
    scene.create_with("linux", "uninitialized", json!({"args": ["pause"]}), never);
    scene.pass(150).await;
    for name in ["evicted", "deleted", "late"] {
        let state = &scene.container(name)["state"]["waiting"]["reason"];
        assert_eq!(*state, "CrashLoopBackOff", "{name}");
    }
    scene.stub.state().delete(&path("test", "deleted"));
    // Past the next run, which is not reported at once
    scene.pass(90).await;
    scene.set("memory-pressure");
    scene.pass(120).await;
    for (name, reason) in [("evicted", "Evicted"), ("late", "DeadlineExceeded")] {
        let status = &scene.pod(name)["status"];
        assert_eq!(
            (&status["phase"], &status["reason"]),
            (&json!("Failed"), &json!(reason))
        );
        let container = scene.container(name);
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
    let deleted = scene.container("deleted");
    assert_eq!(deleted["state"]["terminated"]["exitCode"], 3, "{deleted}");
    assert_eq!(
        deleted["state"]["terminated"]["reason"], "Error",
        "{deleted}"
    );
    let status = &scene.pod("uninitialized")["status"];
    let first = &status["initContainerStatuses"][0]["state"]["terminated"];
    assert_eq!(first["reason"], "ContainerStatusUnknown", "{status}");
    let waiting = &scene.container("uninitialized")["state"]["waiting"]["reason"];
    assert_eq!(*waiting, "PodInitializing", "{status}");
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_status_is_sent_when_it_is_another_and_not_at_each_look() {
    let scene = Scene::begin().await;
    let probe = |path: &str| json!({"httpGet": {"path": path, "port": 80}, "periodSeconds": 1});
    let args = json!(["netexec", "--http-port=80"]);
    for (name, node) in [("web", "linux"), ("windows", "ws2022-a")] {
        let healthz = probe("/healthz");
        let container = json!({"args": args, "readinessProbe": healthz, "livenessProbe": healthz});
        scene.create(node, name, container);
    }
    let never =
        json!({"args": args, "readinessProbe": {"tcpSocket": {"port": 81}, "periodSeconds": 1}});
    scene.create("linux", "unready", never);
    let sent = |name: &str| scene.stub.state().reports[&path("test", name)];
    scene.pass(30).await;
    // One report each: without a sandbox, with one, with a running container, and ready unless it never is
    let begun = [("web", 4), ("windows", 4), ("unready", 3)];
    assert_eq!(begun.map(|(name, _)| (name, sent(name))), begun);
    scene.pass(600).await;
    assert_eq!(begun.map(|(name, _)| (name, sent(name))), begun);
    // The kubelet corrects once what others set
    let say_ready = |status: &str| {
        let mut pod = scene.pod("web");
        for condition in pod["status"]["conditions"].as_array_mut().expect("some") {
            if condition["type"] == "Ready" {
                condition["status"] = json!(status);
            }
        }
        scene
            .stub
            .state()
            .tell("MODIFIED", &path("test", "web"), pod);
    };
    for (status, reports) in [("True", 4), ("False", 5)] {
        say_ready(status);
        scene.pass(60).await;
        assert_eq!(sent("web"), reports, "{status}");
    }
    for (name, _) in begun {
        scene.stub.state().delete(&path("test", name));
    }
    scene.pass(60).await;
    // One more report of the end
    let lived = [("web", 6), ("windows", 5), ("unready", 4)];
    assert_eq!(lived.map(|(name, _)| (name, sent(name))), lived);
    scene.end().await;
}

/// N08: KEP-3503, withdrawn in 1.33: the API accepts `hostNetwork` in any pod, and Windows gives it
/// to `HostProcess` pods only.
#[tokio::test(start_paused = true)]
async fn n08_ordinary_windows_pods_are_not_on_their_nodes_network() {
    let scene = Scene::begin().await;
    let ordinary = json!({});
    let host_process = json!({"windowsOptions": {"hostProcess": true}});
    let pods = [
        ("linux", "linux", &ordinary, true),
        ("ws2022-a", "ordinary", &ordinary, false),
        ("ws2022-a", "host-process", &host_process, true),
    ];
    for (node, name, security_context, _) in pods {
        let spec = json!({"hostNetwork": true, "securityContext": security_context});
        scene.create_with(node, name, json!({"args": ["pause"]}), spec);
    }
    scene.pass(30).await;
    for (_, name, _, on_node) in pods {
        let status = &scene.pod(name)["status"];
        assert!(status["podIP"].is_string(), "{name}");
        assert_eq!(status["podIP"] == status["hostIP"], on_node, "{name}");
    }
    scene.end().await;
}
