//! The pure part of winconform: no network, no clock, no files.
//!
//! One direction, each module using only those before it:
//! `text` → `document` → `claims` → `facts` → `config` → `command` → `fixture` → `method` → `verdict` → `suite` →
//! `plan` → `record` → `report`.

#![cfg_attr(
    test,
    allow(
        clippy::disallowed_methods,
        clippy::disallowed_types,
        reason = "tests read files"
    )
)]

pub mod claims;
pub mod command;
pub mod config;
pub mod document;
pub mod facts;
pub mod fixture;
pub mod method;
pub mod plan;
pub mod record;
pub mod report;
#[cfg(test)]
mod rows;
pub mod suite;
pub mod text;
pub mod verdict;
