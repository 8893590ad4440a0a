//! Why nodes could not join.

use std::net::Ipv4Addr;

use thiserror::Error;

use super::LeaveError;
use crate::fault::Misfit;
use crate::nodes::kubelet::ServingError;

/// Why nodes could not join.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum JoinError {
    /// The speed divides by nothing, or backwards.
    #[error("the speed `{0}` is not a positive number")]
    Speed(f64),
    /// More nodes than addresses: how many there were to be, and how many there can be.
    #[error("{0} nodes are more than the {1} that one simulator can have")]
    TooManyNodes(usize, usize),
    /// Nodes whose first address nobody could reach: the families, in their order.
    #[error(
        "`ip-families` are {0:?}: nodes join an API server with IPv4 first alone, as it reaches them on \
         loopback, where IPv6 has one address"
    )]
    Families(&'static [&'static str]),
    /// Two nodes of one name.
    #[error("two nodes are called `{0}`")]
    SameName(String),
    /// Faults that would break nothing, or hide each other.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Faults(Vec<Misfit>),
    /// The API server does not tell its version.
    #[error("failed to ask the API server for its version")]
    Version(#[source] kube::Error),
    /// The API server cannot exec into simulated nodes.
    #[error(
        "the API server is Kubernetes {0}; before 1.36 it reaches kubelets by SPDY alone, which simulated \
         nodes do not speak: exec and all that looks through it would not work"
    )]
    TooOld(String),
    /// No socket for the kubelet of a node at its address.
    #[error("failed to listen on `{1}` for the kubelet of `{0}`")]
    Listen(String, Ipv4Addr, #[source] std::io::Error),
    /// No more sockets for the kubelets of so many nodes.
    #[error(
        "{0} nodes need a listener each, and this process may not have that many files open: raise the \
         limit, say with `ulimit -n {files}`", files = .0 * 2 + 1000
    )]
    Descriptors(usize),
    /// No socket for the proxy of outside clients.
    #[error("failed to listen on loopback for outside clients")]
    Proxy(#[source] std::io::Error),
    /// No TLS for the kubelets.
    #[error("failed to set up the kubelets")]
    Serving(#[from] ServingError),
    /// A node of that name is somebody else's.
    #[error("a node `{0}` exists and is not this simulator's; choose a prefix")]
    Taken(String),
    /// A node of that name is another simulator's, which still runs.
    #[error(
        "node `{0}` is another simulator's, which still answers and renewed the node's lease {1} s ago; \
         choose a prefix, or end the other"
    )]
    Alive(String, i64),
    /// The API server does not take a node.
    #[error("failed to register node `{0}`")]
    Register(String, #[source] kube::Error),
    /// The API server does not take the load balancer's Service.
    #[error("failed to make the load balancer's own Service")]
    Balancer(#[source] kube::Error),
    /// It was told to stop; what had been registered has been removed again.
    #[error("interrupted before all nodes had joined")]
    Interrupted,
    /// It was told to stop, and what had been registered may still be there.
    #[error("interrupted before all nodes had joined, and some may be left behind")]
    Abandoned(#[source] LeaveError),
}
