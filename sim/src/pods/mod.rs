//! Pods of the simulated nodes: seen by one watch, each led through its life by one task, told to
//! the API server.

pub(crate) mod admit;
pub(crate) mod book;
pub(crate) mod command;
pub(crate) mod container;
pub(crate) mod env;
pub(crate) mod events;
pub(crate) mod evict;
pub(crate) mod hook;
pub(crate) mod life;
mod listening;
pub(crate) mod probe;
mod program;
mod pull;
mod reach;
mod refer;
mod report;
pub(crate) mod resources;
pub(crate) mod run;
pub(crate) mod sandbox;
pub(crate) mod start;
mod status;
mod stop;
#[cfg(test)]
mod tests;
mod volumes;
pub(crate) mod watch;
