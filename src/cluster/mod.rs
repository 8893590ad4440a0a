//! A thin layer over kube: connecting, facts, applying, watching, waiting, the Lease, cleaning up.
//!
//! Out of scope: which objects a run needs, and what their state means for a check.

pub(crate) mod connection;
mod facts;
#[cfg(test)]
pub(crate) mod fake;
mod guard;
mod lease;
pub mod objects;
mod review;

pub use connection::client::named;
pub use connection::connect::{Cluster, ConnectError, ConnectOptions, connect};
pub use connection::kubeconfig::KubeconfigError;
pub(crate) use facts::collect_with;
pub(crate) use facts::fold;
pub use facts::{READ, collect};
pub use guard::{Guarded, guard};
pub use lease::orphaned::delete_lease;
pub use lease::{LEASE_NAME, LeaseError, LeaseHeld, acquire, lease_names};
pub use objects::apply::{ApplyError, apply};
pub use objects::clean::{CleanError, Left, ObjectRef, Removed, remove_run};
pub use objects::cleanup::{Cleaning, CleanupError, cleanup, remains};
pub use objects::kinds::LEASE_NAMESPACE;
pub use objects::unlabelled::missed;
pub use objects::wait::{Condition, poll, poll_until, wait_until};
pub use objects::watch::{Objects, Watched, wait_for_objects, wait_for_watched, watch_pods};
pub use objects::{labels, pods};
pub use review::review;
