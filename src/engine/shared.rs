//! Requests that several looks have in common, each sent once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use winconform_core::way::{ApiReply, ApiRequest, Trouble, TroubleKind, Verb};

use crate::transport::Api;

/// Which attempt of a check asks: a later one wants an answer of its own.
pub(super) type Attempt = u32;

type Answer = Shared<BoxFuture<'static, Result<ApiReply, Trouble>>>;
type Key = (Attempt, Verb, String, Option<String>);

/// So many in a row without an answer, and the rest is not asked: each would take as long, and a
/// webhook that nobody answers for would hold a run for hours.
const PATIENCE: usize = 16;

/// Sends each request once per attempt, whoever asks for it: the control of many checks is one
/// request. Clones share what was sent.
#[derive(Clone, Default)]
pub(super) struct SharedRequests {
    answers: Arc<Mutex<BTreeMap<Key, Answer>>>,
    unanswered: Arc<Mutex<Unanswered>>,
}

/// What went without an answer since the last that had one.
#[derive(Default)]
struct Unanswered {
    count: usize,
    last: Option<Trouble>,
}

impl SharedRequests {
    /// The answer to a request, which is sent unless it was.
    pub(super) async fn send(
        &self,
        api: &Api,
        request: ApiRequest,
        attempt: Attempt,
    ) -> Result<ApiReply, Trouble> {
        let body = request.body.as_ref().map(ToString::to_string);
        let key = (attempt, request.verb, request.path.clone(), body);
        let answer = {
            let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
            let api = api.clone();
            let unanswered = Arc::clone(&self.unanswered);
            let sending = || {
                async move {
                    if let Some(trouble) = given_up(&unanswered) {
                        return Err(trouble);
                    }
                    let sent = api.send(&request).await;
                    note(&unanswered, &sent);
                    sent
                }
                .boxed()
                .shared()
            };
            answers.entry(key).or_insert_with(sending).clone()
        };
        answer.await
    }
}

/// The trouble of those before, once nothing else is to be expected.
fn given_up(unanswered: &Mutex<Unanswered>) -> Option<Trouble> {
    let unanswered = unanswered.lock().unwrap_or_else(PoisonError::into_inner);
    let last = unanswered.last.as_ref()?;
    (unanswered.count >= PATIENCE).then(|| {
        let detail = format!(
            "not asked, since {} before it went without an answer: {}",
            unanswered.count, last.detail
        );
        Trouble::new(last.kind, detail)
    })
}

fn note(unanswered: &Mutex<Unanswered>, sent: &Result<ApiReply, Trouble>) {
    let mut unanswered = unanswered.lock().unwrap_or_else(PoisonError::into_inner);
    let trouble = match sent {
        Ok(reply) if reply.status < 500 => {
            *unanswered = Unanswered::default();
            return;
        }
        Ok(reply) => {
            let words = reply.message();
            let detail = format!("status {}: {words}", reply.status);
            Trouble::new(TroubleKind::ApiUnavailable, detail)
        }
        Err(trouble) => trouble.clone(),
    };
    unanswered.count += 1;
    unanswered.last = Some(trouble);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::fake::Fake;
    use serde_json::json;

    const PATH: &str = "/api/v1/namespaces/a/pods";

    fn request(name: usize) -> ApiRequest {
        ApiRequest {
            verb: Verb::Create,
            path: format!("{PATH}?dryRun=All"),
            body: Some(json!({"metadata": {"name": format!("p{name}")}})),
        }
    }

    fn sent(api: &Api) -> u64 {
        let counts = api.counts();
        counts
            .iter()
            .find(|(name, _)| name == "create pods")
            .map_or(0, |(_, count)| *count)
    }

    #[tokio::test(start_paused = true)]
    async fn what_many_ask_for_is_sent_once_per_attempt() {
        let fake = Fake::default();
        fake.script(&format!("POST {PATH}"), 422, json!({"kind": "Status"}));
        let (api, shared) = (fake.api(), SharedRequests::default());
        let (one, other) = tokio::join!(
            shared.send(&api, request(1), 0),
            shared.send(&api, request(1), 0)
        );
        assert_eq!(one, other);
        assert_eq!(sent(&api), 1);
        shared.send(&api, request(2), 0).await.expect("an answer");
        shared.send(&api, request(1), 1).await.expect("an answer");
        assert_eq!(sent(&api), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn after_many_without_an_answer_the_rest_is_not_asked() {
        let fake = Fake::default();
        let words =
            "Internal error occurred: failed calling webhook \"x\": context deadline exceeded";
        let answer = json!({"kind": "Status", "message": words});
        fake.script(&format!("POST {PATH}"), 500, answer);
        let (api, shared) = (fake.api(), SharedRequests::default());
        for name in 0..PATIENCE {
            shared.send(&api, request(name), 0).await.expect("a reply");
        }
        let trouble = shared
            .send(&api, request(PATIENCE), 0)
            .await
            .expect_err("not asked");
        assert!(
            trouble.detail.contains("failed calling webhook"),
            "{trouble}"
        );
        assert_eq!(sent(&api), PATIENCE as u64);
    }
}
