//! What kubectl reads beside objects, and the tables that it shows.

pub(crate) mod discovery;
pub(crate) mod table;
