//! Patterns of checks, as `--select` takes them, and lines about checks of one pattern.

use super::layout::{columns, fit};
use super::terminal::VERDICT;
use crate::text::printable;

/// Columns a reason needs to say anything beside its checks.
const REASON: usize = 20;

/// What stands behind the verdict of checks of one pattern: the id of a single one, else the pattern and their number;
/// and the reason, if it is not empty and there is room in `width` columns.
pub(crate) fn line(pattern: &str, ids: &[&str], reason: &str, width: usize) -> String {
    let text = match ids {
        [only] => printable(only),
        many => format!("{} ({})", printable(pattern), many.len()),
    };
    let aside = width.saturating_sub(VERDICT + 2 + columns(&text) + 2);
    match aside >= REASON && !reason.is_empty() {
        true => format!("{text}  {}", fit(reason, aside)),
        false => text,
    }
}

/// The checks of one case and one pool.
pub(crate) fn pattern(id: &str) -> String {
    let (case, point) = id.split_once('[').unwrap_or((id, ""));
    let pool = point
        .split([',', ']'])
        .find(|value| value.starts_with("pool="));
    match pool {
        Some(pool) => format!("{case}[{pool}*"),
        None => format!("{case}[*"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_of_one_case_and_one_pool() {
        let id = "net.dns-search/each-node[pool=windows-2022,source=windows-pod,node=1]";
        assert_eq!(pattern(id), "net.dns-search/each-node[pool=windows-2022*");
        assert_eq!(pattern("reject.hostPID[workload=pod]"), "reject.hostPID[*");
    }
}
