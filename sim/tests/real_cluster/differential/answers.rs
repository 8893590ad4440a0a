//! The answers of both servers to the same requests.

use std::time::Duration;

use http::Request;
use http::request::Builder;
use http_body_util::BodyExt;
use kube::Client;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::{Instant, interval, timeout_at};

use super::PATIENCE;
use super::normal::{Addresses, flatten};
use crate::seen::{Difference, Record, between};

const NAMESPACE: &str = "differential-requests";

/// How often a request is repeated whose answer takes time.
const AGAIN: Duration = Duration::from_millis(100);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    name: String,
    /// The method and the path.
    send: String,
    /// The media type, if it is not JSON.
    #[serde(rename = "type")]
    media: Option<String>,
    /// A text is sent as it is, anything else as JSON.
    #[serde(default)]
    body: Value,
    /// The status code to wait for, where a server learns of something late.
    until: Option<u16>,
}

/// One of the two servers.
pub(crate) struct Side(pub(crate) Client);

impl Side {
    async fn send(&self, request: Builder, body: &str) -> (u16, Value) {
        let request = request.body(body.as_bytes().to_vec().into());
        let answer = self.0.send(request.expect("a request")).await;
        let answer = answer.expect("an answer");
        let code = answer.status().as_u16();
        let body = answer.into_body().collect().await.expect("a whole body");
        let body = body.to_bytes();
        let text = || String::from_utf8_lossy(&body).into();
        (
            code,
            serde_json::from_slice(&body).unwrap_or_else(|_| text()),
        )
    }

    async fn once(&self, asked: &Asked) -> (u16, Value) {
        let (method, path) = asked.send.split_once(' ').expect("a method and a path");
        let media = asked.media.as_deref().unwrap_or("application/json");
        let request = Request::builder().method(method).uri(path);
        let body = match &asked.body {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            body => body.to_string(),
        };
        let request = request.header("content-type", media);
        self.send(request, &body).await
    }

    /// Repeats a request until the answer has the expected code.
    async fn answer(&self, asked: &Asked) -> Record {
        let deadline = Instant::now() + PATIENCE;
        let mut turn = interval(AGAIN);
        loop {
            let (code, body) = self.once(asked).await;
            let is_it = asked.until.is_none_or(|until| until == code);
            if is_it {
                return record(&asked.name, code, &body);
            }
            let soon = timeout_at(deadline, turn.tick()).await;
            assert!(soon.is_ok(), "{}: {code} {body}", asked.name);
        }
    }
}

/// The differences between the answers, and the number of requests.
pub(crate) async fn differ([real, memory]: [&Side; 2]) -> (Vec<Difference>, usize) {
    let text = include_str!("requests.yaml").replace("NAMESPACE", NAMESPACE);
    let requests: Vec<Asked> = serde_saphyr::from_str(&text).expect("requests.yaml");
    let mut differences = Vec::new();
    for asked in &requests {
        let (real, memory) = (real.answer(asked).await, memory.answer(asked).await);
        differences.extend(between("requests", &real, &memory));
    }
    (differences, requests.len())
}

/// The code; and for a refusal its whole content, for a review its status, for anything else its kind.
fn record(name: &str, code: u16, body: &Value) -> Record {
    let mut record = Record::from([(format!("{name}: answered"), code.to_string())]);
    let mut body = match body["kind"].as_str() {
        Some(review) if review.ends_with("Review") => body["status"].clone(),
        Some(kind) if kind != "Status" => kind.into(),
        _ => body.clone(),
    };
    if let Some(Value::Array(causes)) = body.pointer_mut("/details/causes") {
        causes.sort_by_cached_key(ToString::to_string);
    }
    flatten(&format!("{name}: "), &body, &Addresses::new(), &mut record);
    record
}
