//! Pods of the simulated nodes: seen by one watch, each led through its life by one task, told to
//! the API server.

pub(crate) mod admit;
pub(crate) mod book;
pub(crate) mod command;
pub(crate) mod container;
pub(crate) mod events;
mod fleet;
pub(crate) mod life;
pub(crate) mod probe;
pub(crate) mod run;
pub(crate) mod watch;
