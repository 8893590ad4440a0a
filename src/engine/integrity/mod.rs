//! Whether what was observed counts: what we applied is as it was, and nodes were alive.

pub(super) mod applied;
pub(super) mod node_liveness;
pub(super) mod node_readiness;
