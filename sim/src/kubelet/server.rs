//! A node's server: one TLS listener, its requests routed by path.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;

use super::wire::Wire;
use super::{exec, logs, stats, usage};
use crate::cluster::{Cluster, NodeState};
use crate::listen::{self, Seat};
use crate::loopback::Listener;
use crate::pods::run::PodRun;
use crate::query::Query;
use crate::world::Key;

/// How many clients of a node are served at once; each session and each log that is followed is one.
const MOST_CLIENTS: usize = 256;

/// How long a client may say nothing between requests, and within the header of one.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// Why a kubelet cannot serve.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ServingError {
    /// The self-signed certificate could not be made.
    #[error("failed to make a serving certificate")]
    Certificate(#[source] rcgen::Error),
    /// The TLS library does not take it.
    #[error("failed to set up TLS")]
    Tls(#[source] rustls::Error),
}

/// What accepts TLS for all nodes: one self-signed certificate, which the API server does not check
/// without `--kubelet-certificate-authority`, and which names none of them: a thousand names would
/// be sent at each connection.
pub(crate) fn listen_tls() -> Result<TlsAcceptor, ServingError> {
    let (tls, _) = self_signed(&["hybrid-sim.invalid"])?;
    Ok(tls)
}

/// What accepts TLS by a self-signed certificate for these names, and that as PEM.
pub(crate) fn self_signed(names: &[&str]) -> Result<(TlsAcceptor, String), ServingError> {
    let names: Vec<_> = names.iter().map(ToString::to_string).collect();
    let made = rcgen::generate_simple_self_signed(names).map_err(ServingError::Certificate)?;
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(ServingError::Tls)?
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .map_err(ServingError::Tls)?;
    // Exec upgrades, which HTTP/2 does not
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok((TlsAcceptor::from(Arc::new(config)), made.cert.pem()))
}

/// Serves a node's requests until the simulator stops.
pub(crate) async fn serve(
    cluster: Arc<Cluster>,
    node: Arc<NodeState>,
    listener: Listener,
    tls: TlsAcceptor,
) {
    let serves = |stream, seat| {
        let (cluster, node, tls) = (Arc::clone(&cluster), Arc::clone(&node), tls.clone());
        async move {
            if let Some(stream) = listen::greet(&tls, stream).await {
                speak(&cluster, &node, stream, &seat).await;
            }
        }
    };
    listen::serve(|task| cluster.spawn(task), listener, MOST_CLIENTS, serves).await;
}

/// Serves one connection until either side has done with it; a session goes on in its seat.
pub(crate) async fn speak(
    cluster: &Arc<Cluster>,
    node: &Arc<NodeState>,
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    seat: &Seat,
) {
    let stream = Wire::new(stream, cluster, node);
    let service = service_fn(async |mut request: Request<Incoming>| {
        request.extensions_mut().insert(Arc::clone(seat));
        // A node that cannot be heard answers nobody, until it can be again
        cluster.heard(node).await;
        Ok::<_, Infallible>(route(cluster, node, request))
    });
    let served = listen::http(PATIENCE)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades()
        .await;
    if let Err(error) = served {
        tracing::debug!(node = node.name, %error, "connection ends");
    }
}

/// The routes of kubernetes 1.37.0, `pkg/kubelet/server/server.go`, as far as they are served.
fn route(cluster: &Arc<Cluster>, node: &NodeState, request: Request<Incoming>) -> Response<Body> {
    let query = Query::parse(request.uri().query());
    let path = request.uri().path().to_owned();
    let parts: Vec<&str> = path.trim_end_matches('/').split('/').skip(1).collect();
    match parts.as_slice() {
        ["healthz"] | ["healthz", "ping" | "log" | "syncloop"] => text(StatusCode::OK, "ok"),
        ["exec", namespace, pod, rest @ ..] => {
            let (uid, container) = match rest {
                [container] => (None, *container),
                [uid, container] => (Some(*uid), *container),
                _ => return no_such_page(),
            };
            let run = find(cluster, node, namespace, pod);
            let Some(run) = run.filter(|run| uid.is_none_or(|uid| run.uid == uid)) else {
                return text(StatusCode::NOT_FOUND, "pod does not exist");
            };
            exec::begin(cluster, &run, container, &query, request)
        }
        ["portForward", _, _] | ["portForward", _, _, _] => text(
            StatusCode::NOT_IMPLEMENTED,
            "this simulated kubelet does not forward ports, as no packet leaves the simulator",
        ),
        ["attach", _, _, ..] => text(
            StatusCode::NOT_IMPLEMENTED,
            "this simulated kubelet does not attach, and `kubectl logs -f` shows the same lines",
        ),
        _ if request.method() != Method::GET => {
            text(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed")
        }
        ["containerLogs", namespace, pod, container] => match find(cluster, node, namespace, pod) {
            Some(run) => logs::answer(cluster, &run, container, &query),
            None => {
                let words = format!("pod \"{pod}\" does not exist");
                text(StatusCode::NOT_FOUND, &words)
            }
        },
        ["pods" | "runningpods"] => answer_json(&pods(cluster, node)),
        ["stats", "summary"] => {
            let usage = usage::of(cluster, node);
            let less = query.is_set("only_cpu_and_memory");
            answer_json(&stats::summary(node, &usage, less))
        }
        ["metrics", "resource"] => {
            let mut response = text(StatusCode::OK, &stats::metrics(&usage::of(cluster, node)));
            let form = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
            response.headers_mut().insert(CONTENT_TYPE, form);
            response
        }
        [
            "containerLogs" | "stats" | "exec" | "attach" | "portForward",
            ..,
        ] => no_such_page(),
        _ => text(StatusCode::NOT_FOUND, "404 page not found\n"),
    }
}

/// go-restful's words, below a path that is served; Go's own stand elsewhere.
fn no_such_page() -> Response<Body> {
    text(StatusCode::NOT_FOUND, "404: Page Not Found")
}

/// The pods of a node with the status that it would report now.
fn pods(cluster: &Cluster, node: &NodeState) -> Value {
    let runs: Vec<_> = cluster.runs(node).values().map(Arc::clone).collect();
    let items: Vec<Value> = runs
        .iter()
        .map(|run| {
            let mut pod = serde_json::to_value(&*run.pod).unwrap_or_default();
            let status = run.book().status(&node.view);
            pod["status"] = serde_json::to_value(status).unwrap_or_default();
            pod
        })
        .collect();
    json!({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items})
}

fn find(cluster: &Cluster, node: &NodeState, namespace: &str, pod: &str) -> Option<Arc<PodRun>> {
    let runs = cluster.runs(node);
    runs.get(&Key::new(namespace, pod)).map(Arc::clone)
}

/// The body of an answer: whole, or as it grows.
pub(super) type Body = UnsyncBoxBody<Bytes, Infallible>;

pub(super) fn boxed(
    body: impl hyper::body::Body<Data = Bytes, Error = Infallible> + Send + 'static,
) -> Body {
    UnsyncBoxBody::new(body)
}

fn answer_json(value: &Value) -> Response<Body> {
    let mut response = text(StatusCode::OK, &value.to_string());
    let form = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, form);
    response
}

pub(super) fn text(status: StatusCode, words: &str) -> Response<Body> {
    let mut response = Response::new(boxed(Full::from(words.to_owned())));
    *response.status_mut() = status;
    response
}
