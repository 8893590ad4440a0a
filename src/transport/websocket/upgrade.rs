//! Opens the WebSocket of an exec (RFC 6455).
//!
//! kube's own `Client::connect` reads a refusal's body without bound, so this module does the upgrade itself.

use http::header::{
    CONNECTION, HeaderMap, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use kube::client::{Body, Client};
use std::time::Duration;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::{client::generate_key, derive_accept_key};
use tokio_tungstenite::tungstenite::protocol::Role;

use crate::transport::attempt::{Failure, connection, read_body, retry_after, words};
use crate::transport::error_text::error_text;

/// The bound on a refusal's body in bytes.
const REFUSAL_LIMIT: usize = 64 << 10;

/// An open WebSocket.
pub(crate) type Socket = WebSocketStream<TokioIo<hyper::upgrade::Upgraded>>;

/// The subprotocols that this client speaks; kubernetes `remotecommand` constants.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Protocol {
    /// An exit status comes as a Status.
    V4,
    /// Like v4, and the client can end standard input.
    V5,
}

impl Protocol {
    const BOTH: &'static str = "v5.channel.k8s.io, v4.channel.k8s.io";

    fn parse(word: &str) -> Option<Self> {
        match word {
            "v4.channel.k8s.io" => Some(Self::V4),
            "v5.channel.k8s.io" => Some(Self::V5),
            _ => None,
        }
    }
}

/// Asks for a WebSocket at `path`; a refusal of the server is [`Failure::NoReply`].
pub(crate) async fn connect(
    client: &Client,
    path: &str,
    limit: Duration,
) -> Result<(Socket, Protocol), Failure> {
    let connecting = async {
        let key = generate_key();
        let request = Request::get(path)
            .header(CONNECTION, "Upgrade")
            .header(UPGRADE, "websocket")
            .header(SEC_WEBSOCKET_VERSION, "13")
            .header(SEC_WEBSOCKET_KEY, &key)
            .header(SEC_WEBSOCKET_PROTOCOL, Protocol::BOTH)
            .body(Body::empty())
            .map_err(Failure::Invalid)?;
        let answered = client.send(request).await;
        let response = answered.map_err(|error| connection(error, limit))?;
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Err(refusal(response).await);
        }
        let protocol = verify(response.headers(), &key)?;
        let upgraded = hyper::upgrade::on(response)
            .await
            .map_err(|error| Failure::Broken(error_text(&error)))?;
        let io = TokioIo::new(upgraded);
        Ok((
            WebSocketStream::from_raw_socket(io, Role::Client, None).await,
            protocol,
        ))
    };
    let connected = timeout(limit, connecting).await;
    connected.unwrap_or(Err(Failure::NoAnswer(limit)))
}

async fn refusal(response: Response<Body>) -> Failure {
    let status = response.status().as_u16();
    let after = retry_after(response.headers());
    let text = match read_body(response.into_body(), REFUSAL_LIMIT).await {
        Ok(bytes) => words(&bytes),
        Err(error) => error_text(&error),
    };
    Failure::NoReply {
        status,
        after,
        text,
    }
}

fn verify(headers: &HeaderMap, key: &str) -> Result<Protocol, Failure> {
    let is = |name, value: &str| {
        headers
            .get(name)
            .is_some_and(|v| v.as_bytes().eq_ignore_ascii_case(value.as_bytes()))
    };
    let accepted = headers
        .get(SEC_WEBSOCKET_ACCEPT)
        .is_some_and(|accept| accept.as_bytes() == derive_accept_key(key.as_bytes()).as_bytes());
    let protocol = headers
        .get(SEC_WEBSOCKET_PROTOCOL)
        .and_then(|p| p.to_str().ok());
    match protocol.and_then(Protocol::parse) {
        Some(protocol) if is(UPGRADE, "websocket") && is(CONNECTION, "upgrade") && accepted => {
            Ok(protocol)
        }
        _ => Err(Failure::NoExec),
    }
}
