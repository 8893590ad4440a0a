//! All I/O of observation: requests to the API server, programs run through it, and HTTP from this machine.
//!
//! Each takes a request of `winconform_core::method` and returns a reply or an error. This module repeats
//! what fails in transport, bounded and counted, and no repetition shows in a verdict. Out of scope: what a
//! reply means, and whether an answered assertion is repeated.

mod api;
mod attempt;
mod counts;
mod env;
mod error_text;
mod fetch;
mod locked;
mod outage;
mod pace;
mod path;
mod registry;
mod staleness;
pub(crate) mod websocket;

pub use api::Api;
#[cfg(feature = "demo")]
pub use env::simulated_runtime;
pub use env::{Dial, Env, Stream, dial};
pub use pace::Pace;
pub use path::encode;
pub use winconform_core::method::PodRef;

pub(crate) use attempt::Failure;
pub(crate) use error_text::{causes, error_text};
pub(crate) use fetch::fetch;
pub(crate) use locked::locked;
pub(crate) use outage::Hold;
pub(crate) use pace::pause;
pub(crate) use registry::platforms;
#[cfg(test)]
pub(crate) use registry::tests::registry;
