//! Reports: pure functions of what a record or the suites say, the same bytes each time.
//!
//! Each format is one file; what they share is the finding of a check, the blame of fixtures and
//! how the run itself ended. Nothing here decides a verdict, reads a clock or writes a file.

pub mod causes;
pub mod ci;
pub mod claims;
pub mod diff;
pub mod explain;
pub mod facts;
mod findings;
pub mod html;
pub mod images;
pub mod json;
pub mod junit;
pub mod plan;
pub mod preflight;
mod text;

pub use text::alone;
pub use text::ending::nothing_selected;
pub use text::layout::wrap;
pub use text::live::{Doing, Live};
pub use text::progress::Progress;
pub use text::terminal;
