//! The plan: cases and facts become checks with their points, scopes, fixtures and skips.

mod access;
mod build;
mod check;
mod hindrance;
mod named;
mod offer;
mod points;
mod pulls;
mod select;

pub use crate::verdict::Fate;
pub use access::{Access, AccessVerb, Answer, Need, Place, Purpose, Uses};
pub use build::plan;
pub use check::{Axis, Check, CheckId, Plan, PlannedAssertion, Point};
pub use named::check_waivers;
pub use offer::{Manifest, Offer, Platform, Unoffered};
pub use pulls::{Pulls, pulls};
pub use select::{Selected, Selection};
