//! Harness faults, and what comes of runs under one: nothing wrong, and not too little.

#![expect(clippy::print_stdout, reason = "trials tell what they found")]

use winconform_core::record::RunView;

use crate::products::described;
use crate::table::asked;

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
