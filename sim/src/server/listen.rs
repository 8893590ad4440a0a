//! The server's interface: on loopback with TLS, or through streams in memory.

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

use super::controllers::{self, autoscaler};
use super::kinds::{KINDS, Kind};
use super::serve::{Shared, answer};
use crate::base::clock;
use crate::base::fields::Fields;
use crate::fault::FaultSwitch;
use crate::nodes::kubelet::{ServingError, self_signed};
use crate::server::checks::admission::{Recorded, versions};
use crate::server::storage::state::State;
use crate::topology::{ApiSpec, IpFamilies, Topology};
use crate::wire::listen::{greet, http, serve};
use crate::wire::loopback::{BUFFER, Loopback, exchange};
use crate::world::Key;

/// How long a client may send nothing between requests, or within the header of one (apiserver,
/// `ReadHeaderTimeout`).
const PATIENCE: Duration = Duration::from_secs(32);

/// The names in the server's certificate.
const NAMES: [&str; 4] = [
    "127.0.0.1",
    "localhost",
    "kubernetes",
    "kubernetes.default.svc",
];

/// The options of a server.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// The Kubernetes version whose recorded answers the server gives to dry runs, such as `1.37.0`.
    pub version: String,
    /// Fixes UIDs and generated names.
    pub seed: u64,
    /// The families of the addresses of Services.
    pub ip_families: IpFamilies,
    /// Where the server runs. Nodes that join must run there, too.
    pub loopback: Loopback,
    /// What the server has beside what every cluster has; its version's suffix goes behind `version`.
    pub api: ApiSpec,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            version: versions().next().unwrap_or_default().to_owned(),
            seed: 1,
            ip_families: IpFamilies::default(),
            loopback: Loopback::default(),
            api: ApiSpec::default(),
        }
    }
}

impl ServerOptions {
    /// The options of the server of a topology.
    pub fn of(topology: &Topology) -> Self {
        let (usual, release) = (Self::default(), topology.api.release().0);
        Self {
            version: match release {
                "" => usual.version,
                release => release.to_owned(),
            },
            ip_families: topology.ip_families,
            api: topology.api.clone(),
            ..usual
        }
    }
}

/// Why a server did not start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ServerError {
    /// There are no recordings of the requested version, only of others.
    #[error("nothing is recorded of Kubernetes {0}, but of {1}")]
    Version(String, String),
    /// The server cannot listen at the address.
    #[error("failed to listen at {0}")]
    Listen(SocketAddr, #[source] io::Error),
    /// An object cannot be created at the start.
    #[error("an object of the topology cannot be created: {0}")]
    Object(String),
    /// The server cannot serve TLS.
    #[error(transparent)]
    Serving(#[from] ServingError),
}

/// A running API server. Dropping it ends it as well, but only [`Server::stop`] waits for the end.
pub struct Server {
    pub(crate) shared: Arc<Shared>,
    tls: TlsAcceptor,
    _stop_on_drop: DropGuard,
}

impl Server {
    /// The Kubernetes versions that a server can simulate, the default first.
    pub fn versions() -> impl Iterator<Item = &'static str> {
        versions()
    }

    /// Starts a server; until it listens, only [`Server::client`] reaches it.
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
        for object in &options.api.objects {
            let (kind, name) = (object["kind"].text(), object["metadata"]["name"].text());
            let refused = |why| ServerError::Object(format!("{kind} {name}: {why}"));
            let text = object.to_string().replace("VERSION", &options.version);
            let object = serde_json::from_str(&text).map_err(|error| refused(error.to_string()))?;
            seed(&mut state, object).map_err(refused)?;
            controllers::settle(&mut state);
        }
        options.api.release().1.clone_into(&mut state.suffix);
        state.groups.clone_from(&options.api.groups);
        state.effects.clone_from(&options.api.effects);
        let stop = CancellationToken::new();
        let shared = Arc::new(Shared::new(state, options.loopback.clone(), stop.clone()));
        let kept = Arc::clone(&shared);
        shared.tasks.spawn(async move { kept.keep_time().await });
        shared.spawn(autoscaler::keep(Arc::clone(&shared)));
        Ok(Self {
            shared,
            tls,
            _stop_on_drop: stop.drop_guard(),
        })
    }

    /// Has the faults of the nodes that have joined change what the controllers do, too.
    pub fn suffer(&self, faults: &FaultSwitch) {
        self.shared.step(|state| state.faults = faults.clone());
    }

    /// Waits until the workloads run on nodes that have joined, but at most for `most`: a fault may
    /// keep them from running for ever.
    pub async fn settled(&self, most: Duration) {
        let end = clock::after(most);
        while !is_settled(&self.shared.state()) && clock::moment() < end {
            clock::elapse(Duration::from_secs(1)).await;
        }
    }

    /// Returns a client that reaches the server without a socket.
    pub fn client(&self) -> Client {
        let shared = Arc::clone(&self.shared);
        let administrator = shared.state().token.header();
        let service = tower::service_fn(move |mut request: Request<Sent>| {
            let (shared, administrator) = (Arc::clone(&shared), administrator.clone());
            async move {
                let headers = request.headers_mut();
                headers.entry(AUTHORIZATION).or_insert(administrator);
                // A session needs a connection; every other request is a call
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

    /// Listens on a port of 127.0.0.1, any port if it is 0. Returns the address.
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
                let (shared, tls) = (Arc::clone(&shared), tls.clone());
                async move {
                    if let Some(stream) = greet(&tls, stream).await {
                        speak(&shared, stream).await;
                    }
                }
            };
            serve(|task| shared.spawn(task), listener, serves).await;
        });
        Ok(bound)
    }

    /// Returns a kubeconfig file that leads to an address of the server, with the administrator's token.
    pub fn kubeconfig(&self, address: SocketAddr) -> String {
        let state = self.shared.state();
        let authority = json!(ByteString(state.authority.clone().into_bytes()));
        include_str!("kubeconfig.yaml")
            .replace("ADDRESS", &address.to_string())
            .replace("TOKEN", state.token.as_str())
            .replace("AUTHORITY", authority.text())
    }

    /// Returns every object as it is now, by its kind's plural, its namespace and its name.
    pub fn objects(&self) -> BTreeMap<(String, String, String), Value> {
        let state = self.shared.state();
        let of = |kind: &'static Kind| {
            let kept = state.store.all(kind.plural, "");
            kept.map(|(key, object)| {
                let Key { namespace, name } = key.clone();
                let at = (kind.plural.to_owned(), namespace, name);
                (at, Value::clone(object))
            })
        };
        KINDS.iter().flat_map(of).collect()
    }

    /// The requests that were not served, as method and path.
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

/// Creates the objects that every cluster has.
fn begin(state: &mut State) {
    let objects: Vec<Value> =
        serde_saphyr::from_str(include_str!("objects.yaml")).expect("objects.yaml is whole");
    for object in objects {
        seed(state, object).expect("what every cluster has can be made");
    }
    controllers::settle(state);
}

/// Creates an object at the start.
fn seed(state: &mut State, object: Value) -> Result<(), String> {
    let kind = Kind::for_object(&object).ok_or("of no kind that is served")?;
    let namespace = object["metadata"]["namespace"].text().to_owned();
    let key = Key::new(&namespace, object["metadata"]["name"].text());
    let status = object.get("status").cloned();
    let created = state.create(kind, &namespace, object, false);
    created.map_err(|refusal| refusal.message)?;
    if let Some(status) = status {
        state.set_status(kind.plural, &key, status);
    }
    Ok(())
}

/// Whether the workloads of all namespaces have all of their pods ready.
fn is_settled(state: &State) -> bool {
    let full = |plural, wanted: &str, ready: &str| {
        state.store.all(plural, "").all(|(_, object)| {
            let count = |place| object.pointer(place).and_then(Value::as_u64);
            count(ready).unwrap_or(0) >= count(wanted).unwrap_or(1)
        })
    };
    let scheduled = "/status/desiredNumberScheduled";
    full("daemonsets", scheduled, "/status/numberReady")
        && full("deployments", "/spec/replicas", "/status/readyReplicas")
}

/// Serves one connection until either side ends it.
async fn speak(shared: &Arc<Shared>, stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) {
    let service = service_fn(async |request: Request<Incoming>| {
        Ok::<_, Infallible>(answer(shared, request).await)
    });
    let connection = http(PATIENCE).serve_connection(TokioIo::new(stream), service);
    if let Err(error) = connection.with_upgrades().await {
        tracing::debug!(%error, "connection ends");
    }
}

/// Sends a request through a connection of its own in memory.
async fn through_memory(
    shared: &Arc<Shared>,
    request: Request<Sent>,
) -> Result<Response<Incoming>, hyper::Error> {
    let (near, far) = tokio::io::duplex(BUFFER);
    let server = Arc::clone(shared);
    shared.spawn(async move { speak(&server, far).await });
    exchange(near, request, |connection| shared.spawn(connection)).await
}
