//! The simulator's time; all waiting happens here.
//!
//! `speed` shortens what a node takes time for (pulling, starting, probing, backing off, waiting for a
//! connection). It never shortens what others measure in real time: a node's lease, `activeDeadlineSeconds`,
//! a program's `sleep`.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// How far a wrong clock runs ahead.
pub(crate) const WRONG: SignedDuration = SignedDuration::from_hours(1);

/// The time of day: the machine's, or a simulation's.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wall {
    /// A simulation's start: its time of day, and the runtime's moment at which it began.
    began: Option<(Timestamp, Instant)>,
}

impl Wall {
    /// Creates a wall clock that shows `epoch` now and advances with the runtime's clock. Needs a runtime.
    pub(crate) fn beginning(epoch: Timestamp) -> Self {
        Self {
            began: Some((epoch, moment())),
        }
    }

    pub(crate) fn time(self) -> Timestamp {
        let Some((epoch, began)) = self.began else {
            return Timestamp::now();
        };
        let passed = SignedDuration::try_from(began.elapsed()).unwrap_or(SignedDuration::MAX);
        epoch.saturating_add(passed).unwrap_or(Timestamp::MAX)
    }

    /// The time in whole seconds, as Kubernetes statuses carry it.
    pub(crate) fn now(self) -> Timestamp {
        let now = self.time();
        Timestamp::from_second(now.as_second()).unwrap_or(now)
    }
}

/// Converts simulated durations into real ones.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    speed: f64,
}

impl Clock {
    /// A clock that runs `speed` times as fast as the wall's; `speed` is finite and positive.
    pub(crate) fn new(speed: f64) -> Self {
        Self { speed }
    }

    /// Waits for a simulated duration.
    pub(crate) async fn pass(self, simulated: Duration) {
        elapse(self.real(simulated)).await;
    }

    /// How long a simulated duration takes in real time.
    pub(crate) fn real(self, simulated: Duration) -> Duration {
        Duration::try_from_secs_f64(simulated.as_secs_f64() / self.speed).unwrap_or(Duration::MAX)
    }
}

/// Waits for a real duration, whatever the speed.
pub(crate) async fn elapse(real: Duration) {
    until(after(real)).await;
}

/// The moment that lies a real duration from now.
pub(crate) fn after(real: Duration) -> Instant {
    // A century serves as for ever, since `Instant` cannot hold every `Duration`
    const FOR_EVER: Duration = Duration::from_hours(100 * 365 * 24);
    moment() + real.min(FOR_EVER)
}

/// The current moment.
pub(crate) fn moment() -> Instant {
    Instant::now()
}

/// Waits for a moment.
pub(crate) async fn until(moment: Instant) {
    #[expect(
        clippy::disallowed_methods,
        reason = "a simulated duration is not a wait for something to happen; this is its one place"
    )]
    let passing = tokio::time::sleep_until(moment);
    passing.await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_simulations_time_begins_where_it_is_told_and_passes_with_the_runtime() {
        let wall = Wall::beginning(Timestamp::UNIX_EPOCH);
        elapse(Duration::from_millis(2500)).await;
        assert_eq!(wall.time().to_string(), "1970-01-01T00:00:02.5Z");
        assert_eq!(wall.now().to_string(), "1970-01-01T00:00:02Z");
        let machine = Wall::default().time();
        assert!(machine > Timestamp::UNIX_EPOCH + Duration::from_hours(1));
    }

    #[test]
    fn speed_divides() {
        assert_eq!(
            Clock::new(10.0).real(Duration::from_secs(5)),
            Duration::from_millis(500)
        );
        assert_eq!(
            Clock::new(1e-300).real(Duration::from_secs(5)),
            Duration::MAX
        );
    }
}
