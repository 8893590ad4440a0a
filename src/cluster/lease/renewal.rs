//! Renews a held Lease.

use std::time::Duration;

use ordered_watch as watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use winconform_core::method::{ApiReply, ApiRequest, ErrorKind, ObservationError, Result, Verb};

use super::{Keeper, Mark, holder, refused};
use crate::transport::{Hold, pause};

impl Keeper {
    /// Renews the Lease until it is stopped or lost.
    pub(super) async fn keep(
        self,
        mark: Mark,
        lost: watch::Sender<Option<String>>,
        stop: CancellationToken,
    ) {
        let api = self.api.clone();
        match self.renew(mark, stop).await {
            // A run that released its Lease writes nothing more
            None => api.outage.hold(Hold::Free),
            Some(why) => {
                api.outage.hold(Hold::Lost);
                lost.send_replace(Some(why));
            }
        }
    }

    /// Renews the Lease. Returns why it is lost, or `None` if the renewal was stopped.
    async fn renew(self, mut mark: Mark, stop: CancellationToken) -> Option<String> {
        let mut sent = Instant::now();
        let (mut wait, mut failed) = (self.renewal, 0_u32);
        // Since when renewals fail; a process that was only suspended has not seen one fail
        let (mut away, mut refused) = (None, None);
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return None,
                // A renewal without an answer has used some of the wait already
                () = pause(wait.saturating_sub(sent.elapsed())) => {}
            }
            sent = Instant::now();
            // A renewal that hangs says nothing about the next one, so every other one has half the time, and
            // more of them fit; a slow server has the full time in the others
            let within = match failed % 2 {
                0 => self.renewal,
                _ => self.renewal / 2,
            };
            let error = match self.renew_once(&mut mark, within).await {
                Ok(Ok(())) => {
                    (away, refused) = (None, None);
                    (wait, failed) = (self.renewal, 0);
                    self.api.outage.hold(Hold::Until(sent + self.lease));
                    continue;
                }
                Ok(Err(error)) => error,
                Err(why) => return Some(why),
            };
            (wait, failed) = (within, failed + 1);
            if !error.kind.is_denied() {
                refused = None;
            }
            // A refusal is no outage, or one that passes soon
            let (since, limit) = match error.kind {
                ErrorKind::Forbidden => (&mut refused, self.lease),
                ErrorKind::Unauthenticated => (&mut refused, self.api.durations().refused),
                _ => (&mut away, self.api.durations().outage),
            };
            if since.get_or_insert_with(Instant::now).elapsed() >= limit {
                let why = error.detail;
                let lost = format!("it could not be renewed for {limit:?}: {why}");
                return Some(lost);
            }
        }
    }

    /// Renews once. The outer error is why the Lease is lost, the inner one why this renewal failed.
    async fn renew_once(&self, mark: &mut Mark, within: Duration) -> Result<Result<()>, String> {
        let body = Some(self.body(Some(mark)));
        let request = ApiRequest {
            verb: Verb::Replace,
            path: self.path(),
            body,
        };
        let reply = match self.api.send_within(&request, within).await {
            Ok(reply) => reply,
            Err(error) => return Ok(Err(error)),
        };
        match reply.status {
            200 => Ok(match self.mark(&reply) {
                Ok(next) => {
                    *mark = next;
                    Ok(())
                }
                Err(_) => Err(self.not(&reply)),
            }),
            404 => Err("it was deleted".to_owned()),
            409 => {
                // Our own renewal changed it, at an unknown time, and its answer did not arrive
                let unanswered = "none of the renewals was answered";
                let next = self.after_conflict(mark).await?;
                Ok(next.and_then(|next| {
                    *mark = next;
                    Err(ErrorKind::ApiUnavailable.error(unanswered))
                }))
            }
            // A refusal may be brief or final: its duration decides
            _ => Ok(Err(self.not(&reply))),
        }
    }

    fn not(&self, reply: &ApiReply) -> ObservationError {
        ErrorKind::Forbidden.error(refused(&self.name, reply).to_string())
    }

    /// Reads the Lease after a conflict: another run changed it, or our own renewal was sent twice.
    async fn after_conflict(&self, mark: &Mark) -> Result<Result<Mark>, String> {
        let request = ApiRequest::get(self.path());
        let reply = match self.api.send_within(&request, self.renewal).await {
            Ok(reply) => reply,
            Err(error) => return Ok(Err(error)),
        };
        match (reply.status, self.mark(&reply)) {
            (404, _) => Err("it was deleted".to_owned()),
            (200, Ok(next)) if next.uid == mark.uid && self.is_ours(&reply) => Ok(Ok(next)),
            (200, _) => Err(format!("it is held by `{}`", holder(&reply))),
            _ => Ok(Err(self.not(&reply))),
        }
    }
}
