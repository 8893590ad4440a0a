//! What may happen at any moment of a run: a kill, a signal, a deadline, an outage, and what passes by itself.

pub(crate) mod deadline;
pub(crate) mod killed;
pub(crate) mod outages;
pub(crate) mod passing;
pub(crate) mod signals;
