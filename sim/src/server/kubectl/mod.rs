//! What kubectl wants to know, and shows.

pub(crate) mod discovery;
pub(crate) mod table;
