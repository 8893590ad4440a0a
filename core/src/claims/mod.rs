//! The documented statements: their ids, kinds and sources.

mod catalogue;
mod id;
mod kind;
mod pattern;

pub use catalogue::{Catalogue, Claim};
pub use id::ClaimId;
pub use kind::{Document, Kind};
pub use pattern::{Pattern, PatternError};
