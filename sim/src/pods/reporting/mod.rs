//! What nodes report about pods to the API server, and the watch from which they learn of pods.

pub(crate) mod book;
pub(crate) mod events;
pub(crate) mod report;
pub(crate) mod status;
pub(crate) mod watch;
