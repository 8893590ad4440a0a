//! A fake API server for unit tests: objects by path, no admission, no controllers.

use crate::transport::Env;
use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use kube::client::Body;
use ordered_watch as watch;
use serde_json::{Value as Json, json};
use tokio::time::Instant;
use winconform_core::config::{Durations, Limits};

use super::Watched;
use crate::transport::{Api, pause};

/// A handle on the server's state, for clients and for tests.
#[derive(Clone, Default)]
pub(crate) struct Fake {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    objects: BTreeMap<String, Json>,
    version: u64,
    /// Requests seen, as `METHOD path`.
    log: Vec<String>,
    /// Prefixes of paths whose objects disappear only after a forced deletion.
    stuck: Vec<String>,
    /// Answers by a prefix of the request's `METHOD path `; a prefix that ends in the space is a whole path.
    /// The last match applies until its time ends; status 0 means no answer.
    scripted: Vec<(String, u16, Json, Option<Instant>)>,
    /// How many more continuations of lists get a 410.
    expiring: usize,
    /// The delays of the next answers to PUT; the change itself happens at once.
    late: VecDeque<Duration>,
    /// A request, and the signal to send when it arrives.
    signal: Option<(String, watch::Sender<u32>)>,
}

impl Fake {
    pub(crate) fn api(&self) -> Api {
        self.api_in(Env::system())
    }

    /// An API in this environment.
    pub(crate) fn api_in(&self, env: Env) -> Api {
        Api::new(env, self.client(), Durations::default(), Limits::default())
    }

    pub(crate) fn client(&self) -> kube::Client {
        let state = self.state.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let state = state.clone();
            async move {
                let (parts, body) = request.into_parts();
                let bytes = body.collect().await.expect("a body").to_bytes();
                let body = serde_json::from_slice(&bytes).unwrap_or(Json::Null);
                let (path, query) = match parts.uri.query() {
                    Some(query) => (parts.uri.path(), query),
                    None => (parts.uri.path(), ""),
                };
                let line = format!("{} {path}", parts.method);
                let signal = state.lock().expect("not poisoned").signal(&line);
                if let Some(signal) = signal {
                    signal.send_replace(1);
                    // The receiver sees the signal before the server acts
                    pause(Duration::from_secs(1)).await;
                }
                let (status, body) =
                    state
                        .lock()
                        .expect("not poisoned")
                        .answer(&parts.method, path, query, body);
                if status == 0 {
                    std::future::pending::<()>().await;
                }
                if parts.method == Method::PUT {
                    let late = state.lock().expect("not poisoned").late.pop_front();
                    pause(late.unwrap_or_default()).await;
                }
                let response = Response::builder().status(status);
                // A string is a body that is not JSON
                let body = match body {
                    Json::String(text) => text,
                    other => other.to_string(),
                };
                let body = Full::new(bytes::Bytes::from(body));
                Ok::<_, Infallible>(response.body(body).expect("a response"))
            }
        });
        kube::Client::new(service, "default")
    }

    pub(crate) fn put(&self, path: &str, object: Json) {
        self.lock().store(path, object);
    }

    pub(crate) fn get(&self, path: &str) -> Option<Json> {
        self.lock().objects.get(path).cloned()
    }

    pub(crate) fn remove(&self, path: &str) {
        self.lock().objects.remove(path);
    }

    pub(crate) fn stick(&self, path: &str) {
        self.lock().stuck.push(path.to_owned());
    }

    pub(crate) fn script(&self, request: &str, status: u16, body: Json) {
        let scripted = (request.to_owned(), status, body, None);
        self.lock().scripted.push(scripted);
    }

    /// Like `script`, for a limited time.
    pub(crate) fn script_for(&self, time: Duration, request: &str, status: u16) {
        let scripted = (
            request.to_owned(),
            status,
            json!({}),
            Some(Instant::now() + time),
        );
        self.lock().scripted.push(scripted);
    }

    /// Sends a signal when this request arrives, and executes the request a second later.
    pub(crate) fn signal_at(&self, request: &str, signal: watch::Sender<u32>) {
        self.lock().signal = Some((request.to_owned(), signal));
    }

    /// Delays the next answers to PUT.
    pub(crate) fn late(&self, late: impl IntoIterator<Item = Duration>) {
        self.lock().late.extend(late);
    }

    /// How many answers to PUT are still to be delayed.
    pub(crate) fn late_still(&self) -> usize {
        self.lock().late.len()
    }

    /// Lets the next continuations of lists expire.
    pub(crate) fn expire(&self, continuations: usize) {
        self.lock().expiring = continuations;
    }

    pub(crate) fn log(&self) -> Vec<String> {
        self.lock().log.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("not poisoned")
    }
}

impl State {
    fn signal(&self, line: &str) -> Option<watch::Sender<u32>> {
        let (request, signal) = self.signal.as_ref()?;
        (request == line).then(|| signal.clone())
    }

    fn answer(&mut self, method: &Method, path: &str, query: &str, body: Json) -> (u16, Json) {
        let line = format!("{method} {path}");
        self.log.push(line.clone());
        let at = self.scripted.iter().rposition(|(request, .., until)| {
            format!("{line} ").starts_with(request)
                && until.is_none_or(|until| Instant::now() < until)
        });
        if let Some(at) = at {
            let (_, status, body, _) = &self.scripted[at];
            return (*status, body.clone());
        }
        match *method {
            Method::POST => {
                let name = body["metadata"]["name"].as_str().unwrap_or_default();
                let path = format!("{path}/{name}");
                if self.objects.contains_key(&path) {
                    return failure(409, "AlreadyExists");
                }
                (201, self.store(&path, body))
            }
            Method::PUT => match self.objects.get(path) {
                None => failure(404, "NotFound"),
                Some(old) => {
                    let version = &body["metadata"]["resourceVersion"];
                    if !version.is_null() && *version != old["metadata"]["resourceVersion"] {
                        return failure(409, "Conflict");
                    }
                    (200, self.store(path, body))
                }
            },
            Method::PATCH => (200, self.store(path, body)),
            Method::DELETE => self.delete(path, &body),
            _ => match self.objects.get(path).cloned() {
                Some(object) => (200, object),
                None if is_list(path) && self.expires(query) => failure(410, "Expired"),
                None if is_list(path) => (200, self.list(path, query)),
                None => failure(404, "NotFound"),
            },
        }
    }

    fn store(&mut self, path: &str, mut object: Json) -> Json {
        self.version += 1;
        let uid = match self.objects.get(path) {
            Some(old) => old["metadata"]["uid"].clone(),
            None => json!(format!("uid-{}", self.version)),
        };
        object["metadata"]["uid"] = uid;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.objects.insert(path.to_owned(), object.clone());
        object
    }

    fn delete(&mut self, path: &str, options: &Json) -> (u16, Json) {
        let Some(object) = self.objects.get_mut(path) else {
            return failure(404, "NotFound");
        };
        for key in ["uid", "resourceVersion"] {
            let wanted = &options["preconditions"][key];
            if !wanted.is_null() && *wanted != object["metadata"][key] {
                return failure(409, "Conflict");
            }
        }
        let stuck = self.stuck.iter().any(|stuck| path.starts_with(stuck));
        if stuck && options["gracePeriodSeconds"] != 0 {
            object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            object["metadata"]["deletionGracePeriodSeconds"] = json!(30);
            return (200, object.clone());
        }
        self.objects.remove(path);
        (200, json!({"kind": "Status", "status": "Success"}))
    }

    fn expires(&mut self, query: &str) -> bool {
        let expires = self.expiring > 0 && parameter(query, "continue").is_some();
        self.expiring -= usize::from(expires);
        expires
    }

    /// A list honours `limit` and `continue` and ignores selectors, so that clients must check the labels,
    /// too.
    fn list(&self, path: &str, query: &str) -> Json {
        let (root, plural) = path.rsplit_once('/').unwrap_or_default();
        let of_kind = |at: &str| {
            at.strip_prefix(root).is_some_and(|rest| {
                let parts: Vec<_> = rest.split('/').collect();
                matches!(parts.as_slice(), ["", kind, _] if *kind == plural)
                    || matches!(parts.as_slice(), ["", "namespaces", _, kind, _] if *kind == plural)
            })
        };
        let limit = parameter(query, "limit").unwrap_or(usize::MAX);
        let from = parameter(query, "continue").unwrap_or(0);
        let mut of_kind = self.objects.iter().filter(|(at, _)| of_kind(at)).skip(from);
        let items = of_kind.by_ref().take(limit);
        let items: Vec<_> = items.map(|(_, o)| o.clone()).collect();
        let metadata = match of_kind.next() {
            Some(_) => json!({"continue": (from + items.len()).to_string()}),
            None => json!({}),
        };
        json!({"kind": "List", "metadata": metadata, "items": items})
    }
}

fn is_list(path: &str) -> bool {
    let parts: Vec<_> = path.split('/').skip(1).collect();
    let (["api", _, within @ ..] | ["apis", _, _, within @ ..]) = parts.as_slice() else {
        return false;
    };
    matches!(within, [_] | ["namespaces", _, _])
}

fn parameter(query: &str, name: &str) -> Option<usize> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.find(|(key, _)| *key == name)?.1.parse().ok()
}

/// The objects of a watch that the server does not refuse.
pub(crate) fn watched(objects: impl IntoIterator<Item = (String, Json)>) -> Watched {
    Watched {
        objects: Arc::new(objects.into_iter().collect()),
        ..Watched::default()
    }
}

fn failure(code: u16, reason: &str) -> (u16, Json) {
    (
        code,
        json!({"kind": "Status", "status": "Failure", "reason": reason, "message": reason}),
    )
}
