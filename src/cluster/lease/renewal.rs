//! How a Lease that is held is renewed.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use winconform_core::way::{ApiRequest, Verb};

use super::{Keeper, LeaseState, Mark, holder};
use crate::transport::pause;

/// What a renewal came to.
enum Renewal {
    Renewed(Mark),
    /// It bears a change of ours whose answer did not come, and nobody tells of when.
    Ours(Mark),
    /// Not this time, because.
    Not(String),
}

impl Keeper {
    /// Renews until stopped or lost; gives the last mark.
    pub(super) async fn renew(
        self,
        mut mark: Mark,
        state: watch::Sender<LeaseState>,
        stop: CancellationToken,
    ) -> Mark {
        let (mut renewed, mut asked) = (Instant::now(), Instant::now());
        let (mut wait, mut failed) = (self.renewal, 0_u32);
        loop {
            tokio::select! {
                () = stop.cancelled() => return mark,
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
            let not_yet = match self.renew_once(&mark, within).await {
                Ok(Renewal::Renewed(next)) => {
                    (mark, renewed) = (next, Instant::now());
                    (wait, failed) = (self.renewal, 0);
                    continue;
                }
                Ok(Renewal::Ours(next)) => {
                    (mark, wait) = (next, self.renewal / 2);
                    Ok("none of the renewals was answered".to_owned())
                }
                Ok(Renewal::Not(said)) => {
                    (wait, failed) = (within, failed + 1);
                    Ok(said)
                }
                Err(why) => Err(why),
            };
            let lost = match not_yet {
                Ok(_) if renewed.elapsed() < self.lease => continue,
                Ok(said) => format!("it could not be renewed for {:?}: {said}", self.lease),
                Err(why) => why,
            };
            state.send_replace(LeaseState::Lost(lost));
            return mark;
        }
    }

    /// Renews once: what it came to, or why it is lost.
    async fn renew_once(&self, mark: &Mark, within: Duration) -> Result<Renewal, String> {
        let body = Some(self.body(Some(mark)));
        let request = ApiRequest {
            verb: Verb::Replace,
            path: self.path(),
            body,
        };
        let reply = match self.api.send_within(&request, within).await {
            Ok(reply) => reply,
            Err(trouble) => return Ok(Renewal::Not(trouble.to_string())),
        };
        match reply.status {
            200 => Ok(match self.mark(&reply) {
                Ok(next) => Renewal::Renewed(next),
                Err(error) => Renewal::Not(error.to_string()),
            }),
            404 => Err("it was deleted".to_owned()),
            409 => {
                let found = self.after_conflict(mark).await?;
                Ok(found.map_or_else(Renewal::Not, Renewal::Ours))
            }
            // Forbidden for a moment, or for good: the duration decides
            _ => Ok(Renewal::Not(self.refused(&reply).to_string())),
        }
    }

    /// After a conflict: another's change, or our own renewal that was sent twice.
    pub(super) async fn after_conflict(&self, mark: &Mark) -> Result<Result<Mark, String>, String> {
        let request = ApiRequest::get(self.path());
        let reply = match self.api.send_within(&request, self.renewal).await {
            Ok(reply) => reply,
            Err(trouble) => return Ok(Err(trouble.to_string())),
        };
        match (reply.status, self.mark(&reply)) {
            (404, _) => Err("it was deleted".to_owned()),
            (200, Ok(found)) if found.uid == mark.uid && self.is_ours(&reply) => Ok(Ok(found)),
            (200, _) => Err(format!("it is held by `{}`", holder(&reply))),
            _ => Ok(Err(self.refused(&reply).to_string())),
        }
    }
}
