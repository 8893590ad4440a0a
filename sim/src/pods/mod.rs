//! Pods of the simulated nodes: seen by one watch, each led through its life by one task, told to
//! the API server.

pub(crate) mod admit;
pub(crate) mod container;
pub(crate) mod course;
mod program;
mod reach;
pub(crate) mod reporting;
pub(crate) mod spec;
#[cfg(test)]
mod tests;
