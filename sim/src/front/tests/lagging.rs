//! Answers that end too early, never, or say what was; objects that go as soon as they are there.

use std::io::ErrorKind;
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::upstream::Upstream;
use super::{body, front, get, idle, post};

#[tokio::test]
async fn a_truncated_body_ends_in_a_reset_connection() {
    let upstream = Upstream::start().await;
    let front = front(&upstream, &["truncate-body"], 0).await;
    let whole = r#"{"items":[{"#.len();
    for _ in 0..5 {
        let mut stream = TcpStream::connect(front.address())
            .await
            .expect("a connection");
        stream
            .write_all(b"GET /api/v1/nodes HTTP/1.1\r\nhost: front\r\n\r\n")
            .await
            .expect("sent");
        let mut seen = Vec::new();
        // An end or a reset: either way less than was promised
        let end = stream.read_to_end(&mut seen).await;
        if let Err(error) = &end {
            assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
        }
        let text = String::from_utf8_lossy(&seen).into_owned();
        if text.is_empty() {
            // The reset has overtaken what was sent
            continue;
        }
        assert!(text.starts_with("HTTP/1.1 200"), "{text}");
        assert!(body(&text).len() >= whole, "{text}");
        let parsed = serde_json::from_str::<serde_json::Value>(body(&text));
        assert!(parsed.is_err(), "cut in the middle: {text}");
    }
    assert_eq!(front.counts().hit_by("truncate-body"), 5);
    assert_eq!(upstream.seen().len(), 5);
    front.stop().await;
}

#[tokio::test]
async fn a_stale_list_is_what_the_same_list_gave_before() {
    let upstream = Upstream::start().await;
    let front = front(&upstream, &["stale-list"], 0).await;
    let list = async |path: &str| {
        let answer = get(&front, path).await.expect("an answer");
        body(&answer).to_owned()
    };
    let first = list("/api/v1/pods?limit=5").await;
    assert_eq!(list("/api/v1/pods?limit=5").await, first);
    assert_eq!(upstream.seen().len(), 1, "asked once");
    assert_ne!(list("/api/v1/pods?limit=6").await, first);
    list("/api/v1/namespaces/a/pods/b").await;
    list("/api/v1/namespaces/a/pods/b").await;
    assert_eq!(upstream.seen().len(), 4, "an object is no list");
    front.stop().await;
}

#[tokio::test]
async fn a_silent_watch_stays_open() {
    let upstream = Upstream::start().await;
    let front = front(&upstream, &["silent-watch"], 0).await;
    let mut said = [0, 0];
    for _ in 0..10 {
        let mut stream = TcpStream::connect(front.address())
            .await
            .expect("a connection");
        stream
            .write_all(b"GET /api/v1/pods?watch=true HTTP/1.1\r\nhost: front\r\n\r\n")
            .await
            .expect("sent");
        let mut seen = Vec::new();
        let end = timeout(Duration::from_millis(150), stream.read_to_end(&mut seen));
        assert!(end.await.is_err(), "it has not ended");
        let text = String::from_utf8_lossy(&seen).into_owned();
        assert!(text.starts_with("HTTP/1.1 200"), "{text}");
        said[usize::from(!body(&text).is_empty())] += 1;
    }
    assert!(said.iter().all(|times| *times > 0), "both forms: {said:?}");
    assert!(
        get(&front, "/api/v1/pods").await.is_ok(),
        "a list is no watch"
    );
    assert_eq!(front.counts().hit_by("silent-watch"), 10);
    idle(&front).await;
    front.stop().await;
}

#[tokio::test]
async fn what_is_created_is_deleted_by_somebody() {
    let upstream = Upstream::start().await;
    let front = front(&upstream, &["delete-created"], 0).await;
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": []}});
    let (head, body) = post(&front, "/api/v1/namespaces/a/pods", &pod).await;
    assert!(head.starts_with("HTTP/1.1 201"), "{head}");
    assert_eq!(body["metadata"]["uid"], "1");
    post(&front, "/api/v1/namespaces/a/pods?dryRun=All", &pod).await;
    let namespace = json!({"metadata": {"name": "n"}});
    post(&front, "/api/v1/namespaces", &namespace).await;
    assert_eq!(
        upstream.seen(),
        [
            "POST /api/v1/namespaces/a/pods",
            "DELETE /api/v1/namespaces/a/pods/p",
            "POST /api/v1/namespaces/a/pods?dryRun=All",
            "POST /api/v1/namespaces",
        ]
    );
    front.stop().await;
}
