//! Applies, watches and removes our objects in the cluster.

pub(crate) mod apply;
pub(crate) mod clean;
pub(crate) mod cleanup;
pub mod hindrance;
pub mod kinds;
pub mod labels;
pub mod pods;
pub mod status;
pub(crate) mod unlabelled;
pub(crate) mod wait;
pub(crate) mod watch;
