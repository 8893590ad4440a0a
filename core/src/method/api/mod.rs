//! Test methods that ask the API server.

pub(super) mod admission;
pub(super) mod denied;
pub(super) mod disruption;
pub(super) mod path;
pub(super) mod placement;
pub(super) mod preemption;
pub(super) mod state;
