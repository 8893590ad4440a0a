//! What performs the scheduler's commands, and observes.

pub(super) mod exec_session;
pub(super) mod facts;
pub(super) mod observer;
pub(super) mod perform;
pub(super) mod shared;
pub(super) mod vantage;
