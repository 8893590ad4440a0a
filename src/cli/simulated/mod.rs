//! The commands that simulate a cluster.

pub(crate) mod demo;
pub(crate) mod simulate;
pub(crate) mod topology;
pub(crate) mod warnings;
