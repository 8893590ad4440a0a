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
    /// The speed is zero, negative or not finite.
    #[error("the speed `{0}` is not a positive number")]
    Speed(f64),
    /// There are more nodes than addresses: the number of nodes, and the limit.
    #[error("{0} nodes are more than the {1} that one simulator can have")]
    TooManyNodes(usize, usize),
    /// Two nodes have the same name.
    #[error("two nodes are called `{0}`")]
    SameName(String),
    /// Faults fit nothing in the topology.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Faults(Vec<Misfit>),
    /// The API server does not answer with its version.
    #[error("failed to ask the API server for its version")]
    Version(#[source] kube::Error),
    /// The API server cannot exec into simulated nodes.
    #[error(
        "the API server is Kubernetes {0}; before 1.36 it reaches kubelets by SPDY alone, which simulated \
         nodes do not speak: exec and all that looks through it would not work"
    )]
    TooOld(String),
    /// The kubelet of a node gets no socket at its address.
    #[error("failed to listen on `{1}` for the kubelet of `{0}`")]
    Listen(String, Ipv4Addr, #[source] std::io::Error),
    /// The kubelets of so many nodes get no more sockets.
    #[error(
        "{0} nodes need a listener each, and this process may not have that many files open: raise the \
         limit, say with `ulimit -n {files}`", files = .0 * 2 + 1000
    )]
    Descriptors(usize),
    /// The proxy for outside clients gets no socket.
    #[error("failed to listen on loopback for outside clients")]
    Proxy(#[source] std::io::Error),
    /// The kubelets get no TLS.
    #[error("failed to set up the kubelets")]
    Serving(#[from] ServingError),
    /// A node of that name exists and is not a simulator's.
    #[error("a node `{0}` exists and is not this simulator's; choose a prefix")]
    Taken(String),
    /// A node of that name belongs to another simulator, which still runs.
    #[error(
        "node `{0}` is another simulator's, which still answers and renewed the node's lease {1} s ago; \
         choose a prefix, or end the other"
    )]
    Alive(String, i64),
    /// The API server refuses a node.
    #[error("failed to register node `{0}`")]
    Register(String, #[source] kube::Error),
    /// The API server refuses the load balancer's Service.
    #[error("failed to make the load balancer's own Service")]
    Balancer(#[source] kube::Error),
    /// Joining was interrupted, and has removed what it had registered.
    #[error("interrupted before all nodes had joined")]
    Interrupted,
    /// Joining was interrupted, and what it had registered may still exist.
    #[error("interrupted before all nodes had joined, and some may be left behind")]
    Abandoned(#[source] LeaveError),
}
