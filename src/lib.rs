//! # The architecture, on one page
//!
//! ```text
//! suites/*.yaml ─┐                                           ┌─ transport::api  ─┐
//!                ├─ plan ─▶ engine ── commands ─▶ assertions ┤                   ├─▶ API server
//! cluster::facts ┘           ▲  dispatcher                    └─ transport::exec ─┘
//!                            └── replies, time, signals ◀──────┘
//!                               │
//!                               ▼
//!                            record ─▶ report: terminal, JUnit, JSON
//! ```
//!
//! What was seen, what was expected and what is concluded are three types: a
//! [method](winconform_core::method) reads a reply into an observation and compares it with its
//! expectation; [`verdict`](winconform_core::verdict) alone concludes. An error of our own is a
//! type of its own all the way to the exit code.
//!
//! One direction: `text` → `document` → `claims` → `facts` → `config` → `command` → `method` →
//! `verdict` → `suite` → `plan` → `record` → `report` in the pure crate `winconform-core`, then
//! [`transport`] → [`cluster`] → [`engine`] → [`cli`] here. `hybrid-sim` depends on neither; both
//! wait on the channels of `ordered-watch`. A test reads the
//! `use` lines.
//!
//! | to change | open |
//! |---|---|
//! | what is claimed, how it is checked | `suites/` |
//! | a test method | `core/src/method/`, one file each |
//! | what is run in containers | `core/src/command/` |
//! | what a comparison comes to | `core/src/verdict/judge.rs` |
//! | what a user may set, and what a profile changes | `core/src/config/` |
//! | a known limitation's scope or signature | `suites/limitations.yaml` |
//! | what runs when | `src/engine/scheduler/dispatcher/`, a pure step function |
//! | which nodes of a pool are each observed from | `Pool::ring`, and by themselves `Pool::together`, in `core/src/facts/cluster.rs`; `suites/net/ring.yaml`, `each-linux-node.yaml` and `each-windows-node.yaml`; a case with `node: each` |
//! | what is observed over the second family of addresses | `core/src/facts/family.rs`, `src/engine/fixtures/second_family.rs`; a case with `family: all` |
//! | what is on record before anything is observed | `src/engine/record/record_plan.rs` |
//! | what is known of a cluster, and how | `core/src/facts/`, `src/cluster/facts/`; products: `core/src/facts/products/products.yaml` |
//! | what is deployed | `manifests/`, `core/src/fixture/manifest.rs`, `src/engine/fixtures/manifest.rs` |
//! | which image is pulled where, when and with what | `core/src/config/images.rs`, `src/engine/fixtures/pull_secrets.rs` |
//! | how the API server is reached, and who asks | `src/cluster/connection/client.rs`, `proxy.rs`, `credential.rs` |
//! | which clusters are left alone | `src/cluster/guard.rs` |
//! | what is sent again, and for how long | `src/transport/` |
//! | what others may not take away unnoticed | `src/engine/integrity/applied.rs` |
//! | what is told of what failed | `src/engine/record/diagnose.rs`, `core/src/record/diagnosis.rs` |
//! | what is removed, and how | `src/cluster/objects/clean.rs`; after a run that was killed `src/cluster/objects/cleanup.rs` |
//! | what a check or a run has to be allowed to do | `core/src/plan/access.rs`, `src/engine/access.rs`; the roles follow from it |
//! | what of a run took how long | `src/engine/record/spans.rs`, `core/src/record/span.rs`, `core/src/record/critical_path.rs` |
//! | what registries are asked | `src/engine/image_platforms.rs`, `src/transport/registry.rs`, `core/src/plan/image_platform.rs` |
//! | a report | `core/src/report/`, one file each |
//! | a run without any cluster | `src/cli/simulated/demo/`; its time, chance and connections: `src/transport/env.rs` |
//! | the API server of such a run | `sim/src/server/` |
//! | what holds at every event of a run | `tests/virtual/` |
//! | how simulated Windows behaves | `sim/src/network/mod.rs`, `sim/src/program/` |
//! | what can be broken | `sim/src/fault/`, `sim/src/interference/` |

pub mod cli;
pub mod cluster;
pub mod engine;
pub mod transport;
