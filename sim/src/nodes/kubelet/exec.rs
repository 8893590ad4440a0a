//! `/exec`: a program in a container. A program without an end runs until the client disconnects.

use std::sync::Arc;

use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use serde_json::Value;
use tokio::sync::oneshot::Receiver;

use super::server::{Body, text};
use super::socket::{self, Asked, ERROR, Gone, OUTPUT, Out};
use super::status;
use crate::base::log::Stream;
use crate::base::query::Query;
use crate::fault::FaultKind;
use crate::nodes::cluster::Cluster;
use crate::nodes::play::{Player, Told};
use crate::pods::course::hook::DLL_INIT_FAILED;
use crate::pods::course::run::PodRun;
use crate::program::{self, Place, Refusal, Started};

/// The answer to a client that asks for a terminal.
pub(super) const NO_TERMINAL: &str =
    "simulated containers have no terminal, and `kubectl exec` without `-t` needs none";

/// Answers the request for a session, then runs the session.
pub(super) fn begin(
    cluster: &Arc<Cluster>,
    run: &Arc<PodRun>,
    container: &str,
    query: &Query,
    request: Request<Incoming>,
) -> Response<Body> {
    if query.is_set("tty") {
        return text(StatusCode::NOT_IMPLEMENTED, NO_TERMINAL);
    }
    if run.suffers(FaultKind::ExecRefused, cluster) {
        return text(StatusCode::FORBIDDEN, &forbidden(request.method()));
    }
    let mut streams = match Asked::read(query) {
        Ok(streams) => streams,
        Err(words) => return text(StatusCode::BAD_REQUEST, words),
    };
    let place = run
        .book()
        .container(container)
        .and_then(|known| known.place.clone());
    let Some(place) = place else {
        // kubelet, GetExec: "container not found", which it answers as an internal error
        let words = format!("container not found (\"{container}\")");
        return text(StatusCode::INTERNAL_SERVER_ERROR, &words);
    };
    if run.suffers(FaultKind::ExecOutputLost, cluster) {
        // kubernetes/kubernetes#124571: no output, but the usual exit code
        (streams.output, streams.error) = (false, false);
    }
    let session = Session {
        cluster: Arc::clone(cluster),
        run: Arc::clone(run),
        container: container.to_owned(),
        place,
        argv: query.all("command"),
        asked: streams,
    };
    socket::answer(cluster, request, streams, session)
}

/// A kubelet's words to an API server that lacks the permission (kubernetes 1.37.0,
/// `pkg/kubelet/server/server.go`, `InstallAuthFilter`; the permission, `pkg/kubelet/server/auth.go`; the
/// user, as kubeadm names it). A real kubelet would refuse logs with the same words; here logs work, since
/// the fault is one of exec.
fn forbidden(method: &Method) -> String {
    let verb = match *method {
        Method::POST => "create",
        _ => "get",
    };
    format!(
        "Forbidden (user=kube-apiserver-kubelet-client, verb={verb}, resource=nodes, \
         subresource(s)=[proxy])\n"
    )
}

/// A program to run, and the streams that its client wants.
pub(super) struct Session {
    cluster: Arc<Cluster>,
    run: Arc<PodRun>,
    container: String,
    place: Place,
    argv: Vec<String>,
    asked: Asked,
}

impl Session {
    /// Runs the program with the input and sends its output; returns the Status that ends the session.
    pub(super) async fn run(self, out: &mut Out, sent: Receiver<Vec<u8>>) -> Result<Value, Gone> {
        if self.run.exec_fails(&self.cluster, &self.place) {
            return Ok(status::not_run(&self.refused(&Refusal::RpcUnavailable)));
        }
        let input = sent.await.map_err(|_| Gone)?;
        self.run.exec_begins(&self.cluster).await;
        if self.run.dies_at_start(self.place.family, &self.cluster) {
            return Ok(status::exited(&self.argv, DLL_INIT_FAILED));
        }
        let world = self.cluster.world();
        let view = self.cluster.view(&world);
        let started = program::start(&self.place, &self.argv, &input, &view);
        drop(world);
        let mut player = Player::new(&self.cluster, started);
        loop {
            match player.next().await {
                Told::Printed(stream, bytes) => self.tell(out, stream, &bytes).await?,
                Told::Ended(code) => return Ok(status::exited(&self.argv, code)),
                Told::Other(Started::Refused(refusal)) => {
                    return Ok(status::not_run(&self.refused(&refusal)));
                }
                Told::Other(Started::Serves { prints, .. } | Started::Stays { prints }) => {
                    self.tell(out, Stream::Out, prints.as_bytes()).await?;
                    return std::future::pending().await;
                }
                Told::Other(_) => return std::future::pending().await,
            }
        }
    }

    async fn tell(&self, out: &mut Out, stream: Stream, bytes: &[u8]) -> Result<(), Gone> {
        let (channel, wanted) = match stream {
            Stream::Error => (ERROR, self.asked.error),
            Stream::Out => (OUTPUT, self.asked.output),
        };
        match wanted {
            true => out.stream(channel, bytes).await,
            false => Ok(()),
        }
    }

    /// containerd's words for an exec that did not start.
    fn refused(&self, refusal: &Refusal) -> String {
        self.run
            .not_executed(&self.cluster, &self.container, refusal)
    }
}
