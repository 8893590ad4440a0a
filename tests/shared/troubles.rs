//! Interference between harness and API server, under which no verdict of a run may be wrong.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use hybrid_sim::interference::Fault;
use winconform_core::record::RunView;
use winconform_core::verdict::Verdict;

use crate::products::{described, expected, verdicts};
use crate::table::Row;

/// Every kind of interference, each on a fifth of the requests that it can hit.
pub(crate) static TROUBLES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let names = Fault::troubles().iter();
    names.map(|name| format!("{name}=0.2")).collect()
});

/// Counts the checks with the expected verdict under these rows, and those without a conclusive verdict; any
/// other verdict is an error.
pub(crate) fn tally(view: &RunView, broken: &[&Row]) -> Result<(usize, usize), String> {
    tally_of(view, &expected(view, broken))
}

/// Like `tally`, for expected verdicts that the caller knows.
pub(crate) fn tally_of(
    view: &RunView,
    expected: &BTreeMap<&str, Verdict>,
) -> Result<(usize, usize), String> {
    let (mut right, mut untold) = (0, 0);
    for (check, seen) in verdicts(view) {
        if seen == expected.get(check).copied() {
            right += 1;
        } else if matches!(seen, None | Some(Verdict::Inconclusive | Verdict::Skip)) {
            // Skip: the run could not renew its Lease in time, and ended early. No verdict: the run could not
            // take its Lease
            untold += 1;
        } else {
            let wanted = expected.get(check);
            let what = described(view);
            return Err(format!("{check}: {seen:?}, not {wanted:?}\n{what}"));
        }
    }
    Ok((right, untold))
}
