//! Interference between a client and any API server, real or simulated.
//!
//! *Troubles* happen between client and server and say nothing about the cluster. *Admission* faults and *bad
//! worlds* make the cluster seem to refuse requests, to forget, or to report something else. This module
//! contains no server: it creates, changes or withholds answers before the client gets them. It replaces the
//! stream of an exec session by one in memory, and relays its other end.
//!
//! | file | content |
//! |---|---|
//! | `fault.rs`, `kinds/trouble.rs`, `field.rs` | the faults as data, and their textual form |
//! | `asked.rs` | what a request asks for: verb, resource, watch, session |
//! | `chance.rs` | which requests are hit: a pure function of the seed and of their order |
//! | `standing.rs` | the faults that hold, the number of requests, and a server that restarts |
//! | `kinds/answer.rs` | troubled answers, as servers send them |
//! | `kinds/refusal.rs` | refusals by RBAC, tokens, webhooks and policies |
//! | `kinds/admission.rs`, `sent.rs` | pods that are accepted, or sent with another field |
//! | `kinds/aggregated.rs`, `cut.rs`, `kinds/hostile.rs`, `kinds/slow.rs` | changes to an answer |
//! | `kinds/stale.rs`, `kinds/deleted.rs` | old lists, and objects that are deleted at once |
//! | `serve.rs` | the way from a request to its answer |
//! | `session.rs` | exec sessions that are cut or lose their exit status |
//!
//! Out of scope: connections, for whose proxies [`relay`] exists; and any knowledge of what a client checks.

mod asked;
mod chance;
mod cut;
mod fault;
pub(crate) mod kinds;
mod sent;
mod serve;
mod session;
mod standing;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use kube::Client;

pub use crate::base::field_path::{FieldError, FieldPath};
pub use fault::{Fault, FaultError, Resources};
pub use kinds::trouble::Trouble;
pub use session::{ExecTrouble, relay};

use serve::Shared;

/// The interference between a client and its API server; its clones share their state.
#[derive(Clone, Debug)]
pub struct Interference {
    shared: Arc<Shared>,
}

impl Interference {
    /// Starts with these faults; if several hit a request, the first counts. The same seed hits the same
    /// requests, if they come in the same order.
    pub fn new(faults: Vec<Fault>, seed: u64) -> Self {
        let shared = Arc::new(Shared::new(faults, seed));
        Self { shared }
    }

    /// Replaces the faults for all later requests.
    pub fn set(&self, faults: Vec<Fault>) {
        self.shared.set(faults);
    }

    /// How many requests were refused before the server saw them, or met trouble.
    pub fn hits(&self) -> u64 {
        self.shared.hits()
    }

    /// A client that reaches its server through this interference.
    pub fn before(&self, client: &Client) -> Client {
        let (shared, client) = (Arc::clone(&self.shared), client.clone());
        let service = tower::service_fn(move |request| {
            let (shared, client) = (Arc::clone(&shared), client.clone());
            async move { serve::answer(&shared, &client, request).await }
        });
        Client::new(service, "default")
    }
}
