//! A fake API server for unit tests: objects by path, no admission, no controllers.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard};

use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use kube::client::Body;
use serde_json::{Value as Json, json};
use winconform_core::config::{Durations, Limits};

use crate::transport::Api;

/// The server's state, and the experimenter's handle on it.
#[derive(Clone, Default)]
pub(super) struct Fake {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    objects: BTreeMap<String, Json>,
    version: u64,
    /// Requests seen, as `METHOD path`.
    log: Vec<String>,
    /// Paths (begins of) whose objects only go by force.
    stuck: Vec<String>,
    /// Answers to requests whose `METHOD path` begins so.
    scripted: Vec<(String, u16, Json)>,
}

impl Fake {
    /// An API before this server.
    pub(super) fn api(&self) -> Api {
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
                let (status, body) =
                    state
                        .lock()
                        .expect("not poisoned")
                        .answer(&parts.method, path, query, body);
                let response = Response::builder().status(status);
                let body = Full::new(bytes::Bytes::from(body.to_string()));
                Ok::<_, Infallible>(response.body(body).expect("a response"))
            }
        });
        let client = kube::Client::new(service, "default");
        Api::new(client, Durations::default(), Limits::default())
    }

    pub(super) fn put(&self, path: &str, object: Json) {
        self.lock().store(path, object);
    }

    pub(super) fn get(&self, path: &str) -> Option<Json> {
        self.lock().objects.get(path).cloned()
    }

    pub(super) fn remove(&self, path: &str) {
        self.lock().objects.remove(path);
    }

    pub(super) fn stick(&self, path: &str) {
        self.lock().stuck.push(path.to_owned());
    }

    pub(super) fn script(&self, request: &str, status: u16, body: Json) {
        self.lock()
            .scripted
            .push((request.to_owned(), status, body));
    }

    pub(super) fn log(&self) -> Vec<String> {
        self.lock().log.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("not poisoned")
    }
}

impl State {
    fn answer(&mut self, method: &Method, path: &str, query: &str, body: Json) -> (u16, Json) {
        let line = format!("{method} {path}");
        self.log.push(line.clone());
        let at = self
            .scripted
            .iter()
            .position(|(request, ..)| line.starts_with(request));
        if let Some(at) = at {
            let (_, status, body) = &self.scripted[at];
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
            _ => match self.objects.get(path) {
                Some(object) => (200, object.clone()),
                None if path.ends_with('s') => (200, self.list(path, query)),
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

    /// A list ignores the selector: what is ours must be told by the client too.
    fn list(&self, path: &str, _: &str) -> Json {
        let (root, plural) = path.rsplit_once('/').unwrap_or_default();
        let of_kind = |at: &str| {
            at.strip_prefix(root).is_some_and(|rest| {
                let parts: Vec<_> = rest.split('/').collect();
                matches!(parts.as_slice(), ["", kind, _] if *kind == plural)
                    || matches!(parts.as_slice(), ["", "namespaces", _, kind, _] if *kind == plural)
            })
        };
        let items: Vec<_> = self
            .objects
            .iter()
            .filter(|(at, _)| of_kind(at))
            .map(|(_, o)| o.clone())
            .collect();
        json!({"kind": "List", "metadata": {}, "items": items})
    }
}

fn failure(code: u16, reason: &str) -> (u16, Json) {
    (
        code,
        json!({"kind": "Status", "status": "Failure", "reason": reason, "message": reason}),
    )
}
