//! The state that all requests of a run share: since when the server refuses the credential, and whether the
//! run's Lease allows it to write.

use std::sync::Mutex;
use std::time::Duration;

use ordered_watch as watch;
use tokio::time::{Instant, timeout_at};

use super::locked::locked;

/// How a run holds its Lease.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Hold {
    /// The run has no Lease and needs none.
    #[default]
    Free,
    /// No other run can take the Lease before this time.
    Until(Instant),
    Lost,
}

/// The state that clones of an API share.
#[derive(Debug, Default)]
pub(crate) struct Outage {
    refused: Mutex<Option<Instant>>,
    /// When a request last got no answer.
    met: Mutex<Option<Instant>>,
    hold: watch::Sender<Hold>,
}

impl Outage {
    /// Notes that the server refuses the credential, and returns for how long it has.
    pub(crate) fn refused(&self) -> Duration {
        let since = *locked(&self.refused).get_or_insert_with(Instant::now);
        since.elapsed()
    }

    /// Notes that the server accepts the credential.
    pub(crate) fn accepted(&self) {
        *locked(&self.refused) = None;
    }

    /// Notes that the server does not answer.
    pub(crate) fn met(&self) {
        *locked(&self.met) = Some(Instant::now());
    }

    /// When the server last did not answer; until then changes may have gone unseen.
    pub(crate) fn last_met(&self) -> Option<Instant> {
        *locked(&self.met)
    }

    /// Notes how the run holds its Lease.
    pub(crate) fn hold(&self, hold: Hold) {
        self.hold.send_replace(hold);
    }

    /// Waits while the run's Lease may have expired, up to `patience`. Returns whether the run may write.
    pub(crate) async fn may_write(&self, patience: Duration) -> bool {
        let limit = Instant::now() + patience;
        let mut hold = self.hold.subscribe();
        loop {
            // The borrow ends before the await
            let known = *hold.borrow_and_update();
            match known {
                Hold::Free => return true,
                Hold::Until(at) if Instant::now() < at => return true,
                Hold::Until(_) => {}
                Hold::Lost => return false,
            }
            if !matches!(timeout_at(limit, hold.changed()).await, Ok(Ok(()))) {
                return false;
            }
        }
    }
}
