//! What listens, in memory or on loopback.

pub(super) mod listen;
pub(super) mod loopback;
pub(super) mod proxy;
