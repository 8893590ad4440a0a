//! Tests of the layer between clients and a scripted server, over real loopback sockets.

mod lagging;
mod names;
mod session;
mod trouble;
mod upstream;
mod validation;
mod worlds;

use std::time::Duration;

use http::{Request, Response};
use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::Value;

use super::{Fault, Interference};
use upstream::Upstream;

/// A time-out that is long enough for any step.
const LONG: Duration = Duration::from_secs(10);

/// Parses faults.
fn faults(written: &[&str]) -> Vec<Fault> {
    written
        .iter()
        .map(|text| text.parse().expect("a known fault"))
        .collect()
}

/// A client that reaches its server through an interference.
struct Way {
    interference: Interference,
    client: kube::Client,
}

/// A client of a server with these faults.
fn way(upstream: &Upstream, written: &[&str], seed: u64) -> Way {
    let interference = Interference::new(faults(written), seed);
    let client = interference.before(&upstream.client());
    Way {
        interference,
        client,
    }
}

impl Way {
    fn set(&self, written: &[&str]) {
        self.interference.set(faults(written));
    }

    /// Sends a GET; returns the head of the answer, with its body unread.
    async fn open(&self, path: &str) -> kube::Result<Response<Body>> {
        let request = Request::get(path).body(Body::empty());
        self.client.send(request.expect("a request")).await
    }

    /// Sends a GET; returns the whole answer as HTTP text.
    async fn get(&self, path: &str) -> kube::Result<String> {
        written(self.open(path).await?).await
    }

    /// Posts JSON; returns the head and the body of the answer.
    async fn post(&self, path: &str, body: &Value) -> (String, Value) {
        self.send("POST", path, "application/json", body).await
    }

    /// Sends a request with a body; returns the head and the body of the answer.
    async fn send(&self, method: &str, path: &str, kind: &str, body: &Value) -> (String, Value) {
        let request = Request::builder().method(method).uri(path);
        let request = request.header("content-type", kind);
        let request = request.body(Body::from(body.to_string().into_bytes()));
        let answer = self.client.send(request.expect("a request")).await;
        let answer = written(answer.expect("an answer")).await.expect("a body");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
        (head.to_owned(), serde_json::from_str(body).expect("JSON"))
    }
}

/// A whole answer as HTTP text.
async fn written(answer: Response<Body>) -> kube::Result<String> {
    let mut text = format!("HTTP/1.1 {}\r\n", answer.status());
    for (name, value) in answer.headers() {
        let value = String::from_utf8_lossy(value.as_bytes());
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    let body = answer.into_body().collect().await?.to_bytes();
    text.push_str("\r\n");
    text.push_str(&String::from_utf8_lossy(&body));
    Ok(text)
}

/// The body of an answer in HTTP text.
fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").expect("a head and a body").1
}
