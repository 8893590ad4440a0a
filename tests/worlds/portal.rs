//! A proxy that answers everything by itself, as that of a hotel does.

use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n";
const PAGE: &[u8] = b"<p>Please log in</p>";

/// Bytes that are no text, escape sequences, the end of CDATA and what XML cannot hold, in a very long
/// line.
pub(crate) fn hostile() -> Vec<u8> {
    let line = b"\xff\xfe\x1b[31m\x1b]0;owned\x07]]>\x00\x08<script>\xe2\x80\xae";
    line.repeat(10_000)
}

/// It answers until it is dropped.
pub(crate) struct Portal {
    url: String,
    serving: JoinHandle<()>,
}

impl Portal {
    pub(crate) async fn open() -> std::io::Result<Self> {
        Self::with(PAGE.to_vec()).await
    }

    /// One with another page.
    pub(crate) async fn with(page: Vec<u8>) -> std::io::Result<Self> {
        let page = Arc::new(page);
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, Arc::clone(&page)));
            }
        });
        Ok(Self { url, serving })
    }

    pub(crate) fn url(&self) -> String {
        self.url.clone()
    }
}

impl Drop for Portal {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn answer(mut stream: TcpStream, page: Arc<Vec<u8>>) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    stream.write_all(HEAD.as_bytes()).await?;
    stream.write_all(&page).await?;
    stream.shutdown().await
}
