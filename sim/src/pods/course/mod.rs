//! What happens to a pod, from its image to its end.

pub(super) mod evict;
pub(super) mod hook;
pub(super) mod life;
pub(super) mod probe;
pub(super) mod pull;
pub(super) mod run;
pub(super) mod sandbox;
pub(super) mod start;
pub(super) mod stop;
