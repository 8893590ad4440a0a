//! The commands that simulate a cluster.

#[cfg(feature = "demo")]
pub(super) mod demo;
#[cfg(feature = "demo")]
pub(super) mod simulate;
#[cfg(feature = "demo")]
pub(super) mod topology;
#[cfg(feature = "demo")]
pub(super) mod warnings;
