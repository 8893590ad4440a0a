//! The objects, their versions, and how they are created, changed and deleted.

pub(crate) mod change;
pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod patch;
pub(crate) mod selector;
pub(crate) mod state;
pub(crate) mod store;
pub(crate) mod watch;
