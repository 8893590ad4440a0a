//! Tests of the front against a small server of their own, and against a real API server.

mod admission;
mod lagging;
mod names;
mod plain;
mod real;
mod session;
mod trouble;
mod upstream;
mod validation;
mod worlds;

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{Front, FrontFault, FrontOptions};
use upstream::Upstream;

/// Long enough for anything on this machine.
const LONG: Duration = Duration::from_secs(10);

/// The faults as a user writes them.
fn faults(written: &[&str]) -> Vec<FrontFault> {
    written
        .iter()
        .map(|text| text.parse().expect("a known fault"))
        .collect()
}

/// A front before an upstream.
async fn front(upstream: &Upstream, written: &[&str], seed: u64) -> Front {
    let options = FrontOptions {
        faults: faults(written),
        seed,
    };
    Front::before(upstream.client(), options)
        .await
        .expect("127.0.0.1 has a free port")
}

/// A client's kube configuration for a front.
fn through(front: &Front) -> kube::Config {
    let address = format!("http://{}", front.address());
    let mut config = kube::Config::new(address.parse().expect("an address is a URI"));
    config.default_retry = false;
    config
}

/// Sends bytes over a connection of their own and returns all that comes back.
async fn raw(front: &Front, request: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(front.address()).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    tokio::time::timeout(LONG, stream.read_to_end(&mut answer))
        .await
        .expect("an answer or an end in time")?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// A GET of a path, over a connection of its own.
async fn get(front: &Front, path: &str) -> io::Result<String> {
    raw(
        front,
        &format!("GET {path} HTTP/1.1\r\nhost: front\r\nconnection: close\r\n\r\n"),
    )
    .await
}

/// A POST of JSON, over a connection of its own.
async fn post(front: &Front, path: &str, body: &serde_json::Value) -> (String, serde_json::Value) {
    send(front, "POST", path, "application/json", body).await
}

/// A request with a body, over a connection of its own.
async fn send(
    front: &Front,
    method: &str,
    path: &str,
    kind: &str,
    body: &serde_json::Value,
) -> (String, serde_json::Value) {
    let body = body.to_string();
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: front\r\nconnection: close\r\n\
         content-type: {kind}\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    let answer = raw(front, &request).await.expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    (head.to_owned(), serde_json::from_str(body).expect("JSON"))
}

/// The body of an answer in one chunk or none.
fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").expect("a head and a body").1
}

/// Waits until no connection and no session is left.
async fn idle(front: &Front) {
    // The one that takes connections stays
    let idle = async {
        while front.tasks.len() > 1 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, idle)
        .await
        .expect("every connection ends");
}
