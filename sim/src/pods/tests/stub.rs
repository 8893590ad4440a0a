//! A stub API server: it stores whatever nodes report and sends pods on watches; it does not admit,
//! schedule or control anything.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, StreamExt};
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::base::lock::locked;

type Answer = UnsyncBoxBody<Bytes, Infallible>;
type Lines = mpsc::UnboundedSender<Bytes>;

/// The server's state, shared with the test.
#[derive(Clone, Default)]
pub(super) struct Stub(Arc<Mutex<State>>);

#[derive(Default)]
pub(super) struct State {
    /// Objects by their paths; includes pods that are gone.
    pub(super) objects: BTreeMap<String, Value>,
    /// When each lease was renewed.
    pub(super) renewed: BTreeMap<String, Instant>,
    /// When each running pod was deleted, and how long its container then kept running.
    pub(super) deleted: BTreeMap<String, (Instant, Option<Duration>)>,
    /// How many statuses were sent for each pod.
    pub(super) reports: BTreeMap<String, usize>,
    /// How many deletions it still refuses.
    pub(super) refuses: usize,
    /// The paths of pods that nodes deleted.
    pub(super) gone: Vec<String>,
    version: u64,
    /// Watches of bound pods (`true`) and of unbound pods.
    watches: Vec<(bool, Lines)>,
}

pub(super) fn path(namespace: &str, pod: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/pods/{pod}")
}

impl Stub {
    pub(super) fn client(&self) -> Client {
        let stub = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let stub = stub.clone();
            async move {
                let (head, body) = request.into_parts();
                let bytes = body.collect().await.expect("a body").to_bytes();
                let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
                let query = head.uri.query().unwrap_or_default();
                let (status, body) =
                    stub.state()
                        .answer(&head.method, head.uri.path(), query, body);
                let mut response = Response::new(body);
                *response.status_mut() = status;
                Ok::<_, Infallible>(response)
            }
        });
        Client::new(service, "default")
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.0)
    }
}

fn whole(value: &Value) -> Answer {
    Full::from(value.to_string()).boxed_unsync()
}

fn refusal(reason: &str, code: StatusCode) -> (StatusCode, Answer) {
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure",
        "reason": reason, "message": "refused", "code": code.as_u16()});
    (code, whole(&status))
}

fn is_bound(pod: &Value) -> bool {
    pod["spec"]["nodeName"].is_string()
}

impl State {
    /// Creates a user's pod.
    pub(super) fn create(&mut self, pod: Value) {
        let meta = &pod["metadata"];
        let (namespace, name) = (meta["namespace"].as_str(), meta["name"].as_str());
        let path = path(namespace.expect("a namespace"), name.expect("a name"));
        self.tell("ADDED", &path, pod);
    }

    /// Deletes a pod as a user does.
    pub(super) fn delete(&mut self, path: &str) {
        let mut pod = self.objects[path].clone();
        pod["metadata"]["deletionTimestamp"] = json!("2026-01-02T03:04:05Z");
        pod["metadata"]["deletionGracePeriodSeconds"] = json!(30);
        if pod["status"]["containerStatuses"][0]["state"]["running"].is_object() {
            self.deleted.insert(path.to_owned(), (Instant::now(), None));
        }
        self.tell("MODIFIED", path, pod);
    }

    pub(super) fn tell(&mut self, kind: &str, path: &str, mut object: Value) {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let bound = is_bound(&object);
        let line = event(kind, &object);
        self.objects.insert(path.to_owned(), object);
        self.watches
            .retain(|(of, lines)| *of != bound || lines.send(line.clone()).is_ok());
    }

    fn watch(&mut self, bound: bool) -> Answer {
        let (lines, told) = mpsc::unbounded_channel();
        if bound {
            let end = json!({"kind": "Pod", "metadata": {"resourceVersion": "1",
                "annotations": {"k8s.io/initial-events-end": "true"}}});
            lines.send(event("BOOKMARK", &end)).expect("it is open");
        }
        self.watches.push((bound, lines));
        let told = stream::unfold(told, |mut told| async move {
            let line = told.recv().await?;
            Some((Ok(Frame::data(line)), told))
        });
        StreamBody::new(told).boxed_unsync()
    }

    fn answer(
        &mut self,
        method: &Method,
        path: &str,
        query: &str,
        body: Value,
    ) -> (StatusCode, Answer) {
        let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        let found = |value: &Value| (StatusCode::OK, whole(value));
        match (method, parts.as_slice()) {
            (&Method::GET, ["api", "v1", "pods"]) if query.contains("watch=true") => {
                let bound = query.contains("nodeName%21%3D") || query.contains("nodeName!=");
                (StatusCode::OK, self.watch(bound))
            }
            (&Method::GET, _) if query.contains("watch=true") => (
                StatusCode::OK,
                StreamBody::new(stream::pending().boxed()).boxed_unsync(),
            ),
            (&Method::GET, ["api", "v1", "pods"]) => {
                let pods = self
                    .objects
                    .iter()
                    .filter(|(path, pod)| path.contains("/pods/") && !is_bound(pod));
                let pods: Vec<&Value> = pods.map(|(_, pod)| pod).collect();
                found(&json!({"kind": "PodList", "apiVersion": "v1",
                    "metadata": {"resourceVersion": "1"}, "items": pods}))
            }
            (&Method::GET, [.., "runtimeclasses", name]) => {
                found(&json!({"metadata": {"name": name}, "handler": name}))
            }
            (&Method::GET, _) if self.objects.contains_key(path) => found(&self.objects[path]),
            (&Method::POST, [.., "pods", name, "binding"]) => {
                let path = path.trim_end_matches("/binding");
                let mut pod = self.objects[path].clone();
                pod["spec"]["nodeName"] = body["target"]["name"].clone();
                self.tell("ADDED", path, pod);
                found(&json!({"kind": "Status", "metadata": {"name": name}}))
            }
            (&Method::POST, _) => {
                let name = body["metadata"]["name"].as_str().unwrap_or_default();
                self.objects.insert(format!("{path}/{name}"), body.clone());
                found(&body)
            }
            (&Method::PATCH, [.., "pods", _, "status"]) => {
                let path = path.trim_end_matches("/status");
                self.report(path, body);
                found(&self.objects[path])
            }
            (&Method::PATCH, [.., "nodes", _, "status"]) => {
                let path = path.trim_end_matches("/status");
                let node = self.objects.entry(path.to_owned()).or_default();
                node["status"] = body["status"].clone();
                found(&body)
            }
            (&Method::PATCH, _) => {
                if let [.., "leases", name] = parts.as_slice() {
                    self.renewed.insert((*name).to_owned(), Instant::now());
                }
                let object = self.objects.entry(path.to_owned()).or_default();
                json_patch::merge(object, &body);
                found(&self.objects[path])
            }
            (&Method::DELETE, _) if self.refuses > 0 => {
                self.refuses -= 1;
                refusal("Forbidden", StatusCode::FORBIDDEN)
            }
            (&Method::DELETE, _) => {
                self.gone.push(path.to_owned());
                if let Some(pod) = self.objects.get(path).cloned() {
                    self.tell("DELETED", path, pod);
                }
                found(&json!({"kind": "Status", "status": "Success"}))
            }
            _ => refusal("NotFound", StatusCode::NOT_FOUND),
        }
    }

    fn report(&mut self, path: &str, mut body: Value) {
        *self.reports.entry(path.to_owned()).or_default() += 1;
        if let Some(addresses) = body["status"]["podIPs"].as_array_mut() {
            addresses.retain(|address| address["ip"].is_string());
        }
        let mut pod = self.objects[path].clone();
        pod["status"] = body["status"].take();
        let over = &pod["status"]["containerStatuses"][0]["state"]["terminated"];
        if over.is_object()
            && let Some((since, took)) = self.deleted.get_mut(path)
        {
            took.get_or_insert(since.elapsed());
        }
        self.tell("MODIFIED", path, pod);
    }
}

fn event(kind: &str, object: &Value) -> Bytes {
    let mut line = json!({"type": kind, "object": object}).to_string();
    line.push('\n');
    line.into()
}
