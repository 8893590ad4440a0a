//! Real programs beside simulated ones: same arguments, same servers, same outcome.
//!
//! The servers are the simulated pages on loopback sockets for the real curl, and the real `agnhost
//! netexec` for the simulated pages.

mod agnhost;
mod cases;
mod curl;
mod sockets;
