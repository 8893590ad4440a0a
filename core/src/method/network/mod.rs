//! Test methods that cross the network.

pub mod curl;
pub(super) mod http;
pub mod ping;
pub(super) mod reach;
pub(super) mod udp;
