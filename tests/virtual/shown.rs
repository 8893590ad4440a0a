//! That every fault there is turns what is written down somewhere, and that every case is turned by one.

use std::collections::BTreeSet;
use std::path::Path;

use hybrid_sim::ProductFault;
use libtest_mimic::Trial;
use winconform_core::claims::{Kind, Pattern};
use winconform_core::verdict::Verdict;

use crate::faults::rows;
use crate::products::usual;
use crate::scheduling;
use crate::world::{Outcome, SUITES, trial};

const CROSS: &str = "src/engine/cross/mod.rs";
const FAMILIES: &str = "src/engine/cross/families.rs";
const WORLDS: &str = "tests/worlds/list.rs";

/// Faults that no whole run here has, and the file with what they turn.
const ELSEWHERE: &[(&str, &str)] = &[
    ("ipv6-proxy-dead", FAMILIES),
    ("ipv6-dropped", FAMILIES),
    ("node-port-closed", CROSS),
    ("traffic-cut-one-way", CROSS),
    ("dns-wrong-address", CROSS),
    ("dns-slow", CROSS),
    ("mtu-black-hole", CROSS),
    ("source-rewritten", CROSS),
    ("hairpin-broken", CROSS),
    ("own-address-dead", CROSS),
    ("policy-ignored", CROSS),
    ("policy-closed", CROSS),
    ("ping-dropped", CROSS),
    ("outbound-ping-answers", CROSS),
    ("node-vanishes", WORLDS),
    ("pull-fails", WORLDS),
];

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("every_fault_is_shown_once", every_fault),
        trial("every_case_of_samples_and_scheduling_is_turned", every_case),
    ]
}

/// Each fault of the catalogue has rows of whole runs, or is listed with the place that has them.
fn every_fault() -> Outcome {
    let known: BTreeSet<_> = ProductFault::catalogue().map(|info| info.name).collect();
    let name = |fault: &'static str| fault.split('=').next().unwrap_or(fault);
    let here: BTreeSet<_> = rows().map(|row| name(row.fault)).collect();
    let mut elsewhere = BTreeSet::new();
    let mut wrong = Vec::new();
    for (fault, path) in ELSEWHERE {
        if !elsewhere.insert(*fault) {
            wrong.push(format!("{fault} is listed twice"));
        }
        if !known.contains(fault) {
            wrong.push(format!("{fault} is listed and no fault"));
        }
        if here.contains(fault) {
            wrong.push(format!("{fault} is listed and has a row"));
        }
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        let text = std::fs::read_to_string(&path).map_err(|error| error.to_string())?;
        if !text.contains(&format!("\"{fault}=")) {
            wrong.push(format!("{fault} is not in {}", path.display()));
        }
    }
    for fault in &known {
        if !here.contains(fault) && !elsewhere.contains(fault) {
            wrong.push(format!("{fault} is shown nowhere"));
        }
    }
    none(&wrong)
}

/// Each case of the samples and of scheduling comes to something else under some fault, and that tells.
fn every_case() -> Outcome {
    let mut wrong = Vec::new();
    for case in &SUITES.cases {
        if !["sample", "sched"].contains(&case.claim.area()) {
            continue;
        }
        let id = match &case.name {
            Some(name) => format!("{}/{name}", case.claim),
            None => case.claim.to_string(),
        };
        let turned = rows().any(|row| {
            let turns = row.turns.iter().chain(scheduling::turns(row.fault));
            turned(turns, &id, case.kind)
        });
        if !turned {
            wrong.push(format!("{id} is turned by no fault"));
        }
    }
    none(&wrong)
}

/// Whether a row turns some check of a case to what tells. What a pattern says of points is left to the
/// runs, which come to exactly what their row says.
fn turned<'t>(turns: impl Iterator<Item = &'t (&'t str, Verdict)>, case: &str, kind: Kind) -> bool {
    for (pattern, verdict) in turns {
        let of_cases = pattern.split('[').next().unwrap_or(pattern);
        if !Pattern::parse(of_cases).expect("a pattern").covers(case) {
            continue;
        }
        if verdict.is_conclusive() && *verdict != usual(kind) {
            return true;
        }
        // The first that names a check counts
        if of_cases == *pattern {
            return false;
        }
    }
    false
}

fn none(wrong: &[String]) -> Outcome {
    match wrong {
        [] => Ok(()),
        wrong => Err(wrong.join("\n")),
    }
}
