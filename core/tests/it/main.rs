//! Records written, read back and reported: the whole path from an event to a report's bytes.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests do I/O"
)]

mod causes;
mod ci;
mod claims;
mod config;
mod curl;
mod diff;
mod environment;
mod facts;
mod html;
mod images;
mod json;
mod junit;
mod pings;
mod preflight;
mod products;
mod record;
#[path = "../../src/rows.rs"]
mod rows;
mod runs;
mod select;
#[path = "../../../tests/shared/tally.rs"]
mod tally;
mod terminal;
mod waived;
mod windows_commands;
mod wine;
