//! Product faults: what can be wrong in the cluster. Each is named after its effect.
//!
//! A fault has a kind and a place. Code that simulates something asks the [`FaultSet`] whether a kind holds
//! at its place; no other code knows of faults. Faults on the way to the API server belong to
//! `interference/`.
//!
//! | to change | open |
//! |---|---|
//! | which faults there are, and what each changes | `kind.rs` |
//! | which places a fault can have | `place.rs` |
//! | how a user writes a fault | `parse.rs` |
//! | when a fault begins and ends | `plan.rs` |
//! | which faults a topology cannot have | `misfit.rs` |

mod kind;
mod misfit;
mod parse;
mod place;
mod plan;
mod set;

pub use kind::{FaultInfo, FaultKind, Parameter};
pub use misfit::Misfit;
pub use parse::{ProductFault, UnknownFault};
pub use place::Place;
pub use plan::{FaultPlan, TimedFault};
pub use set::{FaultSet, FaultSwitch};
