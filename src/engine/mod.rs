//! The engine: one dispatcher that decides, one executor that performs, and the life of a run.
//!
//! `run` → facts, plan, Lease → `executor` ⇄ `dispatcher` → tear-down. Fixtures are brought up by
//! `fixtures` from `manifest`s and looked after by `made`, sweeps made by `vantage`, and everything
//! is put on record by `journal` as it happens. Out of scope: what a reply means and what a verdict
//! is (core).

mod access;
mod aim;
mod apart;
mod awaited;
mod churn;
mod command;
mod diagnose;
mod dispatcher;
#[cfg(test)]
mod dispatcher_properties;
mod evidence;
mod executor;
mod facts;
mod fixtures;
mod gather;
mod heard;
mod hindered;
mod journal;
mod made;
mod manifest;
mod nodes_now;
mod observer;
mod offers;
mod planned;
mod preflight;
mod prepull;
mod progress;
mod pull_secrets;
mod reasons;
mod repeat;
mod resume;
mod run;
mod second_family;
mod shared;
mod spans;
mod stands;
mod suffix;
mod sweep;
mod tear_down;
mod vantage;

pub use access::uses;
pub use journal::{Journal, JournalError, Listener};
pub use offers::offers;
pub use preflight::{SurveyError, survey};
pub use prepull::{EndedBy, Prepulled, Pull, Tell, prepull};
pub use repeat::Repeat;
pub use run::{Finished, RunError, RunOptions, plan_of, run};
pub use tear_down::Keep;
