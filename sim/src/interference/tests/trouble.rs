//! Each trouble of plain requests, as a client meets it, and which requests it hits.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use super::upstream::Upstream;
use super::{body, way};

/// Sends ten requests and returns the distinct answers, sorted.
async fn answers(written: &str, path: &str) -> Vec<String> {
    let upstream = Upstream::start().await;
    let way = way(&upstream, &[written], 7);
    let mut answers = Vec::new();
    for _ in 0..10 {
        let answer = way.get(path).await.expect("an answer");
        answers.push(answer.replace("\r\n", "\n"));
    }
    assert_eq!(upstream.seen(), [""; 0]);
    assert_eq!(way.hit_by(written), 10);
    answers.sort();
    answers.dedup();
    answers
}

#[tokio::test]
async fn too_many_requests_is_a_status_or_plain_text() {
    let answers = answers("too-many-requests", "/api/v1/nodes").await;
    let [plain, status] = answers.as_slice() else {
        panic!("two forms, not {answers:?}")
    };
    for answer in [plain, status] {
        assert!(
            answer.starts_with("HTTP/1.1 429 Too Many Requests\n"),
            "{answer}"
        );
        assert!(answer.contains("retry-after: 1\n"), "{answer}");
    }
    let (plain, status) = if plain.contains("text/plain") {
        (plain, status)
    } else {
        (status, plain)
    };
    assert!(
        plain.ends_with("\n\nToo many requests, please try again later.\n"),
        "{plain}"
    );
    let (_, status) = status.split_once("\n\n").expect("a body");
    let status: Value = serde_json::from_str(status).expect("JSON");
    assert_eq!(status["reason"], "TooManyRequests");
    assert_eq!(status["details"]["retryAfterSeconds"], 1);
    assert_eq!(status["code"], 429);
}

#[tokio::test]
async fn internal_error_is_a_status() {
    let answers = answers("internal-error", "/api/v1/nodes").await;
    let [answer] = answers.as_slice() else {
        panic!("one form, not {answers:?}")
    };
    assert!(
        answer.starts_with("HTTP/1.1 500 Internal Server Error\n"),
        "{answer}"
    );
    let (_, status) = answer.split_once("\n\n").expect("a body");
    let status: Value = serde_json::from_str(status).expect("JSON");
    assert_eq!(
        (&status["kind"], &status["reason"], &status["code"]),
        (&json!("Status"), &json!("InternalError"), &json!(500))
    );
}

#[tokio::test]
async fn html_502_is_a_page() {
    let answers = answers("html-502", "/api/v1/nodes").await;
    let [answer] = answers.as_slice() else {
        panic!("one form, not {answers:?}")
    };
    assert!(answer.starts_with("HTTP/1.1 502 Bad Gateway\n"), "{answer}");
    assert!(answer.contains("content-type: text/html\n"), "{answer}");
    assert!(
        answer.contains("<title>502 Bad Gateway</title>"),
        "{answer}"
    );
}

#[tokio::test]
async fn gone_is_an_event_in_a_watch_and_410_for_a_list() {
    let watch = answers("gone", "/api/v1/pods?watch=true&resourceVersion=5").await;
    let [watch] = watch.as_slice() else {
        panic!("one form, not {watch:?}")
    };
    assert!(watch.starts_with("HTTP/1.1 200 OK\n"), "{watch}");
    let line = watch
        .lines()
        .find(|line| line.starts_with('{'))
        .expect("an event");
    let event: kube::core::WatchEvent<kube::core::DynamicObject> =
        serde_json::from_str(line).expect("an event");
    let kube::core::WatchEvent::Error(status) = event else {
        panic!("an error, not {event:?}")
    };
    assert_eq!((status.code, status.reason.as_str()), (410, "Expired"));

    for path in [
        "/api/v1/pods?continue=abc&limit=1",
        "/api/v1/pods?resourceVersion=5",
    ] {
        let list = answers("gone", path).await;
        let [list] = list.as_slice() else {
            panic!("one form, not {list:?}")
        };
        assert!(list.starts_with("HTTP/1.1 410 Gone\n"), "{list}");
        assert!(list.contains("\"reason\":\"Expired\""), "{list}");
    }

    let upstream = Upstream::start().await;
    let way = way(&upstream, &["gone"], 0);
    let list = way.get("/api/v1/pods").await.expect("an answer");
    assert!(list.starts_with("HTTP/1.1 200 OK"), "{list}");
    assert_eq!(way.hit_by("gone"), 0);
}

#[tokio::test]
async fn hang_never_answers() {
    let upstream = Upstream::start().await;
    let way = way(&upstream, &["hang"], 0);
    let answer = timeout(Duration::from_millis(300), way.open("/")).await;
    assert!(answer.is_err(), "neither an answer nor an end: {answer:?}");
    assert_eq!(way.hit_by("hang"), 1);
    assert_eq!(upstream.seen(), [""; 0]);
}

#[tokio::test]
async fn reset_comes_before_or_after_the_server_acted() {
    let upstream = Upstream::start().await;
    let way = way(&upstream, &["reset"], 3);
    for _ in 0..20 {
        let error = way.get("/api/v1/nodes").await.expect_err("no answer");
        assert!(
            format!("{error:?}").contains("ConnectionReset"),
            "{error:?}"
        );
    }
    let acted = upstream.seen().len();
    assert!((3..=17).contains(&acted), "{acted} of 20 were done");
    assert_eq!(way.hit_by("reset"), 20);
}

/// Which of a thousand requests were hit.
async fn hits(seed: u64) -> Vec<bool> {
    let upstream = Upstream::start().await;
    let way = way(&upstream, &["internal-error=0.2"], seed);
    let mut hits = Vec::new();
    for _ in 0..1000 {
        let answer = way.get("/api/v1/nodes").await.expect("an answer");
        hits.push(answer.starts_with("HTTP/1.1 500 "));
    }
    let hit = hits.iter().filter(|hit| **hit).count();
    assert_eq!(way.hit_by("internal-error"), hit as u64);
    assert_eq!(upstream.seen().len(), hits.len() - hit);
    hits
}

#[tokio::test]
async fn a_share_is_met_and_repeats_with_its_seed() {
    let once = hits(42).await;
    let hit = once.iter().filter(|hit| **hit).count();
    // Four standard deviations of a binomial distribution on either side
    assert!((150..=250).contains(&hit), "{hit} of 1000");
    assert_eq!(once, hits(42).await);
    assert_ne!(once, hits(43).await);
}

#[tokio::test]
async fn faults_change_at_run_time_and_the_first_counts() {
    let upstream = Upstream::start().await;
    let way = way(&upstream, &[], 0);
    let code = async || {
        let answer = way.get("/version").await.expect("an answer");
        assert!(!body(&answer).is_empty());
        answer[9..12].to_owned()
    };
    assert_eq!(code().await, "200");
    way.set(&["html-502", "internal-error"]);
    assert_eq!(code().await, "502");
    way.set(&["html-502=0", "internal-error"]);
    assert_eq!(code().await, "500");
    way.set(&[]);
    assert_eq!(code().await, "200");
    assert_eq!(
        (way.hit_by("html-502"), way.hit_by("internal-error")),
        (1, 1)
    );
}

#[tokio::test]
async fn what_has_no_fault_passes_as_it_is() {
    let upstream = Upstream::start().await;
    let way = way(&upstream, &[], 0);
    let path = "/apis/apps/v1/namespaces/a/deployments/b?fieldManager=x&dryRun=All";
    let kind = "application/strategic-merge-patch+json";
    let (head, echo) = way.send("PATCH", path, kind, &json!({"a": 1})).await;
    assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
    assert!(head.contains("warning: 299 - \"careful\""), "{head}");
    assert_eq!(
        (&echo["method"], &echo["uri"]),
        (&json!("PATCH"), &json!(path))
    );
    assert_eq!(echo["body"], r#"{"a":1}"#);
    assert_eq!(echo["headers"]["content-type"], kind);
    assert_eq!(echo["headers"]["authorization"], "Bearer secret");
    assert_eq!(way.interference.hits().len(), 0);
}

#[tokio::test]
async fn a_server_that_is_not_there_is_an_error() {
    // Port 1 of loopback is refused
    let _ = rustls::crypto::ring::default_provider().install_default();
    let nobody = super::upstream::client("http://127.0.0.1:1");
    let interference = crate::interference::Interference::new(Vec::new(), 0);
    let request = http::Request::get("/").body(kube::client::Body::empty());
    let client = interference.before(&nobody);
    let sent = client.send(request.expect("a request")).await;
    let error = sent.expect_err("nobody listens");
    assert!(
        format!("{error:?}").contains("ConnectionRefused"),
        "{error:?}"
    );
}
