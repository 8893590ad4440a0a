//! From comparisons to verdicts. Nothing else in the program decides pass or fail.

mod attempts;
mod fate;
mod judge;
mod ledger;
mod waiver;
mod weight;

pub use attempts::{Conclusion, Repeated, conclude, is_news, is_unconfirmed};
pub use fate::Fate;
pub use judge::{Because, Controlled, Observed, Role, Scope, SkipReason, Verdict, because, judge};
pub use ledger::{Ledger, LedgerEntry, Outside, ScopedNetwork, read_ledger};
pub use waiver::{Concluded, WaiverState, has_expired, waiver_of, waiver_state};
pub use weight::{Weight, weigh};
