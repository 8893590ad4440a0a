//! Exec and logs: asked of the node's kubelet, whose answer is the client's.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use http::header::{CONNECTION, UPGRADE};
use http::{HeaderName, Request, Response, StatusCode, Uri};
use http_body_util::BodyExt;
use hyper_util::rt::TokioIo;
use kube::client::Body;
use kube::{Client, Config};
use serde_json::Value;
use tokio::io::copy_bidirectional;

use super::ask::Ask;
use super::refusal::Refusal;
use super::serve::{Answer, Sent, Shared, refused};
use crate::lock::locked;
use crate::loopback::{client, is_in_memory};
use crate::world::Key;

/// The clients of all kubelets, by their addresses.
#[derive(Default)]
pub(super) struct Kubelets(Mutex<BTreeMap<String, Client>>);

impl Kubelets {
    /// That of a kubelet, whose certificate is not looked at, as by a real server without
    /// `--kubelet-certificate-authority`.
    fn client(&self, shared: &Arc<Shared>, address: &str) -> Result<Client, Refusal> {
        if is_in_memory() {
            let address: SocketAddr = address.parse().map_err(Refusal::internal)?;
            let shared = Arc::clone(shared);
            return Ok(client(address, move |connection| shared.spawn(connection)));
        }
        let mut clients = locked(&self.0);
        if let Some(client) = clients.get(address) {
            return Ok(client.clone());
        }
        let url: Uri = format!("https://{address}")
            .parse()
            .map_err(Refusal::internal)?;
        let mut config = Config::new(url);
        config.accept_invalid_certs = true;
        config.disable_compression = true;
        config.default_retry = false;
        // A log that is followed is silent for long
        config.read_timeout = None;
        let client = Client::try_from(config).map_err(Refusal::internal)?;
        clients.insert(address.to_owned(), client.clone());
        Ok(client)
    }
}

/// What of an exec's request is passed to the kubelet, and what it calls that.
const OF_EXECS: [(&str, &str); 4] = [
    ("stdin", "input"),
    ("stdout", "output"),
    ("stderr", "error"),
    ("command", "command"),
];

/// The same of a log's request, which the kubelet calls alike.
const OF_LOGS: [&str; 5] = [
    "follow",
    "previous",
    "timestamps",
    "tailLines",
    "limitBytes",
];

/// What a real kubelet would heed.
const OF_LOGS_UNSERVED: [&str; 2] = ["sinceSeconds", "sinceTime"];

pub(super) async fn answer(
    shared: &Arc<Shared>,
    ask: &Ask,
    mut request: Request<impl Sent>,
) -> Result<Answer, Refusal> {
    if ask.query.is_set("tty") {
        return Err(Refusal::unserved(
            "a terminal: exec without `tty` needs none",
        ));
    }
    if let Some(option) = OF_LOGS_UNSERVED
        .into_iter()
        .find(|one| ask.query.first(one).is_some())
    {
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
        let mut words = error.to_string();
        let mut cause = std::error::Error::source(&error);
        while let Some(error) = cause {
            words = format!("{words}: {error}");
            cause = error.source();
        }
        Refusal::internal(format_args!("error dialing backend: {words}"))
    };
    let mut response = client.send(onward).await.map_err(unreached)?;
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        let far = hyper::upgrade::on(&mut response);
        shared.spawn(async move {
            if let (Ok(near), Ok(far)) = (near.await, far.await) {
                let (mut near, mut far) = (TokioIo::new(near), TokioIo::new(far));
                // Whoever ends it, ends it for both
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
    // What breaks off there breaks off here
    let stop = shared.stop.clone();
    let body = body.into_data_stream();
    let body = futures::StreamExt::map(
        futures::StreamExt::take_until(
            futures::StreamExt::take_while(body, |chunk| std::future::ready(chunk.is_ok())),
            stop.cancelled_owned(),
        ),
        |chunk| Ok(hyper::body::Frame::data(chunk.unwrap_or_default())),
    );
    Ok(Response::from_parts(
        head,
        http_body_util::StreamBody::new(body).boxed_unsync(),
    ))
}

/// What a kubelet said against it, as a refusal.
async fn said(response: Response<Body>) -> Refusal {
    let code = response.status().as_u16();
    let body = response
        .into_body()
        .collect()
        .await
        .map(http_body_util::Collected::to_bytes);
    let words = body
        .map(|body| String::from_utf8_lossy(&body).trim_end().to_owned())
        .unwrap_or_default();
    Refusal::of_node(code, words)
}

/// The kubelet's address, and what is asked of it.
fn whereto(shared: &Shared, ask: &Ask) -> Result<(String, String), Refusal> {
    let state = shared.state();
    let key = Key::new(&ask.namespace, &ask.name);
    let pod = state.store.get("pods", &key);
    let pod = pod.ok_or_else(|| Refusal::not_found(ask.kind, &ask.name))?;
    let container = container(ask, pod);
    let named = pod["spec"]["nodeName"].as_str().unwrap_or_default();
    if named.is_empty() {
        return Err(Refusal::bad(format_args!(
            "pod {} does not have a host assigned",
            ask.name
        )));
    }
    let node = state.store.get("nodes", &Key::new("", named));
    let node = node.ok_or_else(|| Refusal::not_found(super::kinds::Kind::named("nodes"), named))?;
    let addresses = node["status"]["addresses"].as_array();
    let internal = addresses
        .into_iter()
        .flatten()
        .find(|address| address["type"] == "InternalIP");
    let port = node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"].as_u64();
    let address = internal
        .and_then(|address| address["address"].as_str())
        .zip(port);
    let (address, port) = address.ok_or_else(|| {
        Refusal::internal(format_args!(
            "no preferred addresses found; known addresses: {}",
            node["status"]["addresses"]
        ))
    })?;
    let mut query = form_urlencoded::Serializer::new(String::new());
    let mut pass = |name: &str, named: &str| {
        for value in ask.query.all(name) {
            query.append_pair(named, &value);
        }
    };
    let root = match ask.subresource.as_str() {
        "log" => {
            for name in OF_LOGS {
                pass(name, name);
            }
            "containerLogs"
        }
        other => {
            for (name, named) in OF_EXECS {
                pass(name, named);
            }
            other
        }
    };
    let path = format!(
        "/{root}/{}/{}/{container}?{}",
        ask.namespace,
        ask.name,
        query.finish()
    );
    Ok((format!("{address}:{port}"), path))
}

/// Which container is meant: `kubectl.kubernetes.io/default-container` is the client's affair.
fn container<'a>(ask: &'a Ask, pod: &'a Value) -> &'a str {
    let first = pod["spec"]["containers"][0]["name"].as_str();
    let named = ask.query.first("container");
    let named = named.filter(|named| !named.is_empty());
    named.or(first).unwrap_or_default()
}
