//! The server: from a client's connection to its requests, and from a request to its answer.

use std::convert::Infallible;
use std::fmt;
use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE};
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::client::Body;
use tokio_util::either::Either;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::asked::Asked;
use super::catalogue::{AGGREGATED_DOWN, HOSTILE_TEXTS, SERVER_RESTARTS};
use super::chance::{Chance, Form, Hit};
use super::counts::FrontCounts;
use super::fault::FrontFault;
use super::session::ExecTrouble;
use super::stale::Lists;
use super::standing::{Life, Standing, Uptime, held};
use super::trouble::Trouble;
use super::wire::{Wire, resets};
use super::{aggregated, answer, cut, deleted, forward, hostile, refusal, sent, session, slow};
use crate::loopback::{Accepted, Listener};

/// An answer as it goes to the client.
type Answer = Response<UnsyncBoxBody<Bytes, kube::Error>>;

/// The largest request body; an API server takes 3 MiB.
const LARGEST_REQUEST: usize = 8 * 1024 * 1024;

/// How long no connection is taken after one could not be, for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What all connections share.
pub(super) struct Shared {
    pub(super) client: kube::Client,
    chance: Chance,
    standing: Mutex<Arc<Standing>>,
    life: Life,
    lists: Lists,
    counts: Mutex<FrontCounts>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl fmt::Debug for Shared {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Shared")
            .field("standing", &self.standing())
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
            standing: Mutex::new(Arc::new(Standing::new(faults))),
            life: Life::default(),
            lists: Lists::default(),
            counts: Mutex::default(),
            stop,
            tasks,
        }
    }

    pub(super) fn set(&self, faults: Vec<FrontFault>) {
        *held(&self.standing) = Arc::new(Standing::new(faults));
    }

    pub(super) fn counts(&self) -> FrontCounts {
        held(&self.counts).clone()
    }

    fn standing(&self) -> Arc<Standing> {
        Arc::clone(&held(&self.standing))
    }

    pub(super) fn hit(&self, names: &[&'static str]) {
        let mut counts = held(&self.counts);
        for name in names {
            counts.hit(name);
        }
    }

    /// Runs a task until it or the front ends.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                () = task => {}
            }
        });
    }
}

/// Takes connections until the front ends.
pub(super) async fn accept(listener: Listener, shared: Arc<Shared>) {
    loop {
        let accepted = tokio::select! {
            biased;
            () = shared.stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok(stream) if shared.standing().refuses() => resets(&stream),
            Ok(stream) => shared.spawn(connection(stream, Arc::clone(&shared))),
            Err(_) => {
                let _ = tokio::time::timeout(ACCEPT_PAUSE, shared.stop.cancelled()).await;
            }
        }
    }
}

/// Serves a connection; when the client leaves, so does the request it was waiting for.
async fn connection(stream: Accepted, shared: Arc<Shared>) {
    if let Either::Left(stream) = &stream {
        let _ = stream.set_nodelay(true);
    }
    let reset = shared.life.connection();
    let service = service_fn(|request| {
        let (shared, reset) = (Arc::clone(&shared), reset.clone());
        async move { Ok::<_, Infallible>(answer(&shared, &reset, request).await) }
    });
    let serving = http1::Builder::new()
        .serve_connection(TokioIo::new(Wire::new(stream, reset.clone())), service)
        .with_upgrades();
    tokio::select! {
        biased;
        () = reset.cancelled() => {}
        // An error means that the client left or sent what is no HTTP, which hyper answers
        _ = serving => {}
    }
}

/// Answers a request, and then does to the answer what the faults do to answers.
async fn answer(shared: &Shared, reset: &CancellationToken, request: Request<Incoming>) -> Answer {
    if request.method() == Method::CONNECT || !request.uri().path().starts_with('/') {
        return answer::bad_request("the request names no path").map(BodyExt::boxed_unsync);
    }
    let (head, body) = request.into_parts();
    let asked = Asked::read(&head);
    let standing = shared.standing();
    let faults = &standing.faults;
    let (number, uptime) = standing.request();
    let hit = shared.chance.draw(faults, &asked);
    held(&shared.counts).saw(asked.kind.clone());
    match uptime {
        Uptime::Up => {}
        Uptime::Starting => {
            shared.hit(&[SERVER_RESTARTS]);
            return answer::starting().map(BodyExt::boxed_unsync);
        }
        Uptime::Goes => {
            shared.hit(&[SERVER_RESTARTS]);
            shared.life.end();
            return end(reset).await;
        }
    }
    if let Some(hit) = hit {
        shared.hit(&[hit.trouble.name()]);
    }
    let path_is_discovery = aggregated::is_discovery(head.uri.path());
    let request = Request::from_parts(head, body);
    let response = served(shared, reset, &asked, faults, number, hit, request).await;
    let response = match faults.contains(&FrontFault::AggregatedDown) {
        true if path_is_discovery => {
            shared.hit(&[AGGREGATED_DOWN]);
            edited(response, aggregated::discovery).await
        }
        _ => response,
    };
    let hostile = faults.contains(&FrontFault::HostileTexts);
    let logged = hostile && asked.kind.resource == "pods/log" && response.status().is_success();
    let hostile = hostile && !logged && is_json(&response);
    if hostile || logged {
        shared.hit(&[HOSTILE_TEXTS]);
    }
    if logged {
        return edited(response, |log| Some(hostile::log(log)))
            .await
            .map(BodyExt::boxed_unsync);
    }
    if hostile && asked.kind.verb == "watch" && response.status().is_success() {
        return response.map(hostile::events);
    }
    let response = if hostile {
        edited(response, |body| hostile::whole(&asked, body)).await
    } else {
        response
    };
    match hit {
        Some(Hit {
            trouble: Trouble::Slow,
            form: Form::Early,
        }) => response.map(slow::trickle),
        Some(Hit {
            trouble: Trouble::Slow,
            form: Form::Late,
        }) => {
            slow::late().await;
            response.map(BodyExt::boxed_unsync)
        }
        Some(Hit {
            trouble: Trouble::TruncateBody,
            ..
        }) => response.map(cut::truncated),
        Some(Hit {
            trouble: Trouble::SilentWatch,
            form,
        }) if response.status().is_success() => {
            response.map(|body| cut::silent(body, usize::from(form == Form::Late)))
        }
        _ => response.map(BodyExt::boxed_unsync),
    }
}

/// Answers a request; a list as it once was, and what was created may be gone at once.
async fn served(
    shared: &Shared,
    reset: &CancellationToken,
    asked: &Asked,
    faults: &[FrontFault],
    number: u64,
    hit: Option<Hit>,
    request: Request<Incoming>,
) -> Response<Body> {
    let hit_by = |trouble| hit.is_some_and(|hit| hit.trouble == trouble);
    let path = request.uri().path().to_owned();
    let list = (asked.kind.verb == "list" && faults.iter().any(FrontFault::remembers_lists))
        .then(|| format!("{} {:?}", request.uri(), request.headers().get(ACCEPT)));
    if hit_by(Trouble::StaleList)
        && let Some(before) = list.as_ref().and_then(|list| shared.lists.before(list))
    {
        return before;
    }
    let response = serve(shared, reset, asked, faults, number, hit, request).await;
    let told = match list {
        Some(list) => shared.lists.remember(list, response).await,
        None if hit_by(Trouble::DeleteCreated) && response.status() == StatusCode::CREATED => {
            bereft(shared, &path, asked, response).await
        }
        None => return response,
    };
    told.unwrap_or_else(|error| answer::unreachable(&error))
}

/// The answer to a creation, after what was created has been deleted.
async fn bereft(
    shared: &Shared,
    path: &str,
    asked: &Asked,
    response: Response<Body>,
) -> kube::Result<Response<Body>> {
    let (head, body) = response.into_parts();
    let body = body.collect().await?.to_bytes();
    if let Some(request) = deleted::request(path, asked, &body) {
        // Whatever comes of it: the client is told that its object was created
        let _ = shared.client.send(request).await;
    }
    Ok(Response::from_parts(head, Body::from(body)))
}

/// Answers a request, by the server or in its place.
async fn serve(
    shared: &Shared,
    reset: &CancellationToken,
    asked: &Asked,
    faults: &[FrontFault],
    number: u64,
    hit: Option<Hit>,
    mut request: Request<Incoming>,
) -> Response<Body> {
    let near = hyper::upgrade::on(&mut request);
    let (head, body) = request.into_parts();
    let Ok(body) = Limited::new(body, LARGEST_REQUEST).collect().await else {
        return answer::bad_request("the request's body is too large or does not end");
    };
    let mut body = body.to_bytes();

    let mut exec = None;
    let mut reset_late = false;
    if let Some(Hit { trouble, form }) = hit {
        match (trouble, form) {
            (Trouble::TooManyRequests, form) => return answer::too_many_requests(form),
            (Trouble::InternalError, _) => return answer::internal_error(answer::NO_LEADER),
            (Trouble::Gone, _) => return answer::gone(asked.expiry),
            (Trouble::Html502, _) => return answer::html_502(),
            (Trouble::Hang, _) => return pending().await,
            (Trouble::Reset, Form::Early) => return end(reset).await,
            (Trouble::Reset, Form::Late) => reset_late = true,
            (Trouble::CutExec, Form::Early) => exec = Some(ExecTrouble::CutBeforeOutput),
            (Trouble::CutExec, Form::Late) => exec = Some(ExecTrouble::CutAfterOutput),
            (Trouble::LoseExitFrame, _) => exec = Some(ExecTrouble::LoseExit),
            // The answer itself is what it would be
            (
                Trouble::Slow
                | Trouble::TruncateBody
                | Trouble::StaleList
                | Trouble::SilentWatch
                | Trouble::DeleteCreated,
                _,
            ) => {}
        }
    }
    if let Some((fault, response)) = refusal::before(faults, asked, &head, number) {
        shared.hit(&[fault.name()]);
        return response;
    }
    if faults.contains(&FrontFault::HostileTexts) {
        body = hostile::cleansed(body);
    }

    let response = match sent::sent(shared, asked, faults, &head, body).await {
        Ok(response) => response,
        Err(error) => return answer::unreachable(&error),
    };
    if reset_late {
        return end(reset).await;
    }
    match asked.session {
        Some(session) if response.status() == StatusCode::SWITCHING_PROTOCOLS => {
            session::join(shared, reset.clone(), session, exec, near, response)
        }
        _ => forward::response(response),
    }
}

/// An answer with another body, if there is to be one.
async fn edited(
    response: Response<Body>,
    edit: impl FnOnce(&[u8]) -> Option<Bytes>,
) -> Response<Body> {
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        return response;
    }
    let (mut head, body) = response.into_parts();
    match body.collect().await {
        Ok(body) => {
            let body = body.to_bytes();
            match edit(&body) {
                None => Response::from_parts(head, Body::from(body)),
                Some(body) => {
                    head.headers.remove(CONTENT_LENGTH);
                    Response::from_parts(head, Body::from(body))
                }
            }
        }
        Err(error) => answer::unreachable(&error),
    }
}

fn is_json(response: &Response<Body>) -> bool {
    response
        .headers()
        .get(CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"))
}

/// Resets the connection, which drops whoever waits for an answer here.
async fn end<T>(reset: &CancellationToken) -> T {
    reset.cancel();
    pending().await
}
