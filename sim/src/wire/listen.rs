//! Listeners that go on whatever their clients do: each has so long to say what it wants.

use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::TokioTimer;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_util::either::Either;

use crate::base::clock;
use crate::wire::loopback::{Accepted, Listener, Stream};

/// How long a client may take for its part of TLS: what a Go client waits for the other's,
/// `http.DefaultTransport`, `TLSHandshakeTimeout`.
const GREETING: Duration = Duration::from_secs(10);

/// Serves clients for ever, each in a task of its own, which `spawn` begins.
pub(crate) async fn serve<F>(spawn: impl Fn(F), listener: Listener, serves: impl Fn(Accepted) -> F)
where
    F: Future<Output = ()>,
{
    loop {
        match listener.accept().await {
            Ok(stream) => spawn(serves(stream)),
            Err(error) => {
                tracing::debug!(%error, "a connection is lost");
                // Out of descriptors: one of them is given back before long
                clock::elapse(Duration::from_millis(50)).await;
            }
        }
    }
}

/// A connection once both sides have agreed on TLS, which is not spoken in memory.
pub(crate) async fn greet(tls: &TlsAcceptor, stream: Accepted) -> Option<Box<dyn Stream>> {
    let stream = match stream {
        Either::Left(stream) => stream,
        Either::Right(stream) => return Some(Box::new(stream)),
    };
    match timeout(GREETING, tls.accept(stream)).await {
        Ok(Ok(stream)) => Some(Box::new(stream)),
        Ok(Err(error)) => {
            tracing::debug!(%error, "TLS is not agreed on");
            None
        }
        Err(_) => {
            tracing::debug!("a client says nothing");
            None
        }
    }
}

/// HTTP with a bound on the time from one request's end to the end of the next one's header.
pub(crate) fn http(patience: Duration) -> http1::Builder {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(patience);
    http
}
