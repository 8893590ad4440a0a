//! # The architecture, on one page
//!
//! ```text
//! suites/*.yaml ─┐                                           ┌─ transport::api  ─┐
//!                ├─ plan ─▶ engine ── commands ─▶ assertions ┤                   ├─▶ API server
//! cluster::facts ┘           ▲  dispatcher                    └─ transport::exec ─┘
//!                            └── replies, time, signals ◀──────┘
//!                               │
//!                               ▼
//!                            record ─▶ report: terminal, HTML, JUnit, JSON
//! ```
//!
//! Observation, expectation and conclusion are three types: a
//! [method](winconform_core::method) reads a reply into an observation and compares it with its
//! expectation; only [`verdict`](winconform_core::verdict) concludes. An observation error is a
//! separate type all the way to the exit code.
//!
//! One direction: `text` → `document` → `claims` → `facts` → `config` → `command` → `fixture` → `method` →
//! `verdict` → `suite` → `plan` → `record` → `report` in the pure crate `winconform-core`, then
//! [`transport`] → [`cluster`] → [`engine`] → [`cli`] here. `hybrid-sim` depends on neither crate. It and
//! this crate wait on the channels of `ordered-watch`. A test checks the `use` lines.
//!
//! | to change | open |
//! |---|---|
//! | what is claimed, how it is checked | `suites/` |
//! | a test method | `core/src/method/`, one file each |
//! | which commands run in containers | `core/src/command/` |
//! | which verdict a comparison gives | `core/src/verdict/judge.rs` |
//! | what a user may set, and what a profile changes | `core/src/config/` |
//! | a known limitation's scope or signature | `suites/limitations.yaml` |
//! | what runs when | `src/engine/scheduler/dispatcher/`, a pure step function |
//! | which nodes of a pool are each observed from | `Pool::ring`, and for Windows nodes themselves `Pool::together`, in `core/src/facts/cluster.rs`; `suites/net/ring.yaml`, `each-linux-node.yaml` and `each-windows-node.yaml`; a case with `node: each` |
//! | what is observed over the second family of addresses | `core/src/facts/family.rs`, `src/engine/fixtures/second_family.rs`; a case with `family: all` |
//! | what the record has before anything is observed | `src/engine/record/record_plan.rs` |
//! | which facts of a cluster are read, and how | `core/src/facts/`, `src/cluster/facts/`; products: `core/src/facts/products/products.yaml` |
//! | what is deployed | `manifests/`, `core/src/fixture/manifest.rs`, `src/engine/fixtures/manifest.rs` |
//! | which image is pulled where, when and with what | `core/src/config/images.rs`, `src/engine/fixtures/pull_secrets.rs` |
//! | how the API server is reached, and with which credential | `src/cluster/connection/client.rs`, `proxy.rs`, `credential.rs` |
//! | which clusters are protected | `src/cluster/guard.rs` |
//! | what it means that an exec session ends early, and its words | `src/transport/websocket/exec.rs`, `session.rs`; the kinds: `core/src/method/error.rs` |
//! | which requests are sent again, and for how long | `src/transport/` |
//! | how a run notices that others change its objects | `src/engine/integrity/applied.rs` |
//! | the evidence about what failed | `src/engine/record/diagnose.rs`, `core/src/record/diagnosis.rs` |
//! | what is removed, and how | `src/cluster/objects/clean.rs`; after a killed run `src/cluster/objects/cleanup.rs` |
//! | the permissions of a check or a run | `core/src/plan/access.rs`, `src/engine/access.rs`; the roles follow from them |
//! | how long each part of a run took | `src/engine/record/spans.rs`, `core/src/record/span.rs`, `core/src/record/critical_path.rs` |
//! | what registries are asked | `src/engine/image_platforms.rs`, `src/transport/registry.rs`, `core/src/plan/image_platform.rs` |
//! | a report | `core/src/report/`, one file each |
//! | what failed checks have in common | `core/src/report/causes/causes.yaml` |
//! | a run without any cluster | `src/cli/simulated/demo/`; its time, randomness and connections: `src/transport/env.rs` |
//! | the API server of such a run | `sim/src/server/` |
//! | what holds at every event of a run | `tests/virtual/` |
//! | how simulated Windows behaves | `sim/src/network/mod.rs`, `sim/src/program/` |
//! | the faults and the interference | `sim/src/fault/`, `sim/src/interference/` |

pub mod cli;
pub mod cluster;
pub mod engine;
pub mod transport;
