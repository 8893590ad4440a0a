//! A node's server: one TLS listener, its requests routed by path.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;

use super::wire::wire;
use super::{exec, logs, stats};
use crate::base::query::Query;
use crate::nodes::cluster::{Cluster, NodeState};
use crate::pods::course::run::PodRun;
use crate::wire::listen;
use crate::wire::loopback::Listener;
use crate::world::Key;

/// How long a client may stay silent between requests, and within a request's header.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// Why a kubelet cannot serve.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ServingError {
    /// Creating the self-signed certificate failed.
    #[error("failed to make a serving certificate")]
    Certificate(#[source] rcgen::Error),
    /// The TLS library rejects the certificate.
    #[error("failed to set up TLS")]
    Tls(#[source] rustls::Error),
}

/// The TLS acceptor of all nodes. It has one self-signed certificate, which the API server does not check
/// without `--kubelet-certificate-authority`. The certificate names no node: a thousand names would be sent
/// at each connection.
pub(crate) fn listen_tls() -> Result<TlsAcceptor, ServingError> {
    let (tls, _) = self_signed(&["hybrid-sim.invalid"])?;
    Ok(tls)
}

/// A TLS acceptor with a self-signed certificate for these names, and the certificate as PEM.
pub(crate) fn self_signed(names: &[&str]) -> Result<(TlsAcceptor, String), ServingError> {
    let names: Vec<_> = names.iter().map(ToString::to_string).collect();
    let pair = rcgen::generate_simple_self_signed(names).map_err(ServingError::Certificate)?;
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(pair.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(ServingError::Tls)?
        .with_no_client_auth()
        .with_single_cert(vec![pair.cert.der().clone()], key)
        .map_err(ServingError::Tls)?;
    // Exec upgrades the connection, which HTTP/2 cannot do
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok((TlsAcceptor::from(Arc::new(config)), pair.cert.pem()))
}

/// Serves a node's requests until the simulator stops.
pub(crate) async fn serve(
    cluster: Arc<Cluster>,
    node: Arc<NodeState>,
    listener: Listener,
    tls: TlsAcceptor,
) {
    let serves = |stream| {
        let (cluster, node, tls) = (Arc::clone(&cluster), Arc::clone(&node), tls.clone());
        async move {
            if let Some(stream) = listen::greet(&tls, stream).await {
                speak(&cluster, &node, stream).await;
            }
        }
    };
    listen::serve(|task| cluster.spawn(task), listener, serves).await;
}

/// Serves one connection until either side ends it.
pub(crate) async fn speak(
    cluster: &Arc<Cluster>,
    node: &Arc<NodeState>,
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
) {
    let stream = wire(stream, cluster, node);
    let service = service_fn(async |request: Request<Incoming>| {
        // While its node is silent, a kubelet answers no request
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

/// Routes a request; the routes are among those of kubernetes 1.37.0, `pkg/kubelet/server/server.go`.
fn route(cluster: &Arc<Cluster>, node: &NodeState, request: Request<Incoming>) -> Response<Body> {
    let query = Query::parse(request.uri().query());
    let path = request.uri().path().to_owned();
    let parts: Vec<&str> = path.trim_end_matches('/').split('/').skip(1).collect();
    match parts.as_slice() {
        ["healthz"] => text(StatusCode::OK, "ok"),
        ["exec", namespace, pod, container] => match find(cluster, node, namespace, pod) {
            Some(run) => exec::begin(cluster, &run, container, &query, request),
            None => text(StatusCode::NOT_FOUND, "pod does not exist"),
        },
        ["containerLogs", namespace, pod, container] => match find(cluster, node, namespace, pod) {
            Some(run) => logs::answer(cluster, &run, container, &query),
            None => {
                let words = format!("pod \"{pod}\" does not exist");
                text(StatusCode::NOT_FOUND, &words)
            }
        },
        ["stats", "summary"] => {
            let summary = stats::summary(cluster, node);
            let mut response = text(StatusCode::OK, &summary.to_string());
            let form = HeaderValue::from_static("application/json");
            response.headers_mut().insert(CONTENT_TYPE, form);
            response
        }
        _ => text(StatusCode::NOT_FOUND, "404 page not found\n"),
    }
}

fn find(cluster: &Cluster, node: &NodeState, namespace: &str, pod: &str) -> Option<Arc<PodRun>> {
    let runs = cluster.runs(node);
    runs.get(&Key::new(namespace, pod)).map(Arc::clone)
}

/// The body of an answer: whole, or streamed.
pub(super) type Body = UnsyncBoxBody<Bytes, Infallible>;

pub(super) fn text(status: StatusCode, words: &str) -> Response<Body> {
    let mut response = Response::new(Full::<Bytes>::from(words.to_owned()).boxed_unsync());
    *response.status_mut() = status;
    response
}
