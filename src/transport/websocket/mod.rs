//! An exec: one WebSocket session, from its handshake to its exit status.

pub(crate) mod exec;
pub(crate) mod session;
pub(crate) mod upgrade;
