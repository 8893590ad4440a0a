//! What a kubelet serves: exec, logs and its health, over TLS, to the API server.
//!
//! It asks for no client certificate: it listens on loopback and there is nothing to protect.

mod exec;
mod logs;
mod query;
mod server;
mod status;

pub use server::ServingError;
pub(crate) use server::{listen_tls, serve};
