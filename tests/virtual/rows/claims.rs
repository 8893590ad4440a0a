//! Compares `docs/claims.md` with the suites and the table of faults, which it prints.

use std::fmt::Write;

use libtest_mimic::Trial;
use winconform_core::claims::Claim;
use winconform_core::method::Test;

use super::page::compare;
use super::shown::{SHOWN, Shown};
use crate::table::{NONE, Row};
use crate::world::{ALL, Outcome, trial};

const PAGE: &str = "docs/claims.md";

/// How many faults a line names.
const FAULTS: usize = 2;

pub(crate) fn trials() -> Vec<Trial> {
    vec![trial("the_page_of_claims_is_what_the_suites_say", page)]
}

fn page() -> Outcome {
    compare(PAGE, &printed().map_err(|error| error.to_string())?)
}

fn printed() -> Result<String, Box<dyn std::error::Error>> {
    let shown = SHOWN.as_ref().map_err(String::as_str)?;
    let mut text = include_str!("claims.md").to_owned();
    let mut area = "";
    for claim in ALL.claims.iter() {
        if area != claim.id.area() {
            area = claim.id.area();
            let head = "| claim | text | documents | methods | faults |\n|---|---|---|---|---|";
            writeln!(text, "\n## {area}\n\n{head}")?;
        }
        writeln!(text, "{}", line(claim, shown))?;
    }
    Ok(text)
}

fn line(claim: &Claim, shown: &Shown) -> String {
    let documents: Vec<_> = claim.from.iter().map(|from| from.title()).collect();
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
    rows.sort_by_key(|row| (row.topology != "hybrid", row.turns.iter().count()));
    let mut faults: Vec<_> = rows.into_iter().map(|row| fault(row)).collect();
    faults.dedup();
    faults.truncate(FAULTS);
    let faults = match (methods.is_empty(), faults.is_empty()) {
        (true, _) => "no case yet".to_owned(),
        (false, true) => "differs between healthy clusters".to_owned(),
        (false, false) => faults.join("<br>"),
    };
    let (id, kind, said) = (
        &claim.id,
        claim.claim_type,
        claim.statement.replace('|', "\\|"),
    );
    let (documents, methods) = (documents.join("; "), methods.join(", "));
    format!("| `{id}` ({kind}) | {said} | {documents} | {methods} | {faults} |")
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
