//! What the API server is told of pods, and tells.

pub(super) mod book;
pub(super) mod events;
pub(super) mod report;
pub(super) mod status;
pub(super) mod watch;
