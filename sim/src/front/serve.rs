//! The server: from a client's connection to its requests, and from a request to its answer.

use std::convert::Infallible;
use std::fmt;
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_LENGTH, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::client::Body;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::admission::{self, Altered};
use super::asked::Asked;
use super::chance::{Chance, Form, Hit};
use super::counts::FrontCounts;
use super::fault::{FrontFault, Trouble};
use super::session::ExecTrouble;
use super::wire::Wire;
use super::{answer, forward, session};

/// The largest request body; an API server takes 3 MiB.
const LARGEST_REQUEST: usize = 8 * 1024 * 1024;

/// How long no connection is taken after one could not be, for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What all connections share.
pub(super) struct Shared {
    client: kube::Client,
    chance: Chance,
    faults: Mutex<Arc<[FrontFault]>>,
    counts: Mutex<FrontCounts>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl fmt::Debug for Shared {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Shared")
            .field("faults", &self.faults())
            .finish_non_exhaustive()
    }
}

impl Shared {
    pub(super) fn new(
        client: kube::Client,
        faults: Vec<FrontFault>,
        seed: u64,
        stop: CancellationToken,
        tasks: TaskTracker,
    ) -> Self {
        Self {
            client,
            chance: Chance::new(seed),
            faults: Mutex::new(faults.into()),
            counts: Mutex::default(),
            stop,
            tasks,
        }
    }

    pub(super) fn set(&self, faults: Vec<FrontFault>) {
        *held(&self.faults) = faults.into();
    }

    pub(super) fn counts(&self) -> FrontCounts {
        held(&self.counts).clone()
    }

    fn faults(&self) -> Arc<[FrontFault]> {
        Arc::clone(&held(&self.faults))
    }

    /// Runs a task until it or the front ends.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = task => {}
            }
        });
    }
}

/// Locks; what is held stays whole even if a holder panicked.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes connections until the front ends.
pub(super) async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        let accepted = tokio::select! {
            () = shared.stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => shared.spawn(connection(stream, Arc::clone(&shared))),
            Err(_) => {
                let _ = tokio::time::timeout(ACCEPT_PAUSE, shared.stop.cancelled()).await;
            }
        }
    }
}

/// Serves a connection; when the client leaves, so does the request it was waiting for.
async fn connection(stream: TcpStream, shared: Arc<Shared>) {
    let _ = stream.set_nodelay(true);
    let reset = CancellationToken::new();
    let service = service_fn(|request| {
        let (shared, reset) = (Arc::clone(&shared), reset.clone());
        async move { Ok::<_, Infallible>(serve(&shared, &reset, request).await) }
    });
    let serving = http1::Builder::new()
        .serve_connection(TokioIo::new(Wire::new(stream, reset.clone())), service)
        .with_upgrades();
    tokio::select! {
        () = reset.cancelled() => {}
        // An error means that the client left or sent what is no HTTP, which hyper answers
        _ = serving => {}
    }
}

async fn serve(
    shared: &Shared,
    reset: &CancellationToken,
    mut request: Request<Incoming>,
) -> Response<Body> {
    if request.method() == Method::CONNECT || !request.uri().path().starts_with('/') {
        return answer::bad_request("the request names no path");
    }
    let near = hyper::upgrade::on(&mut request);
    let (head, body) = request.into_parts();
    let asked = Asked::read(&head);
    let faults = shared.faults();
    let hit = shared.chance.draw(&faults, &asked);
    {
        let mut counts = held(&shared.counts);
        counts.saw(asked.kind.clone());
        if let Some(hit) = hit {
            counts.hit(hit.trouble.name());
        }
    }
    let Ok(body) = Limited::new(body, LARGEST_REQUEST).collect().await else {
        return answer::bad_request("the request's body is too large or does not end");
    };
    let body = body.to_bytes();

    let mut exec = None;
    let mut reset_late = false;
    if let Some(Hit { trouble, form }) = hit {
        match (trouble, form) {
            (Trouble::TooManyRequests, form) => return answer::too_many_requests(form),
            (Trouble::InternalError, _) => return answer::internal_error(),
            (Trouble::Gone, _) => return answer::gone(asked.expiry),
            (Trouble::Html502, _) => return answer::html_502(),
            (Trouble::Hang, _) => return pending().await,
            (Trouble::Reset, Form::Early) => return end(reset).await,
            (Trouble::Reset, Form::Late) => reset_late = true,
            (Trouble::CutExec, Form::Early) => exec = Some(ExecTrouble::CutBeforeOutput),
            (Trouble::CutExec, Form::Late) => exec = Some(ExecTrouble::CutAfterOutput),
            (Trouble::LoseExitFrame, _) => exec = Some(ExecTrouble::LoseExit),
        }
    }

    let altered = admission::alter(&faults, &asked, &body);
    let body = altered
        .as_ref()
        .map_or(body, |altered| altered.body.clone());
    let mut request = forward::request(&head, asked.session, body);
    if let Some(altered) = &altered {
        // What has to be changed on its way back has to be readable
        request
            .headers_mut()
            .insert(ACCEPT, HeaderValue::from_static("application/json"));
        let mut counts = held(&shared.counts);
        altered.by.iter().for_each(|name| counts.hit(name));
    }
    let response = match shared.client.send(request).await {
        Ok(response) => response,
        Err(error) => return answer::unreachable(&error),
    };
    if reset_late {
        return end(reset).await;
    }
    match (asked.session, altered) {
        (Some(session), _) if response.status() == StatusCode::SWITCHING_PROTOCOLS => {
            session::join(shared, session, exec, near, response)
        }
        (_, Some(altered)) if response.status().is_success() => restored(altered, response).await,
        _ => forward::response(response),
    }
}

/// The answer to an altered request, as the client is to see it.
async fn restored(altered: Altered, response: Response<Body>) -> Response<Body> {
    let (mut head, body) = forward::response(response).into_parts();
    let body: Bytes = match body.collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) => return answer::unreachable(&error),
    };
    let body = altered.answer(&body).unwrap_or(body);
    head.headers.remove(CONTENT_LENGTH);
    Response::from_parts(head, Body::from(body))
}

/// Resets the connection, which drops whoever waits for an answer here.
async fn end(reset: &CancellationToken) -> Response<Body> {
    reset.cancel();
    pending().await
}
