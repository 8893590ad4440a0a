//! Whether what was observed counts: what we applied is as it was, and nodes were alive.

pub(crate) mod applied;
pub(crate) mod node_liveness;
pub(crate) mod node_readiness;
