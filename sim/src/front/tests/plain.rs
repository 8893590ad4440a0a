//! Forwarding without trouble, and clients that misbehave.

use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::upstream::Upstream;
use super::{LONG, body, front, get, idle, raw};
use crate::front::{Front, FrontOptions};

/// Reads until the answer holds a text.
async fn read_until(stream: &mut TcpStream, text: &str) -> String {
    let mut read = String::new();
    let mut buffer = [0; 1024];
    while !read.contains(text) {
        let length = timeout(LONG, stream.read(&mut buffer))
            .await
            .expect("in time")
            .expect("data");
        assert_ne!(length, 0, "the answer ended after `{read}`");
        read.push_str(&String::from_utf8_lossy(&buffer[..length]));
    }
    read
}

#[tokio::test]
async fn forwards_what_is_end_to_end() {
    let upstream = Upstream::start().await;
    let front = front(&upstream, &[], 0).await;
    let answer = raw(
        &front,
        "PATCH /apis/apps/v1/namespaces/a/deployments/b?fieldManager=x&dryRun=All HTTP/1.1\r\n\
         host: front\r\nconnection: close, x-hop\r\nx-hop: 1\r\nx-end: 2\r\nuser-agent: t/1\r\n\
         accept: application/json;as=Table\r\naccept-encoding: gzip\r\nauthorization: Bearer mine\r\n\
         content-type: application/strategic-merge-patch+json\r\ncontent-length: 2\r\n\r\n{}",
    )
    .await
    .expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("x-upstream: yes\r\n"), "{answer}");
    assert!(
        answer.contains("warning: 299 - \"careful\"\r\n"),
        "{answer}"
    );
    let echo: Value = serde_json::from_str(body(&answer)).expect("JSON");
    assert_eq!(echo["method"], "PATCH");
    let uri = "/apis/apps/v1/namespaces/a/deployments/b?fieldManager=x&dryRun=All";
    assert_eq!(echo["uri"], uri);
    assert_eq!(echo["body"], "{}");
    let headers = &echo["headers"];
    assert_eq!(headers["authorization"], "Bearer secret");
    assert_eq!(
        headers["content-type"],
        "application/strategic-merge-patch+json"
    );
    assert_eq!(headers["accept"], "application/json;as=Table");
    assert_eq!(headers["user-agent"], "t/1");
    assert_eq!(headers["x-end"], "2");
    for gone in ["x-hop", "accept-encoding", "connection"] {
        assert_eq!(headers[gone], Value::Null, "{gone}");
    }
    let counts = front.counts();
    assert_eq!((counts.total(), counts.of("patch deployments")), (1, 1));
    front.stop().await;
}

#[tokio::test]
async fn streams_as_it_comes_and_ends_with_the_client() {
    let upstream = Upstream::start().await;
    let front = front(&upstream, &[], 0).await;
    let mut stream = TcpStream::connect(front.address())
        .await
        .expect("a connection");
    stream
        .write_all(b"GET /stream HTTP/1.1\r\nhost: front\r\n\r\n")
        .await
        .expect("sent");
    let first = read_until(&mut stream, "one\n").await;
    assert!(!first.contains("two"), "{first}");
    upstream.state.go_on.notify_one();
    read_until(&mut stream, "two\n").await;
    drop(stream);
    timeout(LONG, upstream.state.left.notified())
        .await
        .expect("the upstream request ended");
    idle(&front).await;
    front.stop().await;
}

#[tokio::test]
async fn answers_what_is_no_request_with_400() {
    let upstream = Upstream::start().await;
    let front = front(&upstream, &[], 0).await;
    let long = format!("GET / HTTP/1.1\r\nx: {}\r\n\r\n", "y".repeat(1 << 20));
    for (request, code) in [
        ("NONSENSE\r\n\r\n", "400"),
        ("GET  HTTP/1.1\r\n\r\n", "400"),
        ("\u{1}\u{2}\u{3}\r\n\r\n", "400"),
        (
            "OPTIONS * HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n",
            "400",
        ),
        (
            "CONNECT x:1 HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n",
            "400",
        ),
        (
            "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: nine\r\n\r\n",
            "400",
        ),
    ] {
        let answer = timeout(LONG, raw(&front, request))
            .await
            .expect("in time")
            .expect("bytes");
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {code} ")),
            "{request:?}: {answer}"
        );
    }
    // Refused while it is being sent, so that the answer may be lost
    let _ = timeout(LONG, raw(&front, &long)).await.expect("in time");
    assert_eq!(upstream.seen(), [""; 0]);
    assert!(
        get(&front, "/version")
            .await
            .expect("still there")
            .contains("x-upstream")
    );
    front.stop().await;
}

#[tokio::test]
async fn says_that_the_upstream_is_not_there() {
    // Port 1 of loopback is refused
    let nobody = super::upstream::client("http://127.0.0.1:1");
    let front = Front::before(nobody, FrontOptions::default())
        .await
        .expect("a front");
    let answer = get(&front, "/version").await.expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    let status: Value = serde_json::from_str(body(&answer)).expect("JSON");
    assert_eq!(
        (&status["kind"], &status["code"]),
        (&json!("Status"), &json!(502))
    );
    let message = status["message"].as_str().expect("a message");
    assert!(message.contains("refused"), "{message}");
    front.stop().await;
}

#[tokio::test]
async fn leaves_nothing_when_stopped() {
    let upstream = Upstream::start().await;
    let front = front(&upstream, &["hang"], 0).await;
    let address = front.address();
    let mut hanging = TcpStream::connect(address).await.expect("a connection");
    hanging
        .write_all(b"GET / HTTP/1.1\r\nhost: front\r\n\r\n")
        .await
        .expect("sent");
    front.set(Vec::new());
    let mut streaming = TcpStream::connect(address).await.expect("a connection");
    streaming
        .write_all(b"GET /stream HTTP/1.1\r\nhost: front\r\n\r\n")
        .await
        .expect("sent");
    read_until(&mut streaming, "one\n").await;
    timeout(LONG, front.stop()).await.expect("it stops");
    upstream.state.go_on.notify_one();
    timeout(LONG, upstream.state.left.notified())
        .await
        .expect("the upstream request ended");
    TcpStream::connect(address)
        .await
        .expect_err("nobody listens");
}

#[tokio::test]
async fn kubeconfig_leads_to_it() {
    let upstream = Upstream::start().await;
    let front = front(&upstream, &[], 0).await;
    let text = front.kubeconfig();
    let kubeconfig = Kubeconfig::from_yaml(&text).expect("a kubeconfig");
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .expect("a whole kubeconfig");
    assert_eq!(
        config.cluster_url.to_string(),
        format!("http://{}/", front.address())
    );
    let client = kube::Client::try_from(config).expect("a client");
    let request = http::Request::get("/version")
        .body(Vec::new())
        .expect("a request");
    assert!(
        client
            .request_text(request)
            .await
            .expect("an answer")
            .contains("/version")
    );
    front.stop().await;
}
