//! Exec sessions that end as they should not: the client gets a stream in memory, and the messages that
//! its server sends are relayed to it, up to where the trouble is.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::future::{Either, FutureExt, select};
use futures::{Sink, SinkExt, Stream, StreamExt};
use http::request::Parts;
use http::{Request, Response};
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use kube::client::Body;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role};
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_util::sync::CancellationToken;

/// How long the other side may take to answer a close frame.
const CLOSE_GRACE: Duration = Duration::from_secs(5);

/// How much the stream in memory holds in each direction.
const BUFFER: usize = 256 * 1024;

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

/// The answer to a request for a session with a stream of our own in the place of the server's, to
/// which that server has agreed. Only hyper makes such streams: by an exchange of HTTP, in memory.
pub(super) async fn replaced(
    life: CancellationToken,
    trouble: Option<ExecTrouble>,
    head: Parts,
    far: Response<Body>,
) -> hyper::Result<Response<Body>> {
    let (client, server) = tokio::io::duplex(BUFFER);
    // Key and answer of the handshake are those of the two ends
    let mut agreed = Response::new(Empty::<Bytes>::new());
    *agreed.status_mut() = far.status();
    *agreed.headers_mut() = far.headers().clone();
    let once = Arc::new(Mutex::new(Some((life, far))));
    let service = service_fn(move |request: Request<Incoming>| {
        let (agreed, once) = (agreed.clone(), Arc::clone(&once));
        async move {
            if let Some((life, far)) = crate::lock::locked(&once).take() {
                tokio::spawn(async move {
                    let _ = life.run_until_cancelled(carry(trouble, request, far)).await;
                });
            }
            Ok::<_, Infallible>(agreed)
        }
    });
    let serving = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(server), service)
        .with_upgrades();
    // Whoever has the stream hears of what goes wrong
    tokio::spawn(serving.map(|_| ()));
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(client)).await?;
    tokio::spawn(connection.with_upgrades().map(|_| ()));
    let mut request = Request::from_parts(head, Empty::<Bytes>::new());
    let here = http::HeaderValue::from_static("simulated");
    request.headers_mut().insert(http::header::HOST, here);
    let agreed = sender.send_request(request).await?;
    Ok(agreed.map(|_| Body::empty()))
}

async fn carry(trouble: Option<ExecTrouble>, near: Request<Incoming>, far: Response<Body>) {
    let (near, far) = (hyper::upgrade::on(near), hyper::upgrade::on(far));
    if let Ok((near, far)) = tokio::try_join!(near, far) {
        let (near, far) = (TokioIo::new(near), TokioIo::new(far));
        let near = WebSocketStream::from_raw_socket(near, Role::Server, None).await;
        let far = WebSocketStream::from_raw_socket(far, Role::Client, None).await;
        relay(near, far, trouble).await;
    }
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
