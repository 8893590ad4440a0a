//! What the cluster says of itself, each with where it came from.

mod build;
mod cluster;
mod known;

pub use build::WindowsBuild;
pub use cluster::{Facts, NodeFact, Os, Pool, PoolName};
pub use known::Known;
