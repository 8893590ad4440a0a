//! Faults of the pods in one of two namespaces: what happens there to a running pod, to a pod that
//! starts under the fault, to a pod of the other namespace, and to a pod that starts after the
//! fault. `faults/` covers the rest of the faults that the tool can observe.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::scene::Scene;
use super::stub::path;
use crate::fault::ProductFault;

/// A Windows node, which can have each of these faults.
const NODE: &str = "ws2022-a";

const ARGV: [&str; 3] = ["cmd", "/c", "echo out& exit 3"];

/// What the test sees of a pod, by aspect.
type Seen = BTreeMap<&'static str, String>;

/// Creates a pod that always pulls, is never ready, and whose hook fails.
fn create(scene: &Scene, namespace: &str, name: &str) {
    let probe = json!({"tcpSocket": {"port": 81}, "failureThreshold": 1});
    let hook = json!({"preStop": {"exec": {"command": ["nonesuch"]}}});
    let container = json!({"args": ["pause"], "imagePullPolicy": "Always",
        "readinessProbe": probe, "lifecycle": hook});
    scene.create_in(namespace, NODE, name, container, json!({}));
}

fn status(scene: &Scene, namespace: &str, name: &str) -> Value {
    let objects = &scene.stub.state().objects;
    objects[&path(namespace, name)]["status"]["containerStatuses"][0].clone()
}

/// Observes pods that may run by now, and how they end once they are deleted.
async fn seen(scene: &Scene, pods: &[(&str, &str)]) -> Vec<Seen> {
    let mut all = Vec::new();
    for &(namespace, name) in pods {
        let container = status(scene, namespace, name);
        let pulled = scene.events_of(name, "Pulled").pop().unwrap_or_default();
        let time = pulled.split(" in ").nth(1);
        let time = time.and_then(|time| time.split(' ').next());
        let sandbox = scene.events_of(name, "FailedCreatePodSandBox").is_empty();
        let target = format!("{namespace}/{name}/main");
        let executed = scene.exec(NODE, &target, &ARGV).await;
        all.push(Seen::from([
            ("pull", time.unwrap_or_default().to_owned()),
            ("sandbox", sandbox.to_string()),
            ("restarts", (container["restartCount"] != 0).to_string()),
            ("ready", container["ready"].to_string()),
            ("exec", format!("{executed:?}")),
            (
                "log",
                scene.get(NODE, &format!("containerLogs/{target}")).await,
            ),
        ]));
        scene.stub.state().delete(&path(namespace, name));
    }
    scene.pass(60).await;
    for (&(namespace, name), seen) in pods.iter().zip(&mut all) {
        let deleted = scene
            .stub
            .state()
            .deleted
            .get(&path(namespace, name))
            .copied();
        let took = deleted.and_then(|(_, took)| Some(took?.as_secs()));
        let hook = scene.events_of(name, "FailedPreStopHook").is_empty();
        let code = &status(scene, namespace, name)["state"]["terminated"]["exitCode"];
        seen.insert("hook", hook.to_string());
        seen.insert("end", format!("{code} after {took:?}"));
    }
    all
}

/// Returns the aspects that differ.
fn changes(seen: &Seen, healthy: &Seen) -> Vec<&'static str> {
    let differ = seen
        .iter()
        .filter(|(what, value)| healthy[*what] != **value);
    differ.map(|(what, _)| *what).collect()
}

#[tokio::test(start_paused = true)]
async fn a_fault_of_a_namespace_is_of_its_pods_alone_and_heals() {
    let scene = Scene::begin().await;
    create(&scene, "test", "healthy");
    scene.pass(90).await;
    let healthy = seen(&scene, &[("test", "healthy")]).await.remove(0);
    scene.end().await;
    // What changes for the running pod, and for the pod that starts under the fault
    let cases: [(&str, &[&str], &[&str]); 13] = [
        ("pull-fails", &[], &["end", "exec", "hook", "log", "pull"]),
        ("pull-slow", &[], &["pull"]),
        (
            "sandbox-fails",
            &[],
            &["end", "exec", "hook", "log", "pull", "sandbox"],
        ),
        (
            "crash-loop",
            &["end", "exec", "hook", "restarts"],
            &["end", "exec", "hook", "restarts"],
        ),
        ("probe-ignored", &["ready"], &["ready"]),
        ("pre-stop-skipped", &["hook"], &["hook"]),
        ("grace-ignored", &["end", "hook"], &["end", "hook"]),
        ("exit-code-lost", &["end"], &["end"]),
        ("exec-refused", &["exec"], &["exec"]),
        ("exec-output-lost", &["exec"], &["exec"]),
        ("exec-rpc-unavailable", &["exec"], &["exec"]),
        ("logs-empty", &["log"], &["log"]),
        ("logs-cut", &["log"], &["log"]),
    ];
    for (fault, of_running, of_started) in cases {
        let fault = format!("{fault}=namespace/other");
        let scene = Scene::begin().await;
        create(&scene, "other", "before");
        scene.pass(90).await;
        scene.set(&fault);
        create(&scene, "other", "under");
        create(&scene, "test", "beside");
        scene.pass(90).await;
        let pods = [("other", "before"), ("other", "under"), ("test", "beside")];
        let changed = seen(&scene, &pods).await;
        for (seen, expected) in changed.iter().zip([of_running, of_started, &[]]) {
            assert_eq!(changes(seen, &healthy), expected, "{fault}");
        }
        scene.lift(&fault);
        create(&scene, "other", "after");
        scene.pass(90).await;
        let after = seen(&scene, &[("other", "after")]).await;
        assert_eq!(after, std::slice::from_ref(&healthy), "{fault}");
        scene.end().await;
    }
}

/// What the nodes report of themselves, without times and boots.
fn nodes(scene: &Scene) -> Vec<Value> {
    let state = scene.stub.state();
    let nodes = state.objects.iter();
    let nodes = nodes.filter(|(path, _)| path.starts_with("/api/v1/nodes/"));
    let said = nodes.map(|(_, node)| {
        let mut node = node.clone();
        let conditions = node["status"]["conditions"].as_array_mut();
        for condition in conditions.into_iter().flatten() {
            condition["lastHeartbeatTime"].take();
            condition["lastTransitionTime"].take();
        }
        node["status"]["nodeInfo"]["bootID"].take();
        let metadata = &node["metadata"];
        json!([
            metadata["labels"],
            metadata["annotations"],
            node["spec"],
            node["status"]
        ])
    });
    said.collect()
}

/// Sets each fault of a node, creates a pod under it, and lifts it again.
#[tokio::test(start_paused = true)]
async fn every_fault_of_a_node_heals() {
    let scene = Scene::begin().await;
    create(&scene, "test", "healthy");
    scene.pass(90).await;
    let healthy = (nodes(&scene), seen(&scene, &[("test", "healthy")]).await);
    scene.end().await;
    let mut tried = 0;
    for info in ProductFault::catalogue() {
        let fault = format!("{}=node/{NODE}", info.name);
        if fault.parse::<ProductFault>().is_err() {
            continue;
        }
        tried += 1;
        let scene = Scene::begin().await;
        scene.set(&fault);
        create(&scene, "test", "under");
        scene.pass(90).await;
        scene.lift(&fault);
        scene.pass(600).await;
        let under = scene.pod("under")["status"]["phase"].clone();
        assert_ne!(under, "Pending", "{fault}");
        create(&scene, "test", "after");
        scene.pass(90).await;
        let after = (nodes(&scene), seen(&scene, &[("test", "after")]).await);
        assert_eq!(after, healthy, "{fault}");
        scene.end().await;
    }
    assert!(tried > 40, "{tried}");
}

/// Boots and clocks, which no check of the tool covers.
#[tokio::test(start_paused = true)]
async fn a_fault_of_a_node_is_of_it_alone() {
    let scene = Scene::begin().await;
    for node in ["linux", NODE] {
        scene.create(node, &format!("on-{node}"), json!({"args": ["pause"]}));
    }
    scene.pass(60).await;
    let node = |name: &str| {
        let state = scene.stub.state();
        let object = state.objects[&format!("/api/v1/nodes/{name}")].clone();
        let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
        let lease = state.objects[&format!("{leases}/{name}")].clone();
        (object["status"].clone(), lease["spec"]["renewTime"].clone())
    };
    let boot = |name: &str| node(name).0["nodeInfo"]["bootID"].clone();
    let boots = ["linux", NODE].map(boot);
    scene.set("node-reboots=node/ws2022-a");
    scene.pass(120).await;
    let restarted = |node: &str| {
        let name = format!("on-{node}");
        let restarts = scene.container(&name)["restartCount"].clone();
        (
            restarts,
            scene.events_of(&name, "SandboxChanged").len(),
            scene.events_of(node, "Rebooted").len(),
        )
    };
    assert_eq!(
        ["linux", NODE].map(restarted),
        [(json!(0), 0, 0), (json!(1), 1, 1)]
    );
    let now = ["linux", NODE].map(boot);
    assert!(now[0] == boots[0] && now[1] != boots[1], "{now:?}");
    scene.lift("node-reboots=node/ws2022-a");

    let is_ahead = |time: &Value| {
        let time: Timestamp = time.as_str().expect("text").parse().expect("a time");
        time > Timestamp::now() + SignedDuration::from_mins(30)
    };
    for (fault, expected) in [(true, [false, true]), (false, [false; 2])] {
        match fault {
            true => scene.set("clock-wrong=node/ws2022-a"),
            false => scene.lift("clock-wrong=node/ws2022-a"),
        }
        scene.pass(20).await;
        let ahead = ["linux", NODE].map(|name| {
            let new = format!("{fault}-{name}");
            scene.create(name, &new, json!({"args": ["pause"]}));
            new
        });
        scene.pass(30).await;
        for ((name, new), expected) in ["linux", NODE].into_iter().zip(ahead).zip(expected) {
            let (status, renewed) = node(name);
            let heartbeat = &status["conditions"][0]["lastHeartbeatTime"];
            let started = &scene.pod(&new)["status"]["startTime"];
            let running = &scene.container(&new)["state"]["running"]["startedAt"];
            let times = [heartbeat, &renewed, started, running];
            assert_eq!(times.map(is_ahead), [expected; 4], "{new}: {times:?}");
        }
    }
    scene.end().await;
}
