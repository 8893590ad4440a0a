//! The record of a run: an append-only stream of events, one JSON object per line.
//!
//! Every report is built from the record and from nothing else.

// Other programs read and write it
#![warn(missing_docs)]

mod anonymize;
mod critical_path;
mod diagnosis;
mod event;
mod fold;
mod outcome;
mod read;
mod redact;
mod resume;
mod span;
mod write;

pub use anonymize::anonymize;
pub use critical_path::{CriticalPath, critical_path};
pub use diagnosis::{Diagnosis, Evidence, EvidenceKind};
pub use event::{
    AssertionRecord, Attempted, Ended, Event, FixtureOutcome, FoundCurl, Line, ObjectName,
    PlannedCheck, SCHEMA, SIGNAL, SIMULATED, Started, TornDown, Tried,
};
pub use fold::{CheckView, Fold, RecordError, RunView};
pub use outcome::{Exit, Tally, exit};
pub use read::{LONGEST, read};
pub use redact::{redact, redacted};
pub use resume::ResumeError;
pub use span::{Activity, After, Span};
pub use write::to_line;
