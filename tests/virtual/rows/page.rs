//! Compares `docs/faults.md` with the table of faults that it prints.

use std::fmt::Write;
use std::path::Path;

use libtest_mimic::Trial;
use serde_json::Value;

use crate::table::{NONE, ROWS, Row};
use crate::world::{Outcome, trial};

/// The path of the page.
const PAGE: &str = "docs/faults.md";

/// The environment variable that makes the trial write the page instead of comparing it.
const WRITE: &str = "WINCONFORM_TEST_WRITE";

pub(crate) fn trials() -> Vec<Trial> {
    vec![trial("the_page_of_the_table_is_what_the_table_says", page)]
}

fn page() -> Outcome {
    compare(PAGE, &printed()?)
}

/// Compares a page with what its table prints, or writes it.
pub(crate) fn compare(page: &str, printed: &str) -> Outcome {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(page);
    if std::env::var_os(WRITE).is_some() {
        return std::fs::write(&path, printed).map_err(|error| format!("{page}: {error}"));
    }
    let there = std::fs::read_to_string(&path).map_err(|error| format!("{page}: {error}"))?;
    if there == printed {
        return Ok(());
    }
    Err(format!(
        "{page} is not what its table says: set {WRITE}=1 to write it"
    ))
}

fn printed() -> Result<String, String> {
    let mut text = String::from(
        "# What each fault turns\n\n\
         Printed from [the table of faults](../faults/README.md), which says what the columns mean. A check that no\n\
         line names comes to what it comes to without a fault. `winconform demo --list-faults` lists what `demo` can\n\
         break; policies, objects and what answers otherwise are tried in tests alone.\n",
    );
    let mut topologies: Vec<_> = ROWS.iter().map(|row| row.topology.as_str()).collect();
    topologies.sort_unstable();
    topologies.dedup();
    for topology in topologies {
        let head = "| fault | component | scope | the run | checks |\n|---|---|---|---|---|";
        writeln!(text, "\n## {topology}\n\n{head}").map_err(|error| error.to_string())?;
        for row in ROWS.iter().filter(|row| row.topology == topology) {
            writeln!(text, "{}", line(row)?).map_err(|error| error.to_string())?;
        }
    }
    Ok(text)
}

fn line(row: &Row) -> Result<String, String> {
    let (component, scope) = match &row.cause {
        Some(cause) => (
            <&str>::from(cause.component).to_owned(),
            word(&cause.scope)?,
        ),
        None => (String::new(), String::new()),
    };
    let fault = match row.fault == NONE {
        true => "none".to_owned(),
        false => format!("`{}`", row.fault),
    };
    let objects = row.objects.keys().map(|path| format!("`{path}`"));
    let what: Vec<_> = std::iter::once(fault).chain(objects).collect();
    let mut checks = Vec::new();
    for (pattern, verdict) in row.turns.iter() {
        checks.push(format!("`{pattern}` {}", word(verdict)?));
    }
    if row.for_each.is_some() {
        checks.push("for each `FIELD`, what rests on it fail".to_owned());
    }
    checks.extend(
        row.tells
            .iter()
            .map(|pattern| format!("`{pattern}` observes otherwise")),
    );
    let (what, exit, checks) = (what.join(", "), word(&row.exit)?, checks.join("<br>"));
    Ok(format!(
        "| {what} | {component} | {scope} | {exit} | {checks} |"
    ))
}

/// The word that serde writes for an enum value.
pub(super) fn word(value: &impl serde::Serialize) -> Result<String, String> {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => Ok(word),
        other => Err(format!("no word: {other:?}")),
    }
}
