//! A session over WebSocket: subprotocols `v5.channel.k8s.io` and `v4.channel.k8s.io`.
//!
//! Channels: 0 input, 1 output, 2 error stream, 3 status, 255 (v5) end of a channel. The server reads all the
//! time, so that it answers the client's pings and notices a disconnection; it sends as fast as the client
//! reads.

use std::time::Duration;

use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt, StreamExt};
use http::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, UPGRADE,
};
use http::{HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::sync::oneshot::{self, Sender};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};

use super::exec::Session;
use super::server::{Body, text};
use crate::base::clock;
use crate::base::query::Query;
use crate::nodes::cluster::Cluster;

const INPUT: u8 = 0;
pub(super) const OUTPUT: u8 = 1;
pub(super) const ERROR: u8 = 2;
const STATUS: u8 = 3;
const CLOSE: u8 = 255;

/// The largest message that the server sends: what a kubelet's copy loop reads at once.
const CHUNK: usize = 32 * 1024;

/// The largest message that the server accepts.
const LONGEST: usize = 16 << 20;

/// How long the client may take to close its side.
const CLOSING: Duration = Duration::from_secs(5);

type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// The streams that the client wants.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) input: bool,
    pub(super) output: bool,
    pub(super) error: bool,
}

impl Asked {
    /// Reads the choice; or returns the words with which a kubelet refuses it (`remotecommand.NewOptions`).
    pub(super) fn read(query: &Query) -> Result<Self, &'static str> {
        let streams = Self {
            input: query.is_set("input"),
            output: query.is_set("output"),
            error: query.is_set("error"),
        };
        if streams.input || streams.output || streams.error {
            Ok(streams)
        } else {
            Err("you must specify at least 1 of stdin, stdout, stderr")
        }
    }
}

/// The client has disconnected.
#[derive(Debug)]
pub(super) struct Gone;

/// The sending side of a session.
pub(super) struct Out {
    sink: SplitSink<Socket, Message>,
}

impl Out {
    async fn message(&mut self, channel: u8, bytes: &[u8]) -> Result<(), Gone> {
        let mut message = Vec::with_capacity(bytes.len() + 1);
        message.push(channel);
        message.extend_from_slice(bytes);
        let message = Message::Binary(message.into());
        self.sink.send(message).await.map_err(|_| Gone)
    }

    /// Sends a program's output, as fast as the client reads.
    pub(super) async fn stream(&mut self, channel: u8, bytes: &[u8]) -> Result<(), Gone> {
        for chunk in bytes.chunks(CHUNK) {
            self.message(channel, chunk).await?;
        }
        Ok(())
    }
}

/// Answers the request for a session, then runs the session.
pub(super) fn answer(
    cluster: &Cluster,
    mut request: Request<Incoming>,
    streams: Asked,
    session: Session,
) -> Response<Body> {
    let headers = request.headers();
    let header = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let Some(key) = header(SEC_WEBSOCKET_KEY).map(str::to_owned) else {
        return text(
            StatusCode::BAD_REQUEST,
            "you must specify a WebSocket upgrade, as SPDY is not served by this simulated kubelet",
        );
    };
    let offered = header(SEC_WEBSOCKET_PROTOCOL).unwrap_or_default();
    let offers = |protocol: &str| offered.split(',').any(|each| each.trim() == protocol);
    let known = ["v5.channel.k8s.io", "v4.channel.k8s.io"];
    let Some(protocol) = known.into_iter().find(|protocol| offers(protocol)) else {
        return text(StatusCode::FORBIDDEN, "no WebSocket subprotocol in common");
    };
    let upgrade = hyper::upgrade::on(&mut request);
    cluster.spawn(async move {
        match upgrade.await {
            Ok(upgraded) => serve(upgraded, streams, session).await,
            Err(error) => tracing::debug!(%error, "session is not upgraded"),
        }
    });
    let mut response = text(StatusCode::SWITCHING_PROTOCOLS, "");
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(protocol));
    if let Ok(accept) = HeaderValue::from_str(&derive_accept_key(key.as_bytes())) {
        headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    }
    response
}

async fn serve(upgraded: Upgraded, streams: Asked, session: Session) {
    let mut config = WebSocketConfig::default();
    config.max_message_size = Some(LONGEST);
    config.max_frame_size = Some(LONGEST);
    let io = TokioIo::new(upgraded);
    let socket = Socket::from_raw_socket(io, Role::Server, Some(config)).await;
    let (sink, stream) = socket.split();
    let mut out = Out { sink };
    let (sends, input) = oneshot::channel();
    let mut collector = Collector(Some((Vec::new(), sends)));
    if !streams.input {
        collector.end();
    }
    let mut reading = std::pin::pin!(read(stream, collector));
    let working = async {
        // wsstream signals that the streams are ready by an empty message on the lowest channel that the
        // client reads
        let lowest = if streams.output { OUTPUT } else { STATUS };
        out.message(lowest, b"").await?;
        let status = session.run(&mut out, input).await?;
        out.message(STATUS, status.to_string().as_bytes()).await?;
        let normal = CloseFrame {
            code: CloseCode::Normal,
            reason: "".into(),
        };
        let close = Message::Close(Some(normal));
        out.sink.send(close).await.map_err(|_| Gone)
    };
    let ended = tokio::select! {
        biased;
        () = &mut reading => Err(Gone),
        ended = working => ended,
    };
    if ended.is_ok() {
        // Wait for the client's close, so that no reset cuts off the last frames
        tokio::select! {
            biased;
            () = reading => {}
            () = clock::elapse(CLOSING) => {}
        }
    }
}

/// Collects the input until it is complete.
struct Collector(Option<(Vec<u8>, Sender<Vec<u8>>)>);

impl Collector {
    fn end(&mut self) {
        if let Some((bytes, sends)) = self.0.take() {
            // The session no longer waits if it has ended
            let _ = sends.send(bytes);
        }
    }
}

/// Reads messages until the client disconnects.
async fn read(mut stream: SplitStream<Socket>, mut input: Collector) {
    while let Some(Ok(message)) = stream.next().await {
        match message {
            Message::Binary(bytes) => match bytes.split_first() {
                Some((&INPUT, rest)) => {
                    if let Some((bytes, _)) = &mut input.0 {
                        bytes.extend_from_slice(rest);
                    }
                }
                Some((&CLOSE, [INPUT, ..])) => input.end(),
                _ => {}
            },
            Message::Close(_) => return,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_chosen() {
        let read = |query| Asked::read(&Query::parse(Some(query)));
        let asked = read("output=1&error=0&input=true").expect("it is whole");
        assert!(asked.input && asked.output && !asked.error);
        assert!(read("command=date").is_err());
    }
}
