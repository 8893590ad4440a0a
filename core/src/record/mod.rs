//! The record of a run: an append-only stream of events, one JSON object per line.
//!
//! Everything that is reported is made of it, and of nothing else.

mod event;
mod fold;
mod outcome;
mod resume;
mod write;

pub use event::{
    Attempted, Ended, Event, FixtureOutcome, Line, LookRecord, ObjectName, PlannedCheck, SCHEMA,
    Started, TornDown,
};
pub use fold::{CheckView, RecordError, RunView, read};
pub use outcome::{Exit, Tally, exit};
pub use resume::ResumeError;
pub use write::to_line;
