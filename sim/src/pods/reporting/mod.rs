//! What the API server is told of pods, and tells.

pub(crate) mod book;
pub(crate) mod events;
pub(crate) mod report;
pub(crate) mod status;
pub(crate) mod watch;
