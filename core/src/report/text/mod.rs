//! Reports for people.

pub(super) mod ending;
pub(super) mod folded;
pub(super) mod layout;
pub(super) mod progress;
pub(super) mod style;
pub(super) mod summary;
pub mod terminal;
