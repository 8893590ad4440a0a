//! What a pod's spec says of its containers.

pub(super) mod command;
pub(super) mod env;
pub(super) mod refer;
pub(super) mod resources;
pub(super) mod volumes;
