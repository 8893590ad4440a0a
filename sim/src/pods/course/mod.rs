//! What happens to a pod, from its image to its end.

pub(crate) mod broken;
pub(crate) mod evict;
mod held;
pub(crate) mod hook;
pub(crate) mod life;
pub(crate) mod probe;
pub(crate) mod pull;
pub(crate) mod run;
pub(crate) mod sandbox;
pub(crate) mod start;
pub(crate) mod stop;
