//! Sends requests to the server, once or as often as the admission faults need it.

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_LENGTH, HeaderValue};
use http::request::Parts;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;

use super::asked::Asked;
use super::fault::Fault;
use crate::interference::kinds::admission::{Next, Review};
use crate::interference::kinds::{answer, refusal};

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Sends a request under the admission faults.
pub(crate) async fn sent(
    client: &Client,
    asked: &Asked,
    faults: &[Fault],
    head: &Parts,
    body: Bytes,
) -> kube::Result<Response<Body>> {
    // A validating policy comes last: the object that it judges is sent as a dry run, and never stored
    let judge =
        refusal::validating(faults, asked).and_then(|fault| Some((fault, refusal::dry(head)?)));
    let head = judge.as_ref().map_or(head, |(_, dry)| dry);
    let response = match Review::begin(faults, asked, head, &body) {
        Some(review) => reviewed(client, head, review).await?,
        None => client.send(request(head, body.clone())).await?,
    };
    match judge {
        Some((fault, _)) if response.status().is_success() => {
            Ok(refusal::invalid(fault, asked, &body))
        }
        _ => Ok(response),
    }
}

fn request(head: &Parts, body: Bytes) -> Request<Body> {
    let mut head = head.clone();
    // The body may differ from the client's
    head.headers.remove(CONTENT_LENGTH);
    Request::from_parts(head, Body::from(body))
}

/// Repeats a request until the answer of a server that forgets a field is known.
async fn reviewed(
    client: &Client,
    head: &Parts,
    mut review: Review<'_>,
) -> kube::Result<Response<Body>> {
    let mut body = review.body();
    loop {
        let mut request = request(head, body);
        // An answer that has to be changed must be JSON
        request.headers_mut().insert(ACCEPT, JSON);
        let response = client.send(request).await?;
        let status = response.status();
        // Webhooks choose the code
        let refusals = [
            StatusCode::UNPROCESSABLE_ENTITY,
            StatusCode::FORBIDDEN,
            StatusCode::NOT_FOUND,
        ];
        if !status.is_success() && !refusals.contains(&status) {
            return Ok(response);
        }
        let (mut answered, seen) = response.into_parts();
        let seen = seen.collect().await?.to_bytes();
        answered.headers.remove(CONTENT_LENGTH);
        if status.is_success() {
            let changed = review.accepted(&seen).unwrap_or(seen);
            return Ok(Response::from_parts(answered, Body::from(changed)));
        }
        match review.refused(&seen) {
            Next::Again(next) => body = next,
            Next::Stands => {
                return Ok(Response::from_parts(answered, Body::from(seen)));
            }
            Next::Pretend(pretence) => {
                let created = pretence.created;
                let stored = match pretence.is_part {
                    true => Some(stored(client, head).await?),
                    false => None,
                };
                return Ok(match pretence.answer(stored.as_deref()) {
                    Some(object) => answer::accepted(object, created),
                    None => Response::from_parts(answered, Body::from(seen)),
                });
            }
        }
    }
}

/// The stored pod to whose subresource a request goes.
async fn stored(client: &Client, head: &Parts) -> kube::Result<Bytes> {
    let path = head.uri.path();
    let pod = path.rsplit_once('/').map_or(path, |(pod, _)| pod);
    let request = Request::get(pod).header(ACCEPT, JSON).body(Body::empty());
    let request = request.map_err(kube::Error::HttpError)?;
    let response = client.send(request).await?;
    Ok(response.into_body().collect().await?.to_bytes())
}
