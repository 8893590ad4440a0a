//! Pods of the simulated nodes: seen by one watch, each led through its life by one task, told to
//! the API server.

pub(crate) mod admit;
pub(crate) mod container;
mod course;
mod listening;
mod program;
mod reach;
mod reporting;
mod spec;
#[cfg(test)]
mod tests;
