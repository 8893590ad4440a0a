//! Vantages that wait for more to look at: one session serves many looks, so that neither the first
//! fixture that stands nor the first check that is to hold makes a session of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use winconform_core::plan::Check;
use winconform_core::way::VantageKey;

use super::progress::{CheckState, Stage};

/// Since when each vantage could look at something.
#[derive(Debug, Default)]
pub(super) struct Gathering {
    since: BTreeMap<VantageKey, Duration>,
}

impl Gathering {
    /// When a check whose fixtures all stand may begin, if not now: none of its vantages is among
    /// those `awaited` by other checks, or it has waited for `patience`.
    pub(super) fn until(
        &mut self,
        now: Duration,
        check: &Check,
        awaited: &BTreeSet<VantageKey>,
        patience: Duration,
    ) -> Option<Duration> {
        let own: Vec<_> = vantages(check).collect();
        for from in &own {
            self.since.entry((*from).clone()).or_insert(now);
        }
        let still = own.into_iter().filter(|from| awaited.contains(*from));
        let ends = still.map(|from| self.since[from] + patience);
        ends.max().filter(|end| *end > now)
    }
}

/// From where more is to be looked at once more, as soon as looks that are under way have ended as
/// well as those so far.
pub(super) fn unheld(checks: &[CheckState], now: Duration) -> BTreeSet<VantageKey> {
    let (mut late, mut ready) = (Vec::new(), Vec::new());
    for state in checks.iter().filter(|state| state.is_on_course()) {
        match state.stage {
            Stage::Due(at) if at <= now => ready.push(&state.check),
            Stage::Due(_) | Stage::Round(_) => late.push(&state.check),
            Stage::Waiting | Stage::Confirming(_) | Stage::Done => {}
        }
    }
    awaited(late, ready)
}

/// The vantages that are still awaited: those of the checks that are `late`, and those of whoever of
/// the `ready` waits with them, since it looks from more than one place.
pub(super) fn awaited<'a>(late: Vec<&'a Check>, mut ready: Vec<&'a Check>) -> BTreeSet<VantageKey> {
    let mut awaited: BTreeSet<_> = late.into_iter().flat_map(vantages).cloned().collect();
    loop {
        let (with_them, alone): (Vec<_>, Vec<_>) = ready
            .into_iter()
            .partition(|check| is_among(check, &awaited));
        if with_them.is_empty() {
            return awaited;
        }
        awaited.extend(with_them.into_iter().flat_map(vantages).cloned());
        ready = alone;
    }
}

/// Whether any look of a check is from one of the vantages.
pub(super) fn is_among(check: &Check, vantages_of: &BTreeSet<VantageKey>) -> bool {
    vantages(check).any(|from| vantages_of.contains(from))
}

/// Where the looks of a check are from.
fn vantages(check: &Check) -> impl Iterator<Item = &VantageKey> {
    check.looks.iter().filter_map(|look| look.from.as_ref())
}
