//! A stub of an API server, as far as a simulator asks one: it takes nodes, leases, events and
//! statuses without a look, binds pods to each node it is given, and tells them on watches.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures::stream::{self, StreamExt};
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};

use super::Trouble;

const IMAGES: [(&str, &str); 2] = [
    ("linux", "registry.k8s.io/pause:3.10"),
    ("windows", "registry.k8s.io/pause:3.10"),
];

type Body = UnsyncBoxBody<Bytes, Infallible>;
type Lines = mpsc::UnboundedSender<Bytes>;

#[derive(Default)]
struct Store {
    /// How many each node gets.
    pods_each: usize,
    pods: Mutex<Pods>,
    nodes: Mutex<Vec<Value>>,
    ready: watch::Sender<usize>,
    renewals: watch::Sender<usize>,
}

#[derive(Default)]
struct Pods {
    known: BTreeMap<String, Value>,
    watchers: Vec<Lines>,
    version: usize,
}

/// Serves until it is killed, with so many pods for each node; prints its address.
pub(super) async fn serve(pods_each: usize) -> Result<(), Trouble> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    writeln!(std::io::stdout(), "http://{}", listener.local_addr()?)?;
    let store = Arc::new(Store {
        pods_each,
        ..Store::default()
    });
    loop {
        let (stream, _) = listener.accept().await?;
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            let service = service_fn(|request| answer(Arc::clone(&store), request));
            let served = http1::Builder::new();
            // A simulator that has been measured goes away in the middle
            let _ = served.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn answer(
    store: Arc<Store>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    let (head, body) = request.into_parts();
    let body = body
        .collect()
        .await
        .map(http_body_util::Collected::to_bytes);
    let body: Value = serde_json::from_slice(&body.unwrap_or_default()).unwrap_or_default();
    let path = head.uri.path();
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let watches = head
        .uri
        .query()
        .is_some_and(|query| query.contains("watch=true"));
    let whole = |value: Value| Full::from(value.to_string()).boxed_unsync();
    let body = match (&head.method, parts.as_slice()) {
        (_, ["version"]) => whole(json!({
            "major": "1", "minor": "37", "gitVersion": "v1.37.0", "gitCommit": "", "gitTreeState": "",
            "buildDate": "", "goVersion": "", "compiler": "", "platform": "",
        })),
        (_, ["stub", what, count]) => {
            let counted = if *what == "ready" {
                &store.ready
            } else {
                &store.renewals
            };
            let already = if *what == "ready" {
                0
            } else {
                *counted.borrow()
            };
            let until = already + count.parse::<usize>().unwrap_or(0);
            let mut counted = counted.subscribe();
            let _ = counted.wait_for(|seen| *seen >= until).await;
            whole(Value::Null)
        }
        (&Method::GET, ["api", "v1", "pods"]) if watches => store.watch(),
        (&Method::GET, _) if watches => open(mpsc::unbounded_channel().1, true),
        // The cluster's DNS is there already
        (&Method::GET, [.., "services", name]) => whole(json!({"metadata": {"name": name}})),
        (&Method::GET, ["api", "v1", "nodes"]) => whole(list(&store.nodes())),
        (&Method::GET, [.., "namespaces", _, _, _]) => {
            let missing = json!({"kind": "Status", "apiVersion": "v1", "metadata": {},
                "status": "Failure", "reason": "NotFound", "message": "not found", "code": 404});
            let mut response = Response::new(whole(missing));
            *response.status_mut() = StatusCode::NOT_FOUND;
            return Ok(response);
        }
        (&Method::GET, _) => whole(list(&[])),
        (&Method::POST, [.., "nodes"]) => {
            store.bind(&body);
            store.nodes().push(body.clone());
            whole(body)
        }
        (&Method::PATCH, ["api", "v1", "namespaces", _, "pods", name, "status"]) => {
            whole(store.report(name, &body))
        }
        (&Method::PATCH, [.., "leases", _]) => {
            store.renewals.send_modify(|count| *count += 1);
            whole(body)
        }
        (&Method::DELETE, _) => whole(json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 200,
        })),
        _ => whole(body),
    };
    Ok(Response::new(body))
}

/// A body of lines; kept open by force where nobody sends any.
fn open(lines: mpsc::UnboundedReceiver<Bytes>, forever: bool) -> Body {
    let lines = stream::unfold(lines, |mut lines| async move {
        let line = lines.recv().await?;
        Some((Ok(Frame::data(line)), lines))
    });
    if forever {
        return StreamBody::new(lines.chain(stream::pending())).boxed_unsync();
    }
    StreamBody::new(lines).boxed_unsync()
}

fn event(kind: &str, object: &Value) -> Bytes {
    let mut line = json!({"type": kind, "object": object}).to_string();
    line.push('\n');
    line.into()
}

fn list(items: &[Value]) -> Value {
    json!({"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": items})
}

impl Store {
    fn nodes(&self) -> MutexGuard<'_, Vec<Value>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pods(&self) -> MutexGuard<'_, Pods> {
        self.pods.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watch(&self) -> Body {
        let mut pods = self.pods();
        let (lines, told) = mpsc::unbounded_channel();
        for pod in pods.known.values() {
            let _ = lines.send(event("ADDED", pod));
        }
        let end = json!({"kind": "Pod", "metadata": {"resourceVersion": pods.version.to_string(),
            "annotations": {"k8s.io/initial-events-end": "true"}}});
        let _ = lines.send(event("BOOKMARK", &end));
        pods.watchers.push(lines);
        open(told, false)
    }

    /// Gives a node its pods.
    fn bind(&self, node: &Value) {
        let name = node["metadata"]["name"].as_str().unwrap_or_default();
        let os = &node["metadata"]["labels"]["kubernetes.io/os"];
        let image = IMAGES.iter().find(|(known, _)| os == known);
        for number in 0..self.pods_each {
            let pod = format!("{name}-{number}");
            let object = json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": pod, "namespace": "default", "uid": pod},
                "spec": {"nodeName": name, "containers": [
                    {"name": "main", "image": image.map(|(_, image)| image)}]},
            });
            self.tell("ADDED", &pod, object);
        }
    }

    fn report(&self, name: &str, patch: &Value) -> Value {
        let known = self.pods().known.get(name).cloned();
        let Some(mut pod) = known else {
            return patch.clone();
        };
        let ready = |pod: &Value| {
            let conditions = pod["status"]["conditions"].as_array();
            conditions.is_some_and(|all| {
                let ready = |one: &Value| one["type"] == "Ready" && one["status"] == "True";
                all.iter().any(ready)
            })
        };
        let before = ready(&pod);
        pod["status"] = patch["status"].clone();
        if ready(&pod) && !before {
            self.ready.send_modify(|count| *count += 1);
        }
        self.tell("MODIFIED", name, pod.clone());
        pod
    }

    fn tell(&self, kind: &str, name: &str, mut object: Value) {
        let mut pods = self.pods();
        pods.version += 1;
        object["metadata"]["resourceVersion"] = pods.version.to_string().into();
        let line = event(kind, &object);
        pods.watchers
            .retain(|lines| lines.send(line.clone()).is_ok());
        pods.known.insert(name.to_owned(), object);
    }
}
