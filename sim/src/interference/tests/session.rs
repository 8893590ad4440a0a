//! Sessions: what passes through, how they close, and how exec faults end them.

use futures::{SinkExt, StreamExt};
use http::{Request, Response};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use kube::client::Body;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role};

use super::upstream::Upstream;
use super::{LONG, Way, way};

const EXEC: &str = "/api/v1/namespaces/a/pods/b/exec";

/// A fault that makes every session a relayed one, and does nothing else.
const RELAYED: &[&str] = &["server-restarts=1000"];

async fn asked(way: &Way, query: &str) -> kube::Result<Response<Body>> {
    let request = Request::get(format!("{EXEC}?{query}"))
        .header("connection", "Upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", generate_key())
        .header("sec-websocket-protocol", "v5.channel.k8s.io")
        .body(Body::empty());
    way.client.send(request.expect("a request")).await
}

async fn open(way: &Way, query: &str) -> WebSocketStream<TokioIo<Upgraded>> {
    let response = asked(way, query).await.expect("an answer");
    assert_eq!(response.status(), 101);
    let headers = response.headers();
    assert_eq!(headers["sec-websocket-protocol"], "v5.channel.k8s.io");
    assert!(headers.contains_key("sec-websocket-accept"));
    let upgraded = hyper::upgrade::on(response).await.expect("a stream");
    WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Client, None).await
}

/// Reads a session to its end; returns its messages as text, and last how it ended.
async fn whole(way: &Way, query: &str) -> Vec<String> {
    let mut socket = open(way, query).await;
    let mut all = Vec::new();
    loop {
        let next = timeout(LONG, socket.next()).await.expect("in time");
        all.push(match next {
            Some(Ok(Message::Binary(bytes))) => {
                format!("{} {}", bytes[0], String::from_utf8_lossy(&bytes[1..]))
            }
            Some(Ok(Message::Close(Some(CloseFrame { code, reason })))) => {
                format!("close {code} {reason}")
            }
            Some(Ok(other)) => format!("{other:?}"),
            Some(Err(_)) => "broken".to_owned(),
            None => return all,
        });
    }
}

const OUTPUT: [&str; 4] = ["1 ", "1 hello", "2 oops", "3 {\"status\":\"Success\"}"];

#[tokio::test]
async fn messages_and_close_code_pass() {
    let upstream = Upstream::start().await;
    let way = way(&upstream, RELAYED, 0);
    assert_eq!(
        whole(&way, "end=4001").await,
        [&OUTPUT[..], &["close 4001 bye"]].concat()
    );
    timeout(LONG, upstream.state.left.notified())
        .await
        .expect("the upstream session ended");
    // The close frame that the server got in reply
    assert_eq!(upstream.seen().last().expect("a line"), "close 4001");
}

#[tokio::test]
async fn the_clients_messages_and_close_code_pass() {
    let upstream = Upstream::start().await;
    let way = way(&upstream, RELAYED, 0);
    let mut socket = open(&way, "wait").await;
    socket.send(Message::Ping("p".into())).await.expect("sent");
    assert_eq!(
        socket.next().await.expect("an answer").expect("a pong"),
        Message::Pong("p".into())
    );
    socket
        .send(Message::Binary(b"\x00in".to_vec().into()))
        .await
        .expect("sent");
    let back = timeout(LONG, socket.next()).await.expect("in time");
    let back = back.expect("a message").expect("a message");
    assert_eq!(back, Message::Binary(b"\x01in".to_vec().into()));
    let close = CloseFrame {
        code: 4002.into(),
        reason: "enough".into(),
    };
    socket.close(Some(close)).await.expect("sent");
    timeout(LONG, upstream.state.left.notified())
        .await
        .expect("the upstream session ended");
    assert_eq!(upstream.seen().last().expect("a line"), "close 4002");
    timeout(LONG, async {
        while let Some(Ok(_)) = socket.next().await {}
    })
    .await
    .expect("an end");
}

#[tokio::test]
async fn a_client_that_leaves_ends_the_upstream_session() {
    let upstream = Upstream::start().await;
    let way = way(&upstream, RELAYED, 0);
    drop(open(&way, "wait").await);
    timeout(LONG, upstream.state.left.notified())
        .await
        .expect("the upstream session ended");
    assert!(!upstream.seen().iter().any(|line| line.starts_with("close")));
}

#[tokio::test]
async fn a_session_ends_with_its_server() {
    let upstream = Upstream::start().await;
    let way = way(&upstream, &["server-restarts=1"], 0);
    let mut socket = open(&way, "wait").await;
    way.get("/version").await.expect_err("it goes");
    let next = timeout(LONG, socket.next()).await.expect("in time");
    assert!(matches!(next, None | Some(Err(_))), "{next:?}");
    timeout(LONG, upstream.state.left.notified())
        .await
        .expect("the upstream session ended");
}

#[tokio::test]
async fn a_refusal_reaches_the_client_unchanged() {
    let upstream = Upstream::start().await;
    for faults in [&[][..], &["cut-exec"], RELAYED] {
        let way = way(&upstream, faults, 0);
        let refused = asked(&way, "refuse").await.expect("an answer");
        let refused = super::written(refused).await.expect("a body");
        assert!(refused.starts_with("HTTP/1.1 403 "), "{refused}");
        assert!(refused.contains(r#""reason":"Forbidden""#), "{refused}");
    }
}

#[tokio::test]
async fn without_a_fault_the_stream_is_the_servers_own() {
    let upstream = Upstream::start().await;
    let way = way(&upstream, &[], 0);
    let seen = whole(&way, "end=4001").await;
    assert_eq!(seen, [&OUTPUT[..], &["close 4001 bye"]].concat());
}

#[tokio::test]
async fn a_lost_exit_frame_leaves_a_normal_close() {
    let upstream = Upstream::start().await;
    let way = way(&upstream, &["lose-exit-frame"], 0);
    assert_eq!(
        whole(&way, "end=4001").await,
        [&OUTPUT[..3], &["close 1000 "]].concat()
    );
}

#[tokio::test]
async fn a_cut_comes_before_or_after_output() {
    let upstream = Upstream::start().await;
    let way = way(&upstream, &["cut-exec"], 0);
    let mut seen = Vec::new();
    for _ in 0..12 {
        seen.push(whole(&way, "end=1000").await);
    }
    seen.sort();
    seen.dedup();
    assert_eq!(
        seen,
        [vec!["1 ", "1 hello", "broken"], vec!["1 ", "broken"]]
    );
    // The fault does not concern a request that is no exec
    let plain = way.get("/api/v1/pods").await.expect("an answer");
    assert!(plain.starts_with("HTTP/1.1 200 OK"), "{plain}");
}

#[tokio::test]
async fn plain_trouble_hits_upgrades_too() {
    let upstream = Upstream::start().await;
    let way = way(&upstream, &["internal-error"], 0);
    let answer = asked(&way, "end=1000").await.expect("an answer");
    assert_eq!(answer.status(), 500);
    way.set(&["reset"]);
    for _ in 0..8 {
        asked(&way, "wait").await.expect_err("no answer");
    }
    let done = upstream.seen().len();
    assert!((1..8).contains(&done), "{done} of 8 were done");
}
