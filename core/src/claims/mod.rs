//! The documented statements: their ids, kinds and sources.

mod catalogue;
mod claim_type;
mod id;
mod pattern;

pub use catalogue::{Catalogue, Claim};
pub use claim_type::{ClaimType, Document};
pub use id::ClaimId;
pub use pattern::Pattern;
pub(crate) use pattern::{matches, read_pattern};
