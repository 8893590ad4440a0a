//! Sends one request once, and decides whether it may be sent again.

use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use http::{Method, Request};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use kube::client::Body;
use serde_json::Value as Json;
use tokio::time::timeout;
use winconform_core::method::{ApiReply, ApiRequest, ErrorKind, ObservationError, Verb};
use winconform_core::text::printable;

use super::api::Api;
use super::error_text::{causes, error_text};

/// The field manager of every server-side apply.
const FIELD_MANAGER: &str = "winconform";

const NOT_SERVED: &[u8] = b"404 page not found";

/// Why one try brought no usable answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The request cannot be put on the wire.
    #[error("the request is not valid")]
    Invalid(#[source] http::Error),
    /// The connection was not opened, or it broke.
    #[error("the connection failed")]
    Connection(#[source] kube::Error),
    /// No answer came in time, whether or not a connection was opened.
    #[error("no answer within {:?}", in_millis(.0))]
    NoAnswer(Duration),
    /// The answer began and did not end in time.
    #[error("the answer did not end within {0:?}")]
    Stalled(Duration),
    /// The answer began and broke off.
    #[error("the answer broke off: {0}")]
    Broken(String),
    /// The answer is larger than this limit in bytes.
    #[error("the answer is larger than {0} bytes")]
    TooLarge(usize),
    /// A list is older than an earlier answer of the same list.
    #[error(
        "the list has resourceVersion {told}, but an earlier answer had {floor}: a proxy or cache in front of the API server returns old answers"
    )]
    Stale {
        /// The resourceVersion of this list.
        told: u64,
        /// The resourceVersion that it should have reached.
        floor: u64,
    },
    /// What answered a request for an exec opened no WebSocket.
    #[error("what answered is no exec of Kubernetes")]
    NoExec,
    /// The status is 429, 500, 502, 503 or 504, or the body is no JSON object; of an exec, every other status
    /// than 101.
    #[error("status {status}: {text}")]
    NoReply {
        status: u16,
        /// The server's `Retry-After`.
        after: Option<Duration>,
        /// The message of the answer, or its body.
        text: String,
    },
}

impl Failure {
    /// How long the server asks the client to wait.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::NoReply { after, .. } => *after,
            _ => None,
        }
    }

    /// Whether the same request may get an answer when it is sent again.
    pub(crate) fn may_pass(&self) -> bool {
        !matches!(self, Self::Invalid(_) | Self::TooLarge(_))
    }

    /// Whether the whole server may be away: nothing answered, or a proxy answered in its place.
    pub(crate) fn is_away(&self) -> bool {
        match self {
            Self::Connection(_) | Self::NoAnswer(_) | Self::Stalled(_) | Self::Broken(_) => true,
            Self::NoReply { status, .. } => matches!(status, 502..=504),
            Self::Invalid(_) | Self::TooLarge(_) | Self::Stale { .. } | Self::NoExec => false,
        }
    }

    /// The observation error when the caller stops trying; `what` names the request.
    pub(crate) fn error(&self, what: &str) -> ObservationError {
        let kind = match self {
            Self::TooLarge(_) => ErrorKind::OutputTruncated,
            Self::NoReply { status: 429, .. } => ErrorKind::Throttled,
            _ => ErrorKind::ApiUnavailable,
        };
        kind.error(format!("{what}: {}", error_text(self)))
    }
}

/// The form that the body of a 200 must have.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Form {
    Json,
    /// Text, which becomes a JSON string.
    Text,
}

pub(crate) async fn send_once(
    api: &Api,
    request: &ApiRequest,
    form: Form,
    answer: Duration,
) -> Result<ApiReply, Failure> {
    let (body, limit) = (api.durations.api_body, api.limits.api_body);
    let response = match timeout(answer, api.client.send(on_the_wire(request)?)).await {
        Err(_) => return Err(Failure::NoAnswer(answer)),
        Ok(Err(error)) => return Err(connection(error, answer)),
        Ok(Ok(response)) => response,
    };
    let status = response.status().as_u16();
    let after = retry_after(response.headers());
    let read = timeout(body, read_body(response.into_body(), limit));
    let bytes = read.await.unwrap_or(Err(Failure::Stalled(body)))?;
    if form == Form::Text && status == 200 {
        let body = Json::String(String::from_utf8_lossy(&bytes).into_owned());
        return Ok(ApiReply { status, body });
    }
    classify(status, after, &bytes)
}

/// Reads a status and a body as a reply or a failure.
fn classify(status: u16, after: Option<Duration>, bytes: &[u8]) -> Result<ApiReply, Failure> {
    let parsed = serde_json::from_slice::<Json>(bytes)
        .ok()
        .filter(Json::is_object);
    match parsed {
        Some(body) if !may_pass(status, &body) => Ok(ApiReply { status, body }),
        // The API server answers an unserved path with this text (Go `http.NotFound`)
        None if status == 404 && bytes.trim_ascii() == NOT_SERVED => {
            let body = serde_json::json!({"message": "404 page not found"});
            Ok(ApiReply { status, body })
        }
        _ => Err(Failure::NoReply {
            status,
            after,
            text: words(bytes),
        }),
    }
}

/// The message of an answer, or its body.
pub(crate) fn words(bytes: &[u8]) -> String {
    let status = serde_json::from_slice::<Json>(bytes).unwrap_or_default();
    let message = status["message"].as_str().map(printable);
    message.unwrap_or_else(|| printable(&String::from_utf8_lossy(bytes)))
}

/// Whether the server may answer the same request otherwise the next time.
fn may_pass(status: u16, body: &Json) -> bool {
    match status {
        500 => !is_for_good(body),
        429 | 502..=504 => true,
        _ => false,
    }
}

/// Whether a 500 is a reply that does not change: the server knows no field of that name in a server-side
/// apply (apimachinery `managedfields`), or a webhook denied the request or failed after the server waited
/// for it (apiserver `admission/plugin/webhook/errors`).
fn is_for_good(status: &Json) -> bool {
    status["message"].as_str().is_some_and(|message| {
        message.contains("typed patch object")
            || message.contains("failed calling webhook")
            || message.contains("denied the request")
    })
}

pub(crate) async fn read_body(body: Body, limit: usize) -> Result<Vec<u8>, Failure> {
    match Limited::new(body, limit).collect().await {
        Ok(collected) => Ok(collected.to_bytes().to_vec()),
        Err(error) if error.is::<LengthLimitError>() => Err(Failure::TooLarge(limit)),
        Err(error) => Err(Failure::Broken(error_text(error.as_ref()))),
    }
}

/// A limit in whole milliseconds: one that is what is left of another has nanoseconds, too.
fn in_millis(limit: &Duration) -> Duration {
    Duration::from_millis(u64::try_from(limit.as_millis()).unwrap_or(u64::MAX))
}

/// The failure of a send. A time-out of kube's stack is [`Failure::NoAnswer`].
pub(crate) fn connection(error: kube::Error, answer: Duration) -> Failure {
    if causes(&error).any(<dyn std::error::Error>::is::<tokio::time::error::Elapsed>) {
        return Failure::NoAnswer(answer);
    }
    Failure::Connection(error)
}

/// `Retry-After` in seconds; the API server never sends a date.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let after = headers.get(RETRY_AFTER)?.to_str().ok()?;
    Some(Duration::from_secs(after.trim().parse().ok()?))
}

fn on_the_wire(request: &ApiRequest) -> Result<Request<Body>, Failure> {
    let (method, content) = match request.verb {
        Verb::Get => (Method::GET, "application/json"),
        Verb::Create => (Method::POST, "application/json"),
        Verb::Apply => (Method::PATCH, "application/apply-patch+yaml"),
        Verb::Patch => (Method::PATCH, "application/strategic-merge-patch+json"),
        Verb::Replace => (Method::PUT, "application/json"),
        Verb::Delete => (Method::DELETE, "application/json"),
    };
    let mut builder = Request::builder()
        .method(method)
        .uri(with_manager(request))
        .header(ACCEPT, "application/json");
    let body = match &request.body {
        None => Body::empty(),
        Some(body) => {
            builder = builder.header(CONTENT_TYPE, content);
            Body::from(body.to_string().into_bytes())
        }
    };
    builder.body(body).map_err(Failure::Invalid)
}

/// The path; for a server-side apply with `fieldManager` and `force`.
fn with_manager(request: &ApiRequest) -> String {
    let path = &request.path;
    if request.verb != Verb::Apply {
        return path.clone();
    }
    let mark = if path.contains('?') { '&' } else { '?' };
    format!("{path}{mark}fieldManager={FIELD_MANAGER}&force=true")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_apply_says_who_manages() {
        let path = |path: &str| {
            with_manager(&ApiRequest {
                verb: Verb::Apply,
                path: path.to_owned(),
                body: None,
            })
        };
        assert_eq!(path("/a"), "/a?fieldManager=winconform&force=true");
        assert_eq!(
            path("/a?dryRun=All"),
            "/a?dryRun=All&fieldManager=winconform&force=true"
        );
        assert_eq!(with_manager(&ApiRequest::get("/a")), "/a");
    }

    #[test]
    fn a_limit_is_told_in_milliseconds() {
        for (nanos, said) in [
            (7_123_456_789, "no answer within 7.123s"),
            (250_000_001, "no answer within 250ms"),
            (30_000_000_000, "no answer within 30s"),
        ] {
            let limit = Duration::from_nanos(nanos);
            assert_eq!(Failure::NoAnswer(limit).to_string(), said);
        }
    }

    #[test]
    fn only_json_of_the_server_is_a_reply() {
        for (status, body) in [
            (404, r#"{"kind":"Status"}"#),
            (404, "404 page not found\n"),
            (401, "{}"),
            (409, "{}"),
        ] {
            assert_eq!(
                classify(status, None, body.as_bytes())
                    .expect("a reply")
                    .status,
                status
            );
        }
        for (status, body) in [
            (502, "<html>"),
            (500, "{}"),
            (404, "<html>404 page not found"),
            (200, ""),
            (200, "[]"),
        ] {
            assert!(
                classify(status, None, body.as_bytes()).is_err(),
                "{status} {body}"
            );
        }
        let typo = r#"{"message":"failed to create typed patch object (a/b; /v1, Kind=Pod): .spec.x: field not declared in schema"}"#;
        assert_eq!(
            classify(500, None, typo.as_bytes())
                .expect("a refusal")
                .status,
            500
        );
    }
}
