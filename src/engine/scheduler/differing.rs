//! Rounds of one attempt that differ: one held, a later one failed.
//!
//! What crosses the network takes time to converge, which explains failures before the first round that
//! holds. It explains no failure after it: the check is flaky, even if it holds again in the end.

use winconform_core::record::AssertionRecord;

/// The differing rounds of a check since its repetition began, or since its fixture was applied again.
#[derive(Debug, Default)]
pub(crate) struct DifferingRounds {
    /// Whether a round of this attempt held.
    held: bool,
    /// The assertions of the first round of this attempt that failed after one that held.
    assertions: Vec<AssertionRecord>,
    /// Whether rounds of an earlier attempt differed.
    before: bool,
}

impl DifferingRounds {
    /// Whether a round that fails now is the first of the attempt to fail after one that held.
    pub(crate) fn is_next(&self) -> bool {
        self.held && self.assertions.is_empty()
    }

    /// Takes note of a round: whether it holds, and its assertions if it is the one that differs.
    pub(crate) fn note(&mut self, holds: bool, assertions: Vec<AssertionRecord>) {
        self.held |= holds;
        self.assertions.extend(assertions);
    }

    /// The assertions of this attempt's round that differs; empty if none does.
    pub(crate) fn assertions(&self) -> &[AssertionRecord] {
        &self.assertions
    }

    /// Whether rounds of any attempt differed.
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
