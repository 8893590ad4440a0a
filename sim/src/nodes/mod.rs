//! Nodes that join a cluster, and what they hold.

pub(super) mod cluster;
pub(super) mod dns;
pub(super) mod families;
pub(super) mod files;
pub(super) mod given;
pub(super) mod image;
pub(super) mod join;
pub(super) mod kubelet;
pub(super) mod node;
pub(super) mod placing;
pub(super) mod play;
pub(super) mod traces;
