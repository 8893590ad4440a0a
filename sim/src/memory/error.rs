//! What cannot be done without an API server.

use thiserror::Error;

/// Why something cannot be asked of a cluster in memory.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// No object of a kind that is known here.
    #[error("`{0}` is no kind that a cluster in memory knows")]
    Kind(String),
    /// The object does not read as its kind.
    #[error("failed to read the {kind} `{name}`")]
    Object {
        /// The kind.
        kind: String,
        /// Its name, if it has one.
        name: String,
        /// Why.
        source: serde_json::Error,
    },
    /// A pod without a node that there is.
    #[error("the pod `{pod}` is on no node of this cluster: `{node}`")]
    Node {
        /// The pod.
        pod: String,
        /// What it names.
        node: String,
    },
    /// The node runs Windows, and the cluster has IPv6 alone.
    #[error(
        "no address for the pod `{pod}`: its node `{node}` runs Windows, where Kubernetes \
         does not support single-stack \"IPv6-only\" networking"
    )]
    NoIpv4 {
        /// The pod.
        pod: String,
        /// Its node.
        node: String,
    },
    /// The node has no address left.
    #[error("no address is left on the node of the pod `{0}`")]
    Address(String),
    /// A Service that nothing is left for.
    #[error("no {what} is left for the Service `{service}`")]
    Exhausted {
        /// The Service.
        service: String,
        /// What it would need.
        what: &'static str,
    },
    /// A Service that the API server would refuse.
    #[error("the Service `{service}` is refused: {why}")]
    Service {
        /// The Service.
        service: String,
        /// The server's words.
        why: String,
    },
    /// The node cannot pull the image.
    #[error("the pod `{pod}` cannot run: {why}")]
    Image {
        /// The pod.
        pod: String,
        /// The runtime's words.
        why: String,
    },
    /// There is no such container.
    #[error("no container `{container}` runs in the pod `{pod}`")]
    Container {
        /// The pod.
        pod: String,
        /// What was asked for.
        container: String,
    },
}
