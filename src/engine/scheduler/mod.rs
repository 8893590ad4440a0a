//! What is observed when: a pure reducer, and what it knows of each check.

pub(super) mod batching;
pub(super) mod came_apart;
pub(super) mod command;
pub(super) mod dispatcher;
#[cfg(test)]
pub(super) mod dispatcher_properties;
pub(super) mod progress;
pub(super) mod repeat;
