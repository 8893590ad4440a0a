//! Vantages that wait for more to look at: one session serves many looks, so that the first
//! fixture that stands does not make a session of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use winconform_core::plan::Check;
use winconform_core::way::VantageKey;

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

/// Where the looks of a check are from.
pub(super) fn vantages(check: &Check) -> impl Iterator<Item = &VantageKey> {
    check.looks.iter().filter_map(|look| look.from.as_ref())
}
