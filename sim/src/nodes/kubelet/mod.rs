//! A kubelet's server for the API server: exec, logs, statistics and health, over TLS.
//!
//! It asks for no client certificate: it listens on loopback, and nothing there needs protection.

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
