//! Objects of ours in the cluster: applied, watched, removed.

pub(super) mod apply;
pub(super) mod clean;
pub(super) mod cleanup;
pub mod hindrance;
pub mod kinds;
pub mod labels;
pub mod pods;
pub mod status;
pub(super) mod wait;
pub(super) mod watch;
