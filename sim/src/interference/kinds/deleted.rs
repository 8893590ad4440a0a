//! Objects that another client deletes as soon as they exist.

use http::Request;
use http::header::CONTENT_TYPE;
use kube::client::Body;
use serde_json::Value;

use crate::interference::asked::Asked;

/// The resources that another client may well delete. Not namespaces, as everything in them would go too,
/// which is another fault; and not the server's own objects.
const DELETED: [&str; 10] = [
    "configmaps",
    "cronjobs",
    "daemonsets",
    "deployments",
    "jobs",
    "pods",
    "replicasets",
    "secrets",
    "services",
    "statefulsets",
];

/// Whether a request may create an object that can be deleted.
pub(crate) fn can_be(asked: &Asked) -> bool {
    matches!(asked.verb, "create" | "patch")
        && !asked.dry_run
        && DELETED.contains(&asked.resource.as_str())
}

/// The request that deletes the object whose creation was answered; `path` is that of the creation.
pub(crate) fn request(path: &str, asked: &Asked, created: &[u8]) -> Option<Request<Body>> {
    let object: Value = serde_json::from_slice(created).ok()?;
    let name = object["metadata"]["name"].as_str()?;
    let path = match asked.name {
        Some(_) => path.to_owned(),
        None => format!("{}/{name}", path.trim_end_matches('/')),
    };
    let options = br#"{"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Background"}"#;
    let request = Request::delete(path).header(CONTENT_TYPE, "application/json");
    request.body(Body::from(options.to_vec())).ok()
}
