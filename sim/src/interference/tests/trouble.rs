//! Each trouble of plain requests, as a client sees it, and which requests it hits.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;
use tokio::time::timeout;

use super::upstream::Upstream;
use super::{body, way};

/// The different answers to ten requests.
async fn answers(written: &str, path: &str) -> Vec<String> {
    let upstream = Upstream::start().await;
    let way = way(&upstream, &[written], 7);
    let mut answers = BTreeSet::new();
    for _ in 0..10 {
        answers.insert(way.get(path).await.expect("an answer"));
    }
    assert_eq!(upstream.seen(), [""; 0]);
    assert_eq!(way.interference.hits(), 10);
    answers.into_iter().collect()
}

#[tokio::test]
async fn answers_are_as_servers_and_balancers_give_them() {
    const NODES: &str = "/api/v1/nodes";
    let expired = ["HTTP/1.1 410 Gone\r\n", "\"reason\":\"Expired\""];
    // The fault, the path, and for each form of answer its beginning and further texts
    let cases: [(&str, &str, &[&[&str]]); 6] = [
        (
            "too-many-requests",
            NODES,
            &[
                &[
                    "HTTP/1.1 429 Too Many Requests\r\n",
                    "retry-after: 1\r\n",
                    "\"code\":429",
                    "\"reason\":\"TooManyRequests\"",
                    "\"retryAfterSeconds\":1",
                ],
                &[
                    "HTTP/1.1 429 Too Many Requests\r\n",
                    "retry-after: 1\r\n",
                    "content-type: text/plain",
                    "\r\n\r\nToo many requests, please try again later.\n",
                ],
            ],
        ),
        (
            "internal-error",
            NODES,
            &[&[
                "HTTP/1.1 500 Internal Server Error\r\n",
                "\"code\":500",
                "\"kind\":\"Status\"",
                "\"reason\":\"InternalError\"",
            ]],
        ),
        (
            "html-502",
            NODES,
            &[&[
                "HTTP/1.1 502 Bad Gateway\r\n",
                "content-type: text/html\r\n",
                "<title>502 Bad Gateway</title>",
            ]],
        ),
        (
            "gone",
            "/api/v1/pods?watch=true&resourceVersion=5",
            &[&[
                "HTTP/1.1 200 OK\r\n",
                "\"code\":410",
                "\"reason\":\"Expired\"",
                "\"type\":\"ERROR\"",
            ]],
        ),
        ("gone", "/api/v1/pods?continue=abc&limit=1", &[&expired]),
        ("gone", "/api/v1/pods?resourceVersion=5", &[&expired]),
    ];
    for (written, path, forms) in cases {
        let seen = answers(written, path).await;
        assert_eq!(seen.len(), forms.len(), "{written}: {seen:?}");
        for (answer, expected) in seen.iter().zip(forms) {
            assert!(answer.starts_with(expected[0]), "{answer}");
            for text in *expected {
                assert!(answer.contains(text), "{text} in {answer}");
            }
        }
    }
    // A list without a version cannot expire
    let upstream = Upstream::start().await;
    let way = way(&upstream, &["gone"], 0);
    let list = way.get("/api/v1/pods").await.expect("an answer");
    assert!(list.starts_with("HTTP/1.1 200 OK"), "{list}");
    assert_eq!(way.interference.hits(), 0);
}

#[tokio::test]
async fn hang_never_answers() {
    let upstream = Upstream::start().await;
    let way = way(&upstream, &["hang"], 0);
    let answer = timeout(Duration::from_millis(300), way.open("/")).await;
    assert!(answer.is_err(), "neither an answer nor an end: {answer:?}");
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
    assert_eq!(way.interference.hits(), hit as u64);
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
    assert_eq!(way.interference.hits(), 2);
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
    assert_eq!(way.interference.hits(), 0);
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
