//! A kubelet's server, through the real API server and the real `kubectl`.

use std::process::Command;

use k8s_openapi::api::core::v1::Node;
use kube::Api;
use serde_json::{Value, json};

use super::AGNHOST;
use super::scene::{Scene, is_ready, says, text};

fn shell(script: &str) -> Value {
    json!({"image": AGNHOST, "command": ["sh", "-c", script]})
}

async fn said(scene: &Scene, args: &[&str]) -> String {
    let ran = scene.kubectl(args, "").await;
    assert!(ran.status.success(), "{args:?}: {ran:?}");
    text(&ran.stdout)
}

async fn refused(scene: &Scene, args: &[&str], words: &str) {
    let ran = scene.kubectl(args, "").await;
    let error = text(&ran.stderr);
    assert!(!ran.status.success() && error.contains(words), "{error}");
}

/// Sends a request to a kubelet directly, since the API server's proxy reaches no loopback address; returns
/// body and status.
async fn ask(scene: &Scene, node: &str, path: &str) -> (String, u16) {
    let nodes: Api<Node> = Api::all(scene.client.clone());
    let object = nodes.get(&scene.node(node)).await.expect("the node");
    let status = serde_json::to_value(object.status).expect("JSON");
    let address = status["addresses"][0]["address"].as_str().expect("text");
    let port = &status["daemonEndpoints"]["kubeletEndpoint"]["Port"];
    let url = format!("https://{address}:{port}/{path}");
    let mut curl = Command::new("curl");
    curl.args(["--insecure", "--silent", "--noproxy", "*"]);
    curl.args(["--write-out", "%{http_code}", &url]);
    let ran = tokio::task::spawn_blocking(move || curl.output().expect("curl starts"));
    let mut body = text(&ran.await.expect("no panic").stdout);
    let code = body.split_off(body.len() - 3);
    (body, code.parse().expect("a status"))
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_are_followed_and_kept_of_the_run_before() {
    let name = "logs_are_followed_and_kept_of_the_run_before";
    let Some(scene) = Scene::begin(name, "logs", &[]).await else {
        return;
    };
    let mut once = scene.spec("linux-a", &shell("echo one; echo two; sleep 2"));
    once["restartPolicy"] = "Never".into();
    once["initContainers"] =
        json!([{"name": "first", "image": AGNHOST, "command": ["echo", "prepared"]}]);
    scene.pod("once", once).await;
    let crashing = shell("echo again; exit 3");
    scene.start("crashing", "linux-a", &crashing).await;
    let missing = json!({"image": "registry.example.com/nothing:1"});
    scene.start("missing", "linux-a", &missing).await;

    let running = says("/containerStatuses/0/state/running/startedAt", "");
    scene.pod_until("once", running).await;
    let followed = said(&scene, &["logs", "-f", "once"]).await;
    assert_eq!(followed, "one\ntwo\n", "it ends with the container");
    let stamped = said(&scene, &["logs", "once", "--timestamps", "--tail=1"]).await;
    assert!(
        stamped.starts_with("20") && stamped.ends_with("Z two\n"),
        "{stamped}"
    );
    let cut = said(&scene, &["logs", "once", "--limit-bytes=5"]).await;
    assert_eq!(cut, "one\nt");
    let first = said(&scene, &["logs", "once", "-c", "first"]).await;
    assert_eq!(first, "prepared\n");

    let last = says("/containerStatuses/0/lastState/terminated/reason", "Error");
    scene.pod_until("crashing", last).await;
    assert_eq!(said(&scene, &["logs", "-p", "crashing"]).await, "again\n");
    let words = "previous terminated container \"main\" in pod \"once\" not found";
    refused(&scene, &["logs", "-p", "once"], words).await;
    let reason = "/containerStatuses/0/state/waiting/reason";
    scene
        .pod_until("missing", says(reason, "ImagePullBackOff"))
        .await;
    let words = "container \"main\" in pod \"missing\" is waiting to start: trying and failing to pull image";
    refused(&scene, &["logs", "missing"], words).await;
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_carry_input_exit_codes_and_what_is_printed() {
    let name = "sessions_carry_input_exit_codes_and_what_is_printed";
    let Some(scene) = Scene::begin(name, "exec", &[]).await else {
        return;
    };
    let netexec = json!({"image": AGNHOST, "args": ["netexec"]});
    scene.start("linux", "linux-a", &netexec).await;
    let mut once = scene.spec("linux-a", &shell("sleep 4; echo done"));
    once["restartPolicy"] = "Never".into();
    scene.pod("once", once).await;
    scene.pod_until("linux", is_ready).await;
    scene.pod_until("once", is_ready).await;

    refused(&scene, &["attach", "once"], "404 page not found").await;

    let much = "0123456789abcdef".repeat(10 << 16);
    let ran = scene
        .kubectl(&["exec", "-i", "linux", "--", "cat"], &much)
        .await;
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    assert!(ran.stdout == much.as_bytes(), "{} bytes", ran.stdout.len());
    let other = ["exec", "linux", "-c", "other", "--", "true"];
    refused(&scene, &other, "container other is not valid").await;
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_are_told_while_their_programs_run() {
    let name = "lines_are_told_while_their_programs_run";
    let Some(scene) = Scene::begin(name, "lines", &[]).await else {
        return;
    };
    let counter = "echo begun; sleep 1; echo 0; sleep 1; echo 1; sleep 3600";
    let servercore = "mcr.microsoft.com/windows/servercore:ltsc2022";
    let windows =
        json!({"image": servercore, "command": ["cmd", "/c", "echo begun& ping -t 127.0.0.1"]});
    scene.start("linux", "linux-a", &shell(counter)).await;
    scene.start("windows", "windows-2022-a", &windows).await;
    for pod in ["linux", "windows"] {
        scene.pod_until(pod, is_ready).await;
    }

    let lines = scene.kubectl_lines(&["logs", "-f", "linux"], 3).await;
    assert_eq!(lines, ["begun", "0", "1"]);
    let lines = scene.kubectl_lines(&["logs", "-f", "windows"], 3).await;
    let first = "Pinging 127.0.0.1 with 32 bytes of data:";
    assert_eq!(lines, ["begun", "", first], "{lines:?}");
    let ping = ["exec", "windows", "--", "ping", "-t", "127.0.0.1"];
    let lines = scene.kubectl_lines(&ping, 3).await;
    let reply = "Reply from 127.0.0.1: bytes=32 time<1ms TTL=128";
    assert_eq!(lines, ["", first, reply], "{lines:?}");

    let lacking = scene
        .kubectl(&["exec", "windows", "--", "netstat"], "")
        .await;
    assert_eq!(lacking.status.code(), Some(222), "{lacking:?}");
    let words = "hybrid-sim does not simulate `netstat`";
    assert!(text(&lacking.stderr).contains(words), "{lacking:?}");
    for pod in ["linux", "windows"] {
        let running = says("/containerStatuses/0/state/running/startedAt", "");
        scene.pod_until(pod, running).await;
    }
    let token = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";
    let namespace = said(&scene, &["exec", "linux", "--", "cat", token]).await;
    assert!(!namespace.is_empty());
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_tell_what_they_hold_and_use() {
    let name = "nodes_tell_what_they_hold_and_use";
    let Some(scene) = Scene::begin(name, "stats", &[]).await else {
        return;
    };
    let mut sized = json!({"image": AGNHOST, "args": ["netexec"]});
    sized["resources"] = json!({"limits": {"memory": "64Mi"}, "requests": {"cpu": "500m"}});
    scene.start("web", "windows-2022-a", &sized).await;
    scene.pod_until("web", is_ready).await;
    let node = scene.node("windows-2022-a");

    let get = async |path: &str| ask(&scene, "windows-2022-a", path).await.0;
    assert_eq!(get("healthz").await, "ok");
    let summary: Value = serde_json::from_str(&get("stats/summary").await).expect("JSON");
    assert_eq!(summary["node"]["nodeName"], node.as_str());
    let container = &summary["pods"][0]["containers"][0];
    assert_eq!(container["name"], "main");
    let set = container["memory"]["workingSetBytes"].as_u64();
    let set = set.expect("bytes");
    assert!((1 << 20..64 << 20).contains(&set), "{summary}");
    let missing = ask(&scene, "windows-2022-a", "nonesuch").await;
    assert_eq!(missing, ("404 page not found\n".to_owned(), 404));

    for (kind, name, words) in [
        (
            "pod",
            "web",
            ["Started", "Container started", "Ready:          True"],
        ),
        (
            "node",
            &node,
            ["os=windows:NoSchedule", "KubeletReady", "500m (12%)"],
        ),
    ] {
        let described = said(&scene, &["describe", kind, name]).await;
        for words in words {
            assert!(described.contains(words), "{words}: {described}");
        }
    }
    scene.end().await;
}
