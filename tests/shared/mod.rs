//! What whole runs in memory and those on real servers share.

#![allow(dead_code, reason = "each of them uses some of it")]

pub(crate) mod asking;
pub(crate) mod products;
pub(crate) mod runs;
pub(crate) mod scheduling;
pub(crate) mod suites;
pub(crate) mod table;
pub(crate) mod troubles;
