//! A server whose validation differs from what Kubernetes documents, in its answers to dry runs.

use http::header::{CONTENT_LENGTH, HeaderValue};
use http::{Request, Response, StatusCode};
use kube::client::Body;
use serde_json::{Value, json};

/// The message that refuses a field of a pod that declares Windows.
const OF_WINDOWS: &str = "Forbidden: cannot be set for a windows pod";

/// What a server does with a field of pods.
#[derive(Clone, Debug)]
pub(crate) struct Validation {
    rule: Rule,
    field: String,
}

#[derive(Clone, Copy, Debug)]
enum Rule {
    /// It refuses the field in pods that declare Windows, whatever its value.
    Forbids,
    /// It refuses the field in all pods.
    ForbidsEverywhere,
    /// It keeps the field, although it does not know the field or the feature gate is off.
    Keeps,
}

impl Validation {
    /// The validation that a fault names; `None` for other faults.
    pub(crate) fn by_name(fault: &str) -> Option<Self> {
        let (rule, field) = fault.split_once('=')?;
        let rule = match rule {
            "validation-forbids" => Rule::Forbids,
            "validation-forbids-everywhere" => Rule::ForbidsEverywhere,
            "validation-keeps" => Rule::Keeps,
            _ => return None,
        };
        let field = field.to_owned();
        Some(Self { rule, field })
    }

    /// A client of a server with this validation.
    pub(crate) fn before(self, client: kube::Client) -> kube::Client {
        let service = tower::service_fn(move |request: Request<Body>| {
            let (client, validation) = (client.clone(), self.clone());
            async move {
                let (parts, body) = request.into_parts();
                let query = parts.uri.query();
                if !query.is_some_and(|it| it.contains("dryRun")) {
                    return client.send(Request::from_parts(parts, body)).await;
                }
                let sent = body.collect_bytes().await?;
                let object: Value = serde_json::from_slice(&sent).expect("an object");
                let body = Body::from(sent.to_vec());
                let answer = client.send(Request::from_parts(parts, body)).await?;
                match answer.status().is_success() {
                    true => validation.altered(&object, answer).await,
                    false => Ok(answer),
                }
            }
        });
        kube::Client::new(service, "default")
    }

    /// Changes an answer that accepts the object sent.
    async fn altered(
        &self,
        sent: &Value,
        answer: Response<Body>,
    ) -> Result<Response<Body>, kube::Error> {
        let (mut parts, body) = answer.into_parts();
        let stored = body.collect_bytes().await?;
        let mut stored: Value = serde_json::from_slice(&stored).expect("an object");
        let (holder, pod) = pod(sent);
        let is_windows = stored
            .pointer(holder)
            .is_some_and(|it| it["spec"]["os"]["name"] == "windows");
        let places = places(pod, &self.field);
        let words = match (self.rule, is_windows) {
            (Rule::Forbids | Rule::ForbidsEverywhere, true) => Some(OF_WINDOWS),
            (Rule::ForbidsEverywhere, false) => Some("Forbidden: cannot be set"),
            (Rule::Forbids, false) | (Rule::Keeps, _) => None,
        };
        match (words, places.first()) {
            (Some(words), Some(place)) => {
                stored = refusal(&stored, &in_object(holder, place), words);
                parts.status = StatusCode::UNPROCESSABLE_ENTITY;
            }
            _ if matches!(self.rule, Rule::Keeps) => {
                let stored = stored.pointer_mut(holder).expect("the same holder");
                for place in &places {
                    let value = pod.pointer(place).cloned();
                    put(stored, place, value.expect("it was found there"));
                }
            }
            _ => {}
        }
        let body = stored.to_string().into_bytes();
        let length = HeaderValue::from(body.len());
        parts.headers.insert(CONTENT_LENGTH, length);
        Ok(Response::from_parts(parts, Body::from(body)))
    }
}

/// The answer that refuses an object for the field at a place.
fn refusal(object: &Value, place: &str, words: &str) -> Value {
    let kind = object["kind"].as_str().unwrap_or_default();
    let message = format!("{kind} \"a\" is invalid: {place}: {words}");
    let cause = json!({"reason": "FieldValueForbidden", "message": words, "field": place});
    json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 422,
        "reason": "Invalid", "message": message, "details": {"kind": kind, "causes": [cause]},
    })
}

/// The path of a pod's field as a server writes it, in the object that holds the pod.
fn in_object(holder: &str, place: &str) -> String {
    let prefix = holder.trim_start_matches('/').replace('/', ".");
    let place = format!("{prefix}.{}", dotted(place));
    place.trim_start_matches('.').to_owned()
}

/// The pointer to the pod in an object, and the pod.
fn pod(object: &Value) -> (&'static str, &Value) {
    let holders = [
        "/spec/jobTemplate/spec/template",
        "/spec/template",
        "/template",
    ];
    let holders = holders.into_iter();
    let mut pods = holders.filter_map(|at| Some((at, object.pointer(at)?)));
    pods.next().unwrap_or(("", object))
}

/// The JSON pointers to a field in a pod: a field of containers has one for each container with it.
fn places(pod: &Value, field: &str) -> Vec<String> {
    let pointer = |field: &str| format!("/{}", field.replace('.', "/"));
    let Some(of_container) = field.strip_prefix("container.") else {
        let here = pointer(field);
        return pod.pointer(&here).map(|_| here).into_iter().collect();
    };
    let lists = ["initContainers", "containers", "ephemeralContainers"];
    let paths = lists.iter().flat_map(|list| {
        let count = pod["spec"][list].as_array().map_or(0, Vec::len);
        (0..count).map(move |index| format!("/spec/{list}/{index}{}", pointer(of_container)))
    });
    paths.filter(|place| pod.pointer(place).is_some()).collect()
}

/// The path of a field as a server writes it.
fn dotted(pointer: &str) -> String {
    let steps = pointer.split('/').skip(1);
    let each = steps.map(|step| match step.parse::<usize>() {
        Ok(index) => format!("[{index}]"),
        Err(_) => format!(".{step}"),
    });
    each.collect::<String>().trim_start_matches('.').to_owned()
}

/// Sets the value at a pointer, and creates the objects on the way.
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
