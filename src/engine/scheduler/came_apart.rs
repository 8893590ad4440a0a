//! Rounds of one attempt that come apart: one held, a later one failed.
//!
//! That what crosses the network takes time to come right explains a failure before the first round that
//! holds. It explains none after it: the check is flaky, even where it holds again in the end.

use winconform_core::record::AssertionRecord;

/// What came apart of a check since its repetition began, or what it observes was made anew.
#[derive(Debug, Default)]
pub(crate) struct CameApart {
    /// Whether a round of this attempt held.
    held: bool,
    /// The assertions of the first round of this attempt that failed after one that held.
    assertions: Vec<AssertionRecord>,
    /// Whether an earlier attempt came apart.
    before: bool,
}

impl CameApart {
    /// Whether a round that fails now is the first of the attempt to fail after one that held.
    pub(crate) fn is_next(&self) -> bool {
        self.held && self.assertions.is_empty()
    }

    /// Takes note of a round: whether it holds, and its assertions if it is the one that came apart.
    pub(crate) fn note(&mut self, holds: bool, assertions: Vec<AssertionRecord>) {
        self.held |= holds;
        self.assertions.extend(assertions);
    }

    /// The assertions that came apart in this attempt.
    pub(crate) fn assertions(&self) -> &[AssertionRecord] {
        &self.assertions
    }

    /// Whether anything came apart.
    pub(crate) fn is_any(&self) -> bool {
        self.before || !self.assertions.is_empty()
    }

    pub(crate) fn next_attempt(&mut self) {
        *self = Self {
            before: self.is_any(),
            ..Self::default()
        };
    }
}
