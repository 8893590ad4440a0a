//! Test methods that ask the API server.

pub(crate) mod admission;
pub(crate) mod denied;
pub(crate) mod disruption;
pub(crate) mod endpoints;
pub(crate) mod path;
pub(crate) mod placement;
pub(crate) mod preemption;
pub(crate) mod state;
