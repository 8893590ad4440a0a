//! The server as others see it: on loopback with TLS, or through streams in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use k8s_openapi::ByteString;
use kube::Client;
use kube::client::Body as Sent;
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::admission::{Recorded, versions};
use super::kinds::{KINDS, Kind};
use super::serve::{self, Shared};
use super::services::KUBERNETES;
use super::state::State;
use super::{admit, controllers};
use crate::clock;
use crate::listen::{greet, http};
use crate::loopback::{Listener, exchange};
use crate::world::Key;

/// How long a client may say nothing between requests.
const PATIENCE: Duration = Duration::from_mins(5);

/// How much a stream in memory holds.
const BUFFER: usize = 256 * 1024;

/// The namespaces that every cluster has.
const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// What a server is to be.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// The Kubernetes version whose answers it gives to dry runs, such as `1.37.0`.
    pub version: String,
    /// Fixes UIDs and generated names.
    pub seed: u64,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            version: versions().next().unwrap_or_default().to_owned(),
            seed: 1,
        }
    }
}

/// Why a server did not start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ServerError {
    /// Nothing is recorded of the version.
    #[error("nothing is recorded of Kubernetes {version}, but of {known}")]
    Version {
        /// The version asked for.
        version: String,
        /// Those that are known.
        known: String,
    },
    /// The address cannot be listened at.
    #[error("failed to listen at {address}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// The self-signed certificate could not be made.
    #[error("failed to make a serving certificate")]
    Certificate(#[source] rcgen::Error),
    /// The TLS library does not take it.
    #[error("failed to set up TLS")]
    Tls(#[source] rustls::Error),
}

/// A running API server; dropping it ends it as well, but only [`Server::stop`] waits for the end.
pub struct Server {
    pub(super) shared: Arc<Shared>,
    tls: TlsAcceptor,
    /// What clients trust it by, as PEM.
    authority: String,
    _stop_on_drop: DropGuard,
}

impl Server {
    /// Starts a server that nobody reaches yet but by [`Server::client`].
    pub fn start(options: &ServerOptions) -> Result<Self, ServerError> {
        let recorded = Recorded::of(&options.version).ok_or_else(|| ServerError::Version {
            version: options.version.clone(),
            known: versions().collect::<Vec<_>>().join(", "),
        })?;
        let (tls, authority) = certified()?;
        let mut state = State::new(recorded, options.seed, authority.clone());
        begin(&mut state);
        let stop = CancellationToken::new();
        let shared = Arc::new(Shared::new(state, stop.clone(), TaskTracker::new()));
        let kept = Arc::clone(&shared);
        shared.tasks.spawn(async move { kept.keep_time().await });
        Ok(Self {
            shared,
            tls,
            authority,
            _stop_on_drop: stop.drop_guard(),
        })
    }

    /// A client that reaches it without a socket.
    pub fn client(&self) -> Client {
        let shared = Arc::clone(&self.shared);
        let service = tower::service_fn(move |request: Request<Sent>| {
            let shared = Arc::clone(&shared);
            async move { through_memory(&shared, request).await }
        });
        Client::new(service, "default")
    }

    /// Listens on a port of 127.0.0.1, any if it is 0; gives where.
    pub async fn listen(&self, port: u16) -> Result<SocketAddr, ServerError> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let failed = |source| ServerError::Listen { address, source };
        let listener = Listener::bind(Ipv4Addr::LOCALHOST, port)
            .await
            .map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        let (shared, tls) = (Arc::clone(&self.shared), self.tls.clone());
        self.shared.spawn(async move {
            loop {
                match listener.accept().await {
                    Ok(stream) => {
                        let (all, tls) = (Arc::clone(&shared), tls.clone());
                        shared.spawn(async move {
                            if let Some(stream) = greet(&tls, Box::new(stream)).await {
                                speak(&all, stream).await;
                            }
                        });
                    }
                    Err(error) => {
                        tracing::debug!(%error, "a connection is lost");
                        // Out of descriptors: one of them is given back before long
                        clock::elapse(Duration::from_millis(50)).await;
                    }
                }
            }
        });
        Ok(bound)
    }

    /// The text of a kubeconfig file that leads to where it listens.
    pub fn kubeconfig(&self, address: SocketAddr) -> String {
        let authority = json!(ByteString(self.authority.clone().into_bytes()));
        let authority = authority.as_str().unwrap_or_default();
        format!(
            "apiVersion: v1\n\
             kind: Config\n\
             clusters:\n\
             - name: simulated\n  \
               cluster:\n    \
                 server: https://{address}\n    \
                 certificate-authority-data: {authority}\n\
             users:\n\
             - name: simulated\n  \
               user:\n    \
                 token: everybody-may-do-everything\n\
             contexts:\n\
             - name: simulated\n  \
               context:\n    \
                 cluster: simulated\n    \
                 user: simulated\n\
             current-context: simulated\n"
        )
    }

    /// Every object as it is now, by its kind's plural, its namespace and its name.
    pub fn objects(&self) -> BTreeMap<(String, String, String), Value> {
        let state = self.shared.state();
        let of = |kind: &'static Kind| {
            let all = state.store.all(kind.plural, "");
            all.map(|(key, object)| {
                let key = (
                    kind.plural.to_owned(),
                    key.namespace.clone(),
                    key.name.clone(),
                );
                (key, object.value.clone())
            })
        };
        KINDS.iter().flat_map(of).collect()
    }

    /// What was asked for that is not served, as method and path.
    pub fn unserved(&self) -> BTreeSet<String> {
        self.shared.unserved()
    }

    /// Ends every connection and waits until no task is left.
    pub async fn stop(self) {
        self.shared.stop.cancel();
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
    }
}

/// What is there before anybody asks for anything.
fn begin(state: &mut State) {
    let mut make = |plural: &str, namespace: &str, body| {
        let made = state.create(Kind::named(plural), namespace, body, false);
        made.expect("what every cluster has can be made");
    };
    for name in NAMESPACES {
        make("namespaces", "", json!({"metadata": {"name": name}}));
    }
    for (name, value) in admit::SYSTEM_CLASSES {
        make(
            "priorityclasses",
            "",
            json!({"metadata": {"name": name}, "value": value}),
        );
    }
    let labels = json!({"component": "apiserver", "provider": "kubernetes"});
    let ports = json!([{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}]);
    let body = json!({"metadata": {"name": "kubernetes", "labels": labels},
        "spec": {"clusterIP": KUBERNETES, "ports": ports}});
    make("services", "default", body);
    controllers::settle(state);
    debug_assert!(
        state
            .store
            .value("serviceaccounts", &Key::new("default", "default"))
            .is_some()
    );
}

/// A self-signed certificate, and it as PEM.
fn certified() -> Result<(TlsAcceptor, String), ServerError> {
    let names = [
        "127.0.0.1",
        "localhost",
        "kubernetes",
        "kubernetes.default.svc",
    ]
    .map(str::to_owned);
    let made = rcgen::generate_simple_self_signed(names).map_err(ServerError::Certificate)?;
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(ServerError::Tls)?
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .map_err(ServerError::Tls)?;
    // Exec upgrades, which HTTP/2 does not
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok((TlsAcceptor::from(Arc::new(config)), made.cert.pem()))
}

/// Serves one connection until either side has done with it.
async fn speak(shared: &Arc<Shared>, stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) {
    let service = service_fn(async |request: Request<Incoming>| {
        Ok::<_, Infallible>(serve::answer(shared, request).await)
    });
    let served = http(PATIENCE)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades()
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "connection ends");
    }
}

/// A request with a connection of its own, both ends of it here.
async fn through_memory(
    shared: &Arc<Shared>,
    request: Request<Sent>,
) -> Result<Response<Incoming>, hyper::Error> {
    let (near, far) = tokio::io::duplex(BUFFER);
    let all = Arc::clone(shared);
    shared.spawn(async move { speak(&all, far).await });
    exchange(near, request, |connection| shared.spawn(connection)).await
}
