//! The plan: cases and facts become checks with their points, scopes, fixtures and skips.

mod build;
mod check;
mod points;

pub use crate::verdict::Fate;
pub use build::{image_role, plan};
pub use check::{Check, CheckId, Plan, PlannedLook, Point};
