//! What kubelets are asked, over streams in memory.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use http::Request;
use http::header::{
    CONNECTION, HOST, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::time::timeout;
use tokio_tungstenite::client_async;
use tokio_tungstenite::tungstenite::Message;

use super::look::NOTHING;
use super::scene::{Scene, pool};
use crate::kubelet::speak;
use crate::topology::Os;

/// How long a kubelet may take to answer.
const PATIENCE: Duration = Duration::from_secs(20);

fn connected(scene: &Scene, node: &str) -> DuplexStream {
    let (near, far) = duplex(1 << 16);
    let cluster = Arc::clone(&scene.cluster);
    let node = Arc::clone(&cluster.nodes[node]);
    scene
        .cluster
        .spawn(async move { speak(&cluster, &node, far).await });
    near
}

/// A GET's status and body; nothing from a kubelet that does not answer.
pub(super) async fn get(scene: &Scene, node: &str, path: &str) -> String {
    let asked = async {
        let mut stream = connected(scene, node);
        let request = format!("GET /{path} HTTP/1.0\r\nhost: n\r\n\r\n");
        stream
            .write_all(request.as_bytes())
            .await
            .expect("it is taken");
        let mut told = String::new();
        stream.read_to_string(&mut told).await.expect("text");
        told
    };
    let Ok(told) = timeout(PATIENCE, asked).await else {
        return NOTHING.to_owned();
    };
    let (head, body) = told.split_once("\r\n\r\n").expect("a head");
    format!("{} {body}", head.split(' ').nth(1).expect("a status"))
}

/// What an exec prints and gives; nothing where there is no session.
pub(super) async fn exec(
    scene: &Scene,
    node: &str,
    name: &str,
    linux: &[&str],
    windows: &[&str],
) -> String {
    let argv = match pool(node).os() {
        Os::Linux => linux,
        Os::Windows => windows,
    };
    let words = argv.iter().map(|word| {
        let letters = word.bytes().map(|byte| format!("%{byte:02x}"));
        let letters: Vec<String> = letters.collect();
        format!("command={}&", letters.concat())
    });
    let query = words.collect::<String>();
    let request = Request::get(format!("ws://n/exec/{name}?{query}output=1&error=1"))
        .header(HOST, "n")
        .header(CONNECTION, "Upgrade")
        .header(UPGRADE, "websocket")
        .header(SEC_WEBSOCKET_VERSION, "13")
        .header(SEC_WEBSOCKET_KEY, "dGhlIHNhbXBsZSBub25jZQ==")
        .header(SEC_WEBSOCKET_PROTOCOL, "v5.channel.k8s.io")
        .body(())
        .expect("a request");
    let session = async {
        let (mut socket, _) = client_async(request, connected(scene, node)).await.ok()?;
        let mut told = [const { Vec::new() }; 4];
        while let Some(Ok(message)) = socket.next().await {
            if let Message::Binary(bytes) = message {
                let (channel, rest) = bytes.split_first()?;
                told[usize::from(*channel)].extend_from_slice(rest);
            }
        }
        let printed = told[1..3].concat();
        Some(format!(
            "{} {}",
            printed.escape_ascii(),
            told[3].escape_ascii()
        ))
    };
    let told = timeout(PATIENCE, session).await;
    told.ok().flatten().unwrap_or_else(|| NOTHING.to_owned())
}
