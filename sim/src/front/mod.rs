//! A layer in front of any API server, real or simulated, that makes trouble.
//!
//! It is an HTTP/1.1 server on a free port of 127.0.0.1 that forwards each request with the
//! credentials of a [`kube::Client`]. *Harness faults* come between client and server and say
//! nothing about the cluster; the *admission* faults make the cluster look as if its validation
//! were wrong.
//!
//! | file | what |
//! |---|---|
//! | `fault.rs`, `trouble.rs` | what can be wrong, as data |
//! | `catalogue.rs`, `read.rs` | the same as text, and what is said of a wrong text |
//! | `field.rs`, `resources.rs` | what a fault is about: a pod's field, a resource |
//! | `asked.rs` | what a request asks for: verb, resource, watch, session |
//! | `chance.rs` | which request is hit: a pure function of seed and order |
//! | `standing.rs` | the faults that hold, and how many requests have come |
//! | `answer.rs` | what a troubled answer looks like on the wire |
//! | `refusal.rs` | RBAC, tokens, webhooks and policies that refuse |
//! | `admission.rs` | pods that are accepted, or sent with a field more |
//! | `aggregated.rs`, `cut.rs`, `hostile.rs`, `slow.rs` | what is done to an answer on its way back |
//! | `stale.rs`, `deleted.rs` | lists as they were, objects that go at once |
//! | `serve.rs`, `sent.rs`, `forward.rs` | from a request to its answer |
//! | `session.rs` | WebSocket and SPDY sessions (exec, attach, port-forward) |
//! | `wire.rs` | the TCP connection, and how it is reset |
//!
//! On a thread whose network is in memory so is the front. Out of scope: TLS towards the client, HTTP/2, and any knowledge of what a client looks for.

mod admission;
mod aggregated;
mod answer;
mod asked;
mod catalogue;
mod chance;
mod counts;
mod cut;
mod deleted;
mod fault;
mod field;
mod forward;
mod hostile;
mod read;
mod refusal;
mod resources;
mod sent;
mod serve;
mod session;
mod slow;
mod stale;
mod standing;
#[cfg(test)]
mod tests;
mod trouble;
mod wire;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

pub use catalogue::FaultEntry;
pub use counts::{FrontCounts, RequestKind};
pub use fault::{FrontFault, PolicyReason, WebhookCode};
pub use field::{FieldError, FieldPath};
pub use read::FaultError;
pub use resources::Resources;
pub use trouble::Trouble;

use crate::loopback::{Listener, client};
use serve::Shared;

/// What the front does wrong, and the seed that decides to which requests.
#[derive(Debug, Clone, Default)]
pub struct FrontOptions {
    /// The faults at start; of several that hit one request, the first counts.
    pub faults: Vec<FrontFault>,
    /// The same seed and the same order of requests hit the same requests.
    pub seed: u64,
}

/// Why a front did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FrontError {
    /// No port could be opened.
    #[error("failed to listen on 127.0.0.1")]
    Listen(#[source] io::Error),
}

/// A running front; dropping it ends it as well, but only [`Front::stop`] waits for the end.
#[derive(Debug)]
pub struct Front {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: CancellationToken,
    tasks: TaskTracker,
    _stop_on_drop: DropGuard,
}

impl Front {
    /// Starts a front for the API server that a client reaches, which should send nothing twice.
    pub async fn before(client: kube::Client, options: FrontOptions) -> Result<Self, FrontError> {
        let listener = Listener::bind(Ipv4Addr::LOCALHOST, 0)
            .await
            .map_err(FrontError::Listen)?;
        let address = listener.local_addr().map_err(FrontError::Listen)?;
        let stop = CancellationToken::new();
        let tasks = TaskTracker::new();
        let shared = Arc::new(Shared::new(
            client,
            options.faults,
            options.seed,
            stop.clone(),
            tasks.clone(),
        ));
        tasks.spawn(serve::accept(listener, Arc::clone(&shared)));
        Ok(Self {
            address,
            shared,
            _stop_on_drop: stop.clone().drop_guard(),
            stop,
            tasks,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The text of a kubeconfig file that leads here; it holds no credentials.
    pub fn kubeconfig(&self) -> String {
        format!(
            "apiVersion: v1\n\
             kind: Config\n\
             clusters:\n\
             - name: front\n  \
               cluster:\n    \
                 server: http://{}\n\
             users:\n\
             - name: front\n  \
               user: {{}}\n\
             contexts:\n\
             - name: front\n  \
               context:\n    \
                 cluster: front\n    \
                 user: front\n\
             current-context: front\n",
            self.address
        )
    }

    /// A client that reaches it, each request by a connection of its own.
    pub fn client(&self) -> kube::Client {
        let shared = Arc::clone(&self.shared);
        client(self.address, move |connection| shared.spawn(connection))
    }

    /// Replaces the faults for the requests that come from now on.
    pub fn set(&self, faults: Vec<FrontFault>) {
        self.shared.set(faults);
    }

    /// What was asked, and what each fault hit, so far.
    pub fn counts(&self) -> FrontCounts {
        self.shared.counts()
    }

    /// Ends every connection and waits until no task is left.
    pub async fn stop(self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}
