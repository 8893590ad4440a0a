//! Chance, time, locks, logs and small readers.

pub(crate) mod chance;
pub(crate) mod clock;
pub(crate) mod field_path;
pub(crate) mod fields;
pub(crate) mod lock;
pub(crate) mod log;
pub(crate) mod nearest;
pub(crate) mod query;
