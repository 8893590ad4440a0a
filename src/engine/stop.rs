//! Why a run ends before it has observed everything.

use std::time::Duration;

use ordered_watch as watch;
use tokio::time::Instant;

use winconform_core::record::{Event, SIGNAL};
use winconform_core::verdict::SkipReason;

use crate::engine::record::journal::Journal;
use crate::engine::record::spans::millis;
use crate::transport::pause;

/// Why a run ends early.
#[derive(Clone, Debug)]
pub(crate) enum Stop {
    /// Something interrupted it.
    By(String),
    /// Its deadline passed, this long after its start.
    Deadline(Duration),
}

impl Stop {
    pub(crate) fn reason(&self) -> SkipReason {
        match self {
            Self::By(_) => SkipReason::Interrupted,
            Self::Deadline(_) => SkipReason::Deadline,
        }
    }

    /// The event that puts it on record.
    pub(crate) fn event(self) -> Event {
        match self {
            Self::By(by) => Event::Interrupted { by },
            Self::Deadline(after) => Event::Deadline {
                after_ms: millis(after),
            },
        }
    }
}

/// Returns why the run has to end early, once there is a reason.
pub(crate) async fn reason_to_stop(
    journal: &Journal,
    mut signals: watch::Receiver<u32>,
    lease: Option<watch::Receiver<Option<String>>>,
    deadline: Option<(Duration, Instant)>,
) -> Stop {
    let overdue = async {
        let Some((after, at)) = deadline else {
            return std::future::pending().await;
        };
        // Even a pause of no length takes a moment
        if at > Instant::now() {
            pause(at.duration_since(Instant::now())).await;
        }
        after
    };
    tokio::select! {
        biased;
        () = signalled(&mut signals, 1) => Stop::By(SIGNAL.to_owned()),
        why = lost(lease) => Stop::By(why),
        () = journal.failed() => Stop::By("an error in writing its record".to_owned()),
        after = overdue => Stop::Deadline(after),
    }
}

/// Returns when the user has signalled `times` times. It holds nothing then that would keep a further signal
/// from being counted.
pub(crate) async fn signalled(signals: &mut watch::Receiver<u32>, times: u32) {
    // A closed channel never signals again
    if signals.wait_for(|count| *count >= times).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Returns when a Lease is lost, with the reason in words; never without a Lease.
pub(crate) async fn lost(lease: Option<watch::Receiver<Option<String>>>) -> String {
    let Some(mut lease) = lease else {
        return std::future::pending().await;
    };
    let lost = lease.wait_for(Option::is_some).await;
    match lost.as_deref() {
        Ok(Some(why)) => format!("the loss of its Lease: {why}"),
        Ok(None) | Err(_) => std::future::pending().await,
    }
}
