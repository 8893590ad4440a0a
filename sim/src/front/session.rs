//! Sessions that leave HTTP: WebSocket is ended here on both sides and carried message by message;
//! any other protocol (SPDY) is carried byte by byte, out of reach of the exec faults.

use std::pin::pin;
use std::time::Duration;

use futures::future::{Either, FutureExt, select};
use futures::{Sink, SinkExt, Stream, StreamExt};
use http::{Response, StatusCode};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use kube::client::Body;
use tokio::io::copy_bidirectional;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role};
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_util::sync::CancellationToken;

use super::asked::Session;
use super::serve::Shared;

/// How long the other side may take to answer a close frame.
const CLOSE_GRACE: Duration = Duration::from_secs(5);

/// The channel of a program's output.
const STDOUT: u8 = 1;
/// The channel that says how a program ended.
const EXIT: u8 = 3;

/// What goes wrong in an exec session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExecTrouble {
    CutBeforeOutput,
    CutAfterOutput,
    LoseExit,
}

/// What becomes of a message.
enum Fate {
    Pass(Message),
    Lose,
    Cut,
    PassThenCut(Message),
}

/// How a direction ended.
enum End {
    /// A close frame was read and passed on.
    Closed,
    /// Without one: the other side is to see the same.
    Broken,
}

/// Joins a client with the session its server has agreed to; returns what tells the client so.
pub(super) fn join(
    shared: &Shared,
    reset: CancellationToken,
    session: Session,
    trouble: Option<ExecTrouble>,
    near: OnUpgrade,
    far: Response<Body>,
) -> Response<Body> {
    // Key and answer of the WebSocket handshake passed through, so these headers are the client's
    let mut agreed = Response::new(Body::empty());
    *agreed.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    *agreed.headers_mut() = far.headers().clone();
    shared.spawn(async move {
        let carried = carry(session, trouble, near, far);
        let _ = reset.run_until_cancelled(carried).await;
    });
    agreed
}

async fn carry(
    session: Session,
    trouble: Option<ExecTrouble>,
    near: OnUpgrade,
    far: Response<Body>,
) {
    let Ok((near, far)) = tokio::try_join!(near, hyper::upgrade::on(far)) else {
        return;
    };
    let (mut near, mut far) = (TokioIo::new(near), TokioIo::new(far));
    if session == Session::Raw {
        // Either side's error ends both, which is what it has to do
        let _ = copy_bidirectional(&mut near, &mut far).await;
        return;
    }
    let near = WebSocketStream::from_raw_socket(near, Role::Server, None).await;
    let far = WebSocketStream::from_raw_socket(far, Role::Client, None).await;
    relay(near, far, trouble).await;
}

/// Carries messages both ways until both sides have closed or one is gone.
async fn relay(
    near: WebSocketStream<TokioIo<Upgraded>>,
    far: WebSocketStream<TokioIo<Upgraded>>,
    trouble: Option<ExecTrouble>,
) {
    let (mut to_client, mut from_client) = near.split();
    let (mut to_server, mut from_server) = far.split();
    let up = pin!(pump(&mut from_client, &mut to_server, Fate::Pass));
    let down = pin!(pump(&mut from_server, &mut to_client, |message| fate(
        trouble, message
    )));
    match select(up, down).await {
        Either::Left((End::Closed, down)) => {
            let _ = tokio::time::timeout(CLOSE_GRACE, down).await;
        }
        Either::Right((End::Closed, up)) => {
            let _ = tokio::time::timeout(CLOSE_GRACE, up).await;
        }
        Either::Left((End::Broken, _)) | Either::Right((End::Broken, _)) => {}
    }
}

/// Carries messages one way; each side answers pings itself.
async fn pump(
    from: &mut (impl Stream<Item = Result<Message, Error>> + Unpin),
    to: &mut (impl Sink<Message, Error = Error> + Unpin),
    fate: impl Fn(Message) -> Fate,
) -> End {
    while let Some(Ok(message)) = from.next().await {
        if matches!(message, Message::Ping(_) | Message::Pong(_)) {
            continue;
        }
        let closes = message.is_close();
        match fate(message) {
            Fate::Lose => {}
            Fate::Cut => return End::Broken,
            Fate::Pass(message) => {
                let sent = to.send(message).await;
                if closes {
                    // Reading once more sends the answer to this close frame
                    let _ = from.next().now_or_never();
                    return End::Closed;
                }
                if sent.is_err() {
                    return End::Broken;
                }
            }
            Fate::PassThenCut(message) => {
                let _ = to.send(message).await;
                return End::Broken;
            }
        }
    }
    End::Broken
}

/// What becomes of a message from the server.
fn fate(trouble: Option<ExecTrouble>, message: Message) -> Fate {
    let Some(trouble) = trouble else {
        return Fate::Pass(message);
    };
    let closes = message.is_close();
    let ends = closes || channel(&message) == Some((EXIT, true));
    let output = channel(&message) == Some((STDOUT, true));
    match trouble {
        ExecTrouble::CutBeforeOutput if output || ends => Fate::Cut,
        ExecTrouble::CutAfterOutput if output => Fate::PassThenCut(message),
        ExecTrouble::CutAfterOutput if ends => Fate::Cut,
        ExecTrouble::LoseExit if closes => Fate::Pass(Message::Close(Some(CloseFrame {
            code: CloseCode::Normal,
            reason: "".into(),
        }))),
        ExecTrouble::LoseExit if channel(&message).is_some_and(|(channel, _)| channel == EXIT) => {
            Fate::Lose
        }
        _ => Fate::Pass(message),
    }
}

/// A message's channel, and whether it holds data; base64 protocols write the channel as a digit.
fn channel(message: &Message) -> Option<(u8, bool)> {
    match message {
        Message::Binary(bytes) => bytes.first().map(|channel| (*channel, bytes.len() > 1)),
        Message::Text(text) => {
            let bytes = text.as_bytes();
            bytes
                .first()
                .map(|digit| (digit.wrapping_sub(b'0'), bytes.len() > 1))
        }
        _ => None,
    }
}
