//! Performs the scheduler's commands, and observes.

pub(crate) mod ask;
pub(crate) mod exec_session;
pub(crate) mod facts;
pub(crate) mod observer;
pub(crate) mod perform;
pub(crate) mod play;
pub(crate) mod shared;
pub(crate) mod vantage;
