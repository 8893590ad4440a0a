//! What is observed when: a pure reducer, and what it knows of each check.

pub(crate) mod batching;
pub(crate) mod came_apart;
pub(crate) mod command;
pub(crate) mod dispatcher;
#[cfg(test)]
pub(crate) mod dispatcher_properties;
pub(crate) mod progress;
pub(crate) mod repeat;
