//! One file per command.

pub(super) mod cleanup;
pub(super) mod config;
pub(super) mod explain;
pub(super) mod facts;
pub(super) mod images;
pub(super) mod list;
pub(super) mod plan;
pub(super) mod preflight;
pub(super) mod prepull;
pub(super) mod report;
pub(super) mod run;
