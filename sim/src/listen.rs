//! Listeners that go on whatever their clients do: so many at once are served, and each has so long
//! to say what it wants. Whoever comes beside them waits to be accepted.

use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::TokioTimer;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use crate::clock;
use crate::loopback::{Listener, Stream, is_in_memory};

/// How long a client may take for its part of TLS: what a Go client waits for the other's,
/// `http.DefaultTransport`, `TLSHandshakeTimeout`.
const GREETING: Duration = Duration::from_secs(10);

/// A client's place among those that are served; free again when nobody holds it.
pub(crate) type Seat = Arc<OwnedSemaphorePermit>;

/// Serves clients for ever, each in a task of its own, which `spawn` begins.
pub(crate) async fn serve<F>(
    spawn: impl Fn(F),
    listener: Listener,
    most: usize,
    serves: impl Fn(Box<dyn Stream>, Seat) -> F,
) where
    F: Future<Output = ()>,
{
    let seats = Arc::new(Semaphore::new(most));
    let mut told = false;
    loop {
        if !told && seats.available_permits() == 0 {
            told = true;
            tracing::warn!("{most} clients are served, more wait until one of them ends");
        }
        // It is never closed
        let Ok(seat) = Arc::clone(&seats).acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok(stream) => spawn(serves(Box::new(stream), Arc::new(seat))),
            Err(error) => {
                tracing::debug!(%error, "a connection is lost");
                // Out of descriptors: one of them is given back before long
                clock::elapse(Duration::from_millis(50)).await;
            }
        }
    }
}

/// A connection once both sides have agreed on TLS.
pub(crate) async fn greet(tls: &TlsAcceptor, stream: Box<dyn Stream>) -> Option<Box<dyn Stream>> {
    if is_in_memory() {
        return Some(stream);
    }
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::net::Ipv4Addr;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use kube::{Client, Config};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::clock::Clock;
    use crate::cluster::Cluster;
    use crate::fault::{FaultSet, FaultSwitch};
    use crate::loopback::connect;

    const MOST: usize = 3;

    #[tokio::test]
    async fn so_many_are_served_at_once_and_all_in_the_end() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let nowhere = Config::new("http://127.0.0.1:1".parse().expect("a URI"));
        let client = Client::try_from(nowhere).expect("a client");
        let switch = FaultSwitch::new(FaultSet::default());
        let cluster = Cluster::new(client, Clock::new(1.0), 0, switch, BTreeMap::new());
        let cluster = Arc::new(cluster);
        let listener = Listener::bind(Ipv4Addr::LOCALHOST, 0).await;
        let listener = listener.expect("loopback has a port");
        let address = listener.local_addr().expect("it is bound");
        let now = Arc::new(AtomicUsize::new(0));
        let most = Arc::new(AtomicUsize::new(0));
        let (all, counts) = (Arc::clone(&cluster), (Arc::clone(&now), Arc::clone(&most)));
        cluster.spawn(async move {
            let serves = |mut stream: Box<dyn Stream>, seat| {
                let (now, most) = (Arc::clone(&counts.0), Arc::clone(&counts.1));
                async move {
                    let served = now.fetch_add(1, Ordering::SeqCst) + 1;
                    most.fetch_max(served, Ordering::SeqCst);
                    let mut word = [0; 2];
                    let read = stream.read_exact(&mut word).await;
                    now.fetch_sub(1, Ordering::SeqCst);
                    if read.is_ok() {
                        stream.write_all(&word).await.expect("it is read");
                    }
                    drop(seat);
                }
            };
            serve(|task| all.spawn(task), listener, MOST, serves).await;
        });
        // More than are served say nothing, some of them for ever
        let mut clients = Vec::new();
        for _ in 0..4 * MOST {
            clients.push(connect(address).await.expect("it listens"));
        }
        drop(clients.split_off(2 * MOST));
        for client in &mut clients {
            client.write_all(b"hi").await.expect("it is taken");
        }
        for client in &mut clients {
            let mut word = String::new();
            client.read_to_string(&mut word).await.expect("an answer");
            assert_eq!(word, "hi");
        }
        assert_eq!(most.load(Ordering::SeqCst), MOST);
        cluster.stop.cancel();
        cluster.tasks.close();
        cluster.tasks.wait().await;
    }
}
