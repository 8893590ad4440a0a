//! What is answered instead of what the server would have said: RBAC, tokens, the aggregator,
//! webhooks and policies. The texts are those of Kubernetes 1.37.0.

use http::Response;
use http::request::Parts;
use http::{Method, StatusCode};
use kube::client::Body;
use serde_json::{Value, json};

use super::asked::Asked;
use super::fault::{Fault, PolicyReason, WebhookCode};
use super::{aggregated, answer};

/// Who the client is, as the refusing server knows it.
const USER: &str = "system:serviceaccount:default:reader";

const WEBHOOK: &str = "hook.example.com";
const POLICY: &str = "nothing.example.com";
const BINDING: &str = "nothing-at-all";
const REASON: &str = "nothing of this kind is allowed here";

/// What a fault makes a server say to a request at one of the places where it may refuse.
type Rank = fn(&Fault, &Asked, &Parts, u64) -> Option<Response<Body>>;

/// The refusal that comes before the server looks at the object; `number` counts requests from 1.
pub(super) fn before<'a>(
    faults: &'a [Fault],
    asked: &Asked,
    head: &Parts,
    number: u64,
) -> Option<(&'a Fault, Response<Body>)> {
    // In the order of a server: who, whether he may, whose it is, what changes it
    let ranks: [Rank; 4] = [unauthenticated, unauthorised, unavailable, unmutated];
    ranks.into_iter().find_map(|rank| {
        faults
            .iter()
            .find_map(|fault| Some((fault, rank(fault, asked, head, number)?)))
    })
}

/// The policy or webhook that will refuse what the server holds for valid.
pub(super) fn validating<'a>(faults: &'a [Fault], asked: &Asked) -> Option<&'a Fault> {
    if !writes(asked) {
        return None;
    }
    faults.iter().find(|fault| match fault {
        Fault::PolicyRefuses { resource, .. } | Fault::WebhookRefuses { resource, .. } => {
            resource.hold(&asked.resource)
        }
        _ => false,
    })
}

/// How that policy or webhook refuses an object.
pub(super) fn invalid(fault: &Fault, asked: &Asked, object: &[u8]) -> Response<Body> {
    match fault {
        Fault::WebhookRefuses { code, .. } => webhook_refuses(*code),
        Fault::PolicyRefuses { reason, .. } => policy_refuses(*reason, asked, object),
        _ => answer::bad_request("no policy refuses this"),
    }
}

/// k8s.io/apiserver 0.37.0, pkg/endpoints/filters/authentication.go, `Unauthorized`.
fn unauthenticated(
    fault: &Fault,
    _asked: &Asked,
    _head: &Parts,
    number: u64,
) -> Option<Response<Body>> {
    let Fault::TokenExpires { after } = fault else {
        return None;
    };
    (number > *after).then(|| {
        answer::status(
            StatusCode::UNAUTHORIZED,
            "Unauthorized",
            "Unauthorized",
            &Value::Null,
        )
    })
}

/// k8s.io/apiserver 0.37.0, pkg/endpoints/handlers/responsewriters/errors.go, `forbiddenMessage`;
/// k8s.io/apimachinery 0.37.0, pkg/api/errors/errors.go, `NewForbidden`.
fn unauthorised(
    fault: &Fault,
    asked: &Asked,
    head: &Parts,
    _number: u64,
) -> Option<Response<Body>> {
    let Fault::Answers403 { resource } = fault else {
        return None;
    };
    if !resource.hold(&asked.resource) {
        return None;
    }
    let (full, verb, target) = (&asked.resource, asked.verb, &asked.target);
    if full.starts_with('/') {
        let path = head.uri.path();
        let message = format!("forbidden: User {USER:?} cannot {verb} path {path:?}");
        return Some(answer::status(
            StatusCode::FORBIDDEN,
            "Forbidden",
            &message,
            &json!({}),
        ));
    }
    let scope = match &target.namespace {
        Some(namespace) => format!("in the namespace {namespace:?}"),
        None => "at the cluster scope".to_owned(),
    };
    let group = &target.group;
    let why =
        format!("User {USER:?} cannot {verb} resource {full:?} in API group {group:?} {scope}");
    Some(forbidden(asked, target.name.as_deref(), &why))
}

/// k8s.io/kube-aggregator 0.37.0, `pkg/apiserver/handler_proxy.go`, `ServeHTTP` and `proxyError`.
fn unavailable(
    fault: &Fault,
    _asked: &Asked,
    head: &Parts,
    _number: u64,
) -> Option<Response<Body>> {
    match fault {
        Fault::AggregatedDown => aggregated::down(head.uri.path()),
        _ => None,
    }
}

/// k8s.io/apiserver 0.37.0, pkg/admission/plugin/webhook/mutating/dispatcher.go and
/// pkg/util/webhook/error.go; pkg/admission/plugin/webhook/errors/statuserror.go,
/// `NewDryRunUnsupportedErr`.
fn unmutated(fault: &Fault, asked: &Asked, _head: &Parts, _number: u64) -> Option<Response<Body>> {
    if !writes(asked) {
        return None;
    }
    match fault {
        Fault::WebhookTimesOut { resource } if resource.hold(&asked.resource) => {
            Some(answer::internal_error(&format!(
                "failed calling webhook {WEBHOOK:?}: failed to call webhook: Post \
                 \"https://hook.example.svc:443/mutate?timeout=10s\": context deadline exceeded"
            )))
        }
        Fault::WebhookNoDryRun { resource } if asked.dry_run && resource.hold(&asked.resource) => {
            Some(answer::bad_request(&format!(
                "admission webhook {WEBHOOK:?} does not support dry run"
            )))
        }
        _ => None,
    }
}

/// k8s.io/apiserver 0.37.0, pkg/admission/plugin/webhook/errors/statuserror.go, `ToStatusErr`.
fn webhook_refuses(code: WebhookCode) -> Response<Body> {
    let message = format!("admission webhook {WEBHOOK:?} denied the request: {REASON}");
    match code {
        WebhookCode::BadRequest => {
            answer::status(StatusCode::BAD_REQUEST, "", &message, &Value::Null)
        }
        WebhookCode::Forbidden => {
            answer::status(StatusCode::FORBIDDEN, "Forbidden", &message, &Value::Null)
        }
    }
}

/// k8s.io/apiserver 0.37.0, pkg/admission/plugin/policy/validating/dispatcher.go, `Dispatch`, and
/// pkg/admission/errors.go, `NewForbidden`.
fn policy_refuses(reason: PolicyReason, asked: &Asked, object: &[u8]) -> Response<Body> {
    let object: Value = serde_json::from_slice(object).unwrap_or_default();
    let named = |key: &str| {
        object["metadata"][key]
            .as_str()
            .filter(|name| !name.is_empty())
    };
    let name = asked
        .target
        .name
        .as_deref()
        .or_else(|| named("name"))
        .or_else(|| named("generateName"))
        .unwrap_or("Unknown");
    let why = format!(
        "ValidatingAdmissionPolicy '{POLICY}' with binding '{BINDING}' denied request: {REASON}"
    );
    let code = match reason {
        PolicyReason::Invalid => StatusCode::UNPROCESSABLE_ENTITY,
        PolicyReason::Forbidden => StatusCode::FORBIDDEN,
        PolicyReason::Unauthorized => StatusCode::UNAUTHORIZED,
        PolicyReason::RequestEntityTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
    };
    let (message, mut details) = about(asked, Some(name), &why);
    details["causes"] = json!([{ "message": why }]);
    answer::status(code, reason.name(), &message, &details)
}

fn forbidden(asked: &Asked, name: Option<&str>, why: &str) -> Response<Body> {
    let (message, details) = about(asked, name, why);
    answer::status(StatusCode::FORBIDDEN, "Forbidden", &message, &details)
}

/// The message and the details of a refusal: what is refused, then why.
fn about(asked: &Asked, name: Option<&str>, why: &str) -> (String, Value) {
    let kind = asked.resource.split('/').next().unwrap_or_default();
    let group = &asked.target.group;
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

/// Whether admission is asked: no policy and no webhook sees a review of access
/// (kubernetes 1.37.0, pkg/kubeapiserver/admission/exclusion).
fn writes(asked: &Asked) -> bool {
    let resource = asked.resource.as_str();
    matches!(asked.verb, "create" | "update" | "patch")
        && !asked.upgrades
        && !resource.starts_with('/')
        && !resource.ends_with("reviews")
}

/// The head of a request that is sent so that nothing is stored.
pub(super) fn dry(head: &Parts) -> Option<Parts> {
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
