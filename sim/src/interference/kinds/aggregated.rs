//! An API group that is registered while its server is down, as discovery lists it.

use bytes::Bytes;
use http::Response;
use kube::client::Body;
use serde_json::{Value, json};

use super::answer;

const GROUP: &str = "metrics.k8s.io";
const VERSION: &str = "v1beta1";

/// Whether a request is for the list of groups.
pub(crate) fn is_discovery(path: &str) -> bool {
    matches!(path, "/apis" | "/apis/")
}

/// The list of groups with the group whose server is down; `None` for any other answer.
///
/// k8s.io/kube-aggregator 0.37.0: `pkg/apiserver/handler_apis.go` lists a group even if its server is
/// missing; `pkg/apiserver/handler_discovery.go` lists its version as stale and without resources.
pub(crate) fn discovery(body: &[u8]) -> Option<Bytes> {
    let mut list: Value = serde_json::from_slice(body).ok()?;
    let (groups, named, group) = match list["kind"].as_str()? {
        "APIGroupList" => ("groups", "/name", group()),
        "APIGroupDiscoveryList" => (
            "items",
            "/metadata/name",
            json!({
                "metadata": { "name": GROUP, "creationTimestamp": null },
                "versions": [{ "version": VERSION, "freshness": "Stale" }],
            }),
        ),
        _ => return None,
    };
    let groups = list[groups].as_array_mut()?;
    let is_down = |known: &Value| known.pointer(named).is_some_and(|name| name == GROUP);
    groups.retain(|known| !is_down(known));
    groups.push(group);
    Some(list.to_string().into())
}

/// The answer instead of the server that is down; `None` for paths of other servers.
pub(crate) fn down(path: &str) -> Option<Response<Body>> {
    match path.strip_prefix("/apis/metrics.k8s.io")? {
        "" | "/" => {
            let mut group = group();
            group["kind"] = "APIGroup".into();
            group["apiVersion"] = "v1".into();
            Some(answer::accepted(group.to_string().into(), false))
        }
        rest if rest.starts_with('/') => Some(answer::service_unavailable()),
        _ => None,
    }
}

fn group() -> Value {
    let version = json!({ "groupVersion": format!("{GROUP}/{VERSION}"), "version": VERSION });
    json!({ "name": GROUP, "versions": [version], "preferredVersion": version })
}
