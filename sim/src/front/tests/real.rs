//! kubectl through the front to a real API server; needs `WINCONFORM_TEST_KUBECONFIG`.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use kube::config::{KubeConfigOptions, Kubeconfig};

use serde_json::{Value, json};

use super::{faults, post, send};
use crate::front::{Front, FrontOptions};

const VARIABLE: &str = "WINCONFORM_TEST_KUBECONFIG";

/// A folder with a kubeconfig and kubectl's cache, which goes when dropped.
struct Folder(PathBuf);

impl Folder {
    fn kubeconfig(&self) -> PathBuf {
        self.0.join("kubeconfig")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A process that ends when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A front before the real API server and a kubeconfig that leads to it, if there is one.
async fn real(name: &str) -> Option<(Front, Folder)> {
    let Ok(path) = std::env::var(VARIABLE) else {
        // Past the test harness, which keeps what passing tests print
        let _ = writeln!(std::io::stdout(), "not run: {name}: {VARIABLE} is not set");
        return None;
    };
    let _ = rustls::crypto::ring::default_provider().install_default();
    let kubeconfig = Kubeconfig::read_from(path).expect("a kubeconfig");
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .expect("a whole kubeconfig");
    let client = kube::Client::try_from(config).expect("a client");
    let front = Front::before(client, FrontOptions::default())
        .await
        .expect("a front");
    let folder = Folder(std::env::temp_dir().join(format!("front-{name}-{}", std::process::id())));
    std::fs::create_dir(&folder.0).expect("a temporary folder");
    std::fs::write(folder.kubeconfig(), front.kubeconfig()).expect("a temporary file");
    Some((front, folder))
}

fn kubectl(kubeconfig: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("kubectl");
    command.arg("--kubeconfig").arg(kubeconfig).args(arguments);
    command.env("KUBECACHEDIR", kubeconfig.with_file_name("cache"));
    command
}

/// Runs kubectl; its output and whether it succeeded.
async fn run(kubeconfig: &Path, arguments: &[&str]) -> (String, bool) {
    let mut command = kubectl(kubeconfig, arguments);
    let output = tokio::task::spawn_blocking(move || command.output())
        .await
        .expect("it does not panic")
        .expect("kubectl is installed");
    let text = [output.stdout, output.stderr].concat();
    (
        String::from_utf8_lossy(&text).into_owned(),
        output.status.success(),
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_gets_and_watches() {
    let Some((front, folder)) = real("kubectl_gets_and_watches").await else {
        return;
    };
    let kubeconfig = folder.kubeconfig();
    let name = format!("front-{}", std::process::id());
    let (text, well) = run(&kubeconfig, &["get", "namespaces"]).await;
    assert!(well && text.contains("kube-system"), "{text}");

    let watch = [
        "get",
        "configmaps",
        "-n",
        "default",
        "-w",
        "--watch-only",
        "-o",
        "name",
    ];
    let mut command = kubectl(&kubeconfig, &watch);
    let child = command
        .stdout(Stdio::piped())
        .spawn()
        .expect("kubectl is installed");
    let mut watching = Running(child);
    while front.counts().of("watch configmaps") == 0 {
        tokio::task::yield_now().await;
    }
    let (text, well) = run(
        &kubeconfig,
        &["create", "configmap", &name, "-n", "default"],
    )
    .await;
    assert!(well, "{text}");
    let output = watching.0.stdout.take().expect("it is piped");
    let wanted = format!("configmap/{name}");
    let seen = tokio::task::spawn_blocking(move || {
        BufReader::new(output)
            .lines()
            .map_while(Result::ok)
            .any(|line| line == wanted)
    });
    assert!(
        seen.await.expect("it does not panic"),
        "the watch showed `{name}`"
    );
    drop(watching);
    let (text, well) = run(
        &kubeconfig,
        &["delete", "configmap", &name, "-n", "default"],
    )
    .await;
    assert!(well, "{text}");
    front.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_meets_faults() {
    let Some((front, folder)) = real("kubectl_meets_faults").await else {
        return;
    };
    let kubeconfig = folder.kubeconfig();
    let name = format!("front-{}", std::process::id());
    let pod = format!(
        r#"{{"spec":{{"os":{{"name":"windows"}},"hostPID":true,"automountServiceAccountToken":false,
        "containers":[{{"name":"c","image":"i"}}]}},"metadata":{{"name":"{name}"}},
        "apiVersion":"v1","kind":"Pod"}}"#
    );
    let manifest = folder.0.join("pod.json");
    std::fs::write(&manifest, pod).expect("a temporary file");
    let manifest = manifest.to_str().expect("a name in UTF-8");
    let create = [
        "create",
        "-n",
        "default",
        "--dry-run=server",
        "-o",
        "json",
        "-f",
        manifest,
    ];

    let (text, well) = run(&kubeconfig, &create).await;
    assert!(!well && text.contains("spec.hostPID"), "{text}");
    front.set(faults(&["admission-allows=spec.hostPID"]));
    let (text, well) = run(&kubeconfig, &create).await;
    assert!(well && text.contains("\"hostPID\": true"), "{text}");
    front.set(faults(&["admission-drops=spec.hostPID"]));
    let (text, well) = run(&kubeconfig, &create).await;
    assert!(well && !text.contains("hostPID"), "{text}");
    assert_eq!(front.counts().of("create pods"), 3);

    front.set(faults(&["html-502"]));
    let (text, well) = run(&kubeconfig, &["get", "nodes"]).await;
    assert!(!well, "{text}");
    front.set(faults(&["reset"]));
    let (text, well) = run(&kubeconfig, &["get", "nodes"]).await;
    assert!(!well, "{text}");
    front.stop().await;
}

/// What the server says to an object that is created as a dry run: its code and its answer.
async fn tried(front: &Front, path: &str, object: &Value) -> (String, Value) {
    let path = format!("{path}?dryRun=All&fieldValidation=Strict");
    let (head, answer) = post(front, &path, object).await;
    (head[9..12].to_owned(), answer)
}

/// The same pod in everything that carries one.
fn around(spec: &Value) -> Vec<(&'static str, &'static str, Value)> {
    let labels = json!({ "app": "front" });
    let metadata = json!({ "name": "front", "labels": labels });
    let template = |policy: Option<&str>| {
        let mut spec = spec.clone();
        if let Some(policy) = policy {
            spec["restartPolicy"] = policy.into();
        }
        json!({ "metadata": { "labels": labels }, "spec": spec })
    };
    let object = |version: &str, kind: &str, inside: Value| {
        let mut object = json!({ "apiVersion": version, "kind": kind, "metadata": metadata });
        for (key, value) in inside.as_object().expect("an object") {
            object[key] = value.clone();
        }
        object
    };
    let selected = json!({ "spec": {
        "selector": { "matchLabels": labels }, "template": template(None),
    }});
    let job = json!({ "spec": { "template": template(Some("Never")) } });
    vec![
        (
            "/api/v1/namespaces/default/pods",
            "/spec",
            object("v1", "Pod", json!({ "spec": spec })),
        ),
        (
            "/apis/apps/v1/namespaces/default/deployments",
            "/spec/template/spec",
            object("apps/v1", "Deployment", selected.clone()),
        ),
        (
            "/apis/apps/v1/namespaces/default/replicasets",
            "/spec/template/spec",
            object("apps/v1", "ReplicaSet", selected.clone()),
        ),
        (
            "/apis/apps/v1/namespaces/default/statefulsets",
            "/spec/template/spec",
            object("apps/v1", "StatefulSet", selected.clone()),
        ),
        (
            "/apis/apps/v1/namespaces/default/daemonsets",
            "/spec/template/spec",
            object("apps/v1", "DaemonSet", selected),
        ),
        (
            "/apis/batch/v1/namespaces/default/jobs",
            "/spec/template/spec",
            object("batch/v1", "Job", job.clone()),
        ),
        (
            "/apis/batch/v1/namespaces/default/cronjobs",
            "/spec/jobTemplate/spec/template/spec",
            object(
                "batch/v1",
                "CronJob",
                json!({ "spec": { "schedule": "@daily", "jobTemplate": job } }),
            ),
        ),
        (
            "/api/v1/namespaces/default/replicationcontrollers",
            "/spec/template/spec",
            object(
                "v1",
                "ReplicationController",
                json!({ "spec": { "selector": labels, "template": template(None) } }),
            ),
        ),
        (
            "/api/v1/namespaces/default/podtemplates",
            "/template/spec",
            object("v1", "PodTemplate", json!({ "template": template(None) })),
        ),
    ]
}

/// A fault's field, what to merge into a Windows pod so that it is refused, and where the value
/// comes back.
fn rules() -> Vec<(&'static str, Value, &'static str)> {
    let security = |security: Value| {
        json!({ "containers": [
            { "name": "c", "image": "i", "securityContext": security },
        ]})
    };
    vec![
        ("spec.hostPID", json!({ "hostPID": true }), "/hostPID"),
        (
            "spec.securityContext.runAsUser",
            json!({ "securityContext": { "runAsUser": 0 } }),
            "/securityContext/runAsUser",
        ),
        (
            "container.securityContext.privileged",
            security(json!({ "privileged": false })),
            "/containers/0/securityContext/privileged",
        ),
        (
            "container.securityContext.capabilities",
            json!({ "initContainers": [
                { "name": "j", "image": "i", "securityContext": { "capabilities": {} } },
            ]}),
            "/initContainers/0/securityContext/capabilities",
        ),
        (
            "spec.os.name",
            json!({ "os": { "name": "plan9" } }),
            "/os/name",
        ),
        ("spec.os.name", json!({ "os": { "name": "" } }), "/os/name"),
        (
            "spec.securityContext.windowsOptions",
            json!({ "os": { "name": "linux" },
                "securityContext": { "windowsOptions": { "runAsUserName": "u" } } }),
            "/securityContext/windowsOptions",
        ),
        (
            "container.securityContext.windowsOptions.runAsUserName",
            security(json!({ "windowsOptions": { "runAsUserName": "a\\b\\c" } })),
            "/containers/0/securityContext/windowsOptions/runAsUserName",
        ),
        (
            "spec.securityContext.windowsOptions.gmsaCredentialSpecName",
            json!({ "securityContext": { "windowsOptions": { "gmsaCredentialSpecName": "A_" } } }),
            "/securityContext/windowsOptions/gmsaCredentialSpecName",
        ),
        (
            "spec.hostNetwork",
            security(json!({ "windowsOptions": { "hostProcess": true } })),
            "/containers/0/securityContext/windowsOptions/hostProcess",
        ),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn admission_forgets_each_rule_in_every_object() {
    let Some((front, _folder)) = real("admission_forgets_each_rule_in_every_object").await else {
        return;
    };
    for (field, part, place) in rules() {
        let mut spec = json!({
            "os": { "name": "windows" },
            "automountServiceAccountToken": false,
            "containers": [{ "name": "c", "image": "i" }],
        });
        for (key, value) in part.as_object().expect("an object") {
            spec[key] = value.clone();
        }
        for (path, inside, object) in around(&spec) {
            let what = format!("{field} in {path}");
            front.set(Vec::new());
            let (code, answer) = tried(&front, path, &object).await;
            assert_eq!(code, "422", "{what}: {answer}");
            front.set(faults(&[&format!("admission-allows={field}")]));
            let (code, answer) = tried(&front, path, &object).await;
            assert_eq!(code, "201", "{what}: {answer}");
            let place = format!("{inside}{place}");
            assert_eq!(
                answer.pointer(&place),
                object.pointer(&place),
                "{what}: {answer}"
            );
            front.set(faults(&[&format!("admission-drops={field}")]));
            let (code, answer) = tried(&front, path, &object).await;
            assert_eq!(code, "201", "{what}: {answer}");
            if field != "spec.hostNetwork" {
                assert_eq!(answer.pointer(&place), None, "{what}: {answer}");
            }
        }
    }
    front.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn admission_forgets_what_subresources_refuse() {
    const MERGE: &str = "application/strategic-merge-patch+json";
    let Some((front, _folder)) = real("admission_forgets_what_subresources_refuse").await else {
        return;
    };
    let name = format!("front-sub-{}", std::process::id());
    let pods = "/api/v1/namespaces/default/pods";
    let pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name }, "spec": {
        "os": { "name": "windows" }, "automountServiceAccountToken": false,
        "schedulerName": "nobody", "containers": [{ "name": "c", "image": "i" }],
    }});
    let (head, answer) = post(&front, pods, &pod).await;
    assert!(head.starts_with("HTTP/1.1 201 "), "{answer}");

    let security = json!({ "privileged": false });
    let debug = json!({ "spec": { "ephemeralContainers": [
        { "name": "e", "image": "i", "securityContext": security },
    ]}});
    let path = format!("{pods}/{name}/ephemeralcontainers?dryRun=All");
    let (head, answer) = send(&front, "PATCH", &path, MERGE, &debug).await;
    assert!(head.starts_with("HTTP/1.1 422 "), "{answer}");
    front.set(faults(&[
        "admission-allows=container.securityContext.privileged",
    ]));
    let (head, answer) = send(&front, "PATCH", &path, MERGE, &debug).await;
    assert!(head.starts_with("HTTP/1.1 200 "), "{answer}");
    let place = "/spec/ephemeralContainers/0/securityContext";
    assert_eq!(answer.pointer(place), Some(&security));

    let resize = json!({ "spec": { "containers": [
        { "name": "c", "resources": { "requests": { "cpu": "10m" } } },
    ]}});
    let path = format!("{pods}/{name}/resize?dryRun=All");
    let (head, answer) = send(&front, "PATCH", &path, MERGE, &resize).await;
    assert!(head.starts_with("HTTP/1.1 422 "), "{answer}");
    front.set(faults(&["admission-allows-resize"]));
    let (head, answer) = send(&front, "PATCH", &path, MERGE, &resize).await;
    assert!(head.starts_with("HTTP/1.1 200 "), "{answer}");
    let place = "/spec/containers/0/resources/requests/cpu";
    assert_eq!(answer.pointer(place), Some(&json!("10m")));

    front.set(Vec::new());
    let path = format!("{pods}/{name}");
    let now = json!({ "gracePeriodSeconds": 0 });
    let (head, answer) = send(&front, "DELETE", &path, "application/json", &now).await;
    assert!(head.starts_with("HTTP/1.1 200 "), "{answer}");
    front.stop().await;
}
