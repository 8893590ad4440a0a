//! How a Lease that is held is renewed.

use std::time::Duration;

use ordered_watch as watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use winconform_core::method::{ApiReply, ApiRequest, ErrorKind, ObservationError, Result, Verb};

use super::{Keeper, Mark, holder, refused};
use crate::transport::{Hold, pause};

impl Keeper {
    /// Renews until stopped or lost.
    pub(super) async fn keep(
        self,
        mark: Mark,
        lost: watch::Sender<Option<String>>,
        stop: CancellationToken,
    ) {
        let api = self.api.clone();
        match self.renew(mark, stop).await {
            // A run that lets go of it writes nothing more
            None => api.outage.hold(Hold::Free),
            Some(why) => {
                api.outage.hold(Hold::Lost);
                lost.send_replace(Some(why));
            }
        }
    }

    /// Why it is lost, unless it was stopped.
    async fn renew(self, mut mark: Mark, stop: CancellationToken) -> Option<String> {
        let mut asked = Instant::now();
        let (mut wait, mut failed) = (self.renewal, 0_u32);
        // Since when it is not renewed: a process that stood still has begun no outage by that
        let (mut away, mut refused) = (None, None);
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return None,
                // An answer that did not come has taken some of it already
                () = pause(wait.saturating_sub(asked.elapsed())) => {}
            }
            asked = Instant::now();
            // What hangs tells nothing of the next one, so more of them are to fit into what is left; what
            // is slow has its time in every other one
            let within = match failed % 2 {
                0 => self.renewal,
                _ => self.renewal / 2,
            };
            let error = match self.renew_once(&mut mark, within).await {
                Ok(Ok(())) => {
                    (away, refused) = (None, None);
                    (wait, failed) = (self.renewal, 0);
                    self.api.outage.hold(Hold::Until(asked + self.lease));
                    continue;
                }
                Ok(Err(error)) => error,
                Err(why) => return Some(why),
            };
            (wait, failed) = (within, failed + 1);
            if !error.kind.is_denied() {
                refused = None;
            }
            // Who is refused meets no outage, or one that passes soon
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

    /// Renews once, as far as the answer tells; or why it is lost.
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
                // A change of ours whose answer did not come, and nobody tells of when
                let unanswered = "none of the renewals was answered";
                let found = self.after_conflict(mark).await?;
                Ok(found.and_then(|found| {
                    *mark = found;
                    Err(ErrorKind::ApiUnavailable.error(unanswered))
                }))
            }
            // Forbidden for a moment, or for good: the duration decides
            _ => Ok(Err(self.not(&reply))),
        }
    }

    fn not(&self, reply: &ApiReply) -> ObservationError {
        ErrorKind::Forbidden.error(refused(&self.name, reply).to_string())
    }

    /// After a conflict: another's change, or our own renewal that was sent twice.
    async fn after_conflict(&self, mark: &Mark) -> Result<Result<Mark>, String> {
        let request = ApiRequest::get(self.path());
        let reply = match self.api.send_within(&request, self.renewal).await {
            Ok(reply) => reply,
            Err(error) => return Ok(Err(error)),
        };
        match (reply.status, self.mark(&reply)) {
            (404, _) => Err("it was deleted".to_owned()),
            (200, Ok(found)) if found.uid == mark.uid && self.is_ours(&reply) => Ok(Ok(found)),
            (200, _) => Err(format!("it is held by `{}`", holder(&reply))),
            _ => Ok(Err(self.not(&reply))),
        }
    }
}
