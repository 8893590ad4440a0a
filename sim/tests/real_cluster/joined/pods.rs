//! The lives of pods on simulated nodes, under the real controllers.

use futures::StreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, Event, Pod};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::runtime::{WatchStreamExt, watcher};
use serde_json::{Value, json};

use super::scene::{Scene, create, is_ready, says, status, text};
use super::{AGNHOST, SERVERCORE};

/// The reason and the message of an event.
fn said(event: Event) -> String {
    let (reason, message) = (event.reason, event.message);
    format!(
        "{}: {}",
        reason.unwrap_or_default(),
        message.unwrap_or_default()
    )
}

/// Waits for an event of a pod that contains these words.
async fn await_event(scene: &Scene, pod: &str, words: &str) {
    let of = format!("involvedObject.name={pod}");
    let mut matching = watcher(scene.api::<Event>(), watcher::Config::default().fields(&of))
        .default_backoff()
        .applied_objects()
        .filter_map(async |event| {
            event
                .ok()
                .filter(|event| said(event.clone()).contains(words))
        })
        .boxed();
    if tokio::time::timeout(super::scene::DEADLINE, matching.next())
        .await
        .is_err()
    {
        let events = scene
            .api::<Event>()
            .list(&ListParams::default().fields(&of))
            .await;
        let events: Vec<String> = events.expect("a list").into_iter().map(said).collect();
        panic!("nobody says `{words}`: {events:#?}");
    }
}

fn sh(script: &str) -> Value {
    json!({"image": AGNHOST, "command": ["sh", "-c", script]})
}

#[tokio::test(flavor = "multi_thread")]
async fn init_containers_and_sidecars_take_their_turns() {
    let Some(scene) = Scene::begin("init_containers_and_sidecars", "init", &[]).await else {
        return;
    };
    let mut spec = scene.spec("linux-a", &sh("sleep 1"));
    spec["restartPolicy"] = "Never".into();
    spec["initContainers"] = json!([
        {"name": "first", "image": AGNHOST, "command": ["sh", "-c", "true"]},
        {"name": "beside", "image": AGNHOST, "args": ["pause"], "restartPolicy": "Always"},
        {"name": "last", "image": AGNHOST, "command": ["true"]},
    ]);
    scene.pod("turns", spec.clone()).await;
    let running = scene.pod_until("turns", says("/phase", "Running")).await;
    let init = &status(&running)["initContainerStatuses"];
    let first = &init[0]["state"]["terminated"]["reason"];
    assert_eq!(first, "Completed", "{init}");
    assert_eq!(init[1]["started"], true, "{init}");
    let over = scene.pod_until("turns", says("/phase", "Succeeded")).await;
    let init = &status(&over)["initContainerStatuses"];
    // agnhost's pause exits with 2 when it is stopped, and prints so
    let ended = &init[1]["state"]["terminated"];
    assert_eq!(ended["exitCode"], 2, "{init}");
    assert_eq!(
        ended["message"],
        "exiting because of signal \"terminated\"\n"
    );
    spec["initContainers"][0]["command"] = json!(["sh", "-c", "exit 4"]);
    scene.pod("stuck", spec).await;
    let failed = scene.pod_until("stuck", says("/phase", "Failed")).await;
    let failed = status(&failed);
    let waiting = &failed["containerStatuses"][0]["state"]["waiting"];
    assert_eq!(waiting["reason"], "PodInitializing", "{waiting}");
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn probes_look_at_what_is_served() {
    let Some(scene) = Scene::begin("probes_look_at_what_is_served", "probes", &[]).await else {
        return;
    };
    let serves = |probe: &str, port: &str, path: &str| {
        json!({"image": AGNHOST, "args": ["netexec", "--http-port=80"],
            "ports": [{"name": "web", "containerPort": 80}],
            (probe): {"httpGet": {"path": path, "port": port}, "failureThreshold": 1,
                "periodSeconds": 5, "initialDelaySeconds": 2}})
    };
    let ready = serves("readinessProbe", "web", "/healthz");
    scene.start("ready", "windows-2022-a", &ready).await;
    let mut closed = serves("livenessProbe", "web", "/healthz");
    closed["livenessProbe"]["httpGet"]["port"] = 81.into();
    scene.start("closed", "windows-2022-a", &closed).await;
    let mut slow = sh("sleep 3600");
    slow["startupProbe"] = json!({"exec": {"command": ["false"]}, "failureThreshold": 2,
        "periodSeconds": 1, "terminationGracePeriodSeconds": 3});
    scene.start("slow", "linux-a", &slow).await;
    scene.pod_until("ready", is_ready).await;
    let restarted = "/containerStatuses/0/lastState/terminated/reason";
    // agnhost's server handles the signal, on Windows too
    let pod = scene
        .pod_until("closed", says(restarted, "Completed"))
        .await;
    let last = &status(&pod)["containerStatuses"][0]["lastState"]["terminated"];
    assert_eq!(last["exitCode"], 0, "{last}");
    for words in [
        "Unhealthy: Liveness probe failed: Get \"http://",
        "Killing: Container main failed liveness probe, will be restarted",
    ] {
        await_event(&scene, "closed", words).await;
    }
    let pod = scene.pod_until("slow", says(restarted, "Error")).await;
    let last = &status(&pod)["containerStatuses"][0]["lastState"]["terminated"];
    // A shell as first process ignores SIGTERM
    assert_eq!(last["exitCode"], 137, "{last}");
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hooks_run_and_grace_is_given() {
    let Some(scene) = Scene::begin("hooks_run_and_grace_is_given", "hooks", &[]).await else {
        return;
    };
    let mut fails = json!({"image": AGNHOST, "args": ["pause"]});
    fails["lifecycle"] = json!({"postStart": {"exec": {"command": ["false"]}}});
    scene.start("fails", "linux-a", &fails).await;
    let mut stops = json!({"image": SERVERCORE, "command": ["ping", "-t", "localhost"]});
    stops["lifecycle"] = json!({"preStop": {"exec": {"command": ["cmd", "/c", "exit 1"]}}});
    let mut spec = scene.spec("windows-2022-a", &stops);
    spec["terminationGracePeriodSeconds"] = 20.into();
    let created = scene.pod("stops", spec).await;
    await_event(&scene, "fails", "FailedPostStartHook: PostStartHook failed").await;
    let reason = "/containerStatuses/0/state/waiting/reason";
    scene
        .pod_until("fails", says(reason, "CrashLoopBackOff"))
        .await;
    scene.pod_until("stops", is_ready).await;
    // A finalizer keeps the object, so that its last status stays readable
    let pods = scene.api::<Pod>();
    let keep = json!({"metadata": {"finalizers": ["example.com/keep"]}});
    let params = PatchParams::default();
    let kept = pods.patch("stops", &params, &Patch::Merge(keep)).await;
    kept.expect("a finalizer");
    let deleted = pods.delete("stops", &DeleteParams::default()).await;
    deleted.expect("deleted");
    let ended = "/containerStatuses/0/state/terminated/reason";
    let pod = scene.pod_until("stops", says(ended, "Error")).await;
    assert_eq!(pod.metadata.uid, created.metadata.uid);
    let state = &status(&pod)["containerStatuses"][0]["state"]["terminated"];
    assert_eq!(state["exitCode"], -1_073_741_510, "{state}");
    await_event(&scene, "stops", "FailedPreStopHook: PreStopHook failed").await;
    await_event(&scene, "stops", "Killing: Stopping container main").await;
    let free = json!({"metadata": {"finalizers": null}});
    let freed = pods.patch("stops", &params, &Patch::Merge(free)).await;
    freed.expect("no finalizer");
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn volumes_and_variables_wait_for_what_they_refer_to() {
    let Some(scene) = Scene::begin("volumes_and_variables", "volumes", &[]).await else {
        return;
    };
    let mut mounts = json!({"image": AGNHOST, "args": ["pause"]});
    mounts["volumeMounts"] = json!([{"name": "v", "mountPath": "/etc/v", "readOnly": true}]);
    let mut spec = scene.spec("linux-a", &mounts);
    spec["volumes"] = json!([{"name": "v", "configMap": {"name": "settings"}}]);
    scene.pod("mounts", spec).await;
    let mut env = json!({"image": AGNHOST, "args": ["pause"]});
    env["env"] = json!([{"name": "A", "valueFrom":
        {"configMapKeyRef": {"name": "settings", "key": "a"}}}]);
    scene.start("env", "linux-a", &env).await;
    let mut root = json!({"image": AGNHOST});
    root["securityContext"] = json!({"runAsNonRoot": true,
        "windowsOptions": {"runAsUserName": "ContainerAdministrator"}});
    scene.start("root", "windows-2022-a", &root).await;
    let words =
        "FailedMount: MountVolume.SetUp failed for volume \"v\" : configmap \"settings\" not found";
    await_event(&scene, "mounts", words).await;
    let reason = "/containerStatuses/0/state/waiting/reason";
    let error = "CreateContainerConfigError";
    let pod = scene.pod_until("env", says(reason, error)).await;
    let waiting = &status(&pod)["containerStatuses"][0]["state"]["waiting"];
    assert_eq!(waiting["message"], "configmap \"settings\" not found");
    let pod = scene.pod_until("root", says(reason, error)).await;
    let waiting = &status(&pod)["containerStatuses"][0]["state"]["waiting"]["message"];
    let words = "container's runAsUserName (ContainerAdministrator) which will be regarded as root";
    assert!(waiting.to_string().contains(words), "{waiting}");
    let settings = json!({"metadata": {"name": "settings"}, "data": {"a": "1"}});
    create(&scene.api::<ConfigMap>(), settings).await;
    for name in ["mounts", "env"] {
        let pod = scene.pod_until(name, is_ready).await;
        assert_eq!(status(&pod)["qosClass"], "BestEffort");
    }
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ephemeral_containers_join_a_running_pod() {
    let Some(scene) = Scene::begin("ephemeral_containers_join", "ephemeral", &[]).await else {
        return;
    };
    let pause = json!({"image": AGNHOST, "args": ["pause"]});
    scene.start("pod", "linux-a", &pause).await;
    scene.pod_until("pod", is_ready).await;
    let debug = ["debug", "pod", "--image", AGNHOST, "-c", "debug"];
    let ran = scene
        .kubectl(&[&debug[..], &["--", "sh", "-c", "exit 5"]].concat(), "")
        .await;
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let ended = "/ephemeralContainerStatuses/0/state/terminated/reason";
    let pod = scene.pod_until("pod", says(ended, "Error")).await;
    let state = &status(&pod)["ephemeralContainerStatuses"][0]["state"]["terminated"];
    assert_eq!(state["exitCode"], 5, "{state}");
    assert!(is_ready(Some(&pod)));
    scene.end().await;
}
