//! Listeners, in memory or on loopback.

pub(crate) mod listen;
pub(crate) mod loopback;
pub(crate) mod proxy;
