//! What a kubelet serves: exec, logs, statistics and its health, over TLS, to the API server.
//!
//! It asks for no client certificate: it listens on loopback and there is nothing to protect.

mod exec;
mod logs;
mod server;
mod socket;
mod stats;
mod status;
#[cfg(test)]
mod tests;
mod wire;

pub use server::ServingError;
#[cfg(test)]
pub(crate) use server::speak;
pub(crate) use server::{listen_tls, self_signed, serve};
