//! The machine's loopback network and time of day; or a loopback network in memory, with a time of day that
//! begins at a given moment. Connections in memory use no TLS.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use futures::FutureExt;
use futures::future::BoxFuture;
use http::header::{HOST, HeaderValue};
use http::{Request, Response};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use kube::Client;
use kube::client::Body;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex as Turns, mpsc};
use tokio_util::either::Either;

use crate::base::clock::Wall;
use crate::base::lock::locked;

/// How many bytes a stream in memory buffers in each direction.
pub(crate) const BUFFER: usize = 256 * 1024;

/// A connection.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A client's connection, over the loopback network or in memory.
pub(crate) type Accepted = Either<TcpStream, DuplexStream>;

#[derive(Debug)]
struct Memory {
    listeners: BTreeMap<SocketAddr, mpsc::UnboundedSender<DuplexStream>>,
    next_port: u16,
}

/// Where a simulation runs: on the machine, or in memory with its own time. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Loopback {
    memory: Option<Arc<Mutex<Memory>>>,
    pub(crate) wall: Wall,
}

impl Loopback {
    /// Creates one in memory whose time starts at `epoch` and follows the runtime's clock. Needs a runtime.
    pub fn in_memory(epoch: Timestamp) -> Self {
        let memory = Memory {
            listeners: BTreeMap::new(),
            next_port: 10_000,
        };
        Self {
            memory: Some(Arc::new(Mutex::new(memory))),
            wall: Wall::beginning(epoch),
        }
    }

    pub(crate) fn is_in_memory(&self) -> bool {
        self.memory.is_some()
    }

    /// Listens on a port of an address, or on any free port if `port` is 0.
    pub(crate) async fn listen(&self, address: Ipv4Addr, port: u16) -> io::Result<Listener> {
        match &self.memory {
            Some(memory) => locked(memory).listen(address, port),
            None => Ok(Listener::Loopback(
                TcpListener::bind((address, port)).await?,
            )),
        }
    }

    /// Connects to the listener at an address.
    pub fn connect(&self, address: SocketAddr) -> BoxFuture<'static, io::Result<Box<dyn Stream>>> {
        let memory = self.memory.clone();
        Box::pin(async move {
            match memory {
                Some(memory) => Ok(Box::new(locked(&memory).connect(address)?) as Box<dyn Stream>),
                None => Ok(Box::new(TcpStream::connect(address).await?) as Box<dyn Stream>),
            }
        })
    }
}

/// Accepts connections.
#[derive(Debug)]
pub(crate) enum Listener {
    Loopback(TcpListener),
    Memory {
        address: SocketAddr,
        incoming: Turns<mpsc::UnboundedReceiver<DuplexStream>>,
    },
}

impl Listener {
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
                // `Memory` has dropped the sender: no client can connect any more
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
        let incoming = Turns::new(incoming);
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

/// A client of an HTTP server without TLS. Each request uses its own connection, which `serve` drives.
pub(crate) fn client(
    loopback: &Loopback,
    address: SocketAddr,
    serve: impl Fn(BoxFuture<'static, ()>) + Clone + Send + 'static,
) -> Client {
    let loopback = loopback.clone();
    let service = tower::service_fn(move |request| {
        let (loopback, serve) = (loopback.clone(), serve.clone());
        async move {
            let stream = loopback.connect(address).await?;
            exchange(stream, request, serve)
                .await
                .map_err(io::Error::other)
        }
    });
    Client::new(service, "default")
}

/// Sends an HTTP request over its own connection, which `serve` drives.
pub(crate) async fn exchange(
    stream: impl Stream + 'static,
    mut request: Request<Body>,
    serve: impl FnOnce(BoxFuture<'static, ()>),
) -> hyper::Result<Response<Incoming>> {
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    // The sender of the request gets the connection's errors
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
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[tokio::test(start_paused = true)]
    async fn streams_in_memory_lead_to_who_listens() {
        let loopback = Loopback::in_memory(Timestamp::UNIX_EPOCH);
        let listening = loopback.listen(Ipv4Addr::LOCALHOST, 0).await;
        let listener = listening.expect("a port");
        let address = listener.local_addr().expect("it is bound");
        let taken = loopback.listen(Ipv4Addr::LOCALHOST, address.port()).await;
        assert_eq!(
            taken.expect_err("it is taken").kind(),
            io::ErrorKind::AddrInUse
        );
        let mut near = loopback.connect(address).await.expect("it listens");
        let mut far = listener.accept().await.expect("a client");
        near.write_all(b"hi").await.expect("it is taken");
        drop(near);
        let mut word = String::new();
        far.read_to_string(&mut word).await.expect("it is text");
        assert_eq!(word, "hi");
        drop(listener);
        let gone = loopback
            .connect(address)
            .await
            .err()
            .expect("nobody listens");
        assert_eq!(gone.kind(), io::ErrorKind::ConnectionRefused);
        // A port that no listener holds any more can be used again
        let again = loopback.listen(Ipv4Addr::LOCALHOST, address.port()).await;
        assert_eq!(
            again.expect("a port").local_addr().expect("it is bound"),
            address
        );
    }
}
