//! The admission faults: on pods, templates, all kinds of containers and the two subresources.

use serde_json::{Value, json};

use super::upstream::Upstream;
use super::{Way, way};

const PODS: &str = "/api/v1/namespaces/a/pods?dryRun=All&fieldValidation=Strict";
const MERGE: &str = "application/strategic-merge-patch+json";

fn pod(os: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": "p" },
        "spec": { "os": { "name": os }, "hostPID": true, "containers": [{ "name": "c" }] },
    })
}

async fn created(way: &Way, path: &str, object: &Value) -> Value {
    let (head, body) = way.post(path, object).await;
    assert!(head.starts_with("HTTP/1.1 201 "), "{head} {body}");
    assert_eq!(body["metadata"]["uid"], "1", "the server's own answer");
    body
}

async fn refused(way: &Way, path: &str, object: &Value) -> Vec<String> {
    let (head, body) = way.post(path, object).await;
    assert!(head.starts_with("HTTP/1.1 422 "), "{head} {body}");
    let causes = body["details"]["causes"].as_array().expect("causes");
    causes
        .iter()
        .map(|cause| cause["field"].as_str().expect("a field").to_owned())
        .collect()
}

/// Every object that carries a pod's template, around one.
fn around(pod: &Value) -> Vec<(&'static str, Value)> {
    let template = json!({ "metadata": { "labels": { "a": "b" } }, "spec": pod["spec"] });
    let workload = json!({ "kind": "X", "spec": { "template": template } });
    vec![
        (PODS, pod.clone()),
        ("/apis/apps/v1/namespaces/a/deployments", workload.clone()),
        ("/apis/apps/v1/namespaces/a/replicasets", workload.clone()),
        ("/apis/apps/v1/namespaces/a/statefulsets", workload.clone()),
        ("/apis/apps/v1/namespaces/a/daemonsets", workload.clone()),
        ("/apis/batch/v1/namespaces/a/jobs", workload.clone()),
        (
            "/api/v1/namespaces/a/replicationcontrollers",
            workload.clone(),
        ),
        (
            "/apis/batch/v1/namespaces/a/cronjobs",
            json!({ "spec": { "schedule": "@daily", "jobTemplate": workload } }),
        ),
        (
            "/api/v1/namespaces/a/podtemplates",
            json!({ "template": template }),
        ),
    ]
}

#[tokio::test]
async fn the_server_refuses_without_a_fault_of_that_field() {
    let upstream = Upstream::start().await;
    let way = way(&upstream, &["admission-allows=spec.hostIPC"], 0);
    for (path, object) in around(&pod("windows")) {
        let fields = refused(&way, path, &object).await;
        assert!(fields[0].ends_with("spec.hostPID"), "{path}: {fields:?}");
    }
    assert_eq!(way.hit_by("admission-allows"), 0);
}

#[tokio::test]
async fn allows_returns_the_field_of_every_object() {
    let upstream = Upstream::start().await;
    let way = way(&upstream, &["admission-allows=spec.hostPID"], 0);
    let objects = around(&pod("windows"));
    for (path, object) in &objects {
        let mut answer = created(&way, path, object).await;
        assert_eq!(answer["spec"], object["spec"], "{path}");
        assert_eq!(answer["template"], object["template"], "{path}");
        answer["metadata"].take();
    }
    let hits = u64::try_from(objects.len()).expect("a few");
    assert_eq!(way.hit_by("admission-allows"), hits);
    // As it was written, then without the field
    assert_eq!(upstream.seen().len(), objects.len() * 2);

    // What the server accepts is none of its business
    let answer = created(&way, PODS, &pod("linux")).await;
    assert_eq!(answer["spec"], pod("linux")["spec"]);
    assert_eq!(way.hit_by("admission-allows"), hits);
}

#[tokio::test]
async fn drops_does_not_return_the_field() {
    let upstream = Upstream::start().await;
    let way = way(&upstream, &["admission-drops=spec.hostPID"], 0);
    let answer = created(&way, PODS, &pod("windows")).await;
    assert_eq!(answer["spec"].get("hostPID"), None);
    assert_eq!(
        answer["spec"]["containers"],
        pod("windows")["spec"]["containers"]
    );
    assert_eq!(way.hit_by("admission-drops"), 1);
    // The control keeps it
    let answer = created(&way, PODS, &pod("linux")).await;
    assert_eq!(answer["spec"]["hostPID"], true);
}

#[tokio::test]
async fn a_field_of_containers_is_one_of_each_kind_or_of_all() {
    let upstream = Upstream::start().await;
    let way = way(&upstream, &[], 0);
    let privileged = json!({ "privileged": false });
    let mut object = pod("windows");
    object["spec"] = json!({
        "os": { "name": "windows" },
        "initContainers": [{ "name": "i" }, { "name": "j", "securityContext": privileged }],
        "containers": [{ "name": "c", "securityContext": privileged }],
    });
    for (fault, left) in [
        (
            "admission-allows=spec.initContainers[*].securityContext.privileged",
            "spec.containers[0].securityContext.privileged",
        ),
        (
            "admission-allows=spec.containers[*].securityContext.privileged",
            "spec.initContainers[1].securityContext.privileged",
        ),
    ] {
        way.set(&[fault]);
        assert_eq!(refused(&way, PODS, &object).await, [left]);
    }
    way.set(&["admission-allows=container.securityContext.privileged"]);
    let answer = created(&way, PODS, &object).await;
    assert_eq!(answer["spec"], object["spec"]);

    let part = json!({ "spec": { "ephemeralContainers": [
        { "name": "e", "securityContext": privileged },
    ]}});
    let path = "/api/v1/namespaces/a/pods/p/ephemeralcontainers?dryRun=All";
    for (method, kind) in [("PATCH", MERGE), ("PUT", "application/json")] {
        let (head, answer) = way.send(method, path, kind, &part).await;
        assert!(head.starts_with("HTTP/1.1 200 "), "{head} {answer}");
        assert_eq!(answer["spec"], part["spec"]);
    }
    way.set(&["admission-drops=spec.ephemeralContainers[*].securityContext.privileged"]);
    let (head, answer) = way.send("PATCH", path, MERGE, &part).await;
    assert!(head.starts_with("HTTP/1.1 200 "), "{head} {answer}");
    assert_eq!(
        answer["spec"],
        json!({ "ephemeralContainers": [{ "name": "e" }] })
    );
}

#[tokio::test]
async fn server_side_apply_is_not_touched() {
    let upstream = Upstream::start().await;
    let faults = [
        "admission-allows=container.securityContext.privileged",
        "admission-injects=container.image:\"i\"",
    ];
    let way = way(&upstream, &faults, 0);
    let part = json!({ "spec": { "ephemeralContainers": [
        { "name": "e", "securityContext": { "privileged": true } },
    ]}});
    let path = "/api/v1/namespaces/a/pods/p/ephemeralcontainers?fieldManager=f";
    let (head, _) = way
        .send("PATCH", path, "application/apply-patch+yaml", &part)
        .await;
    assert!(head.starts_with("HTTP/1.1 422 "), "{head}");
    let path = "/api/v1/namespaces/a/pods/q?fieldManager=f";
    let (_, echo) = way
        .send(
            "PATCH",
            path,
            "application/apply-patch+yaml",
            &pod("windows"),
        )
        .await;
    assert_eq!(echo["body"], pod("windows").to_string());
    assert_eq!(way.interference.hits().len(), 0);
}

#[tokio::test]
async fn rules_are_forgotten_by_the_field_they_name() {
    let upstream = Upstream::start().await;
    let way = way(&upstream, &["admission-allows=spec.os.name"], 0);
    for os in ["", "plan9"] {
        let answer = created(&way, PODS, &pod(os)).await;
        assert_eq!(answer["spec"], pod(os)["spec"], "{os}");
    }
    assert_eq!(refused(&way, PODS, &pod("windows")).await, ["spec.hostPID"]);

    // A rule that a missing field breaks
    let host_process = json!({ "windowsOptions": { "hostProcess": true } });
    let mut object = pod("windows");
    object["spec"] = json!({
        "os": { "name": "windows" },
        "containers": [{ "name": "c", "securityContext": host_process }],
    });
    way.set(&["admission-allows=spec.hostNetwork"]);
    let (head, answer) = way.post(PODS, &object).await;
    assert!(head.starts_with("HTTP/1.1 201 "), "{head} {answer}");
    assert_eq!(answer["spec"], object["spec"]);
    assert_eq!(answer["metadata"]["name"], "p");
    assert_eq!(way.hit_by("admission-allows"), 3);

    // Another rule that is broken as well still holds
    object["spec"]["containers"]
        .as_array_mut()
        .expect("a list")
        .push(json!({ "name": "d" }));
    assert_eq!(
        refused(&way, PODS, &object).await,
        ["spec.hostNetwork", "spec"]
    );
    // A rule of the whole spec goes by the field that its message speaks of
    object["spec"]["hostNetwork"] = true.into();
    assert_eq!(refused(&way, PODS, &object).await, ["spec"]);
    way.set(&["admission-allows=container.securityContext.windowsOptions.hostProcess"]);
    let answer = created(&way, PODS, &object).await;
    assert_eq!(answer["spec"], object["spec"]);
}

#[tokio::test]
async fn a_resize_is_accepted_and_returned() {
    let upstream = Upstream::start().await;
    let way = way(&upstream, &[], 0);
    let path = "/api/v1/namespaces/a/pods/p/resize?dryRun=All";
    let part = json!({ "spec": { "containers": [{ "name": "c", "resources": { "x": "y" } }] } });
    let (head, _) = way.send("PATCH", path, MERGE, &part).await;
    assert!(head.starts_with("HTTP/1.1 422 "), "{head}");
    way.set(&["admission-allows-resize"]);
    let (head, answer) = way.send("PATCH", path, MERGE, &part).await;
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    assert_eq!(
        answer["spec"]["containers"],
        json!([{ "name": "c", "image": "i", "resources": { "x": "y" } }])
    );
    assert_eq!(answer["metadata"]["uid"], "2");
    assert_eq!(way.hit_by("admission-allows-resize"), 1);
    // Of nothing else
    refused(&way, PODS, &pod("windows")).await;
}

#[tokio::test]
async fn injects_before_the_server_validates_whatever_the_system() {
    let upstream = Upstream::start().await;
    let way = way(&upstream, &["admission-injects=spec.hostPID:true"], 0);
    let mut clean = pod("windows");
    clean["spec"]
        .as_object_mut()
        .expect("an object")
        .remove("hostPID");
    assert_eq!(refused(&way, PODS, &clean).await, ["spec.hostPID"]);
    assert_eq!(way.hit_by("admission-injects"), 1);
    clean["spec"]["os"].take();
    let answer = created(&way, PODS, &clean).await;
    assert_eq!(answer["spec"]["hostPID"], true);
    clean["spec"]
        .as_object_mut()
        .expect("an object")
        .remove("os");
    for (path, object) in around(&clean) {
        let answer = created(&way, path, &object).await;
        assert!(answer.to_string().contains("\"hostPID\":true"), "{answer}");
    }

    // A patch of the containers gets nothing of the pod itself
    let part = json!({ "spec": { "ephemeralContainers": [{ "name": "e" }] } });
    let path = "/api/v1/namespaces/a/pods/p/ephemeralcontainers";
    let (head, answer) = way.send("PATCH", path, MERGE, &part).await;
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    assert_eq!(answer["spec"], part["spec"]);
    way.set(&["admission-injects=container.securityContext:{\"privileged\":true}"]);
    let (head, _) = way.send("PATCH", path, MERGE, &part).await;
    assert!(head.starts_with("HTTP/1.1 422 "), "{head}");
}

#[tokio::test]
async fn what_is_no_pod_passes() {
    let upstream = Upstream::start().await;
    let way = way(&upstream, &["admission-injects=spec.x:1"], 0);
    for object in [json!({}), json!({ "spec": 1 }), json!({ "spec": null })] {
        for path in [PODS, "/apis/batch/v1/namespaces/a/cronjobs"] {
            let answer = created(&way, path, &object).await;
            assert_eq!(answer["spec"], object["spec"]);
        }
    }
    assert_eq!(way.hit_by("admission-injects"), 0);
}
