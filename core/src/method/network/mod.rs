//! Test methods that cross the network.

pub mod curl;
pub(crate) mod http;
pub mod ping;
pub(crate) mod reach;
pub(crate) mod udp;
