//! The engine: one dispatcher that decides, one executor that performs, and the life of a run.
//!
//! `run` → facts, plan, Lease → `executor` ⇄ `dispatcher` → tear-down. Fixtures are brought up by
//! `fixtures` from `manifest`s and observed after by `made`, exec sessions made by `vantage`, and everything
//! is put on record by `journal` as it happens. Out of scope: what a reply means and what a verdict
//! is (core).

mod access;
mod applied;
mod awaited;
mod batching;
mod came_apart;
mod churn;
mod cluster_domain;
mod command;
mod diagnose;
mod dispatcher;
#[cfg(test)]
mod dispatcher_properties;
mod evidence;
mod exec_session;
mod executor;
mod facts;
mod fixtures;
mod image_platforms;
mod journal;
mod manifest;
mod node_liveness;
mod node_readiness;
mod observer;
mod pod_template;
mod preflight;
mod prepull;
mod progress;
mod pull_secrets;
mod readiness;
mod record_plan;
mod repeat;
mod resume;
mod run;
mod second_family;
mod shared;
mod spans;
mod stop;
mod stuck_pods;
mod tear_down;
mod vantage;

pub use access::uses;
pub use image_platforms::image_platforms;
pub use journal::{Journal, JournalError, Listener};
pub use preflight::{SurveyError, survey};
pub use prepull::{EndedBy, Prepulled, Pull, Tell, prepull};
pub use repeat::Repeat;
pub use run::{Finished, RunError, RunOptions, plan_of, run};
pub use tear_down::Keep;
