//! What the policies of `tests/world/policy.rs` do, in front of a server that evaluates none, and a validation that
//! is otherwise than Kubernetes documents.

use http::header::{CONTENT_LENGTH, HeaderValue};
use http::{Request, Response, StatusCode};
use kube::client::Body;
use serde_json::{Value, json};

use crate::scheduling::{NEVER_PREEMPTS, OS_SELECTS};

/// Validation refuses a field of pods that declare Windows, whatever it says.
const FORBIDS: &str = "validation-forbids=";
/// Validation refuses a field of all pods.
const FORBIDS_ALL: &str = "validation-forbids-everywhere=";
/// A field stays that the server does not know, or whose feature gate is off.
const KEEPS: &str = "validation-keeps=";

/// A client whose objects these policies change on their way; other faults are no policies.
pub(crate) fn mutating(client: kube::Client, policies: &[&str]) -> kube::Client {
    let [selects, never] = [OS_SELECTS, NEVER_PREEMPTS].map(|name| policies.contains(&name));
    let service = tower::service_fn(move |request: Request<Body>| {
        let client = client.clone();
        async move {
            let (parts, body) = request.into_parts();
            let path = parts.uri.path();
            let pod = selects && path.contains("/pods/") && !path.contains("/exec");
            let class = never && path.contains("/priorityclasses/");
            if parts.method != "PATCH" || !(pod || class) {
                return client.send(Request::from_parts(parts, body)).await;
            }
            let sent = body.collect_bytes().await?;
            let mut object: Value = serde_json::from_slice(&sent).expect("an object");
            if pod {
                select_by_os(&mut object["spec"]);
            } else {
                object["preemptionPolicy"] = json!("Never");
            }
            let body = Body::from(object.to_string().into_bytes());
            client.send(Request::from_parts(parts, body)).await
        }
    });
    kube::Client::new(service, "default")
}

fn select_by_os(spec: &mut Value) {
    let os = spec["os"]["name"].clone();
    if os.is_string() && spec["nodeSelector"].is_null() {
        spec["nodeSelector"] = json!({"kubernetes.io/os": os});
    }
}

/// Whether a fault is one of [`validating`].
pub(crate) fn is_of_validation(fault: &str) -> bool {
    [FORBIDS, FORBIDS_ALL, KEEPS]
        .iter()
        .any(|begin| fault.starts_with(begin))
}

/// A client of a server whose validation this fault alters in its answers to dry runs; other faults do not.
pub(crate) fn validating(client: kube::Client, fault: &str) -> kube::Client {
    let fault = fault.to_owned();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, fault) = (client.clone(), fault.clone());
        async move {
            let (parts, body) = request.into_parts();
            let is_dry = parts.uri.query().is_some_and(|it| it.contains("dryRun"));
            if !is_of_validation(&fault) || !is_dry {
                return client.send(Request::from_parts(parts, body)).await;
            }
            let sent = body.collect_bytes().await?;
            let object: Value = serde_json::from_slice(&sent).expect("an object");
            let body = Body::from(sent.to_vec());
            let answer = client.send(Request::from_parts(parts, body)).await?;
            match answer.status().is_success() {
                true => altered(&fault, &object, answer).await,
                false => Ok(answer),
            }
        }
    });
    kube::Client::new(service, "default")
}

/// What comes of an answer that accepts what was sent.
async fn altered(
    fault: &str,
    sent: &Value,
    answer: Response<Body>,
) -> Result<Response<Body>, kube::Error> {
    let (mut parts, body) = answer.into_parts();
    let stored = body.collect_bytes().await?;
    let mut stored: Value = serde_json::from_slice(&stored).expect("an object");
    let (kind, field) = fault.split_once('=').expect("a fault with a field");
    let (holder, pod) = pod(sent);
    let is_windows = stored
        .pointer(holder)
        .is_some_and(|it| it["spec"]["os"]["name"] == "windows");
    let places = places(pod, field);
    if FORBIDS == format!("{kind}=") && is_windows || FORBIDS_ALL == format!("{kind}=") {
        if let Some(place) = places.first() {
            let words = match is_windows {
                true => "Forbidden: cannot be set for a windows pod",
                false => "Forbidden: cannot be set",
            };
            let prefix = holder.trim_start_matches('/').replace('/', ".");
            let place = format!("{prefix}.{}", dotted(place));
            let place = place.trim_start_matches('.');
            let kind = stored["kind"].as_str().unwrap_or_default();
            let message = format!("{kind} \"a\" is invalid: {place}: {words}");
            let cause = json!({"reason": "FieldValueForbidden", "message": words, "field": place});
            stored = json!({
                "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 422,
                "reason": "Invalid", "message": message, "details": {"kind": kind, "causes": [cause]},
            });
            parts.status = StatusCode::UNPROCESSABLE_ENTITY;
        }
    } else if KEEPS == format!("{kind}=") {
        for place in places {
            let value = pod.pointer(&place).cloned();
            let stored = stored.pointer_mut(holder).expect("the same holder");
            put(stored, &place, value.expect("it was found there"));
        }
    }
    let body = stored.to_string().into_bytes();
    parts
        .headers
        .insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
    Ok(Response::from_parts(parts, Body::from(body)))
}

/// Where an object holds its pod, and that.
fn pod(object: &Value) -> (&'static str, &Value) {
    let holders = [
        "/spec/jobTemplate/spec/template",
        "/spec/template",
        "/template",
    ];
    let holders = holders.into_iter();
    let mut found = holders.filter_map(|at| Some((at, object.pointer(at)?)));
    found.next().unwrap_or(("", object))
}

/// Where a pod has a field, as JSON pointers: one of containers is in each that has it.
fn places(pod: &Value, field: &str) -> Vec<String> {
    let pointer = |field: &str| format!("/{}", field.replace('.', "/"));
    let Some(of_container) = field.strip_prefix("container.") else {
        let here = pointer(field);
        return pod.pointer(&here).map(|_| here).into_iter().collect();
    };
    let lists = ["initContainers", "containers", "ephemeralContainers"];
    let all = lists.iter().flat_map(|list| {
        let count = pod["spec"][list].as_array().map_or(0, Vec::len);
        (0..count).map(move |index| format!("/spec/{list}/{index}{}", pointer(of_container)))
    });
    all.filter(|place| pod.pointer(place).is_some()).collect()
}

/// As a server writes the place of a field.
fn dotted(pointer: &str) -> String {
    let steps = pointer.split('/').skip(1);
    let each = steps.map(|step| match step.parse::<usize>() {
        Ok(index) => format!("[{index}]"),
        Err(_) => format!(".{step}"),
    });
    each.collect::<String>().trim_start_matches('.').to_owned()
}

/// Puts a value where a pointer leads, with the objects on the way.
fn put(object: &mut Value, pointer: &str, value: Value) {
    let mut at = object;
    for step in pointer.split('/').skip(1) {
        at = match step.parse::<usize>() {
            Ok(index) => &mut at[index],
            Err(_) => &mut at[step],
        };
    }
    *at = value;
}
