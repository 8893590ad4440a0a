//! The kinds of interference, one file each.

pub(crate) mod admission;
pub(crate) mod aggregated;
pub(crate) mod answer;
pub(crate) mod deleted;
pub(crate) mod hostile;
pub(crate) mod refusal;
pub(crate) mod slow;
pub(crate) mod stale;
pub(crate) mod trouble;
