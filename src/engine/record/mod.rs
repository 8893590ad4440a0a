//! What goes on record as it happens.

pub(super) mod diagnose;
pub(super) mod evidence;
pub(super) mod journal;
pub(super) mod record_plan;
pub(super) mod resume;
pub(super) mod spans;
