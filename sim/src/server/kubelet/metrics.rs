//! What `metrics.k8s.io` says of a pod. A metrics server is there if its `APIService` is; it takes what the
//! node's kubelet says (kubernetes-sigs/metrics-server, `pkg/api/pod.go`, `pkg/storage/pod.go`; before 0.6 by
//! `/stats/summary`, as here).

use std::sync::Arc;
use std::time::Duration;

use http::{Request, StatusCode};
use http_body_util::BodyExt;
use jiff::Timestamp;
use kube::client::Body;
use serde_json::{Value, json};

use super::address;
use crate::base::fields::Fields;
use crate::server::checks::refusal::Refusal;
use crate::server::kinds::Kind;
use crate::server::serve::{Answer, Shared, respond};
use crate::world::Key;

/// The `APIService` of the metrics server.
const SERVICE: &str = "v1beta1.metrics.k8s.io";

/// How long a container runs before it has metrics: at most two scrapes, which are 15 s apart
/// (`--metric-resolution`).
const SCRAPED: Duration = Duration::from_secs(30);

/// The namespace and name of the pod that a path asks for the metrics of.
pub(crate) fn pod_of(path: &str) -> Option<Key> {
    let rest = path.strip_prefix("/apis/metrics.k8s.io/v1beta1/namespaces/")?;
    let (namespace, name) = rest.split_once("/pods/")?;
    Some(Key::new(namespace, name))
}

pub(crate) async fn answer(shared: &Arc<Shared>, key: &Key) -> Result<Answer, Refusal> {
    let metrics = json!({
        "kind": "PodMetrics",
        "apiVersion": "metrics.k8s.io/v1beta1",
        "metadata": {"name": key.name, "namespace": key.namespace},
        "window": "15s",
        "containers": of(shared, key).await?,
    });
    Ok(respond(StatusCode::OK, &metrics))
}

/// What the containers of a pod use, of which there is one at least.
pub(crate) async fn of(shared: &Arc<Shared>, key: &Key) -> Result<Vec<Value>, Refusal> {
    let kubelet = {
        let state = shared.state();
        let service = Key::new("", SERVICE);
        let service = state.store.get("apiservices", &service);
        let service = service.ok_or_else(Refusal::no_such_resource)?;
        let mut conditions = service["status"]["conditions"].items();
        if !conditions.any(|one| one["type"] == "Available" && one["status"] == "True") {
            // kube-aggregator, `pkg/apiserver/handler_proxy.go`
            return Err(Refusal::new(503, "service unavailable"));
        }
        let pod = state.live(Kind::named("pods"), key)?;
        address(&state, &pod, &key.name)
    };
    let containers = match kubelet {
        Ok(address) => scraped(shared, &address, key).await,
        Err(_) => None,
    };
    let containers = containers.filter(|each| !each.is_empty());
    containers.ok_or_else(|| Refusal::no_metrics(key))
}

/// What the pod's containers use that run long enough, if the kubelet says.
async fn scraped(shared: &Arc<Shared>, address: &str, key: &Key) -> Option<Vec<Value>> {
    let client = shared.kubelets.client(shared, address).ok()?;
    let request = Request::get("/stats/summary").body(Body::empty()).ok()?;
    let response = client.send(request).await.ok()?;
    let body = response.into_body().collect().await.ok()?.to_bytes();
    let summary: Value = serde_json::from_slice(&body).ok()?;
    let reference = |pod: &&Value| {
        let of = &pod["podRef"];
        of["name"] == *key.name && of["namespace"] == *key.namespace
    };
    let pod = summary["pods"].items().find(reference)?;
    let has_run = |container: &&Value| {
        let at = |value: &Value| value.text().parse::<Timestamp>().ok();
        let times = at(&container["startTime"]).zip(at(&container["cpu"]["time"]));
        times.is_some_and(|(since, now)| now.duration_since(since).unsigned_abs() >= SCRAPED)
    };
    let used = |container: &Value| {
        let (cpu, memory) = (&container["cpu"], &container["memory"]);
        let cores = cpu["usageNanoCores"].as_u64()?;
        let bytes = memory["workingSetBytes"].as_u64()?;
        Some(json!({"name": container["name"],
            "usage": {"cpu": format!("{cores}n"), "memory": format!("{}Ki", bytes / 1024)}}))
    };
    let each = pod["containers"].items().filter(has_run);
    Some(each.filter_map(used).collect())
}
