//! `metrics.k8s.io/v1beta1` as metrics-server serves it to the API server's aggregator, from the
//! numbers that the kubelets tell.
//!
//! Forms and words are those of kubernetes-sigs/metrics-server 0.8, `pkg/api/{node,pod,install}.go`;
//! of the verbs there are `get` and `list`, and no selectors. It asks for no client certificate, as
//! the kubelets do not: it listens on loopback.

use std::convert::Infallible;
use std::sync::Arc;

use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio_rustls::TlsAcceptor;

use super::server::PATIENCE;
use super::stats::seconds;
use super::usage::{self, PodUsage, Usage};
use crate::cluster::{Cluster, NodeState};
use crate::fault::FaultKind;
use crate::listen;
use crate::loopback::{Listener, Stream, wall};
use crate::query::Query;
use crate::world::Key;

const GROUP_VERSION: &str = "metrics.k8s.io/v1beta1";

/// How many clients are served at once: the aggregator is one.
const MOST_CLIENTS: usize = 64;

/// metrics-server, `--metric-resolution` of its manifest.
const WINDOW: &str = "15s";

/// Serves until the simulator stops.
pub(crate) async fn serve(cluster: Arc<Cluster>, listener: Listener, tls: TlsAcceptor) {
    let serves = |stream, seat| {
        let (all, tls) = (Arc::clone(&cluster), tls.clone());
        async move {
            connection(&all, stream, tls).await;
            drop(seat);
        }
    };
    listen::serve(|task| cluster.spawn(task), listener, MOST_CLIENTS, serves).await;
}

async fn connection(cluster: &Cluster, stream: Box<dyn Stream>, tls: TlsAcceptor) {
    let Some(stream) = listen::greet(&tls, stream).await else {
        return;
    };
    let service = service_fn(|request: Request<Incoming>| {
        let uri = request.uri();
        let (status, body) = answer(cluster, request.method(), uri.path(), uri.query());
        let mut response = Response::new(Full::<Bytes>::from(body.to_string()));
        *response.status_mut() = status;
        let form = HeaderValue::from_static("application/json");
        response.headers_mut().insert(header::CONTENT_TYPE, form);
        async move { Ok::<_, Infallible>(response) }
    });
    let served = listen::http(PATIENCE)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "a connection for metrics ends");
    }
}

fn answer(
    cluster: &Cluster,
    method: &Method,
    path: &str,
    query: Option<&str>,
) -> (StatusCode, Value) {
    let missing = || refusal(StatusCode::NOT_FOUND, "NotFound", "404 page not found");
    let below = path
        .strip_prefix("/apis/")
        .and_then(|rest| rest.strip_prefix(GROUP_VERSION));
    let Some(below) = below else {
        return missing();
    };
    let query = Query::parse(query);
    if *method != Method::GET || query.is_set("watch") {
        let words = "the server does not allow this method on the requested resource";
        return refusal(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", words);
    }
    let selects = |name| query.first(name).is_some_and(|text| !text.is_empty());
    if selects("labelSelector") || selects("fieldSelector") {
        let words = "the simulated metrics-server knows no selectors";
        return refusal(StatusCode::BAD_REQUEST, "BadRequest", words);
    }
    let parts: Vec<&str> = below.split('/').filter(|part| !part.is_empty()).collect();
    match parts.as_slice() {
        [] => (StatusCode::OK, resources()),
        ["nodes"] => {
            let nodes = heard(cluster).map(|node| of_node(cluster, node));
            list("NodeMetricsList", &nodes.collect::<Vec<_>>())
        }
        ["nodes", name] => {
            let found = heard(cluster).find(|node| node.name == *name);
            found.map_or_else(
                || none("nodemetrics", name),
                |node| (StatusCode::OK, of_node(cluster, node)),
            )
        }
        ["pods"] => list("PodMetricsList", &pods(cluster, |_| true)),
        ["namespaces", namespace, "pods"] => {
            let pods = pods(cluster, |pod| pod.namespace == *namespace);
            list("PodMetricsList", &pods)
        }
        ["namespaces", namespace, "pods", name] => {
            let is = |pod: &Key| pod.namespace == *namespace && pod.name == *name;
            let found = pods(cluster, is).pop();
            found.map_or_else(
                || none("podmetrics", &format!("{namespace}/{name}")),
                |pod| (StatusCode::OK, pod),
            )
        }
        _ => missing(),
    }
}

/// The nodes whose kubelets can be asked.
fn heard(cluster: &Cluster) -> impl Iterator<Item = &NodeState> {
    let faults = cluster.faults.current();
    let heard = cluster.nodes.values().filter(move |node| {
        !node.suffers(FaultKind::NodeVanishes, &faults) && node.power.borrow().up
    });
    heard.map(|node| &**node)
}

fn pods(cluster: &Cluster, wanted: impl Fn(&Key) -> bool) -> Vec<Value> {
    let at = wall();
    heard(cluster)
        .flat_map(|node| usage::of_pods(cluster, node, at, &wanted))
        .map(|pod| of_pod(&pod, &seconds(at)))
        .collect()
}

fn of_node(cluster: &Cluster, node: &NodeState) -> Value {
    let usage = usage::of(cluster, node);
    let at = seconds(usage.at);
    json!({
        "kind": "NodeMetrics",
        "apiVersion": GROUP_VERSION,
        "metadata": {"name": node.name, "creationTimestamp": at, "labels": node.labels},
        "timestamp": at,
        "window": WINDOW,
        "usage": quantities(usage.total),
    })
}

fn of_pod(pod: &PodUsage, at: &str) -> Value {
    let containers = pod.containers.iter();
    let containers = containers
        .map(|known| json!({"name": known.name, "usage": quantities(known.usage)}))
        .collect::<Vec<_>>();
    json!({
        "kind": "PodMetrics",
        "apiVersion": GROUP_VERSION,
        "metadata": {"name": pod.name, "namespace": pod.namespace, "creationTimestamp": at},
        "timestamp": at,
        "window": WINDOW,
        "containers": containers,
    })
}

fn quantities(usage: Usage) -> Value {
    json!({
        "cpu": format!("{}n", usage.nano_cores),
        "memory": format!("{}Ki", usage.memory >> 10),
    })
}

fn resources() -> Value {
    let resource = |name, kind, namespaced| {
        json!({"name": name, "singularName": "", "namespaced": namespaced, "kind": kind,
            "verbs": ["get", "list"]})
    };
    json!({
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": GROUP_VERSION,
        "resources": [
            resource("nodes", "NodeMetrics", false),
            resource("pods", "PodMetrics", true),
        ],
    })
}

fn list(kind: &str, items: &[Value]) -> (StatusCode, Value) {
    let list = json!({"kind": kind, "apiVersion": GROUP_VERSION, "metadata": {}, "items": items});
    (StatusCode::OK, list)
}

fn none(resource: &str, name: &str) -> (StatusCode, Value) {
    let words = format!("{resource}.metrics.k8s.io \"{name}\" not found");
    refusal(StatusCode::NOT_FOUND, "NotFound", &words)
}

fn refusal(status: StatusCode, reason: &str, words: &str) -> (StatusCode, Value) {
    let said = json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": words,
        "reason": reason,
        "code": status.as_u16(),
    });
    (status, said)
}
