//! Answers that end too early, or not at all.

use std::io;

use bytes::Bytes;
use futures::{StreamExt, future, stream};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, BodyStream, StreamBody};
use hyper::body::Frame;
use kube::client::Body;
use tokio_util::sync::CancellationToken;

/// The first half of a body's first part, followed by a connection reset.
pub(crate) fn truncated(body: Body) -> UnsyncBoxBody<Bytes, kube::Error> {
    let first = BodyStream::new(body).take(1).map(|frame| {
        let data = frame?.into_data().unwrap_or_default();
        Ok(Frame::data(data.slice(..data.len() / 2)))
    });
    let cut = stream::once(async { Err(reset()) });
    StreamBody::new(first.chain(cut)).boxed_unsync()
}

/// The first `parts` parts of a body, followed by silence for ever.
pub(crate) fn silent(body: Body, parts: usize) -> UnsyncBoxBody<Bytes, kube::Error> {
    let said = BodyStream::new(body).take(parts);
    StreamBody::new(said.chain(stream::pending())).boxed_unsync()
}

/// A body that ends with a connection reset if its server goes down.
pub(crate) fn living(
    body: UnsyncBoxBody<Bytes, kube::Error>,
    life: CancellationToken,
) -> UnsyncBoxBody<Bytes, kube::Error> {
    let gone = life.clone();
    let ends = stream::once(future::lazy(move |_| gone.is_cancelled()));
    let ends = ends.filter_map(|gone| future::ready(gone.then(|| Err(reset()))));
    let lives = BodyStream::new(body).take_until(life.cancelled_owned());
    StreamBody::new(lives.chain(ends)).boxed_unsync()
}

fn reset() -> kube::Error {
    kube::Error::ReadEvents(io::ErrorKind::ConnectionReset.into())
}
