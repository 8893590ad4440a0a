//! Nodes that join a cluster, and their parts.

pub(crate) mod cluster;
pub(crate) mod dns;
pub(crate) mod files;
pub(crate) mod image;
pub(crate) mod join;
pub(crate) mod kubelet;
pub(crate) mod node;
pub(crate) mod placing;
pub(crate) mod play;
pub(crate) mod traces;
