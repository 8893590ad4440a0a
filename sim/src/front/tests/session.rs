//! Sessions: what passes, how they close, and how exec faults end them.

use futures::{SinkExt, StreamExt};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::{Error, Message};

use super::upstream::Upstream;
use super::{LONG, front, idle};
use crate::front::Front;

const EXEC: &str = "/api/v1/namespaces/a/pods/b/exec";

async fn open(front: &Front, query: &str) -> Result<WebSocketStream<TcpStream>, Error> {
    let address = front.address();
    let uri = format!("ws://{address}{EXEC}?{query}");
    let mut request = uri.into_client_request().expect("a request");
    let protocol = "v5.channel.k8s.io".parse().expect("a header value");
    request
        .headers_mut()
        .insert("sec-websocket-protocol", protocol);
    let stream = TcpStream::connect(address).await.expect("a connection");
    let (socket, response) = tokio_tungstenite::client_async(request, stream).await?;
    assert_eq!(
        response.headers()["sec-websocket-protocol"],
        "v5.channel.k8s.io"
    );
    Ok(socket)
}

/// Reads a session to its end: its messages as text, the last one how it ended.
async fn whole(front: &Front, query: &str) -> Vec<String> {
    let mut socket = open(front, query).await.expect("a session");
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
    let front = front(&upstream, &[], 0).await;
    assert_eq!(
        whole(&front, "end=4001").await,
        [&OUTPUT[..], &["close 4001 bye"]].concat()
    );
    assert_eq!(front.counts().of("get pods/exec"), 1);
    timeout(LONG, upstream.state.left.notified())
        .await
        .expect("the upstream session ended");
    // The close frame that the server got as its answer
    assert_eq!(upstream.seen().last().expect("a line"), "close 4001");
    idle(&front).await;
    front.stop().await;
}

#[tokio::test]
async fn the_clients_messages_and_close_code_pass() {
    let upstream = Upstream::start().await;
    let front = front(&upstream, &[], 0).await;
    let mut socket = open(&front, "wait").await.expect("a session");
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
    idle(&front).await;
    front.stop().await;
}

#[tokio::test]
async fn a_client_that_leaves_ends_the_upstream_session() {
    let upstream = Upstream::start().await;
    let front = front(&upstream, &[], 0).await;
    drop(open(&front, "wait").await.expect("a session"));
    timeout(LONG, upstream.state.left.notified())
        .await
        .expect("the upstream session ended");
    assert!(!upstream.seen().iter().any(|line| line.starts_with("close")));
    idle(&front).await;
    let _open = open(&front, "wait").await.expect("a session");
    timeout(LONG, front.stop()).await.expect("it stops");
    timeout(LONG, upstream.state.left.notified())
        .await
        .expect("the upstream session ended");
}

#[tokio::test]
async fn a_refusal_reaches_the_client_unchanged() {
    let upstream = Upstream::start().await;
    let front = front(&upstream, &[], 0).await;
    let Err(Error::Http(response)) = open(&front, "refuse").await else {
        panic!("an answer that is no upgrade")
    };
    assert_eq!(response.status(), 403);
    let body = response.body().as_ref().expect("a body");
    let status: Value = serde_json::from_slice(body).expect("JSON");
    assert_eq!(status["reason"], "Forbidden");
    front.stop().await;
}

#[tokio::test]
async fn a_lost_exit_frame_leaves_a_normal_close() {
    let upstream = Upstream::start().await;
    let front = front(&upstream, &["lose-exit-frame"], 0).await;
    assert_eq!(
        whole(&front, "end=4001").await,
        [&OUTPUT[..3], &["close 1000 "]].concat()
    );
    assert_eq!(front.counts().hit_by("lose-exit-frame"), 1);
    front.stop().await;
}

#[tokio::test]
async fn a_cut_comes_before_or_after_output() {
    let upstream = Upstream::start().await;
    let front = front(&upstream, &["cut-exec"], 0).await;
    let mut seen = Vec::new();
    for _ in 0..12 {
        seen.push(whole(&front, "end=1000").await);
    }
    assert_eq!(front.counts().hit_by("cut-exec"), 12);
    seen.sort();
    seen.dedup();
    assert_eq!(
        seen,
        [vec!["1 ", "1 hello", "broken"], vec!["1 ", "broken"]]
    );
    // Not an exec: none of its business
    let plain = super::get(&front, "/api/v1/pods").await.expect("an answer");
    assert!(plain.starts_with("HTTP/1.1 200 OK"), "{plain}");
    front.stop().await;
}

#[tokio::test]
async fn plain_trouble_hits_upgrades_too() {
    let upstream = Upstream::start().await;
    let front = front(&upstream, &["internal-error"], 0).await;
    let Err(Error::Http(response)) = open(&front, "end=1000").await else {
        panic!("an answer that is no upgrade")
    };
    assert_eq!(response.status(), 500);
    front.set(super::faults(&["reset"]));
    for _ in 0..8 {
        let error = open(&front, "wait").await.expect_err("no answer");
        assert!(!matches!(error, Error::Http(_)), "{error}");
    }
    let done = upstream.seen().len();
    assert!((1..8).contains(&done), "{done} of 8 were done");
    front.stop().await;
}

#[tokio::test]
async fn other_protocols_are_carried_unread() {
    let upstream = Upstream::start().await;
    let front = front(&upstream, &["cut-exec", "lose-exit-frame"], 0).await;
    let mut stream = TcpStream::connect(front.address())
        .await
        .expect("a connection");
    let request = "POST /api/v1/namespaces/a/pods/b/portforward HTTP/1.1\r\nhost: front\r\n\
                   connection: Upgrade\r\nupgrade: SPDY/3.1\r\ncontent-length: 0\r\n\r\n";
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut buffer = [0; 1024];
    let length = stream.read(&mut buffer).await.expect("an answer");
    let head = String::from_utf8_lossy(&buffer[..length]).into_owned();
    assert!(
        head.starts_with("HTTP/1.1 101 Switching Protocols\r\n"),
        "{head}"
    );
    stream.write_all(b"\x80\x03bytes").await.expect("sent");
    let length = timeout(LONG, stream.read(&mut buffer))
        .await
        .expect("in time")
        .expect("bytes");
    assert_eq!(&buffer[..length], b"\x80\x03bytes");
    front.stop().await;
}
