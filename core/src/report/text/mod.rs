//! Reports for people.

pub(crate) mod ending;
pub(crate) mod folded;
pub(crate) mod layout;
pub(crate) mod progress;
pub(crate) mod style;
pub(crate) mod summary;
pub mod terminal;
