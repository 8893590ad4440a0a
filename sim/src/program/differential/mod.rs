//! Compares real programs with simulated ones: same arguments, same servers, same outcome.
//!
//! The real curl uses the simulated pages on loopback sockets; the simulated pages are compared with a real
//! `agnhost netexec`.

mod agnhost;
mod cases;
mod curl;
mod sockets;
#[path = "../../../../tests/shared/tally.rs"]
mod tally;

/// The part of the table.
const SIMULATED: &str = "real programs, and simulated ones";
