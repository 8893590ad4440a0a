//! The engine: one dispatcher that decides, one executor that performs, and the life of a run.
//!
//! `run` → facts, plan, Lease → `executor` ⇄ `dispatcher` → tear-down. `fixtures` brings up fixtures,
//! `integrity` checks that the applied objects are unchanged, `executor` runs exec sessions, and `record`
//! puts everything on record as it happens. Out of scope: what a reply means and what a verdict is (core).

mod access;
mod cost;
pub(crate) mod executor;
pub(crate) mod fixtures;
mod image_platforms;
pub(crate) mod integrity;
mod life;
mod preflight;
mod prepull;
pub(crate) mod record;
mod run;
pub(crate) mod scheduler;
mod stop;

pub use access::uses;
pub use cost::cost;
pub use fixtures::manifest::Pull;
pub use image_platforms::image_platforms;
pub use life::{Keep, RunError, RunOptions};
pub use preflight::survey;
pub use prepull::{EndedBy, Prepulled, Tell, prepull};
pub use record::journal::{Journal, JournalError, Listener, Watcher};
pub use run::{Finished, plan_of, run};
pub use scheduler::repeat::Repeat;
