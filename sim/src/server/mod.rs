//! An API server of the simulation's own, small: what a harness, simulated nodes and a few verbs of
//! kubectl ask a real one for, and nothing else. For what a real server would do beyond that it
//! answers 501.
//!
//! A request is one step: it is done, and then controllers and scheduler run until nothing is left
//! for them. Nodes join it as they join any other.
//!
//! | file | what |
//! |---|---|
//! | `kinds.rs` | the kinds that are served |
//! | `ask.rs`, `storage/selector.rs` | what a request asks for |
//! | `serve.rs`, `objects.rs` | from a request to its answer |
//! | `kubectl/` | what kubectl wants to know, and shows |
//! | `storage/`: `store.rs`, `state.rs`, `watch.rs` | the objects, their versions and who hears of them |
//! | `storage/`: `create.rs`, `change.rs`, `delete.rs`, `patch/` | how objects come, change and go |
//! | `checks/`: `shape.rs`, `valid.rs`, `defaults.rs`, `admit.rs`, `services.rs` | what an object must be and gets |
//! | `checks/administrator.rs` | who asks |
//! | `checks/admission.rs`, `recorded/` | what real servers answered to dry runs |
//! | `controllers/` | what is made of objects, the scheduler among them |
//! | `kubelet.rs` | exec and logs: at the node |
//! | `listen.rs` | TLS on loopback, and the same without a socket |
//! | `*.yaml` | beside the code that reads them: columns, defaults, fields, what there is at first |
//!
//! What it answers otherwise than a real one to what is asked there is listed, with reasons, in
//! `tests/real_cluster/differential`. Left out:
//! `PodSecurity` and quotas, validation beyond what `checks/valid.rs` says, roles and accounts other than the
//! administrator, the tokens of accounts in pods, `continue`, `managedFields` (an apply withdraws what was
//! applied before, by whomever), deletions in the foreground, of orphans and of collections, `attach`,
//! `port-forward`, evictions, metrics, `Endpoints`, the strategy `Recreate`, `minReadySeconds`, jobs that are
//! indexed, suspended or end by time, cron jobs, claims of volumes, and any storage beyond memory.

mod ask;
pub(crate) mod checks;
mod controllers;
mod kinds;
pub(crate) mod kubectl;
mod kubelet;
mod listen;
mod objects;
mod serve;
pub(crate) mod storage;
#[cfg(test)]
mod tests;

pub use listen::{Server, ServerError, ServerOptions};
