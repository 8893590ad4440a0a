//! The pods of the simulated nodes: one watch sees all of them, and one task per pod runs it and
//! reports its status to the API server.

pub(crate) mod admit;
pub(crate) mod container;
pub(crate) mod course;
mod program;
mod reach;
pub(crate) mod reporting;
pub(crate) mod spec;
#[cfg(test)]
mod tests;
