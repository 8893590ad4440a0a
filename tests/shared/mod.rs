//! Code that the test binaries `virtual` (in memory) and `real` (real servers) share.

#![allow(dead_code, reason = "each test binary uses a part of it")]

pub(crate) mod asking;
pub(crate) mod products;
pub(crate) mod runs;
pub(crate) mod scenarios;
pub(crate) mod scheduling;
pub(crate) mod suites;
pub(crate) mod table;
pub(crate) mod troubles;
