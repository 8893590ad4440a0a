//! The plan: cases and facts become checks with their points, scopes, fixtures and skips.

mod access;
mod build;
mod check;
mod cost;
mod hindrance;
mod image_platform;
mod named;
mod nodes;
mod points;
mod pulls;
mod select;
mod volumes;

pub use crate::verdict::Disposition;
pub use access::{Access, AccessVerb, Answer, Need, Place, Purpose, Uses};
pub use build::plan;
pub use check::{Axis, Check, CheckId, Plan, PlannedAssertion, Point};
pub use cost::{PoolCost, Shortage, shortages};
pub use image_platform::{Manifest, Offer, Platform, Unoffered};
pub use named::check_waivers;
pub use nodes::{disrupt, exclude};
pub use pulls::{Pulls, pulls};
pub use select::{Selected, Selection};
