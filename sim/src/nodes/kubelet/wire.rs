//! A connection to a node that may die: when the node vanishes or boots, each connection falls silent, and it
//! ends once the node is back (a real one is reset: RFC 9293, 3.5.2).

use std::sync::Arc;

use futures::future;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, DuplexStream, copy, duplex, split};

use crate::nodes::cluster::{Cluster, NodeState};

/// How many bytes are buffered in each direction.
const BUFFER: usize = 16 * 1024;

/// Wraps a client's connection and returns the node's end of it.
pub(super) fn wire(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    cluster: &Arc<Cluster>,
    node: &Arc<NodeState>,
) -> DuplexStream {
    let (near, far) = duplex(BUFFER);
    let (mut from_node, mut to_node) = split(far);
    let (mut from_client, mut to_client) = split(stream);
    let (shared, node) = (Arc::clone(cluster), Arc::clone(node));
    cluster.spawn(async move {
        let dies = async {
            // A connection that opens while the node is silent works once the node is back
            shared.heard(&node).await;
            shared.unheard(&node).await;
        };
        let up = async {
            let _ = copy(&mut from_client, &mut to_node).await;
            // The node can still send the rest of its answer
            let _ = to_node.shutdown().await;
            future::pending::<()>().await;
        };
        tokio::select! {
            biased;
            () = dies => shared.heard(&node).await,
            () = up => {}
            _ = copy(&mut from_node, &mut to_client) => {
                // This ends TLS properly
                let _ = to_client.shutdown().await;
            }
        }
    });
    near
}
