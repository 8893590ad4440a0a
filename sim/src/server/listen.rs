//! The server as others see it: on loopback with TLS, or through streams in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use http::header::{AUTHORIZATION, UPGRADE};
use http::{Request, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use k8s_openapi::ByteString;
use kube::Client;
use kube::client::Body as Sent;
use serde_json::{Value, json};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::controllers;
use super::kinds::{KINDS, Kind};
use super::serve::{Shared, answer};
use crate::base::clock;
use crate::base::fields::Fields;
use crate::nodes::kubelet::{ServingError, self_signed};
use crate::server::checks::admission::{Recorded, versions};
use crate::server::storage::state::State;
use crate::topology::IpFamilies;
use crate::wire::listen::{greet, http, serve};
use crate::wire::loopback::{BUFFER, Loopback, exchange};
use crate::world::Key;

/// How long a client may say nothing between requests, and within the header of one (apiserver,
/// `ReadHeaderTimeout`).
const PATIENCE: Duration = Duration::from_secs(32);

/// What its certificate is for.
const NAMES: [&str; 4] = [
    "127.0.0.1",
    "localhost",
    "kubernetes",
    "kubernetes.default.svc",
];

/// What a server is to be.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// The Kubernetes version whose answers it gives to dry runs, such as `1.37.0`.
    pub version: String,
    /// Fixes UIDs and generated names.
    pub seed: u64,
    /// The families of the addresses that Services are given, IPv4 first, as nodes join.
    pub ip_families: IpFamilies,
    /// Where it is, as the nodes that join.
    pub loopback: Loopback,
    /// What is there from the start beside what every cluster has, in an order in which it can be made.
    pub objects: Vec<Value>,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            version: versions().next().unwrap_or_default().to_owned(),
            seed: 1,
            ip_families: IpFamilies::default(),
            loopback: Loopback::default(),
            objects: Vec::new(),
        }
    }
}

/// Why a server did not start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ServerError {
    /// Nothing is recorded of the version asked for, but of others.
    #[error("nothing is recorded of Kubernetes {0}, but of {1}")]
    Version(String, String),
    /// The address cannot be listened at.
    #[error("failed to listen at {0}")]
    Listen(SocketAddr, #[source] io::Error),
    /// It cannot have an object that it was to have from the start.
    #[error("{0}")]
    Object(String),
    /// It cannot serve TLS.
    #[error(transparent)]
    Serving(#[from] ServingError),
}

/// A running API server; dropping it ends it as well, but only [`Server::stop`] waits for the end.
pub struct Server {
    pub(crate) shared: Arc<Shared>,
    tls: TlsAcceptor,
    _stop_on_drop: DropGuard,
}

impl Server {
    /// The Kubernetes versions that it can be of, the usual one first.
    pub fn versions() -> impl Iterator<Item = &'static str> {
        versions()
    }

    /// Starts a server that nobody reaches yet but by [`Server::client`].
    pub fn start(options: &ServerOptions) -> Result<Self, ServerError> {
        let recorded = Recorded::by_version(&options.version).ok_or_else(|| {
            let known = versions().collect::<Vec<_>>().join(", ");
            ServerError::Version(options.version.clone(), known)
        })?;
        let (tls, authority) = self_signed(&NAMES)?;
        let mut state = State::new(recorded, options.seed, authority);
        state.families = options.ip_families;
        state.wall = options.loopback.wall;
        begin(&mut state);
        for object in &options.objects {
            let name = &object["metadata"]["name"];
            let refused = |why| ServerError::Object(format!("{name}: {why}"));
            seed(&mut state, object.clone()).map_err(refused)?;
            controllers::settle(&mut state);
        }
        let stop = CancellationToken::new();
        let shared = Arc::new(Shared::new(state, options.loopback.clone(), stop.clone()));
        let kept = Arc::clone(&shared);
        shared.tasks.spawn(async move { kept.keep_time().await });
        Ok(Self {
            shared,
            tls,
            _stop_on_drop: stop.drop_guard(),
        })
    }

    /// Waits until what was there from the start runs, which it does on nodes that have joined; so long
    /// at most, since what is broken there may keep it from that for ever.
    pub async fn settled(&self, most: Duration) {
        let end = clock::after(most);
        while !is_settled(&self.shared.state()) && clock::moment() < end {
            clock::elapse(Duration::from_secs(1)).await;
        }
    }

    /// A client that reaches it without a socket.
    pub fn client(&self) -> Client {
        let shared = Arc::clone(&self.shared);
        let administrator = shared.state().token.header();
        let service = tower::service_fn(move |mut request: Request<Sent>| {
            let (shared, administrator) = (Arc::clone(&shared), administrator.clone());
            async move {
                let headers = request.headers_mut();
                headers.entry(AUTHORIZATION).or_insert(administrator);
                // A session takes a connection, whatever else is asked is a call
                if request.headers().contains_key(UPGRADE) {
                    let response = through_memory(&shared, request).await?;
                    return Ok::<_, hyper::Error>(response.map(BodyExt::boxed_unsync));
                }
                let answer = answer(&shared, request).await;
                Ok(answer.map(|body| body.map_err(|never| match never {}).boxed_unsync()))
            }
        });
        Client::new(service, "default")
    }

    /// Listens on a port of 127.0.0.1, any if it is 0; gives where.
    pub async fn listen(&self, port: u16) -> Result<SocketAddr, ServerError> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let failed = |source| ServerError::Listen(address, source);
        let loopback = &self.shared.kubelets.loopback;
        let listener = loopback.listen(Ipv4Addr::LOCALHOST, port).await;
        let listener = listener.map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        let (shared, tls) = (Arc::clone(&self.shared), self.tls.clone());
        self.shared.spawn(async move {
            let serves = |stream| {
                let (all, tls) = (Arc::clone(&shared), tls.clone());
                async move {
                    if let Some(stream) = greet(&tls, stream).await {
                        speak(&all, stream).await;
                    }
                }
            };
            serve(|task| shared.spawn(task), listener, serves).await;
        });
        Ok(bound)
    }

    /// The text of a kubeconfig file that leads to where it listens, with the administrator's token.
    pub fn kubeconfig(&self, address: SocketAddr) -> String {
        let state = self.shared.state();
        let authority = json!(ByteString(state.authority.clone().into_bytes()));
        include_str!("kubeconfig.yaml")
            .replace("ADDRESS", &address.to_string())
            .replace("TOKEN", state.token.as_str())
            .replace("AUTHORITY", authority.text())
    }

    /// Every object as it is now, by its kind's plural, its namespace and its name.
    pub fn objects(&self) -> BTreeMap<(String, String, String), Value> {
        let state = self.shared.state();
        let of = |kind: &'static Kind| {
            let all = state.store.all(kind.plural, "");
            all.map(|(key, object)| {
                let Key { namespace, name } = key.clone();
                let at = (kind.plural.to_owned(), namespace, name);
                (at, Value::clone(object))
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
    let objects: Vec<Value> =
        serde_saphyr::from_str(include_str!("objects.yaml")).expect("objects.yaml is whole");
    for object in objects {
        seed(state, object).expect("what every cluster has can be made");
    }
    controllers::settle(state);
}

/// Makes what is to be there from the start.
fn seed(state: &mut State, object: Value) -> Result<(), String> {
    let kind = Kind::for_object(&object).ok_or("of no kind that is served")?;
    let namespace = object["metadata"]["namespace"].text().to_owned();
    let made = state.create(kind, &namespace, object, false);
    made.map(drop).map_err(|refusal| format!("{refusal:?}"))
}

/// Whether the workloads of all namespaces have all of their pods.
fn is_settled(state: &State) -> bool {
    let all = |plural, wanted: &str, ready: &str| {
        state.store.all(plural, "").all(|(_, object)| {
            let count = |place| object.pointer(place).and_then(Value::as_u64);
            count(ready).unwrap_or(0) >= count(wanted).unwrap_or(1)
        })
    };
    let scheduled = "/status/desiredNumberScheduled";
    all("daemonsets", scheduled, "/status/numberReady")
        && all("deployments", "/spec/replicas", "/status/readyReplicas")
}

/// Serves one connection until either side has done with it.
async fn speak(shared: &Arc<Shared>, stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) {
    let service = service_fn(async |request: Request<Incoming>| {
        Ok::<_, Infallible>(answer(shared, request).await)
    });
    let connection = http(PATIENCE).serve_connection(TokioIo::new(stream), service);
    if let Err(error) = connection.with_upgrades().await {
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
