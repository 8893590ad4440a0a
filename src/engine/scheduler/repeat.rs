//! How often everything is observed.

use std::time::Duration;

/// How often everything is observed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Repeat {
    Times(u32),
    /// As many repetitions as can begin within this time from the start.
    For(Duration),
}

impl Repeat {
    /// Whether another repetition follows this one (from 1), which ended `now` after the start.
    pub(crate) fn goes_on_after(self, repetition: u32, now: Duration) -> bool {
        match self {
            Self::Times(times) => repetition < times,
            Self::For(time) => now < time,
        }
    }

    /// How long a pod may live: by `slack` longer than all repetitions, as far as their end is known.
    pub(crate) fn outlived_by(self, slack: Duration) -> Duration {
        match self {
            Self::Times(_) => slack,
            Self::For(time) => time.saturating_add(slack),
        }
    }

    /// Whether this repetition is known to be the last.
    pub(crate) fn ends_with(self, repetition: u32) -> bool {
        matches!(self, Self::Times(times) if repetition >= times)
    }
}

/// When pods go that nothing observes any more.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Leave {
    Never,
    /// All repetitions before it observe the same pods.
    InTheLastRepetition,
    /// The nodes have no room for all at once, and each repetition makes its own.
    InEach,
}
