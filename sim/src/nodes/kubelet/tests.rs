//! Clients that hurry, read slowly, or disconnect in the middle: none of them leaves a task behind.

use std::sync::Arc;
use std::time::Duration;

use futures::{SinkExt, StreamExt};
use http::header::{
    CONNECTION, HOST, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::{HeaderValue, Request};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::time::{Instant, timeout};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::{WebSocketStream, client_async};

use super::server::{PATIENCE, speak};
use super::stats::summary;
use crate::base::log::Stream;
use crate::fault::ProductFault;
use crate::nodes::cluster::tests::{cluster_of, node_of};
use crate::nodes::cluster::{Cluster, NodeState};
use crate::nodes::image::Family;
use crate::pods::course::run::PodRun;
use crate::pods::reporting::book::State;
use crate::program::tests::place;
use crate::topology::{Build, NodeSpec, Os, Pool};
use crate::world::Key;

type Socket = WebSocketStream<DuplexStream>;

/// How long any step may take.
const DEADLINE: Duration = Duration::from_secs(20);

/// A node with a running pod.
struct Scene {
    cluster: Arc<Cluster>,
    node: Arc<NodeState>,
    run: Arc<PodRun>,
}

impl Scene {
    fn new() -> Self {
        Self::on(Pool::Linux)
    }

    fn on(pool: Pool) -> Self {
        let node = Arc::new(node_of(NodeSpec::new("n", pool)));
        let cluster = Arc::new(cluster_of([("n".to_owned(), Arc::clone(&node))].into()));
        let limits = json!({"limits": {"memory": "64Mi"}});
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": "web", "namespace": "test"},
            "spec": {"containers": [{"name": "main", "resources": limits}]},
        }))
        .expect("a pod");
        let key = Key::new("test", "web");
        let run = PodRun::new(
            key.clone(),
            "u".to_owned(),
            Arc::clone(&node),
            Arc::new(pod),
        );
        let run = Arc::new(run);
        {
            let mut book = run.book();
            book.containers[0].place = Some(place(Os::Linux, Family::Agnhost));
            book.containers[0].state = State::Running(Timestamp::UNIX_EPOCH);
        }
        cluster.runs(&node).insert(key, Arc::clone(&run));
        Self { cluster, node, run }
    }

    /// A connection that buffers few bytes, so that a slow reader has an effect at once.
    fn connect(&self) -> DuplexStream {
        let (near, far) = duplex(4096);
        let (cluster, node) = (Arc::clone(&self.cluster), Arc::clone(&self.node));
        self.cluster
            .spawn(async move { speak(&cluster, &node, far).await });
        near
    }

    async fn session(&self, path: &str, protocol: &'static str) -> Socket {
        let request = Request::get(format!("ws://n/{path}"))
            .header(HOST, "n")
            .header(CONNECTION, "Upgrade")
            .header(UPGRADE, "websocket")
            .header(SEC_WEBSOCKET_VERSION, "13")
            .header(SEC_WEBSOCKET_KEY, "dGhlIHNhbXBsZSBub25jZQ==")
            .header(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(protocol))
            .body(())
            .expect("a request");
        client_async(request, self.connect())
            .await
            .expect("it is upgraded")
            .0
    }

    /// Waits until every task has ended, although the simulator keeps running.
    async fn empty(self) {
        self.cluster.tasks.close();
        let left = timeout(DEADLINE, self.cluster.tasks.wait()).await;
        assert!(left.is_ok(), "{} tasks are left", self.cluster.tasks.len());
        assert!(!self.cluster.stop.is_cancelled());
    }
}

/// The messages up to the close by channel, and the close code.
async fn rest(socket: &mut Socket) -> (Vec<Vec<u8>>, Option<CloseCode>) {
    let mut channels = vec![Vec::new(); 4];
    while let Some(message) = socket.next().await {
        match message.expect("the connection holds") {
            Message::Binary(bytes) => {
                let (channel, rest) = bytes.split_first().expect("a channel");
                channels[usize::from(*channel)].extend_from_slice(rest);
            }
            Message::Close(frame) => return (channels, frame.map(|frame| frame.code)),
            other => panic!("{other:?}"),
        }
    }
    (channels, None)
}

fn status(channels: &[Vec<u8>]) -> Value {
    serde_json::from_slice(&channels[3]).expect("a Status")
}

#[tokio::test]
async fn both_protocols_end_with_a_status_and_close_1000() {
    let scene = Scene::new();
    for protocol in ["v5.channel.k8s.io", "v4.channel.k8s.io"] {
        let path =
            "exec/test/web/main?command=sh&command=-c&command=echo+out%3B+exit+3&output=1&error=1";
        let mut socket = scene.session(path, protocol).await;
        let (channels, code) = rest(&mut socket).await;
        assert_eq!(channels[1], b"out\n");
        assert_eq!(status(&channels)["details"]["causes"][0]["message"], "3");
        assert_eq!(code, Some(CloseCode::Normal), "{protocol}");
    }
    scene.empty().await;
}

#[tokio::test]
async fn input_ends_on_channel_255() {
    let scene = Scene::new();
    let cat = "exec/test/web/main?command=cat&input=1&output=1";
    let mut socket = scene.session(cat, "v5.channel.k8s.io").await;
    for message in [b"\0a\n".as_slice(), b"\xff\0"] {
        let message = Message::Binary(message.to_vec().into());
        socket.send(message).await.expect("it is taken");
    }
    let (channels, _) = rest(&mut socket).await;
    assert_eq!(channels[1], b"a\n");
    scene.empty().await;
}

#[tokio::test]
async fn clients_that_leave_in_the_middle_leave_nothing_behind() {
    let scene = Scene::new();
    for path in [
        "exec/test/web/main?command=sleep&command=3600&output=1",
        "exec/test/web/main?command=cat&input=1&output=1",
        "exec/test/web/main?command=agnhost&command=pause&output=1",
    ] {
        // The empty message that signals that the streams are ready
        let mut socket = scene.session(path, "v5.channel.k8s.io").await;
        let first = socket.next().await.expect("a message");
        assert_eq!(first.expect("it holds"), Message::Binary(vec![1].into()));
        drop(socket);
    }
    let mut follower = scene.connect();
    let head = b"GET /containerLogs/test/web/main?follow=true HTTP/1.1\r\nhost: n\r\n\r\n";
    follower.write_all(head).await.expect("it is taken");
    scene.run.book().containers[0]
        .log
        .print(Stream::Out, b"one\n");
    let mut told = Vec::new();
    while !told.ends_with(b"one\n\r\n") {
        let read = follower.read_buf(&mut told).await.expect("it holds");
        assert_ne!(read, 0, "{}", String::from_utf8_lossy(&told));
    }
    drop(follower);
    scene.empty().await;
}

#[tokio::test]
async fn a_slow_reader_is_waited_for_and_may_leave() {
    let scene = Scene::new();
    let cat = "exec/test/web/main?command=cat&input=1&output=1";
    let much = vec![b'x'; 1 << 20];
    let mut chunks: Vec<_> = much
        .chunks(32 << 10)
        .map(|chunk| [b"\0", chunk].concat())
        .collect();
    chunks.push(b"\xff\0".to_vec());
    for leaves in [false, true] {
        let mut socket = scene.session(cat, "v5.channel.k8s.io").await;
        for chunk in &chunks {
            let message = Message::Binary(chunk.clone().into());
            socket.send(message).await.expect("it is taken");
        }
        if leaves {
            let first = socket.next().await;
            assert!(first.is_some_and(|first| first.is_ok()));
            continue;
        }
        let (channels, code) = rest(&mut socket).await;
        assert_eq!(
            (channels[1].len(), code),
            (much.len(), Some(CloseCode::Normal))
        );
    }
    scene.empty().await;
}

#[tokio::test(start_paused = true)]
async fn who_does_not_say_what_it_wants_is_sent_away() {
    let scene = Scene::new();
    let began = Instant::now();
    for said in ["", "GET /healthz HTTP/1.1\r\nhost: n\r\nx-slow: "] {
        let mut connection = scene.connect();
        let sent = connection.write_all(said.as_bytes()).await;
        sent.expect("it is taken");
        let mut told = String::new();
        connection.read_to_string(&mut told).await.expect("text");
        assert!(!told.contains(" 200 "), "{told}");
    }
    // A client may also leave between two requests
    let mut connection = scene.connect();
    let whole = b"GET /healthz HTTP/1.1\r\nhost: n\r\n\r\n";
    connection.write_all(whole).await.expect("it is taken");
    let mut told = String::new();
    connection.read_to_string(&mut told).await.expect("text");
    assert!(told.starts_with("HTTP/1.1 200 "), "{told}");
    assert_eq!(began.elapsed().as_secs(), 3 * PATIENCE.as_secs());
    scene.empty().await;
}

/// The head and the body of the answer to a plain request.
async fn plain(scene: &Scene, path: &str) -> String {
    let mut connection = scene.connect();
    let request = format!("GET /{path} HTTP/1.1\r\nhost: n\r\nconnection: close\r\n\r\n");
    let sent = connection.write_all(request.as_bytes()).await;
    sent.expect("it is taken");
    let mut told = String::new();
    connection.read_to_string(&mut told).await.expect("text");
    told
}

#[tokio::test]
async fn refused_sessions_have_words_that_clients_show() {
    let scene = Scene::new();
    for (path, words) in [
        ("exec/test/web/main?command=sh&tty=1", "have no terminal"),
        (
            "exec/test/web/main?command=true&output=1",
            "WebSocket upgrade",
        ),
    ] {
        let answer = plain(&scene, path).await;
        let body = answer.split_once("\r\n\r\n").expect("a body").1;
        assert!(body.contains(words), "{answer}");
        // client-go's NewConnection (spdy.go) first reads the words as a Status, also as YAML: of a mapping
        // nothing would remain
        assert!(!body.contains(": "), "{body}");
    }
    scene.empty().await;
}

const LOG: &str = "containerLogs/test/web/main";
const EXEC: &str =
    "exec/test/web/main?command=sh&command=-c&command=echo+out%3B+exit+3&output=1&error=1";

#[tokio::test]
async fn a_node_that_has_vanished_answers_nobody() {
    let scene = Scene::new();
    let fault: ProductFault = "node-vanishes=node/n".parse().expect("a fault");
    scene.cluster.faults.set(fault.clone());
    for asked in [EXEC, LOG] {
        let asking = plain(&scene, asked);
        let early = timeout(Duration::from_millis(200), asking).await;
        assert!(early.is_err(), "{asked}: {early:?}");
    }
    let asking = plain(&scene, LOG);
    let lifting = async { scene.cluster.faults.lift(&fault) };
    let (answer, ()) = tokio::join!(asking, lifting);
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    scene.empty().await;
}

#[tokio::test]
async fn a_windows_node_tells_neither_inodes_nor_resident_memory() {
    for (pool, linux) in [(Pool::Linux, true), (Pool::Windows(Build::Ws2022), false)] {
        let scene = Scene::on(pool);
        let told = summary(&scene.cluster, &scene.node);
        assert_eq!(told["node"]["fs"].get("inodes").is_some(), linux);
        let memory = &told["pods"][0]["containers"][0]["memory"];
        assert_eq!(memory.get("rssBytes").is_some(), linux);
        assert!(memory["availableBytes"].is_u64(), "{memory}");
        let time = told["node"]["cpu"]["time"].as_str().expect("a time");
        assert_eq!(time.len(), "2026-01-02T03:04:05Z".len(), "{time}");
    }
}

#[tokio::test]
async fn a_session_does_not_outlive_its_node() {
    let scene = Scene::new();
    let cat = "exec/test/web/main?command=cat&input=1&output=1";
    let mut socket = scene.session(cat, "v5.channel.k8s.io").await;
    let first = socket.next().await.expect("a message");
    assert_eq!(first.expect("it holds"), Message::Binary(vec![1].into()));
    let fault: ProductFault = "node-vanishes=node/n".parse().expect("a fault");
    scene.cluster.faults.set(fault.clone());
    let early = timeout(Duration::from_millis(200), socket.next()).await;
    assert!(early.is_err(), "{early:?}");
    scene.cluster.faults.lift(&fault);
    let next = timeout(DEADLINE, socket.next()).await.expect("it ends");
    assert!(!matches!(next, Some(Ok(_))), "{next:?}");
    scene.empty().await;
}
