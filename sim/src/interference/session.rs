//! Exec sessions that end wrongly: frames of a server, relayed up to the trouble.

use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures::future::FutureExt;
use http::request::Parts;
use http::{Request, Response};
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::client::Body;
use tokio::io::{
    AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy, copy_bidirectional, duplex, split,
};
use tokio_util::sync::CancellationToken;

use crate::base::lock::locked;
use crate::wire::loopback::exchange;

/// How many bytes the stream in memory buffers in each direction.
const BUFFER: usize = 256 * 1024;

/// The channel of a program's output.
const STDOUT: u8 = 1;
/// The channel that reports how a program ended.
const EXIT: u8 = 3;

/// Kinds of frames (RFC 6455, section 5.2).
const TEXT: u8 = 1;
const BINARY: u8 = 2;
const CLOSE: u8 = 8;

/// A whole close frame with code 1000.
const NORMAL_CLOSE: [u8; 4] = [0x88, 2, 0x03, 0xe8];

/// The trouble of an exec session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecTrouble {
    /// The connection is cut before the first output.
    CutBeforeOutput,
    /// The connection is cut after the first output.
    CutAfterOutput,
    /// The session ends without the frame that reports how its program ended.
    LoseExit,
}

/// Answers a request for a session with a stream of ours instead of the server's, to which the server has
/// agreed. Only hyper can create such a stream, by an HTTP exchange, in memory.
pub(crate) async fn replaced(
    life: CancellationToken,
    trouble: Option<ExecTrouble>,
    head: Parts,
    far: Response<Body>,
) -> hyper::Result<Response<Body>> {
    let (client, server) = duplex(BUFFER);
    // The client and the server did the handshake, so its key and answer are theirs
    let mut agreed = Response::new(Empty::<Bytes>::new());
    *agreed.status_mut() = far.status();
    *agreed.headers_mut() = far.headers().clone();
    let once = Arc::new(Mutex::new(Some((life, far))));
    let service = service_fn(move |near: Request<Incoming>| {
        let (agreed, once) = (agreed.clone(), Arc::clone(&once));
        async move {
            if let Some((life, far)) = locked(&once).take() {
                tokio::spawn(async move {
                    let _ = life.run_until_cancelled(carry(trouble, near, far)).await;
                });
            }
            Ok::<_, Infallible>(agreed)
        }
    });
    let serving = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(server), service)
        .with_upgrades();
    // The user of the stream notices its errors
    tokio::spawn(serving.map(|_| ()));
    let request = Request::from_parts(head, Body::empty());
    let agreed = exchange(client, request, |connection| {
        tokio::spawn(connection);
    });
    Ok(agreed.await?.map(|_| Body::empty()))
}

/// Carries bytes both ways until one side ends, or the trouble cuts the connection.
async fn carry(trouble: Option<ExecTrouble>, near: Request<Incoming>, far: Response<Body>) {
    let (near, far) = (hyper::upgrade::on(near), hyper::upgrade::on(far));
    let Ok((near, far)) = tokio::try_join!(near, far) else {
        return;
    };
    let (mut near, mut far) = (TokioIo::new(near), TokioIo::new(far));
    let Some(trouble) = trouble else {
        let _ = copy_bidirectional(&mut near, &mut far).await;
        return;
    };
    let (mut from_client, mut to_client) = split(near);
    let (mut from_server, mut to_server) = split(far);
    tokio::select! {
        biased;
        _ = copy(&mut from_client, &mut to_server) => {}
        _ = relay(&mut from_server, &mut to_client, trouble) => {}
    }
}

/// Relays the frames of a server until the trouble cuts them; the caller closes both ends.
pub async fn relay(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    trouble: ExecTrouble,
) -> io::Result<()> {
    loop {
        let (mut frame, head) = next(from).await?;
        let (kind, payload) = (frame[0] & 0x0f, &frame[head..]);
        let channel = match (kind, payload.first()) {
            (BINARY, Some(channel)) => Some(*channel),
            // The base64 protocols write the channel as a digit
            (TEXT, Some(digit)) => Some(digit.wrapping_sub(b'0')),
            _ => None,
        };
        let (closes, has_data) = (kind == CLOSE, payload.len() > 1);
        let ends = closes || channel == Some(EXIT) && has_data;
        let output = channel == Some(STDOUT) && has_data;
        match trouble {
            ExecTrouble::CutBeforeOutput if output || ends => return Ok(()),
            ExecTrouble::CutAfterOutput if ends => return Ok(()),
            ExecTrouble::LoseExit if closes => frame = NORMAL_CLOSE.to_vec(),
            ExecTrouble::LoseExit if channel == Some(EXIT) => continue,
            _ => {}
        }
        to.write_all(&frame).await?;
        to.flush().await?;
        if output && trouble == ExecTrouble::CutAfterOutput {
            return Ok(());
        }
    }
}

/// A server's next frame, which is not masked, and the offset of its payload.
async fn next(from: &mut (impl AsyncRead + Unpin)) -> io::Result<(Vec<u8>, usize)> {
    let mut frame = vec![0; 2];
    from.read_exact(&mut frame).await?;
    let short = usize::from(frame[1] & 0x7f);
    let head = match short {
        126 => 4,
        127 => 10,
        _ => 2,
    };
    frame.resize(head, 0);
    from.read_exact(&mut frame[2..]).await?;
    let length = frame[2..]
        .iter()
        .fold(0, |length, byte| length << 8 | usize::from(*byte));
    frame.resize(head + if head == 2 { short } else { length }, 0);
    from.read_exact(&mut frame[head..]).await?;
    Ok((frame, head))
}
