//! Puts on record what happens in a run, as it happens.

pub(crate) mod diagnose;
pub(crate) mod evidence;
pub(crate) mod journal;
pub(crate) mod record_plan;
pub(crate) mod spans;
