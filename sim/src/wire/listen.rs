//! Listeners that go on whatever their clients do: each client has limited time to send its request.

use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::TokioTimer;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_util::either::Either;

use crate::base::clock;
use crate::wire::loopback::{Accepted, Listener, Stream};

/// How long a client may take for the TLS handshake: the limit of a Go client for the server's part
/// (`http.DefaultTransport`, `TLSHandshakeTimeout`).
const GREETING: Duration = Duration::from_secs(10);

/// Serves clients for ever, each in its own task, which `spawn` starts.
pub(crate) async fn serve<F>(spawn: impl Fn(F), listener: Listener, serves: impl Fn(Accepted) -> F)
where
    F: Future<Output = ()>,
{
    loop {
        match listener.accept().await {
            Ok(stream) => spawn(serves(stream)),
            Err(error) => {
                tracing::debug!(%error, "a connection is lost");
                // No descriptors are left; another connection frees one soon
                clock::elapse(Duration::from_millis(50)).await;
            }
        }
    }
}

/// A connection after its TLS handshake; connections in memory have none.
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

/// An HTTP server that bounds the time from one request's end to the end of the next request's header.
pub(crate) fn http(patience: Duration) -> http1::Builder {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(patience);
    http
}
