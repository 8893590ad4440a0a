//! Refusals that replace the server's answer: by RBAC, tokens, the aggregator, webhooks and policies. The
//! texts are those of Kubernetes 1.37.0.

use http::Response;
use http::request::Parts;
use http::{Method, StatusCode};
use kube::client::Body;
use serde_json::{Value, json};

use super::{aggregated, answer};
use crate::interference::asked::Asked;
use crate::interference::fault::{Fault, Resources};

/// The client's user, as the refusing server knows it.
const USER: &str = "system:serviceaccount:default:reader";

const WEBHOOK: &str = "hook.example.com";
const POLICY: &str = "nothing.example.com";
const BINDING: &str = "nothing-at-all";
const REASON: &str = "nothing of this kind is allowed here";

/// The refusal that comes before the server reads the object; `number` counts requests from 1.
pub(crate) fn before(
    faults: &[Fault],
    asked: &Asked,
    head: &Parts,
    number: u64,
) -> Option<Response<Body>> {
    let refused = faults
        .iter()
        .filter_map(|fault| Some((fault, refused(fault, asked, head, number)?)));
    // In the order of a server: authentication, authorisation, aggregation, mutating webhooks
    let first = refused.min_by_key(|(fault, _)| match fault {
        Fault::TokenExpires(_) => 0,
        Fault::Answers403(_) => 1,
        Fault::AggregatedDown => 2,
        _ => 3,
    });
    first.map(|(_, response)| response)
}

/// Token: k8s.io/apiserver 0.37.0, pkg/endpoints/filters/authentication.go, `Unauthorized`. Aggregated:
/// k8s.io/kube-aggregator 0.37.0, `pkg/apiserver/handler_proxy.go`, `ServeHTTP` and `proxyError`. Webhooks:
/// k8s.io/apiserver 0.37.0, pkg/admission/plugin/webhook/mutating/dispatcher.go and
/// pkg/util/webhook/error.go; pkg/admission/plugin/webhook/errors/statuserror.go,
/// `NewDryRunUnsupportedErr`.
fn refused(fault: &Fault, asked: &Asked, head: &Parts, number: u64) -> Option<Response<Body>> {
    let is_called = |of: &Resources| writes(asked) && of.hold(&asked.resource);
    match fault {
        Fault::TokenExpires(after) if number > *after => Some(answer::status(
            StatusCode::UNAUTHORIZED,
            "Unauthorized",
            "Unauthorized",
            &Value::Null,
        )),
        Fault::Answers403(resource) if resource.hold(&asked.resource) => {
            Some(unauthorised(asked, head))
        }
        Fault::AggregatedDown => aggregated::down(head.uri.path()),
        Fault::WebhookTimesOut(resource) if is_called(resource) => {
            Some(answer::internal_error(&format!(
                "failed calling webhook {WEBHOOK:?}: failed to call webhook: Post \
                 \"https://hook.example.svc:443/mutate?timeout=10s\": context deadline exceeded"
            )))
        }
        Fault::WebhookNoDryRun(resource) if asked.dry_run && is_called(resource) => {
            Some(answer::bad_request(&format!(
                "admission webhook {WEBHOOK:?} does not support dry run"
            )))
        }
        _ => None,
    }
}

/// The policy or webhook that refuses an object that the server accepts.
pub(crate) fn validating<'a>(faults: &'a [Fault], asked: &Asked) -> Option<&'a Fault> {
    if !writes(asked) {
        return None;
    }
    faults.iter().find(|fault| match fault {
        Fault::PolicyRefuses(resource, _) | Fault::WebhookRefuses(resource, _) => {
            resource.hold(&asked.resource)
        }
        _ => false,
    })
}

/// The refusal of that policy or webhook.
pub(crate) fn invalid(fault: &Fault, asked: &Asked, object: &[u8]) -> Response<Body> {
    match fault {
        Fault::WebhookRefuses(_, forbidden) => webhook_refuses(*forbidden),
        Fault::PolicyRefuses(_, forbidden) => policy_refuses(*forbidden, asked, object),
        _ => answer::bad_request("no policy refuses this"),
    }
}

/// k8s.io/apiserver 0.37.0, pkg/endpoints/handlers/responsewriters/errors.go, `forbiddenMessage`;
/// k8s.io/apimachinery 0.37.0, pkg/api/errors/errors.go, `NewForbidden`.
fn unauthorised(asked: &Asked, head: &Parts) -> Response<Body> {
    let (full, verb) = (&asked.resource, asked.verb);
    if full.starts_with('/') {
        let path = head.uri.path();
        let message = format!("forbidden: User {USER:?} cannot {verb} path {path:?}");
        return answer::status(StatusCode::FORBIDDEN, "Forbidden", &message, &json!({}));
    }
    let scope = match &asked.namespace {
        Some(namespace) => format!("in the namespace {namespace:?}"),
        None => "at the cluster scope".to_owned(),
    };
    let group = &asked.group;
    let why =
        format!("User {USER:?} cannot {verb} resource {full:?} in API group {group:?} {scope}");
    let (message, details) = about(asked, asked.name.as_deref(), &why);
    answer::status(StatusCode::FORBIDDEN, "Forbidden", &message, &details)
}

/// k8s.io/apiserver 0.37.0, pkg/admission/plugin/webhook/errors/statuserror.go, `ToStatusErr`.
fn webhook_refuses(forbidden: bool) -> Response<Body> {
    let message = format!("admission webhook {WEBHOOK:?} denied the request: {REASON}");
    let (code, reason) = match forbidden {
        true => (StatusCode::FORBIDDEN, "Forbidden"),
        false => (StatusCode::BAD_REQUEST, ""),
    };
    answer::status(code, reason, &message, &Value::Null)
}

/// k8s.io/apiserver 0.37.0, pkg/admission/plugin/policy/validating/dispatcher.go, `Dispatch`, and
/// pkg/admission/errors.go, `NewForbidden`.
fn policy_refuses(forbidden: bool, asked: &Asked, object: &[u8]) -> Response<Body> {
    let object: Value = serde_json::from_slice(object).unwrap_or_default();
    let named = |key: &str| {
        object["metadata"][key]
            .as_str()
            .filter(|name| !name.is_empty())
    };
    let name = asked
        .name
        .as_deref()
        .or_else(|| named("name"))
        .or_else(|| named("generateName"))
        .unwrap_or("Unknown");
    let why = format!(
        "ValidatingAdmissionPolicy '{POLICY}' with binding '{BINDING}' denied request: {REASON}"
    );
    let (code, reason) = match forbidden {
        true => (StatusCode::FORBIDDEN, "Forbidden"),
        false => (StatusCode::UNPROCESSABLE_ENTITY, "Invalid"),
    };
    let (message, mut details) = about(asked, Some(name), &why);
    details["causes"] = json!([{ "message": why }]);
    answer::status(code, reason, &message, &details)
}

/// The message and the details of a refusal: the refused object, then the reason.
fn about(asked: &Asked, name: Option<&str>, why: &str) -> (String, Value) {
    let kind = asked.resource.split('/').next().unwrap_or_default();
    let group = &asked.group;
    let mut details = json!({ "kind": kind });
    let mut what = kind.to_owned();
    if !group.is_empty() {
        details["group"] = group.as_str().into();
        what = format!("{kind}.{group}");
    }
    if let Some(name) = name {
        details["name"] = name.into();
        what = format!("{what} {name:?}");
    }
    (format!("{what} is forbidden: {why}"), details)
}

/// Whether admission sees the request: no policy and no webhook sees a review of access (kubernetes 1.37.0,
/// pkg/kubeapiserver/admission/exclusion).
fn writes(asked: &Asked) -> bool {
    let resource = asked.resource.as_str();
    matches!(asked.verb, "create" | "update" | "patch")
        && !asked.upgrades
        && !resource.starts_with('/')
        && !resource.ends_with("reviews")
}

/// The head of a request, changed into a dry run.
pub(crate) fn dry(head: &Parts) -> Option<Parts> {
    if !matches!(head.method, Method::POST | Method::PUT | Method::PATCH) {
        return None;
    }
    let mut dry = head.clone();
    let path = head.uri.path();
    let kept = head.uri.query().unwrap_or_default().split('&');
    let query = kept
        .filter(|pair| !pair.is_empty() && !pair.starts_with("dryRun="))
        .chain(["dryRun=All"])
        .collect::<Vec<_>>()
        .join("&");
    let mut uri = http::uri::Parts::from(head.uri.clone());
    uri.path_and_query = format!("{path}?{query}").parse().ok();
    dry.uri = uri.try_into().ok()?;
    Some(dry)
}
