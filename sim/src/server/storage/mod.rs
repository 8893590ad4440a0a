//! The objects, their versions, and how they come, change and go.

pub(super) mod change;
pub(super) mod create;
pub(super) mod delete;
pub(super) mod patch;
pub(super) mod selector;
pub(super) mod state;
pub(super) mod store;
pub(super) mod watch;
