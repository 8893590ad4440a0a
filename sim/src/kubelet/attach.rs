//! `/attach`: what a running container prints from now on, until it ends, and what it is sent if it
//! has an input.

use std::sync::Arc;

use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

use super::server::{Body, text};
use super::socket::{self, Asked, ERROR, Gone, OUTPUT, Out, Work};
use super::status;
use crate::cluster::Cluster;
use crate::keyboard::Sent;
use crate::log::{Reader, Stream};
use crate::pods::book::State;
use crate::pods::run::PodRun;
use crate::query::Query;
use crate::topology::Os;

/// Answers the request for a session and runs it behind the answer.
pub(super) fn begin(
    cluster: &Cluster,
    run: &PodRun,
    container: &str,
    query: &Query,
    request: Request<Incoming>,
) -> Response<Body> {
    let mut asked = match Asked::read(query) {
        Ok(asked) => asked,
        Err(words) => return text(StatusCode::BAD_REQUEST, words),
    };
    let found = {
        let book = run.book();
        book.container(container)
            .filter(|known| matches!(known.state, State::Running { .. }))
            .map(|known| {
                (
                    known.log.from_now(),
                    known.input.clone(),
                    Arc::clone(&known.spec),
                )
            })
    };
    let Some((reader, sends, spec)) = found else {
        // kubelet, GetAttach; the pod's full name is NAME_NAMESPACE
        let (pod, namespace) = (&run.key.name, &run.key.namespace);
        let words = format!("container {container} not found in pod {pod}_{namespace}");
        return text(StatusCode::INTERNAL_SERVER_ERROR, &words);
    };
    // kubelet, GetAttach: whether there is a terminal is the container's word, not the client's
    asked.terminal = spec.tty == Some(true);
    let session = Session {
        reader,
        asked,
        input: Sending {
            sends,
            closes: spec.stdin_once == Some(true) && !asked.terminal,
        },
        os: run.node.pool.os(),
    };
    socket::begin(cluster, request, asked, session)
}

/// The way to a container's input.
struct Sending {
    sends: Option<UnboundedSender<Sent>>,
    /// Whether the input ends with the session (containerd 2.1, `internal/cri/io/container_io.go`,
    /// `Attach`: `StdinOnce` and no terminal).
    closes: bool,
}

impl Sending {
    fn send(&self, sent: Sent) {
        if let Some(sends) = &self.sends {
            // Nobody listens once the container has ended, or if it reads nothing
            let _ = sends.send(sent);
        }
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        if self.closes {
            self.send(Sent::End);
        }
    }
}

struct Session {
    reader: Reader,
    asked: Asked,
    input: Sending,
    os: Os,
}

impl Work for Session {
    fn os(&self) -> Os {
        self.os
    }

    async fn run(
        mut self,
        out: &mut Out,
        mut sent: UnboundedReceiver<Sent>,
    ) -> Result<Value, Gone> {
        loop {
            let line = tokio::select! {
                line = self.reader.wait() => line,
                Some(sent) = sent.recv() => {
                    match sent {
                        Sent::Bytes(_) => self.input.send(sent),
                        Sent::End if self.input.closes => self.input.send(sent),
                        // `Attach` again: the streams are closed, and the input stays open
                        Sent::End => break,
                        Sent::TooMuch => {}
                    }
                    continue;
                }
            };
            let Some(line) = line else {
                break;
            };
            let (channel, wanted) = match line.stream {
                Stream::Error if !self.asked.terminal => (ERROR, self.asked.error),
                _ => (OUTPUT, self.asked.output),
            };
            if wanted && !line.bytes.is_empty() {
                out.stream(channel, &line.bytes).await?;
            }
        }
        // The runtime tells no exit code here: the streams have ended, and that is success
        Ok(status::exited(&[], 0))
    }
}
