//! Reports: pure functions of what a record or the suites say, the same bytes each time.
//!
//! Each format is one file; what they share is the finding of a check, the blame of fixtures and
//! how the run itself ended. Nothing here decides a verdict, reads a clock or writes a file.

mod blame;
pub mod claims;
mod ending;
mod excerpt;
pub mod explain;
pub mod facts;
mod finding;
mod folded;
pub mod images;
pub mod json;
pub mod junit;
mod layout;
mod places;
pub mod plan;
pub mod preflight;
mod progress;
mod style;
mod summary;
mod suspects;
pub mod terminal;
mod waivers;
mod xml;

pub use ending::nothing_selected;
pub use finding::Finding;
pub use progress::Progress;
