//! Chance, time, locks and small readers.

pub(super) mod chance;
pub(super) mod clock;
pub(super) mod fields;
pub(super) mod lock;
pub(super) mod log;
pub(super) mod nearest;
pub(super) mod query;
