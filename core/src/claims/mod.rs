//! The documented statements: their ids, kinds and sources.

mod catalogue;
mod id;
mod kind;

pub use catalogue::{Catalogue, Claim};
pub use id::ClaimId;
pub use kind::{Document, Kind};
