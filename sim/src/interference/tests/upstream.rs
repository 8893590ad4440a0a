//! A small API server for the tests: it echoes, streams, refuses and runs scripted exec sessions.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures::{SinkExt, StreamExt};
use http::{Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{Notify, mpsc};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::validation;

type Answer = Response<BoxBody<Bytes, Infallible>>;

/// The running server; it ends when dropped.
pub(super) struct Upstream {
    address: SocketAddr,
    pub(super) state: Arc<State>,
    _stop: DropGuard,
}

/// The requests that it saw, and the signals to and from the tests.
#[derive(Default)]
pub(super) struct State {
    seen: Mutex<Vec<String>>,
    /// Lets `/stream` send its second line.
    pub(super) go_on: Notify,
    /// Signals that the reader of `/stream` or the client of an exec has left.
    pub(super) left: Notify,
}

impl Upstream {
    pub(super) async fn start() -> Self {
        // This fails if another test of this process has installed it
        let _ = rustls::crypto::ring::default_provider().install_default();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .expect("a free port");
        let address = listener.local_addr().expect("a bound address");
        let state = Arc::new(State::default());
        let stop = CancellationToken::new();
        tokio::spawn(
            stop.clone()
                .run_until_cancelled_owned(accept(listener, Arc::clone(&state))),
        );
        Self {
            address,
            state,
            _stop: stop.drop_guard(),
        }
    }

    pub(super) fn client(&self) -> kube::Client {
        client(&format!("http://{}", self.address))
    }

    /// The requests so far, as `METHOD URI`.
    pub(super) fn seen(&self) -> Vec<String> {
        self.state
            .seen
            .lock()
            .expect("no test panics while it holds this")
            .clone()
    }
}

/// A client that repeats no request.
pub(super) fn client(address: &str) -> kube::Client {
    let mut config = kube::Config::new(address.parse().expect("an address is a URI"));
    config.auth_info.token = Some("secret".to_owned().into());
    config.default_retry = false;
    config.disable_compression = true;
    kube::Client::try_from(config).expect("a client")
}

async fn accept(listener: TcpListener, state: Arc<State>) {
    while let Ok((stream, _)) = listener.accept().await {
        let state = Arc::clone(&state);
        tokio::spawn(async move {
            let service = service_fn(|request| {
                let state = Arc::clone(&state);
                async move { Ok::<_, Infallible>(answer(state, request).await) }
            });
            let _ = http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .with_upgrades()
                .await;
        });
    }
}

async fn answer(state: Arc<State>, mut request: Request<Incoming>) -> Answer {
    let line = format!("{} {}", request.method(), request.uri());
    state
        .seen
        .lock()
        .expect("no test panics while it holds this")
        .push(line);
    let path = request.uri().path().to_owned();
    if path == "/stream" {
        return stream(state);
    }
    if path.ends_with("/exec") && request.headers().contains_key("upgrade") {
        return exec(state, &mut request);
    }
    let (head, body) = request.into_parts();
    let body = body.collect().await.expect("a whole body").to_bytes();
    let subresource = path.rsplit('/').next().unwrap_or_default();
    let changes = matches!(subresource, "ephemeralcontainers" | "resize");
    if path.starts_with("/api") && (head.method == "POST" || changes) {
        let resource = match changes {
            true => format!("pods/{subresource}"),
            false => subresource.to_owned(),
        };
        return admit(
            &resource,
            &serde_json::from_slice(&body).expect("JSON"),
            head.method == "POST",
        );
    }
    if path.ends_with("/pods/p") {
        return full(Response::builder(), stored().to_string());
    }
    if let Some(list) = listed(&path) {
        let json = Response::builder().header("content-type", "application/json");
        return full(json, list.to_string());
    }
    let headers: serde_json::Map<String, Value> = head
        .headers
        .iter()
        .map(|(name, value)| (name.to_string(), value.to_str().unwrap_or_default().into()))
        .collect();
    let echo = json!({
        "method": head.method.as_str(),
        "uri": head.uri.to_string(),
        "headers": headers,
        "body": String::from_utf8_lossy(&body),
    });
    full(
        Response::builder()
            .header("x-upstream", "yes")
            .header("warning", "299 - \"careful\""),
        echo.to_string(),
    )
}

/// Sends one line, and another when a test signals; then nothing until the reader leaves.
fn stream(state: Arc<State>) -> Answer {
    let (lines, body) = mpsc::channel(1);
    tokio::spawn(async move {
        let _ = lines.send("one\n").await;
        state.go_on.notified().await;
        let _ = lines.send("two\n").await;
        lines.closed().await;
        state.left.notify_one();
    });
    Response::new(Lines(body).boxed())
}

/// Accepts a valid object and adds a UID.
fn admit(resource: &str, object: &Value, created: bool) -> Answer {
    if let Some(status) = validation::refusal(resource, object) {
        return full(Response::builder().status(422), status.to_string());
    }
    let mut object = object.clone();
    object["metadata"]["uid"] = "1".into();
    let code = if created { 201 } else { 200 };
    full(Response::builder().status(code), object.to_string())
}

/// A running pod.
fn stored() -> Value {
    json!({
        "kind": "Pod",
        "metadata": { "name": "p", "uid": "2" },
        "spec": { "os": { "name": "windows" }, "containers": [{ "name": "c", "image": "i" }] },
    })
}

/// The lists that it serves: groups, nodes, webhooks.
fn listed(path: &str) -> Option<Value> {
    Some(match path {
        "/apis" => json!({ "kind": "APIGroupList", "groups": [{ "name": "apps" }] }),
        "/api/v1/nodes" => json!({ "kind": "NodeList", "metadata": {}, "items": [{
            "metadata": { "name": "n", "labels": { "a": "b" } },
            "status": { "conditions": [{ "message": "m" }], "nodeInfo": { "osImage": "o" } },
        }]}),
        "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations" => json!({
            "kind": "MutatingWebhookConfigurationList",
            "items": [{ "metadata": { "name": "m" }, "webhooks": [{ "name": "w" }] }],
        }),
        _ => return None,
    })
}

/// A scripted session: `?end=CODE` closes with it after output and exit status, `?wait` waits for
/// the client, `?refuse` answers 403.
fn exec(state: Arc<State>, request: &mut Request<Incoming>) -> Answer {
    let query = request.uri().query().unwrap_or_default().to_owned();
    if query == "refuse" {
        let status = json!({ "kind": "Status", "code": 403, "reason": "Forbidden" });
        return full(Response::builder().status(403), status.to_string());
    }
    let header = |name: &str| {
        request
            .headers()
            .get(name)
            .cloned()
            .expect("a handshake's header")
    };
    let accept = derive_accept_key(header("sec-websocket-key").as_bytes());
    let protocol = header("sec-websocket-protocol");
    let upgrade = hyper::upgrade::on(request);
    tokio::spawn(async move {
        let upgraded = TokioIo::new(upgrade.await.expect("an upgrade"));
        let mut socket = WebSocketStream::from_raw_socket(upgraded, Role::Server, None).await;
        if let Some(code) = query.strip_prefix("end=") {
            for message in [
                &b"\x01"[..],
                b"\x01hello",
                b"\x02oops",
                b"\x03{\"status\":\"Success\"}",
            ] {
                let _ = socket
                    .send(Message::Binary(Bytes::from_static(message)))
                    .await;
            }
            let code: u16 = code.parse().expect("a close code");
            let frame = CloseFrame {
                code: code.into(),
                reason: "bye".into(),
            };
            let _ = socket.send(Message::Close(Some(frame))).await;
        }
        // It echoes every message on the output's channel
        while let Some(Ok(message)) = socket.next().await {
            if let Message::Binary(bytes) = &message {
                let mut back = vec![1];
                back.extend_from_slice(&bytes[1..]);
                let _ = socket.send(Message::Binary(back.into())).await;
            } else if let Message::Close(Some(frame)) = &message {
                state
                    .seen
                    .lock()
                    .expect("no test panics here")
                    .push(format!("close {}", frame.code));
            }
        }
        state.left.notify_one();
    });
    full(
        Response::builder()
            .status(StatusCode::SWITCHING_PROTOCOLS)
            .header("upgrade", "websocket")
            .header("connection", "Upgrade")
            .header("sec-websocket-accept", accept)
            .header("sec-websocket-protocol", protocol),
        String::new(),
    )
}

fn full(response: http::response::Builder, body: String) -> Answer {
    response
        .body(Full::new(Bytes::from(body)).boxed())
        .expect("valid headers")
}

/// A body of lines, each sent at once.
struct Lines(mpsc::Receiver<&'static str>);

impl Body for Lines {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0
            .poll_recv(context)
            .map(|line| line.map(|line| Ok(Frame::data(Bytes::from(line)))))
    }
}
