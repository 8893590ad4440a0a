//! Product faults: what can be wrong in the cluster, named after it.
//!
//! A fault has a kind and a place. Whoever simulates something asks the [`FaultSet`] whether a
//! kind holds where it stands; nothing else knows of faults. Faults of the way to the API server
//! are not here: they are of `interference/`.
//!
//! | to change | open |
//! |---|---|
//! | which faults there are, and what each changes | `kind.rs` |
//! | where a fault can be | `place.rs` |
//! | how a fault is written | `parse.rs` |
//! | when it sets in and ends | `plan.rs` |
//! | which faults cannot be, or not together | `misfit.rs` |

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
