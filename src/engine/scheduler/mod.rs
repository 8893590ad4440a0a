//! Decides what is observed when: a pure reducer, with the state of each check.

pub(crate) mod batching;
pub(crate) mod command;
mod converge;
pub(crate) mod differing;
pub(crate) mod dispatcher;
#[cfg(test)]
pub(crate) mod dispatcher_properties;
mod excused;
pub(crate) mod progress;
pub(crate) mod repeat;
pub(crate) mod room;
