//! `/attach`: what a running container prints from now on, until it ends.
//!
//! Its first program takes no input here: what the client sends is thrown away.

use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use serde_json::Value;
use tokio::sync::oneshot;

use super::query::Query;
use super::server::{Body, text};
use super::socket::{self, Asked, ERROR, Gone, Input, OUTPUT, Out, Work};
use super::status;
use crate::cluster::Cluster;
use crate::log::{Reader, Stream};
use crate::pods::book::State;
use crate::pods::run::PodRun;
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
    let reader = {
        let book = run.book();
        book.container(container)
            .filter(|known| matches!(known.state, State::Running { .. }))
            .map(|known| known.log.from_last(0))
    };
    let Some(reader) = reader else {
        // kubelet, GetAttach; the pod's full name is NAME_NAMESPACE
        let (pod, namespace) = (&run.key.name, &run.key.namespace);
        let words = format!("container {container} not found in pod {pod}_{namespace}");
        return text(StatusCode::INTERNAL_SERVER_ERROR, &words);
    };
    // kubelet, GetAttach: whether there is a terminal is the container's word, not the client's
    asked.terminal = has_terminal(run, container);
    let session = Session {
        reader,
        asked,
        os: run.node.pool.os(),
    };
    socket::begin(cluster, request, asked, session)
}

fn has_terminal(run: &PodRun, container: &str) -> bool {
    let Some(spec) = &run.pod.spec else {
        return false;
    };
    let mut all = spec
        .containers
        .iter()
        .chain(spec.init_containers.iter().flatten());
    all.any(|known| known.name == container && known.tty == Some(true))
}

struct Session {
    reader: Reader,
    asked: Asked,
    os: Os,
}

impl Work for Session {
    fn reads(&self) -> bool {
        false
    }

    fn os(&self) -> Os {
        self.os
    }

    async fn run(mut self, out: &mut Out, _: oneshot::Receiver<Input>) -> Result<Value, Gone> {
        while let Some(line) = self.reader.wait().await {
            let (channel, wanted) = match line.stream {
                Stream::Error if !self.asked.terminal => (ERROR, self.asked.error),
                _ => (OUTPUT, self.asked.output),
            };
            if wanted {
                out.stream(channel, &line.bytes).await?;
            }
        }
        // The runtime tells no exit code here: the streams have ended, and that is success
        Ok(status::exited(&[], 0))
    }
}
