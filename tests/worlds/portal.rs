//! A proxy that answers everything by itself, as that of a hotel does.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

const PAGE: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 20\r\n\
    Connection: close\r\n\r\n<p>Please log in</p>";

/// It answers until it is dropped.
pub(crate) struct Portal {
    url: String,
    serving: JoinHandle<()>,
}

impl Portal {
    pub(crate) async fn open() -> std::io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream));
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

async fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    stream.write_all(PAGE.as_bytes()).await?;
    stream.shutdown().await
}
