//! Interference between a client and any API server, real or simulated, as a layer of the client's
//! service.
//!
//! *Troubles* come between client and server and say nothing about the cluster; the *admission*
//! faults and *bad worlds* make the cluster look as if it refused, forgot or said something else.
//! Nothing here is a server: an answer is made, changed or withheld before the client has it. The
//! stream of an exec session is replaced by one in memory, whose other end is relayed.
//!
//! | file | what |
//! |---|---|
//! | `fault.rs`, `kinds/trouble.rs`, `field.rs` | what can be wrong, as data, and how it is written |
//! | `asked.rs` | what a request asks for: verb, resource, watch, session |
//! | `chance.rs` | which request is hit: a pure function of seed and order |
//! | `standing.rs` | the faults that hold, how many requests have come, and a server's life |
//! | `kinds/answer.rs` | troubled answers as servers give them |
//! | `kinds/refusal.rs` | RBAC, tokens, webhooks and policies that refuse |
//! | `kinds/admission.rs`, `sent.rs` | pods that are accepted, or sent with a field more |
//! | `kinds/aggregated.rs`, `cut.rs`, `kinds/hostile.rs`, `kinds/slow.rs` | what is done to an answer on its way back |
//! | `kinds/stale.rs`, `kinds/deleted.rs` | lists as they were, objects that go at once |
//! | `serve.rs` | from a request to its answer |
//! | `session.rs` | exec sessions that are cut or lose their exit status |
//!
//! Out of scope: connections, for whose proxies [`relay`] is there; any knowledge of what a client looks for.

mod asked;
mod chance;
mod cut;
mod fault;
mod field;
pub(crate) mod kinds;
mod sent;
mod serve;
mod session;
mod standing;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::task::{Context, Poll};

use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Request, Response};
use hyper::body::Body as HttpBody;
use kube::Client;
use kube::client::Body;
use tower::{BoxError, Layer, Service};

pub use fault::{Fault, FaultError, Resources};
pub use field::{FieldError, FieldPath};
pub use kinds::trouble::Trouble;
pub use session::{ExecTrouble, relay};

use serve::{Answer, Shared};

/// What is done wrong between a client and its API server; its clones are the same one.
#[derive(Clone, Debug)]
pub struct Interference {
    shared: Arc<Shared>,
}

impl Interference {
    /// With these faults at first: of several that hit one request, the first counts. The same seed
    /// and the same order of requests hit the same requests.
    pub fn new(faults: Vec<Fault>, seed: u64) -> Self {
        let shared = Arc::new(Shared::new(faults, seed));
        Self { shared }
    }

    /// Replaces the faults for the requests that come from now on.
    pub fn set(&self, faults: Vec<Fault>) {
        self.shared.set(faults);
    }

    /// How many requests have been refused before the server saw them, or met trouble on the way.
    pub fn hits(&self) -> u64 {
        self.shared.hits()
    }

    /// A client that reaches its server through this.
    pub fn before(&self, client: &Client) -> Client {
        let client = client.clone();
        let service = tower::service_fn(move |request| {
            let client = client.clone();
            async move { client.send(request).await }
        });
        Client::new(self.layer(service), "default")
    }
}

impl<S, B> Layer<S> for Interference
where
    S: Service<Request<Body>, Response = Response<B>> + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: HttpBody<Data = bytes::Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Service = Interfered;

    fn layer(&self, service: S) -> Interfered {
        Interfered {
            // What is sent more than once, or on the side, goes by the same service
            client: Client::new(service, "default"),
            shared: Arc::clone(&self.shared),
        }
    }
}

/// The service of a client whose requests meet an [`Interference`].
#[derive(Clone)]
pub struct Interfered {
    client: Client,
    shared: Arc<Shared>,
}

impl std::fmt::Debug for Interfered {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Interfered")
            .field("shared", &self.shared)
            .finish_non_exhaustive()
    }
}

impl Service<Request<Body>> for Interfered {
    type Response = Answer;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Answer, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (shared, client) = (Arc::clone(&self.shared), self.client.clone());
        async move { serve::answer(&shared, &client, request).await }.boxed()
    }
}
