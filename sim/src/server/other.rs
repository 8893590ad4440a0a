//! What is asked for that is no object: discovery, health, the version, reviews.

use bytes::Bytes;
use http::request::Parts;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::refusal::Refusal;
use super::serve::{Answer, Shared, json, text, told};
use super::{discovery, openapi};

pub(super) fn answer(
    shared: &Shared,
    parts: &[&str],
    head: &Parts,
    body: &Bytes,
) -> Result<Answer, Refusal> {
    let found = |value: &Value| Ok(told(StatusCode::OK, value.to_string()));
    match (&head.method, parts) {
        (&Method::GET, ["healthz" | "livez" | "readyz", ..]) => {
            Ok(text(StatusCode::OK, "text/plain", "ok"))
        }
        (&Method::GET, ["version"]) => found(&version(shared.state().recorded.git_version())),
        (&Method::GET, ["metrics"]) => {
            let metrics = shared.state().recorded.metrics();
            Ok(text(StatusCode::OK, "text/plain; version=0.0.4", metrics))
        }
        (&Method::GET, ["api"]) => found(&discovery::versions()),
        (&Method::GET, ["apis"]) => found(&discovery::groups()),
        (&Method::GET, ["apis", group]) => found(&discovery::group(group)?),
        (&Method::GET, ["api", version]) => found(&discovery::resources("", version)?),
        (&Method::GET, ["apis", group, version]) => found(&discovery::resources(group, version)?),
        // For lists kubectl asks here, in protobuf: a document without anything has no bytes
        (&Method::GET, ["openapi", "v2"]) => Ok(text(StatusCode::OK, openapi::V2, "")),
        (&Method::GET, ["openapi", "v3"]) => found(&openapi::index()),
        (&Method::GET, ["openapi", "v3", "api", version]) => {
            found(&openapi::document("", version)?)
        }
        (&Method::GET, ["openapi", "v3", "apis", group, version]) => {
            found(&openapi::document(group, version)?)
        }
        (&Method::POST, ["apis", "authorization.k8s.io", "v1", review]) => {
            let review = reviewed(review, json(body)?)?;
            Ok(told(StatusCode::CREATED, review.to_string()))
        }
        (_, parts) => Err(Refusal::unserved(format_args!("`/{}`", parts.join("/")))),
    }
}

fn version(git: &str) -> Value {
    let mut numbers = git.trim_start_matches('v').split('.');
    let mut next = || numbers.next().unwrap_or_default();
    let (major, minor) = (next(), next());
    json!({
        "major": major, "minor": minor, "gitVersion": git, "gitCommit": "", "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "", "platform": "linux/amd64",
    })
}

/// What the administrator may, which is everything.
fn reviewed(review: &str, mut asked: Value) -> Result<Value, Refusal> {
    if review != "selfsubjectaccessreviews" {
        return Err(Refusal::unserved(review));
    }
    if !asked.is_object() {
        return Err(Refusal::bad("a review is an object"));
    }
    asked["apiVersion"] = json!("authorization.k8s.io/v1");
    asked["kind"] = json!("SelfSubjectAccessReview");
    asked["status"] = json!({"allowed": true});
    Ok(asked)
}
