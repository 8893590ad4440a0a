//! How containers end: as their programs do or killed, when their pods are deleted and when they alone
//! are ended.

use serde_json::{Value, json};

use super::scene::{AGNHOST, Scene};
use super::stub::path;
use crate::fault::ProductFault;
use crate::world::Key;

fn pod(name: &str, command: &[&str], probe: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "test", "uid": name},
        "spec": {"nodeName": "linux", "containers": [{"name": "main", "image": AGNHOST,
            "command": command, "livenessProbe": probe}]}})
}

const PAUSE: &[&str] = &["/agnhost", "pause"];

#[tokio::test(start_paused = true)]
async fn a_container_ends_as_its_program_takes_it() {
    let said = "Paused\nSignals registered\nexiting because of signal \"terminated\"\n";
    let started = "Started HTTP server on port 8080\n";
    let pods: [(&str, &[&str], i32, u64, &str); 4] = [
        ("exits", PAUSE, 2, 0, said),
        ("ignores", &["sleep", "1000"], 137, 30, ""),
        (
            "lingers",
            &["/agnhost", "netexec", "--delay-shutdown=5"],
            0,
            5,
            started,
        ),
        (
            "hangs",
            &["/agnhost", "netexec", "--delay-shutdown=99"],
            137,
            30,
            started,
        ),
    ];
    let scene = Scene::begin().await;
    for (name, command, ..) in pods {
        let pod = pod(name, command, &Value::Null);
        scene.stub.state().create(pod);
    }
    scene.pass(20).await;
    let mut logs = Vec::new();
    for (name, ..) in pods {
        let runs = scene.cluster.runs(&scene.cluster.nodes["linux"]);
        let run = runs[&Key::new("test", name)].clone();
        let log = run.book().containers[0].log.clone();
        logs.push(log);
        scene.stub.state().delete(&path("test", name));
    }
    scene.pass(60).await;
    for ((name, _, code, seconds, printed), log) in pods.into_iter().zip(logs) {
        let state = scene.stub.state();
        let path = path("test", name);
        let ended = &state.objects[&path]["status"]["containerStatuses"][0]["state"];
        let took = state.deleted[&path].1.expect("it has ended").as_secs();
        let seen = (&ended["terminated"]["exitCode"], took);
        assert_eq!(seen, (&json!(code), seconds), "{name}");
        let mut log = log.from_start();
        let lines: Vec<u8> = std::iter::from_fn(|| log.next())
            .flat_map(|line| line.bytes)
            .collect();
        assert_eq!(String::from_utf8_lossy(&lines), printed, "{name}");
    }
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn grace_is_ignored_where_a_pod_is_deleted_alone() {
    let scene = Scene::begin().await;
    let fault: ProductFault = "grace-ignored".parse().expect("a fault");
    scene.cluster.faults.set(fault);
    let fails = json!({"exec": {"command": ["sh", "-c", "exit 1"]}, "periodSeconds": 10,
        "failureThreshold": 1});
    scene.stub.state().create(pod("fails", PAUSE, &fails));
    scene.stub.state().create(pod("lives", PAUSE, &Value::Null));
    scene.pass(30).await;
    scene.stub.state().delete(&path("test", "lives"));
    scene.pass(60).await;
    let code = |name: &str, of: &str| {
        let state = scene.stub.state();
        let status = &state.objects[&path("test", name)]["status"];
        status["containerStatuses"][0][of]["terminated"]["exitCode"].clone()
    };
    assert_eq!(code("fails", "lastState"), 2);
    assert_eq!(code("lives", "state"), 137);
    scene.end().await;
}
