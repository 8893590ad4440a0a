//! Trouble between harness and API server, and what may come of a run that meets it: nothing wrong.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use hybrid_sim::interference::Fault;
use winconform_core::record::RunView;
use winconform_core::verdict::Verdict;

use crate::products::{described, expected, verdicts};
use crate::table::Row;

/// Every kind of it, each at a fifth of all requests it can hit.
pub(crate) static TROUBLES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let names = Fault::troubles().iter();
    names.map(|name| format!("{name}=0.2")).collect()
});

/// How many checks came to what they should while these things are broken, and how many to nothing
/// that tells; those that came to something else are wrong.
pub(crate) fn tally(view: &RunView, broken: &[&Row]) -> Result<(usize, usize), String> {
    tally_of(view, &expected(view, broken))
}

/// The same where it is known what every check should come to.
pub(crate) fn tally_of(
    view: &RunView,
    expected: &BTreeMap<&str, Verdict>,
) -> Result<(usize, usize), String> {
    let (mut told, mut untold) = (0, 0);
    for (check, seen) in verdicts(view) {
        if seen == expected.get(check).copied() {
            told += 1;
        } else if matches!(seen, None | Some(Verdict::Inconclusive | Verdict::Skip)) {
            // Skipped: the Lease could not be renewed in time, which ends a run early;
            // nothing at all: it could not be had
            untold += 1;
        } else {
            let wanted = expected.get(check);
            let what = described(view);
            return Err(format!("{check}: {seen:?}, not {wanted:?}\n{what}"));
        }
    }
    Ok((told, untold))
}
