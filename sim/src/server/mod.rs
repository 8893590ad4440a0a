//! The simulation's own small API server: it serves what a harness, simulated nodes and a few verbs of
//! kubectl request from a real one, and nothing else. It answers 501 where a real server would do more.
//!
//! A request is one step: the server executes it, then controllers and scheduler run until no work
//! is left. Nodes join it as they join any other server.
//!
//! | file | what |
//! |---|---|
//! | `kinds.rs` | the served kinds |
//! | `ask.rs`, `storage/selector.rs` | what a request asks for |
//! | `serve.rs`, `objects.rs` | from a request to its answer |
//! | `kubectl/` | discovery and tables for kubectl |
//! | `storage/`: `store.rs`, `state.rs`, `watch.rs` | the objects, their versions and their watches |
//! | `storage/`: `create.rs`, `change.rs`, `delete.rs`, `patch/` | create, change and delete objects |
//! | `checks/`: `shape.rs`, `valid.rs`, `defaults.rs`, `admit.rs`, `services.rs` | validation and defaults |
//! | `checks/administrator.rs` | authentication |
//! | `checks/admission.rs`, `recorded/` | what real servers answered to dry runs |
//! | `controllers/` | the controllers and the scheduler |
//! | `kubelet/` | exec, logs and `metrics.k8s.io` of a pod, from the node's kubelet |
//! | `listen.rs` | TLS on loopback, and the same without a socket |
//! | `*.yaml` | columns, defaults, fields, initial objects; each beside the code that reads it |
//!
//! `tests/real_cluster/differential` lists, with reasons, the requests that it answers differently from a
//! real server. Left out: `PodSecurity`, quotas of what is no extended resource, validation beyond that of
//! `checks/valid.rs`, roles and accounts other than the administrator, the tokens of accounts in pods, `continue`, `managedFields` of all
//! but nodes (an apply removes the fields of the previous apply, whichever client made it), deletions in the
//! foreground, of orphans and of collections, `attach`, `port-forward`, evictions, `Endpoints`, the strategy
//! `Recreate`, `minReadySeconds`, jobs that are indexed, suspended or end by time, claims of
//! volumes, and any storage beyond memory.

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
