//! Sends each request of a file once to an API server over kept-alive connections, and prints how many
//! requests a second it answered: the plain load to measure a client against.
//!
//! `load KUBECONFIG REQUESTS CONNECTIONS`, where REQUESTS is a file of JSON lines `{"method": "POST", "path":
//! "/api/…?dryRun=All", "body": {…}}`, with `"type"` for a body that is not `application/json`. Every
//! connection opens before the clock starts, and sends its next request when it has read the answer to the
//! last.
//!
//! Out of scope: retries, HTTP/2, and credentials other than a client certificate.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use kube::client::ConfigExt;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde::Deserialize;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

type Trouble = Box<dyn Error + Send + Sync>;
type Connection = SendRequest<Full<Bytes>>;

#[derive(Deserialize)]
struct Line {
    method: String,
    path: String,
    #[serde(default)]
    body: Value,
    #[serde(default = "json", rename = "type")]
    kind: String,
}

fn json() -> String {
    "application/json".to_owned()
}

#[tokio::main]
async fn main() -> Result<(), Trouble> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [kubeconfig, requests, connections] = arguments.as_slice() else {
        return Err("usage: load KUBECONFIG REQUESTS CONNECTIONS".into());
    };
    let connections: usize = connections.parse()?;
    let config = Kubeconfig::read_from(kubeconfig)?;
    let config =
        kube::Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await?;
    let requests = Arc::new(read(requests, &config)?);

    let next = Arc::new(AtomicUsize::new(0));
    let mut open = Vec::new();
    for _ in 0..connections.min(requests.len()) {
        open.push(connect(&config).await?);
    }
    let began = Instant::now();
    let sending: Vec<_> = open
        .into_iter()
        .map(|connection| tokio::spawn(send(connection, Arc::clone(&requests), Arc::clone(&next))))
        .collect();
    let mut codes: BTreeMap<StatusCode, usize> = BTreeMap::new();
    for task in sending {
        for (code, count) in task.await?? {
            *codes.entry(code).or_default() += count;
        }
    }
    let took = began.elapsed().as_secs_f64();

    let answered: usize = codes.values().sum();
    let mut out = std::io::stdout().lock();
    for (code, count) in &codes {
        writeln!(out, "{count:6} {}", code.as_u16())?;
    }
    let rate = f64::from(u32::try_from(answered)?) / took;
    writeln!(
        out,
        "{answered} requests in {took:.3} s over {connections} connections: {rate:.0} a second"
    )?;
    Ok(())
}

/// Reads the requests of a file.
fn read(path: &str, config: &kube::Config) -> Result<Vec<Request<Full<Bytes>>>, Trouble> {
    let host = config
        .cluster_url
        .authority()
        .ok_or("the server has no address")?;
    let mut requests = Vec::new();
    for (line, number) in std::fs::read_to_string(path)?.lines().zip(1..) {
        let read: Line =
            serde_json::from_str(line).map_err(|error| format!("{path}:{number}: {error}"))?;
        let body = match read.body {
            Value::Null => Bytes::new(),
            body => body.to_string().into(),
        };
        let request = Request::builder()
            .method(read.method.as_str())
            .uri(&read.path)
            .header(HOST, host.as_str())
            .header(CONTENT_TYPE, &read.kind)
            .body(Full::new(body))
            .map_err(|error| format!("{path}:{number}: {error}"))?;
        requests.push(request);
    }
    Ok(requests)
}

async fn connect(config: &kube::Config) -> Result<Connection, Trouble> {
    let url = &config.cluster_url;
    let host = url.host().ok_or("the server has no address")?;
    let port = url.port_u16().unwrap_or(443);
    let stream = TcpStream::connect((host, port)).await?;
    stream.set_nodelay(true)?;
    if url.scheme_str() == Some("http") {
        return opened(stream).await;
    }
    let connector = TlsConnector::from(Arc::new(config.rustls_client_config()?));
    let name = config.tls_server_name.as_deref().unwrap_or(host).to_owned();
    opened(connector.connect(name.try_into()?, stream).await?).await
}

async fn opened(
    stream: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
) -> Result<Connection, Trouble> {
    let (connection, driver) = http1::handshake(TokioIo::new(stream)).await?;
    // The sender gets the connection's errors
    tokio::spawn(async move { drop(driver.await) });
    Ok(connection)
}

/// Sends the next request until there is none; returns the number of answers by code.
async fn send(
    mut connection: Connection,
    requests: Arc<Vec<Request<Full<Bytes>>>>,
    next: Arc<AtomicUsize>,
) -> Result<BTreeMap<StatusCode, usize>, Trouble> {
    let mut codes = BTreeMap::new();
    while let Some(request) = requests.get(next.fetch_add(1, Ordering::Relaxed)) {
        connection.ready().await?;
        let response = connection.send_request(request.clone()).await?;
        *codes.entry(response.status()).or_default() += 1;
        // Reads the answer to its end, or the connection cannot be used again
        response.into_body().collect().await?;
    }
    Ok(codes)
}
