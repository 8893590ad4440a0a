//! Bad worlds: refusals, expired tokens, restarts, slow answers and hostile texts.

use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::upstream::Upstream;
use super::{LONG, Way, body, way};
use crate::interference::kinds::hostile::{KEY, TEXT};

const PODS: &str = "/api/v1/namespaces/a/pods";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/a/deployments";

fn pod(host_pid: bool) -> Value {
    json!({ "metadata": { "name": "p" }, "spec": {
        "os": { "name": "windows" }, "hostPID": host_pid, "containers": [{ "name": "c" }],
    }})
}

/// The Status in an answer, whose code must be this.
fn status(answer: &str, code: u16) -> Value {
    assert!(answer.starts_with(&format!("HTTP/1.1 {code} ")), "{answer}");
    let status: Value = serde_json::from_str(body(answer)).expect("JSON");
    assert_eq!(status["code"], code);
    assert_eq!(
        (&status["kind"], &status["status"]),
        (&json!("Status"), &json!("Failure"))
    );
    status
}

async fn posted(way: &Way, path: &str, object: &Value, code: u16) -> Value {
    let (head, body) = way.post(path, object).await;
    status(&format!("{head}\r\n\r\n{body}"), code)
}

#[tokio::test]
async fn a_policy_refuses_what_is_valid_and_stores_nothing() {
    let upstream = Upstream::start().await;
    let way = way(&upstream, &["admission-refuses=pods"], 0);
    let said = "ValidatingAdmissionPolicy 'nothing.example.com' with binding 'nothing-at-all' \
                denied request: nothing of this kind is allowed here";
    assert_eq!(
        posted(&way, PODS, &pod(false), 422).await,
        json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": format!("pods \"p\" is forbidden: {said}"), "reason": "Invalid",
            "details": { "name": "p", "kind": "pods", "causes": [{ "message": said }] },
            "code": 422,
        })
    );
    // Validation comes first
    let status = posted(&way, PODS, &pod(true), 422).await;
    assert_eq!(status["details"]["causes"][0]["field"], "spec.hostPID");
    assert_eq!(
        upstream.seen(),
        [
            format!("POST {PODS}?dryRun=All"),
            format!("POST {PODS}?dryRun=All")
        ]
    );

    way.set(&["admission-refuses=*:Forbidden"]);
    let status = posted(&way, DEPLOYMENTS, &json!({}), 403).await;
    assert_eq!(status["reason"], "Forbidden");
    assert_eq!(status["details"]["group"], "apps");
    let message = status["message"].as_str().expect("a message");
    assert!(
        message.starts_with("deployments.apps \"Unknown\" is forbidden: "),
        "{message}"
    );
    // A policy does not see a review of access
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let (head, _) = way.post(path, &json!({})).await;
    assert!(head.starts_with("HTTP/1.1 201 "), "{head}");
}

#[tokio::test]
async fn a_webhook_refuses_what_is_valid() {
    let upstream = Upstream::start().await;
    let way = way(&upstream, &["webhook-refuses=pods"], 0);
    let said = "admission webhook \"hook.example.com\" denied the request: nothing of this kind \
                is allowed here";
    let status = posted(&way, PODS, &pod(false), 400).await;
    assert_eq!(
        (&status["message"], status.get("reason")),
        (&said.into(), None)
    );
    posted(&way, PODS, &pod(true), 422).await;
    way.set(&["webhook-refuses=pods:403"]);
    let status = posted(&way, PODS, &pod(false), 403).await;
    assert_eq!(
        (&status["message"], &status["reason"]),
        (&said.into(), &"Forbidden".into())
    );
    let (head, _) = way.post(DEPLOYMENTS, &json!({})).await;
    assert!(head.starts_with("HTTP/1.1 201 "), "{head}");
}

#[tokio::test]
async fn a_webhook_is_in_the_way_before_anything_is_validated() {
    let upstream = Upstream::start().await;
    let way = way(&upstream, &["webhook-times-out"], 0);
    let status = posted(&way, PODS, &pod(true), 500).await;
    let cause = "failed calling webhook \"hook.example.com\": failed to call webhook: Post \
                 \"https://hook.example.svc:443/mutate?timeout=10s\": context deadline exceeded";
    assert_eq!(
        status["message"],
        format!("Internal error occurred: {cause}")
    );
    assert_eq!(status["reason"], "InternalError");
    assert_eq!(status["details"]["causes"], json!([{ "message": cause }]));

    way.set(&["webhook-no-dry-run=*"]);
    let dry = format!("{DEPLOYMENTS}?dryRun=All");
    let status = posted(&way, &dry, &json!({}), 400).await;
    assert_eq!(status["reason"], "BadRequest");
    assert_eq!(
        status["message"],
        "admission webhook \"hook.example.com\" does not support dry run"
    );
    assert_eq!(upstream.seen(), [""; 0]);
    let (head, _) = way.post(DEPLOYMENTS, &json!({})).await;
    assert!(head.starts_with("HTTP/1.1 201 "), "{head}");
}

#[tokio::test]
async fn rbac_speaks_of_user_verb_and_resource() {
    let upstream = Upstream::start().await;
    let way = way(&upstream, &[], 0);
    let user = "User \"system:serviceaccount:default:reader\" cannot";
    for (fault, path, message) in [
        (
            "nodes",
            "/api/v1/nodes",
            format!(
                "nodes is forbidden: {user} list resource \"nodes\" in API group \"\" at the cluster scope"
            ),
        ),
        (
            "deployments",
            "/apis/apps/v1/namespaces/a/deployments/d",
            format!(
                "deployments.apps \"d\" is forbidden: {user} get resource \"deployments\" in API group \"apps\" in the namespace \"a\""
            ),
        ),
        (
            "pods/log",
            "/api/v1/namespaces/a/pods/p/log",
            format!(
                "pods \"p\" is forbidden: {user} get resource \"pods/log\" in API group \"\" in the namespace \"a\""
            ),
        ),
        (
            "/metrics",
            "/metrics",
            format!("forbidden: {user} get path \"/metrics\""),
        ),
    ] {
        way.set(&[&format!("answers-403={fault}")]);
        let status = status(&way.get(path).await.expect("an answer"), 403);
        assert_eq!(status["message"], message, "{path}");
        assert_eq!(status["reason"], "Forbidden");
        assert!(status["details"].is_object());
    }
    assert_eq!(upstream.seen(), [""; 0]);
    let answer = way.get("/api/v1/nodes").await.expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}

#[tokio::test]
async fn a_token_expires_after_some_requests() {
    let upstream = Upstream::start().await;
    let way = way(&upstream, &["token-expires=2"], 0);
    for code in [200, 200, 401, 401] {
        let answer = way.get("/api/v1/nodes").await.expect("an answer");
        assert!(answer.starts_with(&format!("HTTP/1.1 {code} ")), "{answer}");
    }
    let answer = way.get("/version").await.expect("an answer");
    let status = status(&answer, 401);
    assert_eq!(
        (&status["reason"], &status["message"]),
        (&json!("Unauthorized"), &json!("Unauthorized"))
    );
    // The count starts when the faults are set
    way.set(&["token-expires=1"]);
    let answer = way.get("/version").await.expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}

#[tokio::test]
async fn a_restart_drops_connections_and_ends() {
    let upstream = Upstream::start().await;
    let way = way(&upstream, &["server-restarts=2"], 0);
    let mut open = way.open("/stream").await.expect("a head").into_body();
    open.frame().await.expect("a part").expect("of the body");
    let mut said = Vec::new();
    for _ in 0..12 {
        said.push(match way.get("/version").await {
            Ok(answer) => answer[9..12].to_owned(),
            Err(error) => {
                assert!(
                    format!("{error:?}").contains("ConnectionReset"),
                    "{error:?}"
                );
                "reset".to_owned()
            }
        });
    }
    // The server's restart ends the watch
    let ended = timeout(LONG, open.frame()).await.expect("in time");
    ended.expect("no end").expect_err("a reset");
    assert_eq!(said[0], "200");
    assert_eq!(
        said[1..7],
        ["reset"; 6],
        "the one that met it, and five more"
    );
    assert_eq!(said[7..10], ["503"; 3]);
    assert_eq!(said[10..], ["200"; 2]);
    upstream.state.go_on.notify_one();
    timeout(LONG, upstream.state.left.notified())
        .await
        .expect("the upstream request ended");
}

#[tokio::test]
async fn the_aggregated_server_is_down_and_stale() {
    let upstream = Upstream::start().await;
    let way = way(&upstream, &["aggregated-down"], 0);
    let answer = way
        .get("/apis/metrics.k8s.io/v1beta1/nodes")
        .await
        .expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(
        answer.ends_with("\r\n\r\nservice unavailable\n"),
        "{answer}"
    );
    let groups = way.get("/apis").await.expect("an answer");
    let groups: Value = serde_json::from_str(body(&groups)).expect("JSON");
    assert_eq!(groups["groups"][0]["name"], "apps");
    assert_eq!(groups["groups"][1]["name"], "metrics.k8s.io");
    assert_eq!(
        groups["groups"][1]["preferredVersion"]["groupVersion"],
        "metrics.k8s.io/v1beta1"
    );
    let group = way.get("/apis/metrics.k8s.io").await.expect("an answer");
    assert!(
        group.starts_with("HTTP/1.1 200 ") && group.contains("APIGroup"),
        "{group}"
    );
    let answer = way.get("/apis/apps/v1").await.expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}

#[test]
fn discovery_in_one_document_has_it_stale() {
    let list = json!({ "kind": "APIGroupDiscoveryList", "items": [
        { "metadata": { "name": "metrics.k8s.io" }, "versions": [{ "version": "v1beta1" }] },
    ]});
    let edited = crate::interference::kinds::aggregated::discovery(list.to_string().as_bytes());
    let list: Value = serde_json::from_slice(&edited.expect("a list")).expect("JSON");
    assert_eq!(list["items"].as_array().map(Vec::len), Some(1));
    assert_eq!(
        list["items"][0]["versions"],
        json!([{ "version": "v1beta1", "freshness": "Stale" }])
    );
}

#[tokio::test]
async fn a_slow_answer_is_late_or_in_pieces_and_whole() {
    let upstream = Upstream::start().await;
    let way = way(&upstream, &["slow"], 5);
    let mut pieces = Vec::new();
    for _ in 0..8 {
        let mut body = way.open("/api/v1/nodes").await.expect("a head").into_body();
        let (mut whole, mut frames) = (Vec::new(), 0);
        while let Some(frame) = body.frame().await {
            whole.extend_from_slice(&frame.expect("a part").into_data().expect("data"));
            frames += 1;
        }
        let list: Value = serde_json::from_slice(&whole).expect("JSON");
        assert_eq!(list["items"][0]["metadata"]["name"], "n");
        pieces.push(frames);
    }
    assert!(
        pieces.iter().any(|frames| *frames > 4),
        "in pieces: {pieces:?}"
    );
    assert!(pieces.iter().any(|frames| *frames < 4), "late: {pieces:?}");
}

#[tokio::test]
async fn hostile_texts_are_where_texts_can_be() {
    let upstream = Upstream::start().await;
    let way = way(&upstream, &["hostile-texts"], 0);
    let nodes = way.get("/api/v1/nodes").await.expect("an answer");
    let nodes: Value = serde_json::from_str(body(&nodes)).expect("JSON");
    let node = &nodes["items"][0];
    assert_eq!(node["metadata"]["name"], "n", "asked for again");
    assert_eq!(node["metadata"]["labels"], json!({ "a": "b", KEY: TEXT }));
    let annotation = node["metadata"]["annotations"][KEY]
        .as_str()
        .expect("a text");
    assert!(annotation.starts_with(TEXT) && annotation.len() > 16_000);
    assert_eq!(
        node["status"]["conditions"][0]["message"],
        format!("m{TEXT}")
    );
    assert_eq!(node["status"]["nodeInfo"]["osImage"], format!("o{TEXT}"));
    assert_eq!(nodes["metadata"], json!({}), "a list has no labels");

    let path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
    let hooks = way.get(path).await.expect("an answer");
    let hooks: Value = serde_json::from_str(body(&hooks)).expect("JSON");
    assert_eq!(hooks["items"][0]["metadata"]["name"], format!("m{TEXT}"));
    assert_eq!(hooks["items"][0]["webhooks"][0]["name"], format!("w{TEXT}"));

    // A client sends the texts back, and the server gets the object without them
    let (_, echo) = way
        .send("PUT", "/api/v1/nodes/n", "application/json", node)
        .await;
    let sent: Value = serde_json::from_str(echo["body"].as_str().expect("a body")).expect("JSON");
    assert_eq!(
        sent["metadata"],
        json!({ "name": "n", "labels": { "a": "b" }, "annotations": {} })
    );
    assert_eq!(sent["status"]["conditions"][0]["message"], "m");

    way.set(&["webhook-refuses=pods", "hostile-texts"]);
    let status = posted(&way, PODS, &pod(false), 400).await;
    assert!(
        status["message"]
            .as_str()
            .is_some_and(|text| text.ends_with(TEXT))
    );
}

#[tokio::test]
async fn a_watch_is_hostile_event_by_event() {
    let upstream = Upstream::start().await;
    let way = way(&upstream, &["gone", "hostile-texts"], 0);
    let watch = "/api/v1/pods?watch=true&resourceVersion=5";
    let answer = way.get(watch).await.expect("an answer");
    let line = answer
        .lines()
        .find(|line| line.starts_with('{'))
        .expect("an event");
    let event: Value = serde_json::from_str(line).expect("an event");
    let message = event["object"]["message"].as_str().expect("a message");
    assert!(message.ends_with(TEXT), "{message:?}");
}
