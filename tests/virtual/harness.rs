//! Runs under a harness fault: no verdict is wrong, and enough are conclusive.

#![expect(clippy::print_stdout, reason = "trials print their totals")]

use winconform_core::record::RunView;

use crate::products::described;
use crate::table::asked;

/// Product faults whose checks may not pass, whatever interference the harness meets.
pub(crate) const BROKEN_WORLD: [&str; 3] = [
    "node-label-wrong=windows-2022",
    "admission-allows=spec.hostPID",
    "kube-proxy-dead=windows-2022",
];

/// The largest share of inconclusive checks: from so many runs on, one part of so many. Of a few runs, one
/// may be lost as a whole.
const BOUNDS: [(usize, usize); 2] = [(8, 4), (3, 2)];

/// The number of seeds in a healthy cluster.
pub(crate) fn seeds() -> u64 {
    asked().unwrap_or(8)
}

/// The number of seeds in a broken cluster.
pub(crate) fn seeds_of_a_broken_world() -> u64 {
    seeds().div_ceil(5)
}

/// The totals of the runs under one fault.
pub(crate) struct Told {
    fault: &'static str,
    runs: usize,
    pub(crate) right: usize,
    untold: usize,
    /// The most inconclusive checks of one run, and the report of that run.
    most: (usize, String),
}

impl Told {
    /// The totals before the first run.
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

    /// Adds the tally of the run with a seed; a wrong verdict is an error.
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

    /// Whether enough checks are conclusive: a tool that always gives up is never wrong, and useless.
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
        let total = right + untold;
        match bound {
            Some((_, part)) if untold * part > total => Err(format!(
                "{untold} of {total} untold, at most one in {part} may be; most of them with {}",
                most.1
            )),
            _ => Ok(()),
        }
    }
}
