//! Requests that several looks have in common, each sent once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use winconform_core::way::{ApiReply, ApiRequest, Trouble, Verb};

use crate::transport::Api;

/// Which attempt of a check asks: a later one wants an answer of its own.
pub(super) type Attempt = u32;

type Answer = Shared<BoxFuture<'static, Result<ApiReply, Trouble>>>;
type Key = (Attempt, Verb, String, Option<String>);

/// Sends each request once per attempt, whoever asks for it: the control of many checks is one
/// request. Clones share what was sent.
#[derive(Clone, Default)]
pub(super) struct SharedRequests {
    answers: Arc<Mutex<BTreeMap<Key, Answer>>>,
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
            let sending = || async move { api.send(&request).await }.boxed().shared();
            answers.entry(key).or_insert_with(sending).clone()
        };
        answer.await
    }
}
