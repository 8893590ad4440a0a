//! What kubectl wants to know, and shows.

pub(super) mod discovery;
pub(super) mod table;
