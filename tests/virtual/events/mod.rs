//! What may happen at any moment of a run: a kill, a signal, a deadline, an outage, a jump of a clock, and what passes
//! by itself; and what may happen in the middle of a scenario.

pub(crate) mod clocks;
pub(crate) mod deadline;
pub(crate) mod killed;
pub(crate) mod outages;
pub(crate) mod passing;
pub(crate) mod scenarios;
pub(crate) mod signals;
