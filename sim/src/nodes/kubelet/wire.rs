//! A connection to a node that may die under it: with a node that vanishes or boots, each connection
//! falls silent, and ends once the node is there again (a real one is reset: RFC 9293, 3.5.2).

use std::sync::Arc;

use futures::future;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, DuplexStream, copy, duplex, split};

use crate::nodes::cluster::{Cluster, NodeState};

/// How much is under way in each direction.
const BUFFER: usize = 16 * 1024;

/// The node's end of a connection.
pub(super) fn wire(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    cluster: &Arc<Cluster>,
    node: &Arc<NodeState>,
) -> DuplexStream {
    let (near, far) = duplex(BUFFER);
    let (mut from_node, mut to_node) = split(far);
    let (mut from_client, mut to_client) = split(stream);
    let (all, own) = (Arc::clone(cluster), Arc::clone(node));
    cluster.spawn(async move {
        let dies = async {
            // One that is opened meanwhile stands once the node is there
            all.heard(&own).await;
            all.unheard(&own).await;
        };
        let up = async {
            let _ = copy(&mut from_client, &mut to_node).await;
            // What the node still has to say is told
            let _ = to_node.shutdown().await;
            future::pending::<()>().await;
        };
        tokio::select! {
            biased;
            () = dies => all.heard(&own).await,
            () = up => {}
            _ = copy(&mut from_node, &mut to_client) => {
                // TLS says that it ends
                let _ = to_client.shutdown().await;
            }
        }
    });
    near
}
