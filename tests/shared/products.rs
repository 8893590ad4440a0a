//! Compares the verdicts of whole runs with the table of faults.

use std::collections::BTreeMap;

use hybrid_sim::ProductFault;
use hybrid_sim::interference::Fault;
use winconform_core::claims::{ClaimType, Pattern};
use winconform_core::record::{CheckView, RunView};
use winconform_core::report::terminal::{Colour, Detail, render};
use winconform_core::verdict::Verdict;

use crate::scheduling::POLICIES;
use crate::table::{self, Row};

/// The faults that interfere between harness and API server; product faults and policies do not.
pub(crate) fn of_the_way(faults: &[&str]) -> Vec<Fault> {
    let elsewhere = |fault: &str| {
        fault == "none" || POLICIES.contains(&fault) || fault.parse::<ProductFault>().is_ok()
    };
    let faults = faults.iter().filter(|fault| !elsewhere(fault));
    let parsed = faults.map(|fault| fault.parse().expect("a fault of the way"));
    parsed.collect()
}

/// Whether every check of a run, and the run itself, ends as the row of its fault expects.
pub(crate) fn shows(view: &RunView, row: &Row) -> Result<(), String> {
    let expected = expected(view, &[row]);
    let seen = verdicts(view);
    let mut other = Vec::new();
    for (id, verdict) in &seen {
        let mut by_chance = row.by_chance.first_match(id).into_iter().flatten();
        let expected = expected.get(id).copied();
        let may_be = by_chance.any(|any| Some(*any) == *verdict);
        if *verdict != expected && !may_be {
            other.push(format!("{id}: {verdict:?}, not {expected:?}"));
        }
    }
    let exit = winconform_core::record::exit(view);
    if exit != row.exit {
        other.push(format!("came to {exit:?}, not {:?}", row.exit));
    }
    match other.as_slice() {
        [] => Ok(()),
        other => {
            let what = described(view);
            Err(format!("{}:\n{}\n{what}", row.fault, other.join("\n")))
        }
    }
}

/// Whether every pattern of the row is the first match of a check of this run. A pattern of an area that the
/// run lacks must cover a check of the healthy run.
pub(crate) fn is_about(view: &RunView, row: &Row, healthy: &RunView) -> Result<(), String> {
    let seen = verdicts(view);
    let turns = row.turns.idle(seen.keys().copied());
    let by_chance = row.by_chance.idle(seen.keys().copied());
    let idle = turns.into_iter().chain(by_chance);
    let is_in = |view: &RunView, pattern: &Pattern| {
        let mut checks = view.checks.values();
        checks.any(|check| pattern.covers(check.planned.id.as_str()))
    };
    let idle: Vec<_> = idle
        .filter(|pattern| is_observed(view, row, pattern) || !is_in(healthy, pattern))
        .map(|pattern| format!("nothing is {pattern}"))
        .collect();
    match idle.as_slice() {
        [] => Ok(()),
        idle => Err(idle.join("\n")),
    }
}

/// Whether the area of a pattern is one of the row's, or the area of a check of the run.
pub(crate) fn is_observed(view: &RunView, row: &Row, pattern: &Pattern) -> bool {
    let pattern = pattern.to_string();
    let area = pattern.split('.').next().unwrap_or_default();
    let mut checks = view.checks.values();
    let is_of_area = |check: &CheckView| check.planned.claim.area() == area;
    area.starts_with('*') || row.areas.iter().any(|it| it == area) || checks.any(is_of_area)
}

/// The expected verdict of every check under these rows: that of the first row with a pattern for the check,
/// else the one of a healthy cluster.
pub(crate) fn expected<'v>(view: &'v RunView, broken: &[&Row]) -> BTreeMap<&'v str, Verdict> {
    let topology = broken.first().map_or("hybrid", |row| &row.topology);
    let healthy = table::healthy(topology);
    let of = |check: &'v CheckView| {
        let id = check.planned.id.as_str();
        let mut named = broken.iter().filter_map(|row| row.turns.first_match(id));
        let verdict = named.next().or_else(|| healthy.turns.first_match(id));
        let usual = || usual(check.planned.claim_type);
        (id, verdict.copied().unwrap_or_else(usual))
    };
    view.checks.values().map(of).collect()
}

/// The verdict of a check of this claim type in a healthy cluster.
pub(crate) fn usual(kind: ClaimType) -> Verdict {
    match kind {
        ClaimType::Capability
        | ClaimType::Requirement
        | ClaimType::Rejection
        | ClaimType::Advice => Verdict::Pass,
        ClaimType::Limitation => Verdict::KnownLimitation,
        ClaimType::Informational => Verdict::Informational,
    }
}

/// The verdict of every check; `None` for a check without one.
pub(crate) fn verdicts(view: &RunView) -> BTreeMap<&str, Option<Verdict>> {
    let of = |check: &'_ CheckView| check.conclusion.as_ref().map(|it| it.verdict);
    let checks = view.checks.values();
    checks
        .map(|check| (check.planned.id.as_str(), of(check)))
        .collect()
}

pub(crate) fn described(view: &RunView) -> String {
    render(view, 160, Colour::Never, Detail::Full)
}
