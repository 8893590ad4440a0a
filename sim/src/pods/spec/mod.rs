//! What a pod's spec says about its containers.

pub(crate) mod command;
pub(crate) mod env;
pub(crate) mod refer;
pub(crate) mod resources;
pub(crate) mod volumes;
