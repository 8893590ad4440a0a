//! One file per command.

pub(crate) mod cleanup;
pub(crate) mod config;
pub(crate) mod diff;
pub(crate) mod explain;
pub(crate) mod facts;
pub(crate) mod images;
pub(crate) mod list;
pub(crate) mod plan;
pub(crate) mod preflight;
pub(crate) mod prepull;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod shell;
pub(crate) mod trend;
