//! The connection of a client, and how it is reset instead of closed. In memory there are no resets:
//! there it just ends.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::either::Either;
use tokio_util::sync::CancellationToken;

use crate::loopback::Accepted;

/// A client's connection, which ends with a reset once that was asked for.
#[derive(Debug)]
pub(super) struct Wire {
    stream: Accepted,
    reset: CancellationToken,
}

/// Has a connection end with a reset, once it is dropped.
pub(super) fn resets(stream: &Accepted) {
    if let Either::Left(stream) = stream {
        // On failure the client sees an end instead of a reset, which is as unexpected
        let _ = stream.set_zero_linger();
    }
}

impl Wire {
    pub(super) fn new(stream: Accepted, reset: CancellationToken) -> Self {
        Self { stream, reset }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        if self.reset.is_cancelled() {
            resets(&self.stream);
        }
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, buffer)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, buffers)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
