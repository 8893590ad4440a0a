//! `/exec`: a program in a container over WebSocket, subprotocols `v5.channel.k8s.io` and
//! `v4.channel.k8s.io`.
//!
//! Channels: 0 input, 1 output, 2 error stream, 3 status, 4 terminal size, 255 (v5) end of a
//! channel. A program's output comes when it has ended; a program without an end runs until the
//! client goes.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::{SinkExt, StreamExt};
use http::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, UPGRADE,
};
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role};

use super::query::Query;
use super::server::{Body, boxed, text};
use super::status;
use crate::clock;
use crate::cluster::Cluster;
use crate::pods::run::PodRun;
use crate::program::{self, Place, Refusal, Started};
use crate::topology::Os;

const INPUT: u8 = 0;
const OUTPUT: u8 = 1;
const ERROR: u8 = 2;
const STATUS: u8 = 3;
const CLOSE: u8 = 255;

/// The largest message: what a kubelet's copy loop reads at once.
const CHUNK: usize = 32 * 1024;

type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// Answers the request for a session and runs it behind the answer.
pub(super) fn begin(
    cluster: &Arc<Cluster>,
    run: &Arc<PodRun>,
    container: &str,
    query: &Query,
    mut request: Request<Incoming>,
) -> Response<Body> {
    let place = {
        let book = run.book();
        let mut containers = book.init.iter().chain(&book.containers);
        containers
            .find(|known| known.name == container)
            .and_then(|known| known.place.clone())
    };
    let Some(place) = place else {
        // kubelet, GetExec: "container not found", answered as an internal error
        let words = format!("container not found (\"{container}\")");
        return text(StatusCode::INTERNAL_SERVER_ERROR, &words);
    };
    let header = |name| {
        request
            .headers()
            .get(name)
            .and_then(|value: &HeaderValue| value.to_str().ok())
    };
    let Some(key) = header(SEC_WEBSOCKET_KEY).map(str::to_owned) else {
        return text(
            StatusCode::BAD_REQUEST,
            "you must specify a WebSocket upgrade",
        );
    };
    let offered = header(SEC_WEBSOCKET_PROTOCOL)
        .unwrap_or_default()
        .to_owned();
    let offers = |protocol: &str| offered.split(',').any(|each| each.trim() == protocol);
    let known = ["v5.channel.k8s.io", "v4.channel.k8s.io"];
    let Some(protocol) = known.into_iter().find(|protocol| offers(protocol)) else {
        return text(StatusCode::FORBIDDEN, "no WebSocket subprotocol in common");
    };
    let session = Session {
        cluster: Arc::clone(cluster),
        run: Arc::clone(run),
        place,
        argv: query.all("command"),
        asked: Asked {
            input: query.is_set("input"),
            output: query.is_set("output"),
            error: query.is_set("error"),
        },
        terminal: query.is_set("tty"),
    };
    let upgrade = hyper::upgrade::on(&mut request);
    cluster.spawn(async move {
        match upgrade.await {
            Ok(upgraded) => {
                let socket =
                    Socket::from_raw_socket(TokioIo::new(upgraded), Role::Server, None).await;
                session.serve(socket).await;
            }
            Err(error) => tracing::debug!(%error, "exec is not upgraded"),
        }
    });
    let mut response = Response::new(boxed(Full::default()));
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(protocol));
    if let Ok(accept) = HeaderValue::from_str(&derive_accept_key(key.as_bytes())) {
        headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    }
    response
}

struct Session {
    cluster: Arc<Cluster>,
    run: Arc<PodRun>,
    place: Place,
    argv: Vec<String>,
    asked: Asked,
    terminal: bool,
}

/// Which streams the client wants.
struct Asked {
    input: bool,
    output: bool,
    error: bool,
}

/// The client has gone.
struct Gone;

impl Session {
    async fn serve(self, mut socket: Socket) {
        if let Ok(status) = self.run(&mut socket).await {
            let ended = send(&mut socket, STATUS, status.to_string().as_bytes()).await;
            if ended.is_ok() {
                let frame = CloseFrame {
                    code: CloseCode::Normal,
                    reason: "".into(),
                };
                let _ = socket.close(Some(frame)).await;
                // The client's own close, so that the last frames are not cut off by a reset
                tokio::select! {
                    () = drain(&mut socket) => {}
                    () = clock::elapse(Duration::from_secs(5)) => {}
                }
            }
        }
    }

    async fn run(&self, socket: &mut Socket) -> Result<Value, Gone> {
        // wsstream tells the client that the streams stand by an empty message on the lowest one it
        // reads
        let lowest = if self.asked.output { OUTPUT } else { STATUS };
        send(socket, lowest, b"").await?;
        let input = if self.asked.input && program::reads_input(&self.argv) {
            read_input(socket).await?
        } else {
            Vec::new()
        };
        let world = self.cluster.world();
        let started = program::start(&self.place, &self.argv, &input, &self.cluster.view(&world));
        drop(world);
        match started {
            Started::Ended(ran) => {
                let clock = self.cluster.clock;
                listening(socket, clock.pass(ran.took)).await?;
                listening(socket, clock::elapse(ran.slept)).await?;
                if self.asked.output {
                    stream(socket, OUTPUT, &ran.stdout).await?;
                }
                if self.terminal && self.asked.output {
                    stream(socket, OUTPUT, &ran.stderr).await?;
                } else if self.asked.error {
                    stream(socket, ERROR, &ran.stderr).await?;
                }
                Ok(status::exited(&self.argv, ran.code))
            }
            Started::Serves { prints, .. } | Started::Stays { prints } => {
                if self.asked.output {
                    stream(socket, OUTPUT, prints.as_bytes()).await?;
                }
                drain(socket).await;
                Err(Gone)
            }
            Started::Refused(refusal) => Ok(status::not_run(&self.refused(&refusal))),
        }
    }

    /// containerd's words for an exec that did not start.
    fn refused(&self, refusal: &Refusal) -> String {
        let hex = |name: &str| {
            self.cluster
                .chance
                .hex(&format!("{name} {}", self.run.uid), 64)
        };
        let why = refusal.text(self.place.os, &hex("container"));
        let runtime = match self.place.os {
            Os::Linux => {
                "OCI runtime exec failed: exec failed: unable to start container process: "
            }
            Os::Windows => "",
        };
        format!(
            "failed to exec in container: failed to start exec \"{}\": {runtime}{why}",
            hex("exec")
        )
    }
}

async fn send(socket: &mut Socket, channel: u8, bytes: &[u8]) -> Result<(), Gone> {
    let mut message = Vec::with_capacity(bytes.len() + 1);
    message.push(channel);
    message.extend_from_slice(bytes);
    socket
        .send(Message::Binary(message.into()))
        .await
        .map_err(|_| Gone)
}

async fn stream(socket: &mut Socket, channel: u8, bytes: &[u8]) -> Result<(), Gone> {
    for chunk in bytes.chunks(CHUNK) {
        send(socket, channel, chunk).await?;
    }
    Ok(())
}

/// All input up to its end, which v5 announces on channel 255 and v4 cannot.
async fn read_input(socket: &mut Socket) -> Result<Vec<u8>, Gone> {
    let mut input = Vec::new();
    while let Some(Ok(message)) = socket.next().await {
        match message {
            Message::Binary(bytes) => match bytes.split_first() {
                Some((&INPUT, rest)) => input.extend_from_slice(rest),
                Some((&CLOSE, [INPUT, ..])) => return Ok(input),
                _ => {}
            },
            Message::Close(_) => return Err(Gone),
            _ => {}
        }
    }
    Err(Gone)
}

/// Lets something happen, unless the client goes first. Reading is what answers the client's pings.
async fn listening(socket: &mut Socket, until: impl Future<Output = ()>) -> Result<(), Gone> {
    tokio::select! {
        () = drain(socket) => Err(Gone),
        () = until => Ok(()),
    }
}

/// Reads until the client goes.
async fn drain(socket: &mut Socket) {
    while let Some(Ok(message)) = socket.next().await {
        if message.is_close() {
            return;
        }
    }
}
