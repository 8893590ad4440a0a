//! What can interfere with a request, one file each.

pub(super) mod admission;
pub(super) mod aggregated;
pub(super) mod answer;
pub(super) mod deleted;
pub(super) mod hostile;
pub(super) mod refusal;
pub(super) mod slow;
pub(super) mod stale;
pub(super) mod trouble;
