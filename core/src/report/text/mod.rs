//! Reports for people.

pub mod alone;
mod details;
pub(crate) mod ending;
pub(crate) mod folded;
pub(crate) mod layout;
pub(crate) mod live;
mod page;
pub(crate) mod patterns;
pub(crate) mod progress;
pub(crate) mod short;
pub(crate) mod style;
pub(crate) mod summary;
pub mod terminal;
