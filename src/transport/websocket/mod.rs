//! An exec: one WebSocket session, from its handshake to its exit status.

pub(super) mod exec;
pub(super) mod session;
pub(super) mod upgrade;
