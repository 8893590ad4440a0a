//! What the cluster says of itself, each fact with its source.

mod build;
mod cluster;
mod family;
mod known;
mod marks;
mod network;
mod node;
mod objects;
pub mod products;
mod pull;
#[cfg(test)]
pub(crate) mod values;

pub use build::WindowsBuild;
pub(crate) use build::read_build;
pub use cluster::{Facts, NodeOrdinal, Os, Pool, PoolName};
pub use family::{IpFamily, SecondFamily};
pub use known::Known;
pub use marks::Marked;
pub use network::{ClusterDns, Cni, CniMode, DnsEndpoint, KubeProxy, Vxlan};
pub use node::{ConditionFact, NodeDetails, NodeFact, VirtualNodeFact};
pub(crate) use objects::SHARING;
pub use objects::{
    CsiNodeFact, GmsaFact, LoadBalancerFact, RuntimeClassFact, SnapshotClassFact, StorageClassFact,
    WebhookFact, WorkloadsFact,
};
pub use pull::PullFact;
