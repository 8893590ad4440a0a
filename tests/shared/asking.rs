//! API requests that trials send themselves.

use std::time::Duration;

use serde_json::Value as Json;
use winconform::cluster::{Condition, poll_until};
use winconform::transport::Api;
use winconform_core::method::{ApiRequest, Verb};

/// The first pause between two polls.
const PAUSE: Duration = Duration::from_millis(50);

/// Sends a request; a status other than 200 to 202 is an error.
pub(crate) async fn send(
    api: &Api,
    verb: Verb,
    path: &str,
    body: Option<Json>,
) -> Result<Json, String> {
    let request = ApiRequest {
        verb,
        path: path.to_owned(),
        body,
    };
    let reply = api.send(&request).await;
    let reply = reply.map_err(|error| error.to_string())?;
    match reply.status {
        200..=202 => Ok(reply.body),
        status => Err(format!("{path}: {status}: {}", reply.body)),
    }
}

/// Polls `query` until it gives an answer, for `limit` at most.
pub(crate) async fn until<T>(
    what: &str,
    limit: Duration,
    query: impl AsyncFn() -> Result<Condition<T>, String>,
) -> Result<T, String> {
    let polled = poll_until(PAUSE, limit, what, async || match query().await {
        Ok(Condition::Done(answer)) => Condition::Done(Ok(answer)),
        Ok(Condition::NotYet(how)) => Condition::NotYet(how),
        Ok(Condition::Never(error)) => Condition::Never(error),
        Err(why) => Condition::Done(Err(why)),
    });
    polled.await.unwrap_or_else(|error| Err(error.to_string()))
}
