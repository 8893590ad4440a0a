//! Answers that end too early, never, or are old; and objects that are deleted as soon as they exist.

use std::time::Duration;

use http_body_util::BodyExt;
use serde_json::json;
use tokio::time::timeout;

use super::upstream::Upstream;
use super::{body, way};

#[tokio::test]
async fn a_truncated_body_ends_in_a_reset_connection() {
    let upstream = Upstream::start().await;
    let way = way(&upstream, &["truncate-body"], 0);
    for _ in 0..5 {
        let answer = way.open("/api/v1/nodes").await.expect("a head");
        assert_eq!(answer.status(), 200);
        let mut body = answer.into_body();
        let half = body.frame().await.expect("a part").expect("of the body");
        let half = half.into_data().expect("data");
        assert!(half.starts_with(b"{\"items\":[{"), "{half:?}");
        serde_json::from_slice::<serde_json::Value>(&half).expect_err("cut in the middle");
        let end = body.frame().await.expect("no end").expect_err("an error");
        assert!(format!("{end:?}").contains("ConnectionReset"), "{end:?}");
    }
    assert_eq!(upstream.seen().len(), 5);
}

#[tokio::test]
async fn a_stale_list_is_what_the_same_list_gave_before() {
    let upstream = Upstream::start().await;
    let way = way(&upstream, &["stale-list"], 0);
    let list = async |path: &str| {
        let answer = way.get(path).await.expect("an answer");
        body(&answer).to_owned()
    };
    let first = list("/api/v1/pods?limit=5").await;
    assert_eq!(list("/api/v1/pods?limit=5").await, first);
    assert_eq!(upstream.seen().len(), 1, "asked once");
    assert_ne!(list("/api/v1/pods?limit=6").await, first);
    list("/api/v1/namespaces/a/pods/b").await;
    list("/api/v1/namespaces/a/pods/b").await;
    assert_eq!(upstream.seen().len(), 4, "an object is no list");
}

#[tokio::test]
async fn a_silent_watch_stays_open() {
    let upstream = Upstream::start().await;
    let way = way(&upstream, &["silent-watch"], 0);
    let mut said = [0, 0];
    for _ in 0..10 {
        let answer = way.open("/api/v1/pods?watch=true").await.expect("a head");
        assert_eq!(answer.status(), 200);
        let mut body = answer.into_body();
        let mut parts = 0;
        let end = async {
            while let Some(Ok(_)) = body.frame().await {
                parts += 1;
            }
        };
        let end = timeout(Duration::from_millis(150), end).await;
        assert!(end.is_err(), "it has not ended");
        said[usize::from(parts > 0)] += 1;
    }
    assert!(said.iter().all(|times| *times > 0), "both forms: {said:?}");
    assert!(way.get("/api/v1/pods").await.is_ok(), "a list is no watch");
}

#[tokio::test]
async fn what_is_created_is_deleted_by_somebody() {
    let upstream = Upstream::start().await;
    let way = way(&upstream, &["delete-created"], 0);
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": []}});
    let (head, body) = way.post("/api/v1/namespaces/a/pods", &pod).await;
    assert!(head.starts_with("HTTP/1.1 201"), "{head}");
    assert_eq!(body["metadata"]["uid"], "1");
    way.post("/api/v1/namespaces/a/pods?dryRun=All", &pod).await;
    let namespace = json!({"metadata": {"name": "n"}});
    way.post("/api/v1/namespaces", &namespace).await;
    assert_eq!(
        upstream.seen(),
        [
            "POST /api/v1/namespaces/a/pods",
            "DELETE /api/v1/namespaces/a/pods/p",
            "POST /api/v1/namespaces/a/pods?dryRun=All",
            "POST /api/v1/namespaces",
        ]
    );
}
