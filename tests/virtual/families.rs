//! Faults that do not depend on the IP family, in a dual-stack cluster: checks of the second family have the
//! verdicts of the first, and some fault changes the verdict of every case.

use std::collections::{BTreeMap, BTreeSet};

use libtest_mimic::Trial;
use winconform_core::record::RunView;
use winconform_core::verdict::Verdict::{self, Informational, Skip};

use crate::rows;
use crate::table::{self, NONE, ROWS, Row, tries_all};
use crate::world::{Outcome, trial};

const TOPOLOGY: &str = "three-builds-dual-stack";

const FAULTS: [&str; 14] = [
    "kube-proxy-dead=windows-2022",
    "node-service-ip-answers=windows-2022",
    "node-service-ip-resets=windows-2022",
    "local-node-port-answers=windows-2022",
    "udp-dropped=windows-2022",
    "mtu-black-hole=windows-2022",
    "source-rewritten=windows-2022",
    "source-rewritten=linux",
    "vip-sticks=windows-2022",
    "endpoint-stale=windows-2022",
    "endpoint-stale=linux",
    "dns-suffix-wrong=windows-2022",
    "partial-names-resolve=windows-2022",
    "reused-address-dead=windows-2022",
];

/// Cuts off one of a Service's two pods; chance decides to which one a request goes.
const CUT: &str = "traffic-cut=node/windows-2022-b:node/windows-2022-b";

/// One run for each fault, in the nightly job.
pub(crate) fn trials() -> Vec<Trial> {
    match tries_all() {
        true => vec![trial("families::of_both", turn_both)],
        false => Vec::new(),
    }
}

fn turn_both() -> Outcome {
    let healthy = rows::healthy(TOPOLOGY)?;
    let verdicts = |view: &RunView| -> BTreeMap<String, Verdict> {
        let checks = view.checks.values();
        let concluded = checks.filter_map(|check| {
            let conclusion = check.conclusion.as_ref()?;
            Some((check.planned.id.to_string(), conclusion.verdict))
        });
        concluded.collect()
    };
    let usual = verdicts(healthy);
    let (mut turned, mut wrong) = (BTreeSet::new(), Vec::new());
    let of_one = ROWS.iter().filter(|row| row.topology == TOPOLOGY);
    let of_one = of_one
        .map(|row| row.fault.as_str())
        .filter(|fault| *fault != NONE);
    for fault in FAULTS.into_iter().chain([CUT]).chain(of_one) {
        let row = Row {
            fault: fault.to_owned(),
            areas: vec!["net".to_owned()],
            ..table::healthy(TOPOLOGY).clone()
        };
        let seen = verdicts(&rows::seen(&row, rows::of_areas(&row, &[]))?);
        for (id, verdict) in &seen {
            let Some(first) = in_first(id).filter(|_| *verdict != Skip) else {
                continue;
            };
            if FAULTS.contains(&fault) && *verdict != seen[&first] {
                wrong.push(format!(
                    "{fault}: {id}: {verdict}, and in the first family {}",
                    seen[&first]
                ));
            }
            if *verdict != usual[id] && verdict.is_conclusive() {
                turned.insert(case(id));
            }
        }
    }
    let second = usual.iter().filter(|(id, _)| in_first(id).is_some());
    let judged = second.filter(|(_, verdict)| !matches!(verdict, Skip | Informational));
    let cases: BTreeSet<_> = judged.map(|(id, _)| case(id)).collect();
    let idle = cases
        .difference(&turned)
        .map(|case| format!("no fault turns {case} in the second family"));
    wrong.extend(idle);
    match wrong.as_slice() {
        [] => Ok(()),
        wrong => Err(wrong.join("\n")),
    }
}

/// A check's case: its id without the point.
fn case(id: &str) -> String {
    id.split('[').next().unwrap_or(id).to_owned()
}

/// The id of the same check in the first family.
fn in_first(id: &str) -> Option<String> {
    let point = id.strip_suffix("family=ipv6]")?;
    let point = point.strip_suffix(['[', ',']).unwrap_or(point);
    Some(match point.contains('[') {
        true => format!("{point}]"),
        false => point.to_owned(),
    })
}
