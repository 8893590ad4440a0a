//! The machine's loopback network and its time of day, or a loopback in memory and a time that
//! begins where it is told.
//!
//! In memory they are for one thread, on which a runtime with a paused clock has all its tasks. No
//! TLS is spoken there.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::marker::PhantomData;
use std::net::{Ipv4Addr, SocketAddr};

use futures::FutureExt;
use futures::future::BoxFuture;
use http::header::{HOST, HeaderValue};
use http::{Request, Response};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use kube::client::Body;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, mpsc};
use tokio::time::Instant;
use tokio_util::either::Either;

/// How much a stream in memory holds in each direction.
const BUFFER: usize = 256 * 1024;

/// A connection.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A client's connection: of the loopback network, or in memory.
pub(crate) type Accepted = Either<TcpStream, DuplexStream>;

struct Memory {
    /// The time of day when it began.
    epoch: Timestamp,
    began: Instant,
    listeners: BTreeMap<SocketAddr, mpsc::UnboundedSender<DuplexStream>>,
    next_port: u16,
}

thread_local! {
    static MEMORY: RefCell<Option<Memory>> = const { RefCell::new(None) };
}

/// As long as it lives, whatever is simulated on this thread is in memory, with a time of its own.
#[derive(Debug)]
pub struct InMemory(PhantomData<*const ()>);

impl InMemory {
    /// From now on it is `epoch`, and passes as the runtime's clock does. Within a runtime only.
    pub fn begin(epoch: Timestamp) -> Self {
        MEMORY.set(Some(Memory {
            epoch,
            began: Instant::now(),
            listeners: BTreeMap::new(),
            next_port: 10_000,
        }));
        Self(PhantomData)
    }
}

impl Drop for InMemory {
    fn drop(&mut self) {
        MEMORY.set(None);
    }
}

/// Whether this thread's network is in memory.
pub(crate) fn is_in_memory() -> bool {
    MEMORY.with_borrow(Option::is_some)
}

/// The time of day.
pub(crate) fn wall() -> Timestamp {
    MEMORY.with_borrow(|memory| match memory {
        None => Timestamp::now(),
        Some(Memory { epoch, began, .. }) => {
            let passed = SignedDuration::try_from(began.elapsed()).unwrap_or(SignedDuration::MAX);
            epoch.saturating_add(passed).unwrap_or(Timestamp::MAX)
        }
    })
}

/// What connections come in by.
#[derive(Debug)]
pub(crate) enum Listener {
    Loopback(TcpListener),
    Memory {
        address: SocketAddr,
        incoming: Mutex<mpsc::UnboundedReceiver<DuplexStream>>,
    },
}

impl Listener {
    /// Listens at a port of an address of the loopback network, any that is free if it is 0.
    pub(crate) async fn bind(address: Ipv4Addr, port: u16) -> io::Result<Self> {
        let listens = MEMORY.with_borrow_mut(|memory| Some(memory.as_mut()?.listen(address, port)));
        match listens {
            Some(listener) => listener,
            None => Ok(Self::Loopback(TcpListener::bind((address, port)).await?)),
        }
    }

    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Self::Loopback(listener) => listener.local_addr(),
            Self::Memory { address, .. } => Ok(*address),
        }
    }

    pub(crate) async fn accept(&self) -> io::Result<Accepted> {
        match self {
            Self::Loopback(listener) => {
                let (stream, _) = listener.accept().await?;
                Ok(Either::Left(stream))
            }
            Self::Memory { incoming, .. } => match incoming.lock().await.recv().await {
                Some(stream) => Ok(Either::Right(stream)),
                // Nobody comes any more
                None => std::future::pending().await,
            },
        }
    }
}

impl Memory {
    fn listen(&mut self, address: Ipv4Addr, port: u16) -> io::Result<Listener> {
        let port = match port {
            0 => {
                self.next_port = self
                    .next_port
                    .checked_add(1)
                    .ok_or(io::ErrorKind::AddrInUse)?;
                self.next_port
            }
            port => port,
        };
        let address = SocketAddr::from((address, port));
        let taken = self.listeners.get(&address);
        if taken.is_some_and(|listener| !listener.is_closed()) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        let (sender, incoming) = mpsc::unbounded_channel();
        self.listeners.insert(address, sender);
        let incoming = Mutex::new(incoming);
        Ok(Listener::Memory { address, incoming })
    }

    fn connect(&self, address: SocketAddr) -> io::Result<DuplexStream> {
        let refused = || io::Error::from(io::ErrorKind::ConnectionRefused);
        let listener = self.listeners.get(&address).ok_or_else(refused)?;
        let (near, far) = tokio::io::duplex(BUFFER);
        listener.send(far).map_err(|_| refused())?;
        Ok(near)
    }
}

/// Connects to whoever listens at an address.
pub async fn connect(address: SocketAddr) -> io::Result<Box<dyn Stream>> {
    let connected = MEMORY.with_borrow(|memory| Some(memory.as_ref()?.connect(address)));
    match connected {
        Some(stream) => Ok(Box::new(stream?)),
        None => Ok(Box::new(TcpStream::connect(address).await?)),
    }
}

/// A client of an HTTP server without TLS, each of whose requests has a connection of its own, which
/// `serve` has looked after.
pub(crate) fn client(
    address: SocketAddr,
    serve: impl Fn(BoxFuture<'static, ()>) + Clone + Send + 'static,
) -> Client {
    let service = tower::service_fn(move |request| {
        let serve = serve.clone();
        async move {
            let stream = connect(address).await?;
            exchange(stream, request, serve)
                .await
                .map_err(io::Error::other)
        }
    });
    Client::new(service, "default")
}

/// An HTTP request by a connection of its own, which `serve` has looked after.
pub(crate) async fn exchange(
    stream: impl Stream + 'static,
    mut request: Request<Body>,
    serve: impl FnOnce(BoxFuture<'static, ()>),
) -> hyper::Result<Response<Incoming>> {
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    // Whoever asked hears of what goes wrong
    serve(connection.with_upgrades().map(|_| ()).boxed());
    if !request.headers().contains_key(HOST) {
        let here = HeaderValue::from_static("simulated");
        request.headers_mut().insert(HOST, here);
    }
    sender.send_request(request).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::time::advance;

    #[tokio::test(start_paused = true)]
    async fn streams_in_memory_lead_to_who_listens() {
        let _memory = InMemory::begin(Timestamp::UNIX_EPOCH);
        let listener = Listener::bind(Ipv4Addr::LOCALHOST, 0)
            .await
            .expect("a port");
        let address = listener.local_addr().expect("it is bound");
        let taken = Listener::bind(Ipv4Addr::LOCALHOST, address.port()).await;
        assert_eq!(
            taken.expect_err("it is taken").kind(),
            io::ErrorKind::AddrInUse
        );
        let mut near = connect(address).await.expect("it listens");
        let mut far = listener.accept().await.expect("a client");
        near.write_all(b"hi").await.expect("it is taken");
        drop(near);
        let mut word = String::new();
        far.read_to_string(&mut word).await.expect("it is text");
        assert_eq!(word, "hi");
        drop(listener);
        let gone = connect(address).await.err().expect("nobody listens");
        assert_eq!(gone.kind(), io::ErrorKind::ConnectionRefused);
        // A port that nobody has any more may be had again
        let again = Listener::bind(Ipv4Addr::LOCALHOST, address.port()).await;
        assert_eq!(
            again.expect("a port").local_addr().expect("it is bound"),
            address
        );
    }

    #[tokio::test(start_paused = true)]
    async fn time_in_memory_begins_where_it_is_told_and_passes_with_the_runtime() {
        let memory = InMemory::begin(Timestamp::UNIX_EPOCH);
        advance(Duration::from_millis(2500)).await;
        assert_eq!(wall().to_string(), "1970-01-01T00:00:02.5Z");
        drop(memory);
        assert!(!is_in_memory() && wall() > Timestamp::UNIX_EPOCH + Duration::from_hours(1));
    }
}
