//! The way from a request to its answer.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Body as HttpBody;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::ask::{self, Verb};
use super::kubelet::{self, metrics};
use super::{controllers, objects};
use crate::base::clock;
use crate::base::lock::locked;
use crate::server::checks::refusal::Refusal;
use crate::server::kubectl::discovery;
use crate::server::storage::state::State;
use crate::server::storage::watch;
use crate::wire::loopback::Loopback;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

pub(crate) type Body = UnsyncBoxBody<Bytes, Infallible>;
pub(crate) type Answer = Response<Body>;

/// The largest body (apiserver, `MaxRequestBodyBytes`).
const LARGEST: usize = 3 * 1024 * 1024;

/// What all connections share.
pub(crate) struct Shared {
    state: Mutex<State>,
    /// Notified when the moment changes at which work is due next.
    due: Notify,
    pub(crate) kubelets: kubelet::Kubelets,
    /// The requests that were not served.
    unserved: Mutex<BTreeSet<String>>,
    pub(crate) stop: CancellationToken,
    pub(crate) tasks: TaskTracker,
}

impl Shared {
    pub(crate) fn new(state: State, loopback: Loopback, stop: CancellationToken) -> Self {
        Self {
            state: Mutex::new(state),
            due: Notify::new(),
            kubelets: kubelet::Kubelets::on(loopback),
            unserved: Mutex::default(),
            stop,
            tasks: TaskTracker::new(),
        }
    }

    /// Locks the state for reading; [`Shared::step`] changes it.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }

    pub(crate) fn unserved(&self) -> BTreeSet<String> {
        locked(&self.unserved).clone()
    }

    /// Changes the state, and runs the controllers that follow up.
    pub(crate) fn step<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state();
        let before = state.due.first().cloned();
        let done = change(&mut state);
        controllers::settle(&mut state);
        let moved = state.due.first() != before.as_ref();
        drop(state);
        if moved {
            self.due.notify_one();
        }
        done
    }

    /// Does work at the moment it is due, until the server ends.
    pub(crate) async fn keep_time(&self) {
        loop {
            let next = self.step(State::take_due);
            let due = async {
                match next {
                    Some(moment) => clock::until(moment).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return,
                () = due => {}
                () = self.due.notified() => {}
            }
        }
    }

    /// Runs a task until it or the server ends.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
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

/// A request's body, from a connection or from a client in this process.
pub(crate) trait Sent:
    HttpBody<Data = Bytes, Error: Into<BoxError>> + Send + 'static
{
}

impl<B: HttpBody<Data = Bytes, Error: Into<BoxError>> + Send + 'static> Sent for B {}

/// Answers a request.
pub(crate) async fn answer(shared: &Arc<Shared>, request: Request<impl Sent>) -> Answer {
    let line = format!("{} {}", request.method(), request.uri().path());
    let refusal = match found(shared, request).await {
        Ok(answer) => return answer,
        Err(refusal) => refusal,
    };
    if refusal.code == 501 {
        locked(&shared.unserved).insert(line);
    }
    refused(&refusal)
}

async fn found(shared: &Arc<Shared>, request: Request<impl Sent>) -> Result<Answer, Refusal> {
    let uri = request.uri();
    shared.state().token.check(request.headers())?;
    if request.method() == Method::GET
        && let Some(key) = metrics::pod_of(uri.path())
    {
        return metrics::answer(shared, &key).await;
    }
    let parsed = ask::read(request.method(), uri.path(), uri.query())?;
    let parsed = match parsed {
        Some(ask) if matches!(ask.subresource.as_str(), "exec" | "log") => {
            return kubelet::answer(shared, &ask, request).await;
        }
        Some(ask) if ask.verb == Verb::Watch => return watch::answer(shared, ask),
        // The server ignores the body of a request that only reads
        Some(ask) if matches!(ask.verb, Verb::Get | Verb::List) => {
            return objects::answer(shared, &ask, &request.into_parts().0, &Bytes::new());
        }
        parsed => parsed,
    };
    let (head, body) = request.into_parts();
    let body = whole(body).await?;
    is_readable(&head, &body)?;
    match parsed {
        Some(ask) => objects::answer(shared, &ask, &head, &body),
        None => discovery::answer(shared, &head, &body),
    }
}

async fn whole(body: impl Sent) -> Result<Bytes, Refusal> {
    match Limited::new(body, LARGEST).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => {
            let why = format!("the request is larger than {LARGEST} bytes");
            Err(Refusal::new(413, why))
        }
        Err(error) => Err(Refusal::bad(error)),
    }
}

/// Refuses a body in a form that the server does not read, such as protobuf.
pub(crate) fn is_readable(head: &Parts, body: &Bytes) -> Result<(), Refusal> {
    let media = media_type(head);
    let known = media.is_empty() || media.ends_with("json") || media.ends_with("yaml");
    match known || body.is_empty() {
        true => Ok(()),
        false => Err(Refusal::media_type(media)),
    }
}

/// The media type of a body, without its parameters.
pub(crate) fn media_type(head: &Parts) -> &str {
    let media = header(head, &CONTENT_TYPE);
    media.split(';').next().unwrap_or_default().trim()
}

/// The value of a header; empty if it has none.
fn header<'h>(head: &'h Parts, name: &HeaderName) -> &'h str {
    let value = head.headers.get(name).map(HeaderValue::to_str);
    value.and_then(Result::ok).unwrap_or_default()
}

/// Reads JSON, the only form that clients send here, also where YAML is allowed.
pub(crate) fn json(body: &Bytes) -> Result<Value, Refusal> {
    serde_json::from_slice(body)
        .map_err(|error| Refusal::bad(format_args!("the body of the request is no JSON: {error}")))
}

/// Whether a client accepts a form of an answer, such as `Table`.
pub(crate) fn accepts(head: &Parts, form: &str) -> bool {
    let first = header(head, &ACCEPT).split(',').next();
    let wanted = format!("as={form}");
    first.is_some_and(|first| first.split(';').any(|part| part.trim() == wanted))
}

pub(crate) fn refused(refusal: &Refusal) -> Answer {
    let code = StatusCode::from_u16(refusal.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    respond(code, &refusal.status())
}

pub(crate) fn respond(code: StatusCode, body: &impl Serialize) -> Answer {
    let body = serde_json::to_vec(body).expect("an object's members have names");
    text(code, "application/json", body)
}

pub(crate) fn text(code: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Answer {
    answered(code, kind, Full::from(body.into()).boxed_unsync())
}

pub(crate) fn answered(code: StatusCode, kind: &'static str, body: Body) -> Answer {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    let kind = HeaderValue::from_static(kind);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}
