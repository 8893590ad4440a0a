//! A connection to a node that may die under it: with a node that vanishes or boots, each connection
//! falls silent, and is reset once the node is there again and knows nothing of it (RFC 9293, 3.5.2).

use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::cluster::{Cluster, NodeState};

/// A connection to a node.
pub(super) struct Wire<S> {
    stream: S,
    state: State,
    /// Ends when the node cannot be heard any more, then when it can be again.
    turns: BoxFuture<'static, ()>,
    cluster: Arc<Cluster>,
    node: Arc<NodeState>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    Silent,
    Reset,
}

impl<S> Wire<S> {
    pub(super) fn new(stream: S, cluster: &Arc<Cluster>, node: &Arc<NodeState>) -> Self {
        let (all, own) = (Arc::clone(cluster), Arc::clone(node));
        let turns = async move {
            // One that is opened meanwhile stands once the node is there
            all.heard(&own).await;
            all.unheard(&own).await;
        };
        Self {
            stream,
            state: State::Open,
            turns: turns.boxed(),
            cluster: Arc::clone(cluster),
            node: Arc::clone(node),
        }
    }

    /// Ready where bytes pass, or never will again.
    fn passes(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.state == State::Open && self.turns.poll_unpin(context).is_ready() {
            self.state = State::Silent;
            let (all, own) = (Arc::clone(&self.cluster), Arc::clone(&self.node));
            self.turns = async move { all.heard(&own).await }.boxed();
        }
        if self.state == State::Silent {
            ready!(self.turns.poll_unpin(context));
            self.state = State::Reset;
        }
        Poll::Ready(match self.state {
            State::Reset => Err(ErrorKind::ConnectionReset.into()),
            _ => Ok(()),
        })
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Wire<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.passes(context))?;
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Wire<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.passes(context))?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.passes(context))?;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.passes(context))?;
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
