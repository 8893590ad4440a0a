//! What is asked for that is no object: discovery, health, the version, reviews.

use bytes::Bytes;
use http::request::Parts;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::rbac::{Access, User};
use super::refusal::{Cause, Refusal};
use super::serve::{Answer, Shared, json, text, told};
use super::state::State;
use super::{discovery, openapi};

pub(super) fn answer(
    shared: &Shared,
    user: &User,
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
            let review = reviewed(&shared.state(), user, review, json(body)?)?;
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

/// What roles grant, to whoever asks or is asked about.
fn reviewed(state: &State, user: &User, review: &str, mut asked: Value) -> Result<Value, Refusal> {
    if !asked.is_object() {
        return Err(Refusal::bad("a review is an object"));
    }
    let spec = &asked["spec"];
    let about = ["resourceAttributes", "nonResourceAttributes"];
    if review == "selfsubjectaccessreviews"
        && about.iter().filter(|field| spec[field].is_object()).count() != 1
    {
        let why = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
        let cause = Cause::invalid("spec", &Value::Null, why);
        return Err(Refusal::invalid_of(
            "authorization.k8s.io",
            "",
            "",
            vec![cause],
        ));
    }
    asked["apiVersion"] = json!("authorization.k8s.io/v1");
    asked["status"] = match review {
        "selfsubjectaccessreviews" => {
            asked["kind"] = json!("SelfSubjectAccessReview");
            json!({"allowed": user.may(state, &Access::of_review(&asked["spec"]))})
        }
        "selfsubjectrulesreviews" => {
            asked["kind"] = json!("SelfSubjectRulesReview");
            let namespace = asked["spec"]["namespace"].as_str().unwrap_or_default();
            let rules = user.rules(state, namespace).into_iter().cloned();
            let (paths, resources): (Vec<_>, Vec<_>) =
                rules.partition(|rule: &Value| rule["nonResourceURLs"].is_array());
            json!({"resourceRules": resources, "nonResourceRules": paths, "incomplete": false})
        }
        other => return Err(Refusal::unserved(other)),
    };
    Ok(asked)
}
