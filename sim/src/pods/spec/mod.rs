//! What a pod's spec says about its containers.

mod claims;
pub(crate) mod command;
pub(crate) mod env;
mod host_path;
pub(crate) mod refer;
pub(crate) mod resources;
pub(crate) mod volumes;
