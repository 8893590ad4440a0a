//! kube, wrapped thinly: connecting, facts, applying, watching, waiting, the Lease, cleaning up.
//!
//! Out of scope: which objects a run needs, and what their state means for a check.

mod apply;
mod clean;
mod cleanup;
mod client;
mod connect;
mod credential;
mod facts;
#[cfg(test)]
pub(crate) mod fake;
mod guard;
pub mod hindrance;
pub mod kinds;
mod kubeconfig;
mod kubeconfig_names;
pub mod labels;
mod lease;
mod orphaned_lease;
pub mod pods;
mod proxy;
mod review;
pub mod status;
mod wait;
mod watch;

pub use apply::{ApplyError, apply};
pub use clean::{CleanError, Left, ObjectRef, Removed, remove_run};
pub use cleanup::{Cleaning, CleanupError, cleanup, remains};
pub use client::named;
pub use connect::{Cluster, ConnectError, ConnectOptions, connect};
pub(crate) use facts::fold;
pub use facts::{READ, collect};
pub use guard::{Guarded, guard};
pub use kubeconfig::KubeconfigError;
pub use lease::{LEASE_NAME, LEASE_NAMESPACE, LeaseError, LeaseHeld, acquire, lease_names};
pub use orphaned_lease::{delete_lease, missed};
pub use review::review;
pub use wait::{Condition, poll, poll_until, wait_until};
pub use watch::{Objects, Watched, wait_for_objects, watch_pods};
