//! Checks that say the same, folded into one row.

use crate::claims::ClaimId;
use crate::record::{CheckView, RunView};
use crate::report::findings::finding::{Finding, UNFINISHED};
use crate::report::findings::waivers::waived;
use crate::verdict::{Reason, Verdict};

/// How many checks of one claim with the same verdict and reason share a row, at least.
pub(crate) const MANY: usize = 4;

/// One row: a check, or many that say the same.
pub(crate) struct Row<'v> {
    /// The checks; at least one.
    pub(crate) checks: Vec<&'v CheckView>,
    /// Their verdict; `None` when the run ended before.
    pub(crate) verdict: Option<Verdict>,
    /// Why, on one printable line; may be empty.
    pub(crate) reason: String,
}

impl Row<'_> {
    pub(crate) fn claim(&self) -> Option<&ClaimId> {
        self.checks.first().map(|check| &check.planned.claim)
    }
}

/// The rows of all checks, in the order of their first checks.
pub(crate) fn rows(view: &RunView) -> Vec<Row<'_>> {
    let mut rows: Vec<Row<'_>> = Vec::new();
    for check in view.checks.values() {
        let (verdict, reason) = (check.verdict(), reason(view, check));
        let same = |row: &&mut Row<'_>| {
            row.claim() == Some(&check.planned.claim)
                && row.verdict == verdict
                && row.reason == reason
        };
        match rows.iter_mut().rev().find(same) {
            Some(row) => row.checks.push(check),
            None => rows.push(Row {
                checks: vec![check],
                verdict,
                reason,
            }),
        }
    }
    rows.into_iter().flat_map(unfold).collect()
}

/// Why a check has its verdict, on one printable line; may be empty.
pub(crate) fn reason(view: &RunView, check: &CheckView) -> String {
    let reason = Finding::of_check(check, None).reason;
    let flaky = if check.is_flaky() { "flaky" } else { "" };
    let reason = joined(flaky, &reason, ": ");
    joined(
        &view.waiver(check).map_or(String::new(), waived),
        &reason,
        "; ",
    )
}

/// Adds an item to its kind; kinds keep the order of their first items, as the checks are planned.
pub(crate) fn add<K: PartialEq, T>(kinds: &mut Vec<(K, Vec<T>)>, kind: K, one: T) {
    match kinds.iter_mut().find(|(known, _)| *known == kind) {
        Some((_, ones)) => ones.push(one),
        None => kinds.push((kind, vec![one])),
    }
}

/// Whether a check came to what no healthy cluster gives.
pub(crate) fn is_amiss(check: &CheckView) -> bool {
    check.is_flaky() || check.verdict().is_none_or(|verdict| !verdict.is_expected())
}

/// Two texts with something between them, or the one that is not empty.
fn joined(first: &str, second: &str, by: &str) -> String {
    match (first, second) {
        ("", one) | (one, "") => one.to_owned(),
        (first, second) => format!("{first}{by}{second}"),
    }
}

/// Gives each check of a short row its own row.
fn unfold(row: Row<'_>) -> Vec<Row<'_>> {
    if row.checks.len() >= MANY {
        return vec![row];
    }
    let rows = row.checks.iter().map(|check| Row {
        checks: vec![*check],
        verdict: row.verdict,
        reason: row.reason.clone(),
    });
    rows.collect()
}

/// The kind that groups findings: the claim, the verdict, and what it depends on. A check over pools and
/// sources is a kind by itself, since where it was seen matters.
pub(crate) fn kind_of(check: &CheckView) -> (&ClaimId, Option<Verdict>, Option<String>) {
    let planned = &check.planned;
    let depends_on = match check.reason() {
        _ if planned.point.workload.is_none() && planned.point.container.is_none() => {
            planned.id.as_str().to_owned()
        }
        Some(Reason::Control { name, .. } | Reason::ControlError { name, .. }) => {
            format!("control {name}")
        }
        _ => planned.title.clone(),
    };
    (&planned.claim, check.verdict(), Some(depends_on))
}

/// The verdict and reason of a check that many may share, so that a report states them once.
pub(crate) fn shared_reason(check: &CheckView) -> Option<(Option<Verdict>, String)> {
    match check.verdict() {
        None => Some((None, UNFINISHED.to_owned())),
        Some(Verdict::Skip) => {
            let reason = Finding::of_check(check, None).reason;
            Some((Some(Verdict::Skip), reason))
        }
        Some(_) => None,
    }
}
