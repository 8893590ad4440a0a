//! Each harness fault of plain requests, as it looks on the wire, and which requests it hits.

use std::io::ErrorKind;
use std::time::Duration;

use http::Request;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::upstream::Upstream;
use super::{LONG, body, faults, front, get, idle, through};

/// Sends ten requests and returns the distinct answers, sorted.
async fn answers(written: &str, path: &str) -> Vec<String> {
    let upstream = Upstream::start().await;
    let front = front(&upstream, &[written], 7).await;
    let mut answers = Vec::new();
    for _ in 0..10 {
        let answer = get(&front, path).await.expect("an answer");
        answers.push(
            answer
                .lines()
                .filter(|line| !line.starts_with("date:"))
                .fold(String::new(), |all, line| all + line + "\n"),
        );
    }
    assert_eq!(upstream.seen(), [""; 0]);
    let name = written.split('=').next().expect("a first part");
    assert_eq!(front.counts().hit_by(name), 10);
    front.stop().await;
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
    assert!(watch.contains("transfer-encoding: chunked\n"), "{watch}");
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
    let front = front(&upstream, &["gone"], 0).await;
    let list = get(&front, "/api/v1/pods").await.expect("an answer");
    assert!(list.starts_with("HTTP/1.1 200 OK"), "{list}");
    assert_eq!(front.counts().hit_by("gone"), 0);
    front.stop().await;
}

#[tokio::test]
async fn hang_never_answers() {
    let upstream = Upstream::start().await;
    let front = front(&upstream, &["hang"], 0).await;
    let mut stream = TcpStream::connect(front.address())
        .await
        .expect("a connection");
    stream
        .write_all(b"GET / HTTP/1.1\r\nhost: front\r\n\r\n")
        .await
        .expect("sent");
    let mut buffer = [0; 1];
    let read = timeout(Duration::from_millis(300), stream.read(&mut buffer)).await;
    assert!(read.is_err(), "neither an answer nor an end: {read:?}");
    assert_eq!(front.counts().hit_by("hang"), 1);
    drop(stream);
    idle(&front).await;
    assert_eq!(upstream.seen(), [""; 0]);
    front.stop().await;
}

#[tokio::test]
async fn reset_comes_before_or_after_the_server_acted() {
    let upstream = Upstream::start().await;
    let front = front(&upstream, &["reset"], 3).await;
    for _ in 0..20 {
        let error = get(&front, "/api/v1/nodes").await.expect_err("no answer");
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
    }
    let acted = upstream.seen().len();
    assert!((3..=17).contains(&acted), "{acted} of 20 were done");
    assert_eq!(front.counts().hit_by("reset"), 20);
    front.stop().await;
}

/// Which of a thousand requests were hit.
async fn hits(seed: u64) -> Vec<bool> {
    let upstream = Upstream::start().await;
    let front = front(&upstream, &["internal-error=0.2"], seed).await;
    let client = kube::Client::try_from(through(&front)).expect("a client");
    let mut hits = Vec::new();
    for _ in 0..1000 {
        let request = Request::get("/api/v1/nodes")
            .body(Body::empty())
            .expect("a request");
        let response = client.send(request).await.expect("an answer");
        hits.push(response.status() == 500);
        response
            .into_body()
            .collect_bytes()
            .await
            .expect("a whole body");
    }
    let hit = u64::try_from(hits.iter().filter(|hit| **hit).count()).expect("at most a thousand");
    assert_eq!(front.counts().hit_by("internal-error"), hit);
    assert_eq!(front.counts().of("list nodes"), 1000);
    assert_eq!(
        upstream.seen().len(),
        hits.iter().filter(|hit| !**hit).count()
    );
    front.stop().await;
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
    let front = front(&upstream, &[], 0).await;
    let code = async || {
        let answer = timeout(LONG, get(&front, "/version"))
            .await
            .expect("in time");
        let answer = answer.expect("an answer");
        assert!(!body(&answer).is_empty());
        answer[9..12].to_owned()
    };
    assert_eq!(code().await, "200");
    front.set(faults(&["html-502", "internal-error"]));
    assert_eq!(code().await, "502");
    front.set(faults(&["html-502=0", "internal-error"]));
    assert_eq!(code().await, "500");
    front.set(Vec::new());
    assert_eq!(code().await, "200");
    let counts = front.counts();
    assert_eq!((counts.total(), counts.of("get /version")), (4, 4));
    assert_eq!(
        (counts.hit_by("html-502"), counts.hit_by("internal-error")),
        (1, 1)
    );
    front.stop().await;
}
