//! The only code that waits: for a condition, within a limit; its error names what it waited for.

use std::time::Duration;

use ordered_watch as watch;
use tokio::time::{Instant, timeout_at};
use winconform_core::method::{ErrorKind, ObservationError, Result};
use winconform_core::text::printable;

use crate::transport::{Pace, pause};

#[derive(Clone, Debug, PartialEq)]
pub enum Condition<T> {
    Done(T),
    /// Not met yet, with its progress.
    NotYet(String),
    /// It will never be met, and why.
    Never(ObservationError),
}

/// How often a condition is checked without news, since it may depend on time alone.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// Waits until the value of `source` meets `condition`, at most for `limit`. `what` names the condition; the
/// error of a time-out quotes its last status.
pub async fn wait_until<S, T>(
    source: &mut watch::Receiver<S>,
    limit: Duration,
    what: &str,
    mut condition: impl FnMut(&S) -> Condition<T>,
) -> Result<T> {
    let deadline = Instant::now() + limit;
    loop {
        // The borrow ends before the await
        let state = condition(&source.borrow_and_update());
        let status = match state {
            Condition::Done(value) => return Ok(value),
            Condition::Never(error) => return Err(error),
            Condition::NotYet(status) => status,
        };
        let now = Instant::now();
        if now >= deadline {
            return Err(timed_out(what, limit, &status));
        }
        if let Ok(Err(_)) = timeout_at(deadline.min(now + ASK_AGAIN), source.changed()).await {
            let detail = format!(
                "{what}: nothing watches any more; last: {}",
                printable(&status)
            );
            return Err(ErrorKind::NotApplied.error(detail));
        }
    }
}

/// Waits without a watch: repeats `query`, with pauses that grow from `first`. Drops a query that still runs
/// at the end of the time; a query that begins late has a second.
pub async fn poll_until<T, F>(
    first: Duration,
    limit: Duration,
    what: &str,
    mut query: impl FnMut() -> F,
) -> Result<T>
where
    F: Future<Output = Condition<T>>,
{
    let deadline = Instant::now() + limit;
    poll(Pace::new(first), limit, what, || {
        let (late, answer) = (Instant::now() + ASK_AGAIN, query());
        async move {
            let answered = timeout_at(deadline.max(late), answer).await;
            answered.unwrap_or_else(|_| {
                let detail = format!("{what}: no answer within {limit:?}");
                Condition::Never(ErrorKind::ApiUnavailable.error(detail))
            })
        }
    })
    .await
}

/// Like [`poll_until`], at any pace, for queries that end by themselves and say why.
pub async fn poll<T, F>(
    mut pace: Pace,
    limit: Duration,
    what: &str,
    mut query: impl FnMut() -> F,
) -> Result<T>
where
    F: Future<Output = Condition<T>>,
{
    let deadline = Instant::now() + limit;
    loop {
        let status = match query().await {
            Condition::Done(value) => return Ok(value),
            Condition::Never(error) => return Err(error),
            Condition::NotYet(status) => status,
        };
        let now = Instant::now();
        if now >= deadline {
            return Err(timed_out(what, limit, &status));
        }
        pause(pace.step().min(deadline - now)).await;
    }
}

fn timed_out(what: &str, limit: Duration, status: &str) -> ObservationError {
    let detail = format!("{what}: not within {limit:?}; last: {}", printable(status));
    ErrorKind::FixtureFailed.error(detail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    const LIMIT: Duration = Duration::from_mins(1);

    #[tokio::test(start_paused = true)]
    async fn a_change_is_seen_at_once() {
        let (send, mut receive) = watch::channel(0);
        let begun = Instant::now();
        let waiting = wait_until(&mut receive, LIMIT, "x", |n| match n {
            0 => Condition::NotYet("zero".to_owned()),
            n => Condition::Done(*n),
        });
        let (met, _) = tokio::join!(waiting, async { send.send_replace(7) });
        assert_eq!(met, Ok(7));
        assert!(begun.elapsed() < ASK_AGAIN);
    }

    #[tokio::test(start_paused = true)]
    async fn a_timeout_quotes_the_last_status() {
        let (_send, mut receive) = watch::channel(());
        let begun = Instant::now();
        let not_yet = |(): &()| Condition::<()>::NotYet("ContainerCreating".to_owned());
        let waited = wait_until(&mut receive, LIMIT, "sample", not_yet).await;
        let said = "sample: not within 60s; last: ContainerCreating";
        assert_eq!(waited, Err(ErrorKind::FixtureFailed.error(said)));
        assert_eq!(begun.elapsed(), LIMIT);
    }

    #[tokio::test(start_paused = true)]
    async fn never_ends_the_wait_and_so_does_a_dead_watch() {
        let (send, mut receive) = watch::channel(());
        let why = ErrorKind::BuildMismatch.error("10.0.17763");
        let never = |(): &()| Condition::<()>::Never(why.clone());
        let waited = wait_until(&mut receive, LIMIT, "x", never).await;
        assert_eq!(waited, Err(why.clone()));
        drop(send);
        let not_yet = |(): &()| Condition::<()>::NotYet(String::new());
        let waited = wait_until(&mut receive, LIMIT, "x", not_yet).await;
        let error = waited.expect_err("ends");
        assert!(error.detail.contains("nothing watches"), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn what_depends_on_time_alone_is_asked_again() {
        let (_send, mut receive) = watch::channel(());
        let begun = Instant::now();
        let late = |(): &()| match begun.elapsed() {
            elapsed if elapsed > Duration::from_secs(10) => Condition::Done(()),
            _ => Condition::NotYet(String::new()),
        };
        assert_eq!(wait_until(&mut receive, LIMIT, "x", late).await, Ok(()));
        assert!(begun.elapsed() < Duration::from_secs(13));
    }

    #[tokio::test(start_paused = true)]
    async fn an_ask_that_never_returns_ends_with_the_wait() {
        let asks = async || std::future::pending::<Condition<()>>().await;
        let waiting = poll_until(Duration::from_millis(100), LIMIT, "gone", asks);
        let waited = tokio::time::timeout(LIMIT * 2, waiting).await;
        let error = waited.expect("it is bounded").expect_err("ends");
        assert_eq!(error.detail, "gone: no answer within 60s");
        assert_eq!(error.kind, ErrorKind::ApiUnavailable);
    }

    #[tokio::test(start_paused = true)]
    async fn polling_pauses_and_ends() {
        let asked = Cell::new(0);
        let query = async || {
            asked.set(asked.get() + 1);
            Condition::<()>::NotYet("still there".to_owned())
        };
        let first = Duration::from_millis(100);
        let polled = poll_until(first, LIMIT, "gone", query).await;
        let error = polled.expect_err("ends");
        assert!(error.detail.ends_with("still there"), "{error}");
        assert!((20..40).contains(&asked.get()), "{}", asked.get());
    }
}
