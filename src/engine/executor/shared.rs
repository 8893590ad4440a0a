//! Requests that several assertions have in common, each sent once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::OnceCell;
use tokio::time::Instant;
use winconform_core::method::{ApiReply, ApiRequest, ErrorKind, ObservationError, Result, Verb};

use crate::transport::{Api, locked};

/// Which attempt of a check asks: a later one needs a new answer.
pub(crate) type Attempt = u32;

type Answer = Arc<OnceCell<Result<ApiReply>>>;
type Key = (Attempt, Verb, String, Option<String>);

/// After this many requests in a row without an answer that took long, the rest are sent one at a time: each
/// would take as long, and a webhook that hangs would hold a run for hours.
const PATIENCE: usize = 16;

/// Sends each request once per attempt for all checks: the control of many checks is one request. Clones
/// share the answers.
#[derive(Clone, Default)]
pub(crate) struct SharedRequests {
    answers: Arc<Mutex<BTreeMap<Key, Answer>>>,
    unanswered: Arc<Mutex<Unanswered>>,
    /// Held by the one request that finds out whether there are answers again.
    trial: Arc<tokio::sync::Mutex<()>>,
}

/// The requests without an answer since the last that had one.
#[derive(Default)]
struct Unanswered {
    count: usize,
    /// How long all of them took together: what fails at once costs nothing.
    took: Duration,
    last: Option<ObservationError>,
}

impl SharedRequests {
    /// The answer to a request, which is sent unless it was sent before.
    pub(crate) async fn send(
        &self,
        api: &Api,
        request: ApiRequest,
        attempt: Attempt,
    ) -> Result<ApiReply> {
        let body = request.body.as_ref().map(ToString::to_string);
        let key = (attempt, request.verb, request.path.clone(), body);
        let answer = Arc::clone(locked(&self.answers).entry(key).or_default());
        let asking = answer.get_or_init(|| self.ask(api, &request));
        asking.await.clone()
    }

    async fn ask(&self, api: &Api, request: &ApiRequest) -> Result<ApiReply> {
        let patience = api.durations().dry_run_answer;
        let mut held = None;
        let before = locked(&self.unanswered).used_up(patience);
        if let Some((count, _)) = before {
            held = Some(self.trial.lock().await);
            // A request that waited for another's trial has the same result
            match locked(&self.unanswered).used_up(patience) {
                Some((more, error)) if more > count => return Err(error),
                Some(_) => {}
                None => held = None,
            }
        }
        let begun = Instant::now();
        let sent = api.send(request).await;
        locked(&self.unanswered).note(begun, &sent);
        drop(held);
        sent
    }

    /// Drops all answers, once no check needs them any more: the next repetition needs new ones.
    pub(crate) fn forget(&self) {
        locked(&self.answers).clear();
    }
}

impl Unanswered {
    /// How many requests had no answer, and the error of a request that is therefore not sent: `None` until
    /// [`PATIENCE`] of them have taken `patience` together.
    fn used_up(&self, patience: Duration) -> Option<(usize, ObservationError)> {
        let last = self.last.as_ref()?;
        let (count, said) = (self.count, &last.detail);
        let detail = format!("not asked, since {count} before it went without an answer: {said}");
        let is_used_up = count >= PATIENCE && self.took >= patience;
        is_used_up.then(|| (count, last.kind.error(detail)))
    }

    fn note(&mut self, begun: Instant, sent: &Result<ApiReply>) {
        let error = match sent {
            Ok(reply) if reply.status < 500 => {
                *self = Self::default();
                return;
            }
            Ok(reply) => {
                let words = reply.message();
                let detail = format!("status {}: {words}", reply.status);
                ErrorKind::ApiUnavailable.error(detail)
            }
            Err(error) => error.clone(),
        };
        self.count += 1;
        self.took += begun.elapsed();
        self.last = Some(error);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::fake::Fake;
    use futures::future::join_all;
    use ordered_watch as watch;
    use serde_json::json;
    use std::ops::Range;

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
    async fn answers_of_earlier_repetitions_are_not_kept() {
        let fake = Fake::default();
        fake.script(&format!("POST {PATH}"), 422, json!({"kind": "Status"}));
        let (api, shared) = (fake.api(), SharedRequests::default());
        for attempt in 0..10 {
            shared.forget();
            let sent = shared.send(&api, request(1), attempt).await;
            sent.expect("an answer");
            let kept = shared.answers.lock().expect("not poisoned").len();
            assert_eq!(kept, 1, "in repetition {attempt}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn many_that_fail_at_once_are_no_reason_to_ask_no_more() {
        let fake = Fake::default();
        let refused = json!({"kind": "Status", "message": "failed calling webhook"});
        fake.script(&format!("POST {PATH}"), 500, refused);
        let (api, shared) = (fake.api(), SharedRequests::default());
        for name in 0..PATIENCE * 4 {
            let reply = shared.send(&api, request(name), 0).await;
            assert_eq!(reply.expect("it is asked").status, 500);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_at_a_time_finds_out_whether_what_hangs_still_does() {
        let fake = Fake::default();
        let hung = json!({"kind": "Status", "message": "failed calling webhook"});
        fake.script(&format!("POST {PATH}"), 500, hung);
        // Each takes a second
        fake.signal_at(&format!("POST {PATH}"), watch::channel(0).0);
        let (api, shared) = (fake.api(), SharedRequests::default());
        let all = async |names: Range<usize>| {
            join_all(names.map(|name| shared.send(&api, request(name), 0))).await
        };
        assert!(all(0..40).await.iter().all(Result::is_ok));
        let many = all(100..200).await;
        assert_eq!((many.iter().flatten().count(), sent(&api)), (1, 41));
        let error = many.iter().find_map(|reply| reply.as_ref().err());
        let error = error.expect("the others are not asked");
        assert!(error.detail.contains("failed calling webhook"));
        fake.script(&format!("POST {PATH}"), 422, json!({"kind": "Status"}));
        // The others are sent once that one has its answer
        let answers = all(200..300).await;
        assert!(answers.iter().flatten().all(|reply| reply.status == 422));
        assert!(answers.iter().all(Result::is_ok));
    }
}
