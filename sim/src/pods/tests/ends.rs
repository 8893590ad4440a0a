//! How containers end, by their programs or killed: when their pods are deleted, and when only the
//! containers are ended.

use serde_json::{Value, json};

use super::scene::Scene;
use super::stub::path;

const PAUSE: &[&str] = &["/agnhost", "pause"];

fn delete(scene: &Scene, name: &str) {
    scene.stub.state().delete(&path("test", name));
}

#[tokio::test(start_paused = true)]
async fn a_container_ends_as_its_program_takes_it() {
    let said = "Paused\nSignals registered\nexiting because of signal \"terminated\"\n";
    let started = "Started HTTP server on port 8080\n";
    let delayed = |delay| ["/agnhost", "netexec", delay];
    let (lingers, hangs) = (
        delayed("--delay-shutdown=5"),
        delayed("--delay-shutdown=99"),
    );
    let pods: [(&str, &[&str], i32, u64, &str); 4] = [
        ("exits", PAUSE, 2, 0, said),
        ("ignores", &["sleep", "1000"], 137, 30, ""),
        ("lingers", &lingers, 0, 5, started),
        ("hangs", &hangs, 137, 30, started),
    ];
    let scene = Scene::begin().await;
    for (name, command, ..) in pods {
        scene.create("linux", name, json!({"command": command}));
    }
    scene.pass(20).await;
    let logs = pods.map(|(name, ..)| {
        let run = scene.run("test", name);
        let log = run.book().containers[0].log.clone();
        delete(&scene, name);
        log
    });
    scene.pass(60).await;
    for ((name, _, code, seconds, printed), log) in pods.into_iter().zip(logs) {
        let ended = &scene.container(name)["state"]["terminated"];
        let deleted = scene.stub.state().deleted[&path("test", name)];
        let took = deleted.1.expect("it has ended").as_secs();
        let seen = (&ended["exitCode"], took);
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
async fn a_hook_that_outlasts_the_grace_fails() {
    let scene = Scene::begin().await;
    let hooks = [("waits", "99", 1), ("in-time", "9", 0)];
    for (name, seconds, _) in hooks {
        let hook = json!({"preStop": {"exec": {"command": ["sleep", seconds]}}});
        scene.create("linux", name, json!({"command": PAUSE, "lifecycle": hook}));
    }
    scene.pass(20).await;
    for (name, ..) in hooks {
        delete(&scene, name);
    }
    scene.pass(60).await;
    for (name, _, failures) in hooks {
        let failed = scene.events_of(name, "FailedPreStopHook");
        assert_eq!(failed, vec!["PreStopHook failed"; failures], "{name}");
    }
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_last_container_that_a_probe_ends_is_stopped_with_its_pod() {
    let scene = Scene::begin().await;
    let fails = json!({"exec": {"command": ["sh", "-c", "exit 1"]}, "failureThreshold": 1});
    let probed = json!({"command": PAUSE, "livenessProbe": fails});
    for (name, policy) in [("ends", "Never"), ("goes-on", "Always")] {
        let policy = json!({"restartPolicy": policy});
        scene.create_with("linux", name, probed.clone(), policy);
    }
    scene.pass(8).await;
    let said = |name| scene.events_of(name, "Killing");
    assert_eq!(said("ends"), ["Stopping container main"]);
    let restarted = "Container main failed liveness probe, will be restarted";
    assert_eq!(said("goes-on"), [restarted]);
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn grace_is_ignored_where_a_pod_is_deleted_alone() {
    let scene = Scene::begin().await;
    scene.set("grace-ignored");
    let fails = json!({"exec": {"command": ["sh", "-c", "exit 1"]}, "periodSeconds": 10,
        "failureThreshold": 1});
    for (name, probe) in [("fails", fails), ("lives", Value::Null)] {
        let container = json!({"command": PAUSE, "livenessProbe": probe});
        scene.create("linux", name, container);
    }
    scene.pass(30).await;
    delete(&scene, "lives");
    scene.pass(60).await;
    let code = |name, of: &str| scene.container(name)[of]["terminated"]["exitCode"].clone();
    assert_eq!(code("fails", "lastState"), 2);
    assert_eq!(code("lives", "state"), 137);
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_refused_deletion_is_tried_again() {
    let scene = Scene::begin().await;
    scene.create("linux", "ends", json!({"command": PAUSE}));
    scene.pass(20).await;
    scene.stub.state().refuses = 2;
    delete(&scene, "ends");
    scene.pass(15).await;
    assert!(scene.stub.state().gone.is_empty());
    scene.pass(15).await;
    assert_eq!(scene.stub.state().gone, [path("test", "ends")]);
    scene.end().await;
}
