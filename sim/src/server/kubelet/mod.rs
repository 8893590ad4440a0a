//! Exec, logs and metrics: the server forwards requests to the node's kubelet, and returns what the kubelet answers.

pub(super) mod metrics;

use std::collections::BTreeMap;
use std::error::Error;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use futures::StreamExt;
use http::header::{CONNECTION, UPGRADE};
use http::{HeaderName, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Collected, StreamBody};
use hyper::body::Frame;
use hyper_util::rt::TokioIo;
use kube::client::Body;
use kube::{Client, Config};
use serde_json::Value;
use tokio::io::copy_bidirectional;

use super::ask::Ask;
use super::kinds::Kind;
use super::serve::{Answer, Sent, Shared, refused};
use crate::base::fields::Fields;
use crate::base::lock::locked;
use crate::server::checks::refusal::Refusal;
use crate::server::storage::state::State;
use crate::wire::loopback::{Loopback, client};
use crate::world::Key;

/// The clients of all kubelets, by their addresses.
pub(crate) struct Kubelets {
    pub(crate) loopback: Loopback,
    clients: Mutex<BTreeMap<String, Client>>,
}

impl Kubelets {
    pub(crate) fn on(loopback: Loopback) -> Self {
        Self {
            loopback,
            clients: Mutex::default(),
        }
    }

    /// Returns the client of a kubelet. It does not verify the kubelet's certificate, like a real
    /// server without `--kubelet-certificate-authority`.
    fn client(&self, shared: &Arc<Shared>, address: &str) -> Result<Client, Refusal> {
        if self.loopback.is_in_memory() {
            let address: SocketAddr = address.parse().map_err(Refusal::internal)?;
            let shared = Arc::clone(shared);
            let spawn = move |connection| shared.spawn(connection);
            return Ok(client(&self.loopback, address, spawn));
        }
        let mut clients = locked(&self.clients);
        if let Some(client) = clients.get(address) {
            return Ok(client.clone());
        }
        let url = format!("https://{address}").parse::<Uri>();
        let url = url.map_err(Refusal::internal)?;
        let mut config = Config::new(url);
        config.accept_invalid_certs = true;
        config.disable_compression = true;
        config.default_retry = false;
        // A log that is followed may be silent for long
        config.read_timeout = None;
        let client = Client::try_from(config).map_err(Refusal::internal)?;
        clients.insert(address.to_owned(), client.clone());
        Ok(client)
    }
}

/// The parameters of an exec that the server passes to the kubelet, and the kubelet's names for them.
const OF_EXECS: [(&str, &str); 4] = [
    ("stdin", "input"),
    ("stdout", "output"),
    ("stderr", "error"),
    ("command", "command"),
];

/// The parameters of a request for logs that the server passes to the kubelet, under the same names.
const OF_LOGS: [&str; 5] = [
    "follow",
    "previous",
    "timestamps",
    "tailLines",
    "limitBytes",
];

pub(crate) async fn answer(
    shared: &Arc<Shared>,
    ask: &Ask,
    mut request: Request<impl Sent>,
) -> Result<Answer, Refusal> {
    if ask.query.is_set("tty") {
        let terminal = "a terminal: exec without `tty` needs none";
        return Err(Refusal::unserved(terminal));
    }
    // Options that a real kubelet would obey
    let mut unserved = ["sinceSeconds", "sinceTime"].into_iter();
    if let Some(option) = unserved.find(|one| ask.query.first(one).is_some()) {
        return Err(Refusal::unserved(format_args!("logs by `{option}`")));
    }
    let (address, path) = whereto(shared, ask)?;
    let client = shared.kubelets.client(shared, &address)?;
    let upgrades = request.headers().contains_key(UPGRADE);
    if ask.subresource != "log" && !upgrades {
        return Err(Refusal::bad("Upgrade request required"));
    }
    let mut onward = Request::new(Body::empty());
    *onward.method_mut() = request.method().clone();
    *onward.uri_mut() = path.parse().map_err(Refusal::bad)?;
    if upgrades {
        let kept = |name: &HeaderName| {
            *name == CONNECTION
                || *name == UPGRADE
                || name.as_str().starts_with("sec-websocket-")
                || name.as_str() == "x-stream-protocol-version"
        };
        let headers = request.headers().iter().filter(|(name, _)| kept(name));
        for (name, value) in headers {
            onward.headers_mut().append(name, value.clone());
        }
    }
    let near = hyper::upgrade::on(&mut request);
    let unreached = |error: kube::Error| {
        let causes = std::iter::successors(Some(&error as &dyn Error), |error| (*error).source());
        let words: Vec<String> = causes.map(ToString::to_string).collect();
        Refusal::internal(format_args!("error dialing backend: {}", words.join(": ")))
    };
    let mut response = client.send(onward).await.map_err(unreached)?;
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        let far = hyper::upgrade::on(&mut response);
        shared.spawn(async move {
            if let (Ok(near), Ok(far)) = (near.await, far.await) {
                let (mut near, mut far) = (TokioIo::new(near), TokioIo::new(far));
                // When one side ends the session, it ends for both
                let _ = copy_bidirectional(&mut near, &mut far).await;
            }
        });
    } else if !response.status().is_success() && ask.subresource == "log" {
        return Ok(refused(&said(response).await));
    }
    let (mut head, body) = response.into_parts();
    if head.status != StatusCode::SWITCHING_PROTOCOLS {
        head.headers.remove(CONNECTION);
    }
    // When the kubelet's answer breaks off, the client's does, too
    let stop = shared.stop.clone().cancelled_owned();
    let body = body.into_data_stream();
    let body = body.take_while(|chunk| std::future::ready(chunk.is_ok()));
    let frames = body.map(|chunk| Ok(Frame::data(chunk.unwrap_or_default())));
    let body = StreamBody::new(frames.take_until(stop)).boxed_unsync();
    Ok(Response::from_parts(head, body))
}

/// Turns a kubelet's error into a refusal.
async fn said(response: Response<Body>) -> Refusal {
    let code = response.status().as_u16();
    let body = response.into_body().collect().await;
    let body = body.map(Collected::to_bytes).unwrap_or_default();
    let words = String::from_utf8_lossy(&body).trim_end().to_owned();
    Refusal::new(code, words)
}

/// Returns the kubelet's address, and the path of the request to it.
fn whereto(shared: &Shared, ask: &Ask) -> Result<(String, String), Refusal> {
    let state = shared.state();
    let key = Key::new(&ask.namespace, &ask.name);
    let pod = state.live(ask.kind, &key)?;
    let address = address(&state, &pod, &ask.name)?;
    // `kubectl.kubernetes.io/default-container` is up to the client
    let first = pod["spec"]["containers"][0]["name"].text();
    let named = ask.query.first("container").unwrap_or_default();
    let container = if named.is_empty() { first } else { named };
    let mut query = form_urlencoded::Serializer::new(String::new());
    let logs = OF_LOGS.map(|name| (name, name));
    let (root, passed) = match ask.subresource.as_str() {
        "log" => ("containerLogs", &logs[..]),
        other => (other, &OF_EXECS[..]),
    };
    for (name, named) in passed {
        for value in ask.query.all(name) {
            query.append_pair(named, &value);
        }
    }
    let (namespace, name, query) = (&ask.namespace, &ask.name, query.finish());
    let path = format!("/{root}/{namespace}/{name}/{container}?{query}");
    Ok((address, path))
}

/// The address of the kubelet of a pod with this name.
fn address(state: &State, pod: &Value, name: &str) -> Result<String, Refusal> {
    let host = pod["spec"]["nodeName"].text();
    if host.is_empty() {
        let why = format!("pod {name} does not have a host assigned");
        return Err(Refusal::bad(why));
    }
    let node = state.live(Kind::named("nodes"), &Key::new("", host))?;
    let addresses = &node["status"]["addresses"];
    let mut each = addresses.items();
    let internal = each.find(|address| address["type"] == "InternalIP");
    let port = node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"].as_u64();
    match internal.and_then(|one| one["address"].as_str()).zip(port) {
        Some((address, port)) => Ok(format!("{address}:{port}")),
        None => {
            let why = format!("no preferred addresses found; known addresses: {addresses}");
            Err(Refusal::internal(why))
        }
    }
}
