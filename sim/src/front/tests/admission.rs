//! The admission faults, on a pod and on a workload's template.

use serde_json::{Value, json};

use super::upstream::Upstream;
use super::{front, post};
use crate::front::Front;

const PODS: &str = "/api/v1/namespaces/a/pods?dryRun=All&fieldValidation=Strict";

fn pod(os: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": "p" },
        "spec": { "os": { "name": os }, "hostPID": true, "containers": [{ "name": "c" }] },
    })
}

async fn created(front: &Front, path: &str, object: &Value) -> Value {
    let (head, body) = post(front, path, object).await;
    assert!(head.starts_with("HTTP/1.1 201 "), "{head}");
    assert_eq!(body["metadata"]["uid"], "1", "the server's own answer");
    body
}

#[tokio::test]
async fn the_server_refuses_without_a_fault() {
    let upstream = Upstream::start().await;
    let front = front(&upstream, &["admission-allows=spec.hostIPC"], 0).await;
    let (head, _) = post(&front, PODS, &pod("windows")).await;
    assert!(head.starts_with("HTTP/1.1 422 "), "{head}");
    assert_eq!(front.counts().hit_by("admission-allows"), 0);
    front.stop().await;
}

#[tokio::test]
async fn allows_returns_the_field() {
    let upstream = Upstream::start().await;
    let front = front(&upstream, &["admission-allows=spec.hostPID"], 0).await;
    let answer = created(&front, PODS, &pod("windows")).await;
    assert_eq!(answer["spec"], pod("windows")["spec"]);
    assert_eq!(front.counts().hit_by("admission-allows"), 1);
    assert_eq!(upstream.seen(), [format!("POST {PODS}")]);

    let deployment = json!({
        "kind": "Deployment",
        "spec": { "replicas": 1, "template": { "spec": pod("windows")["spec"] } },
    });
    let path = "/apis/apps/v1/namespaces/a/deployments";
    let answer = created(&front, path, &deployment).await;
    assert_eq!(answer["spec"], deployment["spec"]);

    // A Linux pod is none of its business
    let answer = created(&front, PODS, &pod("linux")).await;
    assert_eq!(answer["spec"], pod("linux")["spec"]);
    assert_eq!(front.counts().hit_by("admission-allows"), 2);
    front.stop().await;
}

#[tokio::test]
async fn drops_does_not_return_the_field() {
    let upstream = Upstream::start().await;
    let front = front(&upstream, &["admission-drops=spec.hostPID"], 0).await;
    let answer = created(&front, PODS, &pod("windows")).await;
    assert_eq!(answer["spec"]["hostPID"], Value::Null);
    assert_eq!(
        answer["spec"]["containers"],
        pod("windows")["spec"]["containers"]
    );
    assert_eq!(front.counts().hit_by("admission-drops"), 1);
    front.stop().await;
}

#[tokio::test]
async fn injects_before_the_server_validates() {
    let upstream = Upstream::start().await;
    let front = front(&upstream, &["admission-injects=spec.hostPID:true"], 0).await;
    let mut clean = pod("windows");
    clean["spec"]
        .as_object_mut()
        .expect("an object")
        .remove("hostPID");
    let (head, _) = post(&front, PODS, &clean).await;
    assert!(head.starts_with("HTTP/1.1 422 "), "{head}");
    assert_eq!(front.counts().hit_by("admission-injects"), 1);
    front.stop().await;
}

#[tokio::test]
async fn what_is_no_pod_passes() {
    let upstream = Upstream::start().await;
    let front = front(&upstream, &["admission-drops=spec"], 0).await;
    for object in [
        json!([]),
        json!({ "spec": 1 }),
        json!({ "spec": { "os": "windows" } }),
    ] {
        let (head, _) = post(&front, "/apis/batch/v1/namespaces/a/cronjobs", &json!({})).await;
        assert!(head.starts_with("HTTP/1.1 201 "), "{head}");
        if object.is_object() {
            created(&front, PODS, &object).await;
        }
    }
    front.stop().await;
}
