//! Sends one request of an assertion that is not of an exec session.

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use winconform_core::method::{Reply, Request, Result};

use super::exec_session::misdirected;
use super::facts::RunFacts;
use super::observer::Observer;
use super::perform::panicked;
use super::shared::SharedRequests;
use crate::engine::fixtures::apply::Fixtures;

pub(super) struct Asker {
    pub(super) fixtures: Fixtures,
    pub(super) facts: RunFacts,
    pub(super) shared: SharedRequests,
    pub(super) tracker: TaskTracker,
    pub(super) cancel: CancellationToken,
}

impl Asker {
    pub(super) async fn ask(&self, observer: &Observer, request: &Request) -> Result<Reply> {
        let api = &self.fixtures.api;
        match request {
            // What converges needs a new answer each round, and so does a control after a failure
            Request::Api(request) if observer.test.traits().converges || observer.anew => {
                api.send(request).await.map(Reply::Api)
            }
            Request::Api(request) => {
                let answer = self.shared.send(api, request.clone(), observer.attempt);
                answer.await.map(Reply::Api)
            }
            Request::Facts => {
                let facts = self.facts.get(observer.attempt_of_facts());
                Ok(Reply::Facts(facts.await))
            }
            Request::Text(path) => api.text(path).await.map(Reply::Api),
            Request::Exec(pod, request) => api.exec(pod, request).await.map(Reply::Exec),
            Request::Play(play) => {
                let (again, cancel) = (observer.attempt > 0, self.cancel.clone());
                let playing = self.fixtures.clone().play(play.clone(), again, cancel);
                // In a task of its own, which tear-down waits for: it may create a pod
                let played = self.tracker.spawn(playing).await;
                played
                    .unwrap_or_else(|_| Err(panicked()))
                    .map(Reply::Played)
            }
            Request::Get(_) | Request::Ping(_) => Err(misdirected()),
        }
    }
}
