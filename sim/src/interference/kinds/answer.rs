//! Troubled answers: status, headers and body as real servers send them (Kubernetes 1.37's source; nginx for
//! the load balancer's page).

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER, TRANSFER_ENCODING};
use http::{Response, StatusCode};
use kube::client::Body;
use serde_json::{Value, json};

use crate::interference::asked::Expiry;
use crate::interference::chance::Form;

const JSON: &str = "application/json";

const EXPIRED_WATCH: &str = "too old resource version: 1 (2)";
const EXPIRED_LIST: &str = "The resourceVersion for the provided list is too old.";
const EXPIRED_CONTINUE: &str = "The provided continue parameter is too old to display a consistent \
     list result. You can start a new list without the continue parameter.";

const BAD_GATEWAY: &str = "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n\
     <center><h1>502 Bad Gateway</h1></center>\r\n<hr><center>nginx</center>\r\n</body>\r\n</html>\r\n";

/// 429: a server that is not ready sends a Status; Priority and Fairness sends plain text.
pub(crate) fn too_many_requests(form: Form) -> Response<Body> {
    let code = StatusCode::TOO_MANY_REQUESTS;
    let mut response = match form {
        Form::Early => status(
            code,
            "TooManyRequests",
            "storage is (re)initializing",
            &json!({ "retryAfterSeconds": 1 }),
        ),
        Form::Late => {
            let mut response = go_error(code, "Too many requests, please try again later.\n");
            for name in [
                "x-kubernetes-pf-flowschema-uid",
                "x-kubernetes-pf-prioritylevel-uid",
            ] {
                let uid = HeaderValue::from_static("4b1f8b2e-6a51-4f0e-9d0f-0f6b3a6f7a11");
                response.headers_mut().insert(name, uid);
            }
            response
        }
    };
    let second = HeaderValue::from_static("1");
    response.headers_mut().insert(RETRY_AFTER, second);
    response
}

/// The message of etcd when it cannot serve for a moment.
pub(crate) const NO_LEADER: &str = "etcdserver: leader changed";

/// 500 with a Status.
pub(crate) fn internal_error(cause: &str) -> Response<Body> {
    status(
        StatusCode::INTERNAL_SERVER_ERROR,
        "InternalError",
        &format!("Internal error occurred: {cause}"),
        &json!({ "causes": [{ "message": cause }] }),
    )
}

/// An expired version: an event in a watch's stream that began well, else 410.
pub(crate) fn gone(expiry: Expiry) -> Response<Body> {
    let message = match expiry {
        Expiry::Watch | Expiry::Never => EXPIRED_WATCH,
        Expiry::List => EXPIRED_LIST,
        Expiry::ContinuedList => EXPIRED_CONTINUE,
    };
    if expiry != Expiry::Watch {
        return status(StatusCode::GONE, "Expired", message, &Value::Null);
    }
    let object = status_object(StatusCode::GONE, "Expired", message, &Value::Null);
    let event = format!("{}\n", json!({ "type": "ERROR", "object": object }));
    let mut response = answer(StatusCode::OK, JSON, event);
    let chunked = HeaderValue::from_static("chunked");
    response.headers_mut().insert(TRANSFER_ENCODING, chunked);
    response
}

/// 502 with an HTML page.
pub(crate) fn html_502() -> Response<Body> {
    answer(StatusCode::BAD_GATEWAY, "text/html", BAD_GATEWAY)
}

/// 503 with plain text, as the aggregator answers for a missing server.
pub(crate) fn service_unavailable() -> Response<Body> {
    go_error(StatusCode::SERVICE_UNAVAILABLE, "service unavailable\n")
}

/// 503 with a Status, as a server answers right after its start (k8s.io/apiserver 0.37.0,
/// `pkg/util/notfoundhandler/not_found_handler.go`).
pub(crate) fn starting() -> Response<Body> {
    let mut response = status(
        StatusCode::SERVICE_UNAVAILABLE,
        "ServiceUnavailable",
        "the request has been made before all known HTTP paths have been installed, please try \
         again",
        &json!({ "retryAfterSeconds": 5 }),
    );
    let seconds = HeaderValue::from_static("5");
    response.headers_mut().insert(RETRY_AFTER, seconds);
    response
}

/// The successful answer with an object that the server did not send.
pub(crate) fn accepted(object: Bytes, created: bool) -> Response<Body> {
    let code = match created {
        true => StatusCode::CREATED,
        false => StatusCode::OK,
    };
    answer(code, JSON, object)
}

/// 400 with a Status, as for a webhook.
pub(crate) fn bad_request(message: &str) -> Response<Body> {
    status(StatusCode::BAD_REQUEST, "BadRequest", message, &Value::Null)
}

/// A Status; it has no reason if that is empty, and no details if those are null.
pub(crate) fn status(
    code: StatusCode,
    reason: &str,
    message: &str,
    details: &Value,
) -> Response<Body> {
    let object = status_object(code, reason, message, details);
    answer(code, JSON, format!("{object}\n"))
}

fn status_object(code: StatusCode, reason: &str, message: &str, details: &Value) -> Value {
    let mut object = json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "code": code.as_u16(),
    });
    if !reason.is_empty() {
        object["reason"] = reason.into();
    }
    if !details.is_null() {
        object["details"] = details.clone();
    }
    object
}

/// net/http's `http.Error`.
fn go_error(code: StatusCode, text: &'static str) -> Response<Body> {
    let mut response = answer(code, "text/plain; charset=utf-8", text);
    let nosniff = HeaderValue::from_static("nosniff");
    let headers = response.headers_mut();
    headers.insert("x-content-type-options", nosniff);
    response
}

fn answer(code: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Body::from(body.into()));
    *response.status_mut() = code;
    let kind = HeaderValue::from_static(kind);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}
