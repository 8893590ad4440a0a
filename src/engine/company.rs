//! Sweeps of each node end together where they can: what they rest on is the same, and is asked for once.

use std::time::Duration;

use tokio::sync::watch;

use crate::cluster::{Condition, wait_until};

/// How many sweeps of such places are under way.
#[derive(Clone, Debug, Default)]
pub(super) struct Company {
    under_way: watch::Sender<usize>,
}

pub(super) struct Member(Company);

impl Company {
    pub(super) fn join(&self) -> Member {
        self.under_way.send_modify(|count| *count += 1);
        Member(self.clone())
    }
}

impl Member {
    /// Ends, and waits for those that are still under way, but not for longer than `limit`.
    pub(super) async fn end(self, limit: Duration) {
        let mut others = self.0.under_way.subscribe();
        drop(self);
        let ended = wait_until(&mut others, limit, "other sweeps", |count| match count {
            0 => Condition::Done(()),
            more => Condition::NotYet(format!("{more} are under way")),
        });
        if let Err(trouble) = ended.await {
            tracing::debug!(%trouble.detail, "sweeps that do not end together");
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.0.under_way.send_modify(|count| *count -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use tokio::time::Instant;

    const LIMIT: Duration = Duration::from_millis(500);

    #[tokio::test(start_paused = true)]
    async fn each_waits_for_the_last() {
        let company = Company::default();
        let (first, second) = (company.join(), company.join());
        let began = Instant::now();
        let mut waits = Box::pin(first.end(LIMIT));
        assert!((&mut waits).now_or_never().is_none());
        second.end(LIMIT).await;
        waits.await;
        assert_eq!(began.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_one_that_was_ended_nor_for_long() {
        let company = Company::default();
        let (first, second, third) = (company.join(), company.join(), company.join());
        drop(second);
        let began = Instant::now();
        first.end(LIMIT).await;
        assert_eq!(began.elapsed(), LIMIT);
        third.end(LIMIT).await;
        assert_eq!(began.elapsed(), LIMIT);
    }
}
