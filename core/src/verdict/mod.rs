//! From comparisons to verdicts. Nothing else in the program decides pass or fail.

mod attempts;
mod disposition;
mod holds;
mod judge;
mod ledger;
mod waiver;
mod weight;

pub use attempts::{Conclusion, Repeated, conclude, is_news, is_unconfirmed};
pub use disposition::Disposition;
pub use holds::{Holds, ScopedNetwork};
pub use judge::{
    ControlOutcome, Evaluation, Reason, Role, Scope, SkipReason, Verdict, judge, reason_for,
};
pub use ledger::{Documented, Ledger, LedgerEntry, OptIn, Outside, read_ledger};
pub use waiver::{Concluded, WaiverState, has_expired, waiver_of, waiver_state};
pub use weight::{Weight, weigh};
