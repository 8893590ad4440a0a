//! A byte proxy before a real API server: it cuts some of the exec sessions that pass it, or drops their exit
//! frame, on the connection itself.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use hybrid_sim::interference::{ExecTrouble, relay};
use kube::client::ConfigExt;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, split};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::world::World;

/// One of this many exec sessions meets trouble.
const EVERY: u64 = 5;

/// The troubles, which come in turn, and the numbers of exec sessions and of hits.
struct Sessions {
    troubles: Vec<ExecTrouble>,
    number: AtomicU64,
    hits: AtomicU64,
}

impl Sessions {
    /// The trouble of the next session, if any.
    fn draw(&self) -> Option<ExecTrouble> {
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        if !number.is_multiple_of(EVERY) {
            return None;
        }
        let hits = self.hits.fetch_add(1, Ordering::Relaxed);
        let nth = usize::try_from(hits).ok()? % self.troubles.len();
        self.troubles.get(nth).copied()
    }
}

/// A proxy that serves on this machine until it is dropped.
pub(crate) struct ByteProxy {
    address: String,
    sessions: Arc<Sessions>,
    serving: JoinHandle<()>,
}

impl ByteProxy {
    /// Starts a proxy before the world's API server, to which it sends the kubeconfig's credentials.
    pub(crate) async fn start(world: &World, troubles: &[ExecTrouble]) -> Self {
        let kubeconfig = Kubeconfig::read_from(&world.kubeconfig).expect("a kubeconfig");
        let config =
            Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
        let config = config.expect("a context");
        let tls = config.rustls_client_config().expect("certificates");
        let tls = TlsConnector::from(Arc::new(tls));
        let server = config.cluster_url.authority().expect("a host").to_string();
        let name = config.cluster_url.host().expect("a host").to_owned();
        let name = ServerName::try_from(name).expect("a name");
        let sessions = Arc::new(Sessions {
            troubles: troubles.to_vec(),
            number: AtomicU64::default(),
            hits: AtomicU64::default(),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let drawn = Arc::clone(&sessions);
        let serving = tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let (tls, server, name) = (tls.clone(), server.clone(), name.clone());
                let drawn = Arc::clone(&drawn);
                tokio::spawn(async move {
                    let far = tls.connect(name, TcpStream::connect(server).await?).await?;
                    carry(near, far, &drawn).await
                });
            }
        });
        Self {
            address,
            sessions,
            serving,
        }
    }

    /// A client that reaches the server through the proxy.
    pub(crate) fn client(&self) -> Client {
        let url = format!("http://{}", self.address);
        let config = Config::new(url.parse().expect("a URL"));
        Client::try_from(config).expect("a client")
    }

    /// How many sessions have met trouble.
    pub(crate) fn hits(&self) -> u64 {
        self.sessions.hits.load(Ordering::Relaxed)
    }
}

impl Drop for ByteProxy {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Carries the bytes of a connection both ways, until one side closes or trouble cuts them. A request is at
/// the start of a read, since a client sends none before it has the whole answer to the last.
async fn carry(near: TcpStream, far: TlsStream<TcpStream>, sessions: &Sessions) -> io::Result<()> {
    let (mut from_client, mut to_client) = near.into_split();
    let (from_server, mut to_server) = split(far);
    let trouble = Mutex::new(None);
    let up = async {
        let mut bytes = vec![0; 64 * 1024];
        loop {
            let read = from_client.read(&mut bytes).await?;
            let line = bytes[..read].split(|byte| *byte == b'\r').next();
            let line = String::from_utf8_lossy(line.unwrap_or_default());
            if line.starts_with("GET ") && line.contains("/exec?") {
                *trouble.lock().unwrap_or_else(PoisonError::into_inner) = sessions.draw();
            }
            match read {
                0 => return io::Result::Ok(()),
                _ => to_server.write_all(&bytes[..read]).await?,
            }
            to_server.flush().await?;
        }
    };
    let down = async {
        let mut from_server = BufReader::new(from_server);
        loop {
            let bytes = from_server.fill_buf().await?;
            let trouble = trouble
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take();
            if let Some(trouble) = trouble {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(from_server.read_u8().await?);
                }
                to_client.write_all(&head).await?;
                if head.starts_with(b"HTTP/1.1 101") {
                    return relay(&mut from_server, &mut to_client, trouble).await;
                }
                continue;
            }
            let read = bytes.len();
            match read {
                0 => return Ok(()),
                _ => to_client.write_all(bytes).await?,
            }
            from_server.consume(read);
        }
    };
    tokio::select! {
        biased;
        ended = up => ended,
        ended = down => ended,
    }
}
