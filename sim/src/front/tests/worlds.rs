//! Bad worlds: what is refused, what expires, what restarts, what is slow and what is hostile.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::upstream::Upstream;
use super::{LONG, body, faults, front, get, post, raw};
use crate::front::Front;
use crate::front::hostile::{KEY, TEXT};

const PODS: &str = "/api/v1/namespaces/a/pods";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/a/deployments";

fn pod(host_pid: bool) -> Value {
    json!({ "metadata": { "name": "p" }, "spec": {
        "os": { "name": "windows" }, "hostPID": host_pid, "containers": [{ "name": "c" }],
    }})
}

/// The Status of an answer with a code.
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

async fn posted(front: &Front, path: &str, object: &Value, code: u16) -> Value {
    let (head, body) = post(front, path, object).await;
    status(&format!("{head}\r\n\r\n{body}"), code)
}

#[tokio::test]
async fn a_policy_refuses_what_is_valid_and_stores_nothing() {
    let upstream = Upstream::start().await;
    let front = front(&upstream, &["admission-refuses=pods"], 0).await;
    let said = "ValidatingAdmissionPolicy 'nothing.example.com' with binding 'nothing-at-all' \
                denied request: nothing of this kind is allowed here";
    assert_eq!(
        posted(&front, PODS, &pod(false), 422).await,
        json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": format!("pods \"p\" is forbidden: {said}"), "reason": "Invalid",
            "details": { "name": "p", "kind": "pods", "causes": [{ "message": said }] },
            "code": 422,
        })
    );
    // Validation comes first
    let status = posted(&front, PODS, &pod(true), 422).await;
    assert_eq!(status["details"]["causes"][0]["field"], "spec.hostPID");
    assert_eq!(front.counts().hit_by("admission-refuses"), 1);
    assert_eq!(
        upstream.seen(),
        [
            format!("POST {PODS}?dryRun=All"),
            format!("POST {PODS}?dryRun=All")
        ]
    );

    front.set(faults(&["admission-refuses=*:Forbidden"]));
    let status = posted(&front, DEPLOYMENTS, &json!({}), 403).await;
    assert_eq!(status["reason"], "Forbidden");
    assert_eq!(status["details"]["group"], "apps");
    let message = status["message"].as_str().expect("a message");
    assert!(
        message.starts_with("deployments.apps \"Unknown\" is forbidden: "),
        "{message}"
    );
    // A review of access is no object that a policy sees
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let (head, _) = post(&front, path, &json!({})).await;
    assert!(head.starts_with("HTTP/1.1 201 "), "{head}");
    front.stop().await;
}

#[tokio::test]
async fn a_webhook_refuses_what_is_valid() {
    let upstream = Upstream::start().await;
    let front = front(&upstream, &["webhook-refuses=pods"], 0).await;
    let said = "admission webhook \"hook.example.com\" denied the request: nothing of this kind \
                is allowed here";
    let status = posted(&front, PODS, &pod(false), 400).await;
    assert_eq!(
        (&status["message"], status.get("reason")),
        (&said.into(), None)
    );
    posted(&front, PODS, &pod(true), 422).await;
    front.set(faults(&["webhook-refuses=pods:403"]));
    let status = posted(&front, PODS, &pod(false), 403).await;
    assert_eq!(
        (&status["message"], &status["reason"]),
        (&said.into(), &"Forbidden".into())
    );
    let (head, _) = post(&front, DEPLOYMENTS, &json!({})).await;
    assert!(head.starts_with("HTTP/1.1 201 "), "{head}");
    assert_eq!(front.counts().hit_by("webhook-refuses"), 2);
    front.stop().await;
}

#[tokio::test]
async fn a_webhook_is_in_the_way_before_anything_is_validated() {
    let upstream = Upstream::start().await;
    let front = front(&upstream, &["webhook-times-out"], 0).await;
    let status = posted(&front, PODS, &pod(true), 500).await;
    let cause = "failed calling webhook \"hook.example.com\": failed to call webhook: Post \
                 \"https://hook.example.svc:443/mutate?timeout=10s\": context deadline exceeded";
    assert_eq!(
        status["message"],
        format!("Internal error occurred: {cause}")
    );
    assert_eq!(status["reason"], "InternalError");
    assert_eq!(status["details"]["causes"], json!([{ "message": cause }]));

    front.set(faults(&["webhook-no-dry-run=*"]));
    let dry = format!("{DEPLOYMENTS}?dryRun=All");
    let status = posted(&front, &dry, &json!({}), 400).await;
    assert_eq!(status["reason"], "BadRequest");
    assert_eq!(
        status["message"],
        "admission webhook \"hook.example.com\" does not support dry run"
    );
    assert_eq!(upstream.seen(), [""; 0]);
    let (head, _) = post(&front, DEPLOYMENTS, &json!({})).await;
    assert!(head.starts_with("HTTP/1.1 201 "), "{head}");
    let counts = front.counts();
    assert_eq!(counts.hit_by("webhook-times-out"), 1);
    assert_eq!(counts.hit_by("webhook-no-dry-run"), 1);
    front.stop().await;
}

#[tokio::test]
async fn rbac_speaks_of_user_verb_and_resource() {
    let upstream = Upstream::start().await;
    let front = front(&upstream, &[], 0).await;
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
        front.set(faults(&[&format!("answers-403={fault}")]));
        let status = status(&get(&front, path).await.expect("an answer"), 403);
        assert_eq!(status["message"], message, "{path}");
        assert_eq!(status["reason"], "Forbidden");
        assert!(status["details"].is_object());
    }
    assert_eq!(front.counts().hit_by("answers-403"), 4);
    assert_eq!(upstream.seen(), [""; 0]);
    let answer = get(&front, "/api/v1/nodes").await.expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    front.stop().await;
}

#[tokio::test]
async fn a_token_expires_after_some_requests() {
    let upstream = Upstream::start().await;
    let front = front(&upstream, &["token-expires=2"], 0).await;
    for code in [200, 200, 401, 401] {
        let answer = get(&front, "/api/v1/nodes").await.expect("an answer");
        assert!(answer.starts_with(&format!("HTTP/1.1 {code} ")), "{answer}");
    }
    let answer = get(&front, "/version").await.expect("an answer");
    let status = status(&answer, 401);
    assert_eq!(
        (&status["reason"], &status["message"]),
        (&json!("Unauthorized"), &json!("Unauthorized"))
    );
    assert_eq!(front.counts().hit_by("token-expires"), 3);
    // Counted from where it was set
    front.set(faults(&["token-expires=1"]));
    let answer = get(&front, "/version").await.expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    front.stop().await;
}

#[tokio::test]
async fn a_restart_drops_connections_and_ends() {
    let upstream = Upstream::start().await;
    let front = front(&upstream, &["server-restarts=2"], 0).await;
    let mut open = TcpStream::connect(front.address())
        .await
        .expect("a connection");
    open.write_all(b"GET /stream HTTP/1.1\r\nhost: front\r\n\r\n")
        .await
        .expect("sent");
    let mut buffer = [0; 1024];
    let read = timeout(LONG, open.read(&mut buffer))
        .await
        .expect("in time");
    assert_ne!(read.expect("a head"), 0);
    let mut said = Vec::new();
    for _ in 0..12 {
        said.push(
            match timeout(LONG, get(&front, "/version"))
                .await
                .expect("in time")
            {
                Ok(answer) => answer[9..12].to_owned(),
                Err(error) => error.kind().to_string(),
            },
        );
        if said.len() == 2 {
            // The watch is gone with the server; what it had sent may still be read
            let ended = loop {
                match timeout(LONG, open.read(&mut buffer))
                    .await
                    .expect("in time")
                {
                    Ok(0) | Err(_) => break true,
                    Ok(_) => {}
                }
            };
            assert!(ended);
        }
    }
    let reset = "connection reset";
    assert_eq!(said[0], "200");
    assert_eq!(
        said[1..7],
        [reset; 6],
        "the one that met it, and five connections"
    );
    assert_eq!(said[7..10], ["503"; 3]);
    assert_eq!(said[10..], ["200"; 2]);
    assert_eq!(
        front.counts().hit_by("server-restarts"),
        4,
        "requests, not connections"
    );
    upstream.state.go_on.notify_one();
    timeout(LONG, upstream.state.left.notified())
        .await
        .expect("the upstream request ended");
    front.stop().await;
}

#[tokio::test]
async fn the_aggregated_server_is_down_and_stale() {
    let upstream = Upstream::start().await;
    let front = front(&upstream, &["aggregated-down"], 0).await;
    let answer = get(&front, "/apis/metrics.k8s.io/v1beta1/nodes")
        .await
        .expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(
        answer.ends_with("\r\n\r\nservice unavailable\n"),
        "{answer}"
    );
    let groups = get(&front, "/apis").await.expect("an answer");
    let groups: Value = serde_json::from_str(body(&groups)).expect("JSON");
    assert_eq!(groups["groups"][0]["name"], "apps");
    assert_eq!(groups["groups"][1]["name"], "metrics.k8s.io");
    assert_eq!(
        groups["groups"][1]["preferredVersion"]["groupVersion"],
        "metrics.k8s.io/v1beta1"
    );
    let group = get(&front, "/apis/metrics.k8s.io")
        .await
        .expect("an answer");
    assert!(
        group.starts_with("HTTP/1.1 200 ") && group.contains("APIGroup"),
        "{group}"
    );
    let answer = get(&front, "/apis/apps/v1").await.expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert_eq!(front.counts().hit_by("aggregated-down"), 3);
    front.stop().await;
}

#[test]
fn discovery_in_one_document_has_it_stale() {
    let list = json!({ "kind": "APIGroupDiscoveryList", "items": [
        { "metadata": { "name": "metrics.k8s.io" }, "versions": [{ "version": "v1beta1" }] },
    ]});
    let edited = crate::front::aggregated::discovery(list.to_string().as_bytes());
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
    let front = front(&upstream, &["slow"], 5).await;
    let mut pieces = Vec::new();
    for _ in 0..8 {
        let mut stream = TcpStream::connect(front.address())
            .await
            .expect("a connection");
        stream
            .write_all(b"GET /api/v1/nodes HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
            .await
            .expect("sent");
        let (mut whole, mut reads) = (Vec::new(), 0);
        loop {
            let mut buffer = [0; 4096];
            let length = timeout(LONG, stream.read(&mut buffer))
                .await
                .expect("in time");
            match length.expect("no error") {
                0 => break,
                length => whole.extend_from_slice(&buffer[..length]),
            }
            reads += 1;
        }
        let text = String::from_utf8(whole).expect("text");
        let start = text.find('{').expect("an object");
        let list: Value = serde_json::from_str(&text[start..]).expect("JSON");
        assert_eq!(list["items"][0]["metadata"]["name"], "n");
        pieces.push(reads);
    }
    assert_eq!(front.counts().hit_by("slow"), 8);
    assert!(
        pieces.iter().any(|reads| *reads > 4),
        "in pieces: {pieces:?}"
    );
    assert!(pieces.iter().any(|reads| *reads < 4), "late: {pieces:?}");
    front.stop().await;
}

#[tokio::test]
async fn a_late_answer_can_be_outwaited() {
    let upstream = Upstream::start().await;
    let front = front(&upstream, &["slow"], 5).await;
    // The client leaves; the front does not mind
    for _ in 0..4 {
        let left = timeout(Duration::ZERO, get(&front, "/api/v1/nodes")).await;
        assert!(left.is_err(), "nothing is that fast");
    }
    super::idle(&front).await;
    front.stop().await;
}

#[tokio::test]
async fn hostile_texts_are_where_texts_can_be() {
    let upstream = Upstream::start().await;
    let front = front(&upstream, &["hostile-texts"], 0).await;
    let nodes = get(&front, "/api/v1/nodes").await.expect("an answer");
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
    let hooks = get(&front, path).await.expect("an answer");
    let hooks: Value = serde_json::from_str(body(&hooks)).expect("JSON");
    assert_eq!(hooks["items"][0]["metadata"]["name"], format!("m{TEXT}"));
    assert_eq!(hooks["items"][0]["webhooks"][0]["name"], format!("w{TEXT}"));
    assert_eq!(front.counts().hit_by("hostile-texts"), 2);

    // What a client sends back goes without
    let (_, echo) = super::send(&front, "PUT", "/api/v1/nodes/n", "application/json", node).await;
    let sent: Value = serde_json::from_str(echo["body"].as_str().expect("a body")).expect("JSON");
    assert_eq!(
        sent["metadata"],
        json!({ "name": "n", "labels": { "a": "b" }, "annotations": {} })
    );
    assert_eq!(sent["status"]["conditions"][0]["message"], "m");

    front.set(faults(&["webhook-refuses=pods", "hostile-texts"]));
    let status = posted(&front, PODS, &pod(false), 400).await;
    assert!(
        status["message"]
            .as_str()
            .is_some_and(|text| text.ends_with(TEXT))
    );
    front.stop().await;
}

#[tokio::test]
async fn a_watch_is_hostile_event_by_event() {
    let upstream = Upstream::start().await;
    let front = front(&upstream, &["gone", "hostile-texts"], 0).await;
    let watch = "GET /api/v1/pods?watch=true&resourceVersion=5 HTTP/1.1\r\nhost: x\r\n\
                 connection: close\r\n\r\n";
    let answer = raw(&front, watch).await.expect("an answer");
    let line = answer
        .lines()
        .find(|line| line.starts_with('{'))
        .expect("an event");
    let event: Value = serde_json::from_str(line).expect("an event");
    let message = event["object"]["message"].as_str().expect("a message");
    assert!(message.ends_with(TEXT), "{message:?}");
    front.stop().await;
}
