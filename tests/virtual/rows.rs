//! The rows of the table of faults, each on its own nodes and with the checks of its own areas. Where more
//! than one seed is asked for, all checks are looked at on two nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{LazyLock, Mutex, OnceLock, PoisonError};

use hybrid_sim::{IpFamilies, Topology};
use libtest_mimic::Trial;
use winconform_core::claims::{Kind, Pattern};
use winconform_core::record::{CheckView, RunView};

use crate::faults::seen_of;
use crate::products;
use crate::table::{NONE, ROWS, Row};
use crate::world::{Outcome, of_all_or, selection, trial};

/// What takes long, and the term that leaves it out where it is not turned.
const LONG: [(&str, &str); 3] = [
    ("net.after-churn", "!net.after-churn"),
    ("sample.dotnet-probes", "!sample.dotnet-probes"),
    ("sched.", "!area=sched"),
];

/// Runs of clusters in which nothing is wrong, of each topology one.
static HEALTHY: LazyLock<Mutex<BTreeMap<String, &'static OnceLock<Healthy>>>> =
    LazyLock::new(Mutex::default);

type Healthy = Result<RunView, String>;

pub(crate) fn trials() -> Vec<Trial> {
    let trials = ROWS.iter().map(|row| {
        let name = format!("table::{}::{}", row.topology, row.fault);
        trial(name, move || shows(row))
    });
    trials.collect()
}

fn shows(row: &Row) -> Outcome {
    let ran;
    let view = match row.fault.as_str() {
        NONE => healthy(&row.topology)?,
        fault => {
            ran = seen_of(topology(&row.topology), &[fault], Vec::new(), 1, of(row))?;
            &ran
        }
    };
    products::shows(view, row)?;
    tells(view, row)
}

/// Whether the informational checks that a row names observe something else.
fn tells(view: &RunView, row: &Row) -> Outcome {
    if row.tells.is_empty() {
        return Ok(());
    }
    let parsed = row.tells.iter().map(|pattern| Pattern::parse(pattern));
    let patterns: Result<Vec<_>, _> = parsed.collect();
    let patterns = patterns.map_err(|error| error.to_string())?;
    let healthy = healthy(&row.topology)?;
    let informational = |view: &'static RunView| {
        let checks = view.checks.values();
        let told = checks.filter(|check| check.planned.kind == Kind::Evidence);
        told.map(|check| (check.planned.id.as_str(), observed(check)))
            .collect::<BTreeMap<_, _>>()
    };
    let before = informational(healthy);
    let mut wrong = Vec::new();
    let mut idle: BTreeSet<_> = (0..patterns.len()).collect();
    for check in view.checks.values() {
        let id = check.planned.id.as_str();
        let Some(before) = before.get(id) else {
            continue;
        };
        let named = patterns.iter().position(|pattern| pattern.covers(id));
        if let Some(at) = named {
            idle.remove(&at);
        }
        if named.is_some() && *before == observed(check) {
            let now = observed(check);
            wrong.push(format!(
                "{id} observes {now:?}, and {before:?} where nothing is wrong"
            ));
        }
    }
    for at in idle {
        wrong.push(format!("{} is no informational check", patterns[at]));
    }
    match wrong.as_slice() {
        [] => Ok(()),
        wrong => Err(wrong.join("\n")),
    }
}

/// The letters of what a check observed: addresses and times are of each run.
fn observed(check: &CheckView) -> Option<String> {
    let look = check.attempts.last()?.looks.first()?;
    let mut text = look.observation.as_ref()?.to_string();
    text.retain(char::is_alphabetic);
    // Targets are in the order of their addresses
    let mut letters: Vec<_> = text.chars().collect();
    letters.sort_unstable();
    Some(letters.into_iter().collect())
}

/// The one run of a topology in which nothing is wrong, with all checks.
pub(crate) fn healthy(name: &str) -> Result<&'static RunView, String> {
    let cell = {
        let mut known = HEALTHY.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = || -> &'static OnceLock<Healthy> { Box::leak(Box::default()) };
        *known.entry(name.to_owned()).or_insert_with(fresh)
    };
    let run = || seen_of(topology(name), &[], Vec::new(), 1, of_all_or(&[]));
    cell.get_or_init(run).as_ref().map_err(Clone::clone)
}

/// The nodes of this name; those with addresses of two families end in `-dual-stack`.
fn topology(name: &str) -> Topology {
    let (nodes, ip_families) = match name.strip_suffix("-dual-stack") {
        Some(nodes) => (nodes, IpFamilies::DualStack),
        None => (name, IpFamilies::default()),
    };
    let topology = Topology::named(nodes).expect(name);
    Topology {
        ip_families,
        ..topology
    }
}

/// The checks of a row's areas, less the long ones that it does not turn.
fn of(row: &Row) -> winconform_core::plan::Selection {
    let areas = row.areas.iter().map(|area| format!("area={area}"));
    let left_out = LONG.iter().filter(|(name, _)| !row.turns.has(name));
    let left_out = left_out.map(|(_, term)| (*term).to_owned());
    let terms: Vec<_> = areas.chain(left_out).collect();
    let terms: Vec<_> = terms.iter().map(String::as_str).collect();
    match row.topology.as_str() {
        "hybrid" => of_all_or(&terms),
        _ => selection(&terms),
    }
}
