//! Harness faults, and what comes of runs under one: nothing wrong, and not too little.

#![expect(clippy::print_stdout, reason = "trials tell what they found")]

use std::collections::BTreeMap;

use winconform_core::record::RunView;
use winconform_core::verdict::Verdict;

use crate::products::{described, expected, verdicts};
use crate::table::{Row, asked};

/// Harness faults, each at a fifth of all requests it can hit.
pub(crate) const HARNESS: [&str; 13] = [
    "too-many-requests=0.2",
    "internal-error=0.2",
    "html-502=0.2",
    "gone=0.2",
    "hang=0.2",
    "reset=0.2",
    "cut-exec=0.2",
    "lose-exit-frame=0.2",
    "slow=0.2",
    "truncate-body=0.2",
    "stale-list=0.2",
    "silent-watch=0.2",
    "delete-created=0.2",
];

/// Faults under which nothing on these checks may pass, whatever the harness meets.
pub(crate) const BROKEN_WORLD: [&str; 3] = [
    "node-label-wrong=windows-2022",
    "admission-allows=spec.hostPID",
    "kube-proxy-dead=windows-2022",
];

/// How much may be left untold at most, as one part of so many, from so many runs on: of a few, one
/// may be lost whole.
const BOUNDS: [(usize, usize); 2] = [(8, 4), (3, 2)];

/// How many are tried in a healthy cluster.
pub(crate) fn seeds() -> u64 {
    asked().unwrap_or(20)
}

/// How many are in one that is broken.
pub(crate) fn seeds_of_a_broken_world() -> u64 {
    seeds().div_ceil(5)
}

/// What came of the runs under one fault.
pub(crate) struct Told {
    fault: &'static str,
    runs: usize,
    pub(crate) right: usize,
    untold: usize,
    /// How much was left untold at most, and the report of that run.
    most: (usize, String),
}

impl Told {
    /// Of no run yet.
    pub(crate) fn under(fault: &'static str) -> Self {
        let most = (0, String::new());
        Self {
            fault,
            runs: 0,
            right: 0,
            untold: 0,
            most,
        }
    }

    /// Adds the run of a seed by what came of its checks: nothing is wrong.
    pub(crate) fn add(
        &mut self,
        seed: u64,
        view: &RunView,
        tally: Result<(usize, usize), String>,
    ) -> Result<(), String> {
        let (right, untold) = tally.map_err(|wrong| format!("seed {seed}: {wrong}"))?;
        self.runs += 1;
        self.right += right;
        self.untold += untold;
        if untold > self.most.0 {
            self.most = (untold, format!("seed {seed}:\n{}", described(view)));
        }
        Ok(())
    }

    /// Whether enough is told: patience that always gives up would be right too, and useless.
    pub(crate) fn enough(&self) -> Result<(), String> {
        let Self {
            fault,
            runs,
            right,
            untold,
            most,
        } = self;
        println!("{fault}: {runs} runs, {right} verdicts right, {untold} untold, none wrong");
        let bound = BOUNDS.iter().find(|(many, _)| runs >= many);
        let all = right + untold;
        match bound {
            Some((_, part)) if untold * part > all => Err(format!(
                "{untold} of {all} untold, at most one in {part} may be; most of them with {}",
                most.1
            )),
            _ => Ok(()),
        }
    }
}

/// How many checks came to what they should while these things are broken, and how many to nothing
/// that tells; those that came to something else are wrong.
pub(crate) fn tally(view: &RunView, broken: &[&Row]) -> Result<(usize, usize), String> {
    tally_of(view, &expected(view, broken))
}

/// The same where it is known what every check should come to.
pub(crate) fn tally_of(
    view: &RunView,
    expected: &BTreeMap<&str, Verdict>,
) -> Result<(usize, usize), String> {
    let (mut told, mut untold) = (0, 0);
    for (check, seen) in verdicts(view) {
        if seen == expected.get(check).copied() {
            told += 1;
        } else if matches!(seen, None | Some(Verdict::Inconclusive | Verdict::Skip)) {
            // Skipped: the Lease could not be renewed in time, which ends a run early;
            // nothing at all: it could not be had
            untold += 1;
        } else {
            let wanted = expected.get(check);
            let what = described(view);
            return Err(format!("{check}: {seen:?}, not {wanted:?}\n{what}"));
        }
    }
    Ok((told, untold))
}
