//! Answers that are late or come in pieces.

use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt, stream};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, BodyStream, StreamBody};
use hyper::body::Frame;
use kube::client::Body;

use crate::base::clock;

/// How late an answer is: later than any healthy one, earlier than any client's time-out.
pub(crate) const LATE: Duration = Duration::from_millis(250);

/// The pause between two pieces.
const BETWEEN: Duration = Duration::from_millis(20);

/// Into how many pieces a part of an answer is split at most.
const PIECES: usize = 12;

/// A body in small pieces with pauses between them; the content stays the same.
pub(crate) fn trickle(body: Body) -> UnsyncBoxBody<Bytes, kube::Error> {
    let pieces = BodyStream::new(body).flat_map(|frame| {
        let pieces = match frame.map(Frame::into_data) {
            Ok(Ok(data)) => split(&data).into_iter().map(Frame::data).map(Ok).collect(),
            Ok(Err(other)) => vec![Ok(other)],
            Err(error) => vec![Err(error)],
        };
        stream::iter(pieces).then(async |piece| {
            clock::elapse(BETWEEN).await;
            piece
        })
    });
    StreamBody::new(pieces).boxed_unsync()
}

fn split(data: &Bytes) -> Vec<Bytes> {
    let size = data.len().div_ceil(PIECES).max(1);
    (0..data.len())
        .step_by(size)
        .map(|at| data.slice(at..(at + size).min(data.len())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_make_up_the_whole() {
        for length in [0, 1, 11, 12, 13, 1000] {
            let data = Bytes::from(vec![7; length]);
            let pieces = split(&data);
            assert!(pieces.len() <= PIECES, "{length}");
            assert_eq!(pieces.concat(), data, "{length}");
        }
    }
}
