//! Checks that every fault has a row in the table, every row a fault, and every case a row that shows how it
//! fails.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::LazyLock;

use hybrid_sim::ProductFault;
use hybrid_sim::interference::Fault;
use libtest_mimic::Trial;
use winconform_core::claims::{ClaimType, Pattern};
use winconform_core::plan::{CheckId, Point};
use winconform_core::record::Exit;
use winconform_core::verdict::Verdict;

use crate::rows::policy::refuses;
use crate::rows::validation::Validation;
use crate::rows::{EACH, healthy};
use crate::scheduling::POLICIES;
use crate::table::{self, NONE, Row};
use crate::world::{ALL, Outcome, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("every_fault_has_a_row_and_every_row_a_fault", every_fault),
        trial("every_case_is_shown_to_fail", every_case),
        trial("faults_of_one_class_turn_the_same", every_class),
    ]
}

/// The features that wait for a claim without a case, each with that claim.
fn awaited() -> Result<BTreeMap<String, String>, String> {
    let name = "awaited.txt";
    let path = table::folder().join(name);
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{name}: {error}"))?;
    let lines = text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut claims = BTreeMap::new();
    for line in lines {
        let (key, value) = line
            .split_once(' ')
            .ok_or_else(|| format!("{name}: `{line}`"))?;
        if claims.insert(key.to_owned(), value.to_owned()).is_some() {
            return Err(format!("{name}: {key} is listed twice"));
        }
    }
    Ok(claims)
}

/// Interference that has its own tests, beside others: it leads to refusals of all kinds, and not to one
/// verdict.
const ELSEWHERE: [&str; 6] = [
    "aggregated-down",
    "hostile-texts",
    "token-expires",
    "webhook-no-dry-run",
    "webhook-refuses",
    "webhook-times-out",
];

/// What only takes time: a run comes to what it comes to without it.
const SLOW: [&str; 3] = ["ends-slow", "exec-slow", "node-reboots"];

/// Each product fault has a row that shows it, or waits for a claim; other faults have rows or other tests.
fn every_fault() -> Outcome {
    let known: BTreeSet<_> = ProductFault::catalogue().map(|info| info.name).collect();
    let kind = |row: &'static Row| row.fault.split('=').next().unwrap_or_default();
    let here: BTreeSet<_> = EACH.iter().map(kind).collect();
    let turning = EACH.iter().filter(|row| row.shows_anything());
    let turning: BTreeSet<_> = turning.map(kind).collect();
    let awaited = awaited()?;
    let mut wrong = Vec::new();
    let mut rows = BTreeSet::new();
    for row in EACH.iter() {
        let fault = row.fault.as_str();
        let is_policy = fault == NONE
            || POLICIES.contains(&fault)
            || refuses(fault)
            || Validation::by_name(fault).is_some();
        let is_of_objects = !row.objects.is_empty();
        let is_known = is_policy || is_of_objects;
        if !is_known && fault.parse::<ProductFault>().is_err() && fault.parse::<Fault>().is_err() {
            wrong.push(format!("{fault} has a row and is no fault"));
        }
        let is_wrong = fault != NONE && !(is_of_objects && row.exit == Exit::Conformant);
        if is_wrong && row.cause.is_none() || fault == NONE && row.cause.is_some() {
            wrong.push(format!(
                "{fault}: what is wrong has a cause, and nothing else"
            ));
        }
        if !rows.insert((&row.topology, fault)) {
            wrong.push(format!("{fault} has two rows on {}", row.topology));
        }
    }
    for fault in &known {
        let listed = awaited.contains_key(*fault);
        let is_shown = match SLOW.contains(fault) {
            true => here.contains(fault) && !turning.contains(fault),
            false => turning.contains(fault),
        };
        if is_shown == listed {
            let how = if listed {
                "waits, and a"
            } else {
                "is shown by no"
            };
            wrong.push(format!("{fault} {how} row"));
        }
    }
    for fault in Fault::names() {
        if here.contains(fault) == ELSEWHERE.contains(&fault) {
            wrong.push(format!("{fault} has a row or is tried elsewhere"));
        }
    }
    let claims = &ALL.claims;
    let forms = include_str!("../../../core/src/command/forms.txt").lines();
    let forms = forms.filter_map(|line| line.split(' ').next());
    let commands: BTreeSet<_> = forms.filter(|name| *name != "#").collect();
    for (feature, claim) in &awaited {
        if !claims.iter().any(|known| known.id.as_str() == claim) {
            wrong.push(format!("{feature} waits for {claim}, which is no claim"));
        }
        if ALL.cases.iter().any(|case| case.claim.as_str() == claim) {
            wrong.push(format!("{feature} waits for {claim}, which has a case"));
        }
        let is_there = Path::new(env!("CARGO_MANIFEST_DIR")).join(feature).exists();
        if !is_there && !known.contains(feature.as_str()) && !commands.contains(feature.as_str()) {
            wrong.push(format!("{feature} is no fault, no file and no command"));
        }
    }
    let mut sent = sent();
    sent.push_str(include_str!("../../../core/src/suite/container.rs"));
    sent.push_str(include_str!(
        "../../../core/src/method/container/scenario/steps.rs"
    ));
    for command in commands {
        if sent.contains(&format!("Command::{command}")) == awaited.contains_key(command) {
            wrong.push(format!("{command} is neither sent nor awaited, or both"));
        }
    }
    none(&wrong)
}

/// The tool's code without its tests.
fn sent() -> String {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    let mut text = String::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let file = std::fs::read_to_string(&path).expect("text");
                text += file
                    .split("#[cfg(test)]\nmod tests")
                    .next()
                    .unwrap_or_default();
            }
        }
    }
    text
}

/// The cases, and of each that is shown to fail the rows that show it.
pub(crate) struct Shown {
    cases: BTreeMap<String, ClaimType>,
    /// Without a row, a case is shown by what differs between two healthy clusters.
    pub(crate) by: BTreeMap<String, Vec<&'static Row>>,
}

/// Each case has, under some fault, a verdict that shows that its checks can fail: inconclusive and skip do
/// not count.
fn every_case() -> Outcome {
    let Shown { cases, by } = SHOWN.as_ref()?;
    let wrong = cases.keys().filter(|case| !by.contains_key(*case));
    let wrong = wrong.map(|case| format!("{case} is shown to fail by no row"));
    none(&wrong.collect::<Vec<_>>())
}

/// Which rows show of which cases that their checks can fail.
pub(crate) static SHOWN: LazyLock<Result<Shown, String>> = LazyLock::new(shown);

fn shown() -> Result<Shown, String> {
    let mut by = BTreeMap::<String, Vec<&Row>>::new();
    let mut cases = BTreeMap::new();
    // In healthy clusters a verdict shows something if it differs between two of them
    let mut usual = BTreeMap::<String, BTreeSet<bool>>::new();
    for row in EACH.iter() {
        let mut here = BTreeSet::new();
        for check in healthy(&row.topology)?.checks.values() {
            let (id, kind) = (check.planned.id.as_str(), check.planned.claim_type);
            let case = id.split('[').next().unwrap_or(id).to_owned();
            let turned = row.turns.first_match(id).is_some_and(|it| fails(kind, *it));
            let mut may_be = row.by_chance.first_match(id).into_iter().flatten();
            let verdict = check.conclusion.as_ref().map(|it| it.verdict);
            let verdict = row.turns.first_match(id).copied().or(verdict);
            if row.cause.is_none() {
                if !matches!(verdict, None | Some(Verdict::Inconclusive | Verdict::Skip)) {
                    let fails = verdict.is_some_and(|it| fails(kind, it));
                    usual.entry(case.clone()).or_default().insert(fails);
                }
                if tells(row, id, kind) {
                    here.insert(case.clone());
                }
            } else if turned && may_be.all(|it| fails(kind, *it)) || tells(row, id, kind) {
                here.insert(case.clone());
            }
            cases.insert(case, kind);
        }
        for case in here {
            by.entry(case).or_default().push(row);
        }
    }
    for case in &ALL.cases {
        let id = CheckId::new(&case.claim, case.name.as_deref(), &Point::default());
        cases.entry(id.to_string()).or_insert(case.claim_type);
    }
    // Cases with checks in one row only, such as of a pool that no other topology has
    let rows = EACH.iter().filter(|row| row.fault != NONE);
    for row in rows {
        for (pattern, verdict) in row.turns.iter() {
            let pattern = pattern.to_string();
            let mut may_be = row.by_chance.iter().filter(|(of, _)| of.covers(&pattern));
            let case = pattern.split('[').next().unwrap_or_default();
            let fails = |verdict| cases.get(case).is_some_and(|kind| fails(*kind, verdict));
            if fails(*verdict) && may_be.all(|(_, others)| others.iter().all(|it| fails(*it))) {
                by.entry(case.to_owned()).or_default().push(row);
            }
        }
    }
    for (case, _) in usual.into_iter().filter(|(_, turned)| turned.len() == 2) {
        by.entry(case).or_default();
    }
    Ok(Shown { cases, by })
}

/// Whether a verdict shows that a check of this claim type can fail.
fn fails(kind: ClaimType, verdict: Verdict) -> bool {
    match kind {
        ClaimType::Capability | ClaimType::Requirement | ClaimType::Rejection => {
            verdict == Verdict::Fail
        }
        ClaimType::Limitation => matches!(verdict, Verdict::Fail | Verdict::LimitationLifted),
        ClaimType::Advice => verdict == Verdict::Warn,
        ClaimType::Informational => false,
    }
}

fn tells(row: &Row, id: &str, kind: ClaimType) -> bool {
    let covers = |pattern: &String| Pattern::parse(pattern).is_ok_and(|it| it.covers(id));
    let observes = row
        .turns
        .first_match(id)
        .is_none_or(|it| *it == Verdict::Informational);
    kind == ClaimType::Informational && observes && row.tells.iter().any(covers)
}

/// No observation tells faults of one class apart: on the same topology, at the same place, they change the
/// same verdicts.
fn every_class() -> Outcome {
    let mut wrong = Vec::new();
    let classed = EACH.iter().filter(|row| row.class.is_some());
    let classed: Vec<_> = classed.collect();
    let place = |row: &Row| row.fault.split_once('=').map(|(_, place)| place.to_owned());
    for (at, one) in classed.iter().enumerate() {
        for other in &classed[at + 1..] {
            let same = one.class == other.class
                && one.topology == other.topology
                && place(one) == place(other);
            if same && format!("{:?}", one.turns) != format!("{:?}", other.turns) {
                wrong.push(format!(
                    "{} and {} turn other checks",
                    one.fault, other.fault
                ));
            }
        }
    }
    none(&wrong)
}

fn none(wrong: &[String]) -> Outcome {
    match wrong {
        [] => Ok(()),
        wrong => Err(wrong.join("\n")),
    }
}
