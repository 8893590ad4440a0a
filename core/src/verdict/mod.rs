//! From comparisons to verdicts. Nothing else in the program decides pass or fail.

mod attempts;
mod fate;
mod judge;
mod ledger;

pub use attempts::{Conclusion, conclude};
pub use fate::Fate;
pub use judge::{Because, Looked, Scope, SkipReason, Verdict, because, judge};
pub use ledger::{LedgerEntry, Outside, read_ledger};
