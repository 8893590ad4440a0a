//! Pauses between attempts: the only place of the program that sleeps.

use std::time::Duration;

/// How often a pause doubles before it stays the same.
const DOUBLINGS: u32 = 5;

/// Growing pauses. Without jitter, so that a run can be replayed.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    next: Duration,
    longest: Duration,
}

impl Pace {
    /// Pauses that double from `first` to 32 times that.
    pub fn new(first: Duration) -> Self {
        Self {
            next: first,
            longest: first * 2u32.pow(DOUBLINGS),
        }
    }

    /// Pauses of equal length.
    pub fn steady(length: Duration) -> Self {
        Self {
            next: length,
            longest: length,
        }
    }

    /// The next pause.
    pub(crate) fn step(&mut self) -> Duration {
        let now = self.next;
        self.next = (now * 2).min(self.longest);
        now
    }
}

/// Sleeps; everything else waits for a condition.
#[expect(
    clippy::disallowed_methods,
    reason = "a pause between attempts has nothing to watch"
)]
pub(crate) async fn pause(length: Duration) {
    tokio::time::sleep(length).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_and_stay() {
        let mut pace = Pace::new(Duration::from_millis(100));
        let pauses: Vec<_> = (0..8).map(|_| pace.step().as_millis()).collect();
        assert_eq!(pauses, [100, 200, 400, 800, 1600, 3200, 3200, 3200]);
    }
}
