//! Answers that end too early, or not at all.

use std::io;

use bytes::Bytes;
use futures::{StreamExt, stream};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, BodyStream, StreamBody};
use hyper::body::Frame;
use kube::client::Body;

/// The first half of the first part of a body, and then no more: hyper resets the connection when a
/// body fails.
pub(super) fn truncated(body: Body) -> UnsyncBoxBody<Bytes, kube::Error> {
    let first = BodyStream::new(body).take(1).map(|frame| {
        let data = frame?.into_data().unwrap_or_default();
        Ok(Frame::data(data.slice(..data.len() / 2)))
    });
    let cut = stream::once(async {
        // What was sent has to leave before the connection does
        tokio::task::yield_now().await;
        Err(kube::Error::ReadEvents(
            io::ErrorKind::ConnectionReset.into(),
        ))
    });
    StreamBody::new(first.chain(cut)).boxed_unsync()
}

/// The first part of a body, or nothing, and then silence for ever.
pub(super) fn silent(body: Body, parts: usize) -> UnsyncBoxBody<Bytes, kube::Error> {
    let said = BodyStream::new(body).take(parts);
    StreamBody::new(said.chain(stream::pending())).boxed_unsync()
}
