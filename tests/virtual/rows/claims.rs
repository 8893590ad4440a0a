//! Compares `docs/claims.md` with the suites and the table of faults, which it prints.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use libtest_mimic::Trial;
use winconform_core::claims::{Claim, Document, Pattern};
use winconform_core::method::Test;
use winconform_core::record::CheckView;

use super::page::compare;
use super::shown::{SHOWN, Shown};
use super::{EACH, healthy};
use crate::table::{NONE, Row};
use crate::world::{ALL, Outcome, trial};

const PAGE: &str = "docs/claims.md";

/// The pods that a real node and a simulated one are compared by.
const PODS: &str = include_str!("../../../sim/tests/real_cluster/real_node/cases.yaml");

/// How many faults a line names.
const FAULTS: usize = 2;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("the_page_of_claims_is_what_the_suites_say", page),
        trial("each_claim_of_many_documents_names_its_own", sources),
    ]
}

/// Current documentation, tests and reports are many: a claim of them has the address of its own.
fn sources() -> Outcome {
    let current = ALL.claims.iter();
    let without = current.filter(|it| it.from.contains(&Document::Docs) && it.source.is_none());
    let without: Vec<_> = without.map(|claim| claim.id.as_str()).collect();
    match without.as_slice() {
        [] => Ok(()),
        without => Err(format!("without `source`: {}", without.join(", "))),
    }
}

/// How many checks each row changes, of those that a healthy run has, by topology and fault.
fn changes() -> Result<BTreeMap<(&'static str, &'static str), usize>, String> {
    let mut changes = BTreeMap::new();
    for row in EACH.iter() {
        let tells = row.tells.iter().map(|pattern| Pattern::parse(pattern));
        let tells: Vec<_> = tells.filter_map(Result::ok).collect();
        let is_changed = |check: &&CheckView| {
            let id = check.planned.id.as_str();
            let before = check.conclusion.as_ref().map(|it| it.verdict);
            let turned = row.turns.first_match(id).copied();
            turned.is_some_and(|now| Some(now) != before) || tells.iter().any(|it| it.covers(id))
        };
        let checks = healthy(&row.topology)?.checks.values();
        let place = (row.topology.as_str(), row.fault.as_str());
        changes.insert(place, checks.filter(is_changed).count());
    }
    Ok(changes)
}

/// The pods of a real node that show what a claim is about, by claim.
fn pods() -> Result<BTreeMap<String, Vec<String>>, String> {
    let text = include_str!("confirmed.yaml");
    let pods: BTreeMap<String, Vec<String>> =
        serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
    for (claim, pods) in &pods {
        if ALL.claims.find(claim).is_none() {
            return Err(format!("confirmed.yaml: {claim} is no claim"));
        }
        let is_there = |pod: &&String| PODS.lines().any(|line| line == format!("- name: {pod}"));
        if let Some(pod) = pods.iter().find(|pod| !is_there(pod)) {
            return Err(format!("confirmed.yaml: {pod} is no pod of a real node"));
        }
    }
    Ok(pods)
}

fn page() -> Outcome {
    compare(PAGE, &printed().map_err(|error| error.to_string())?)
}

fn printed() -> Result<String, Box<dyn std::error::Error>> {
    let shown = SHOWN.as_ref().map_err(String::as_str)?;
    let (changes, pods) = (changes()?, pods()?);
    let mut text = include_str!("claims.md").to_owned();
    let mut area = "";
    for claim in ALL.claims.iter() {
        if area != claim.id.area() {
            area = claim.id.area();
            let head = "| claim | text | documents | methods | also tried on | faults |\n\
                        |---|---|---|---|---|---|";
            writeln!(text, "\n## {area}\n\n{head}")?;
        }
        let pods = pods.get(claim.id.as_str());
        writeln!(text, "{}", line(claim, shown, &changes, pods))?;
    }
    Ok(text)
}

fn line(
    claim: &Claim,
    shown: &Shown,
    changes: &BTreeMap<(&str, &str), usize>,
    pods: Option<&Vec<String>>,
) -> String {
    let documents = claim.from.iter().map(|from| from.title().to_owned());
    let source = claim.source.iter().map(|source| format!("<{source}>"));
    let documents: Vec<_> = documents.chain(source).collect();
    let mut methods: Vec<_> = ALL
        .cases_of(&claim.id)
        .map(|case| word(&case.test))
        .collect();
    methods.sort_unstable();
    methods.dedup();
    let of = |case: &str| case.split('/').next() == Some(claim.id.as_str());
    let rows = shown.by.iter().filter(|(case, _)| of(case));
    let mut rows: Vec<_> = rows
        .flat_map(|(_, rows)| rows)
        .filter(|row| row.fault != NONE)
        .collect();
    let also = also(&methods, &rows, pods);
    rows.sort_by_key(|row| {
        let turned = changes.get(&(row.topology.as_str(), row.fault.as_str()));
        (turned.copied(), row.topology != "hybrid")
    });
    let mut named = BTreeSet::new();
    rows.retain(|row| named.insert(row.fault.as_str()));
    rows.truncate(FAULTS);
    let faults: Vec<_> = rows.into_iter().map(|row| fault(row)).collect();
    let faults = match (methods.is_empty(), faults.is_empty()) {
        (true, _) => "no case yet".to_owned(),
        (false, true) => "differs between healthy clusters".to_owned(),
        (false, false) => faults.join("<br>"),
    };
    let reworded = claim.reworded.as_ref();
    let reworded = reworded.map_or_else(String::new, |why| format!("<br>*Reworded:* {why}"));
    let said = format!("{}{reworded}", claim.statement).replace('|', "\\|");
    let (id, kind) = (&claim.id, claim.claim_type);
    let (documents, methods) = (documents.join("; "), methods.join(", "));
    format!("| `{id}` ({kind}) | {said} | {documents} | {methods} | {also} | {faults} |")
}

/// Where a claim was tried besides the simulator, as the head of the page explains.
fn also(methods: &[&str], rows: &[&&Row], pods: Option<&Vec<String>>) -> String {
    let is_joined = |row: &&&Row| row.topology == "hybrid" && row.is_of_real_servers(true);
    let mut layers = Vec::new();
    if methods.contains(&"admission") {
        layers.push("API servers".to_owned());
    }
    if rows.iter().any(is_joined) {
        layers.push("control plane".to_owned());
    }
    layers.extend(pods.map(|pods| format!("kubelet ({})", pods.join(", "))));
    for (method, program) in [("http", "curl"), ("ping", "ping"), ("program", "cmd")] {
        if methods.contains(&method) {
            layers.push(program.to_owned());
        }
    }
    layers.join("; ")
}

fn fault(row: &Row) -> String {
    format!("`{}` on `{}`", row.fault, row.topology)
}

/// The method's key in a suite.
fn word(test: &Test) -> &'static str {
    match test {
        Test::Admission(_) => "admission",
        Test::Fact(_) => "fact",
        Test::Http(_) => "http",
        Test::Log(_) => "log",
        Test::Ping(_) => "ping",
        Test::Placement(_) => "placement",
        Test::Preemption(_) => "preemption",
        Test::Program(_) => "program",
        Test::Scenario(_) => "scenario",
        Test::State(_) => "state",
        Test::Status(_) => "status",
        Test::Udp(_) => "udp",
    }
}
