//! Vantage points that wait for more to observe, so that one session serves many assertions. Neither the
//! first ready fixture nor the first check that is due again gets a separate session, and the checks of each
//! node wait until the same check from a single vantage point of their kind holds.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use winconform_core::claims::ClaimId;
use winconform_core::facts::{IpFamily, PoolName};
use winconform_core::method::{SourceKind, VantageKey};
use winconform_core::plan::Check;

use super::progress::{CheckState, Stage};

/// Since when each vantage point, and each check by its place in the plan, could observe something.
#[derive(Debug, Default)]
pub(crate) struct Batching {
    since: BTreeMap<VantageKey, Duration>,
    ready: BTreeMap<usize, Duration>,
}

impl Batching {
    /// When a check whose fixtures are all ready may begin, if not now. It may begin now if none of its
    /// vantage points is `awaited` by other checks, or if it has waited for `patience`.
    pub(crate) fn until(
        &mut self,
        now: Duration,
        check: &Check,
        awaited: &BTreeSet<VantageKey>,
        patience: Duration,
    ) -> Option<Duration> {
        let points: Vec<_> = vantages(check).collect();
        for from in &points {
            self.since.entry((*from).clone()).or_insert(now);
        }
        let still = points.into_iter().filter(|from| awaited.contains(*from));
        let ends = still.map(|from| self.since[from] + patience);
        ends.max().filter(|end| *end > now)
    }

    /// A vantage point has a session: what it could observe later waits anew.
    pub(crate) fn begins(&mut self, from: &VantageKey) {
        self.since.remove(from);
    }
}

/// A check's claim, pool, source and family: the checks of each node share these with the check from the
/// pool's prober.
type Topic<'a> = (
    &'a ClaimId,
    Option<&'a PoolName>,
    Option<SourceKind>,
    Option<IpFamily>,
);

/// How long a check of each node, once it could begin, waits for the check from a single vantage point: what
/// has not converged by then may never do so.
const LEADS: Duration = Duration::from_secs(10);

/// Checks whose expectation has not held yet.
#[derive(Default)]
pub(crate) struct Unseen<'a> {
    /// Checks that wait for fixtures.
    pub(crate) late: Vec<&'a Check>,
    /// Checks that could begin, by their place in the plan.
    pub(crate) ready: BTreeMap<usize, &'a Check>,
    pub(crate) begun: Vec<&'a Check>,
}

impl Unseen<'_> {
    /// The vantage points that will observe later, and when the first of each node's checks stops waiting. As
    /// long as a check does not hold from a single vantage point, each node need not observe the same: it has
    /// not converged yet, or fails everywhere.
    pub(crate) fn awaited(
        self,
        now: Duration,
        gathering: &mut Batching,
    ) -> (BTreeSet<VantageKey>, Option<Duration>) {
        if self.ready.is_empty() {
            return (BTreeSet::new(), None);
        }
        let open = self.begun.iter().chain(self.ready.values());
        let leading: BTreeSet<_> = open
            .filter(|check| check.point.node.is_none())
            .map(|check| topic(check))
            .collect();
        let (mut led, mut lapses, mut ready) = (BTreeSet::new(), None, Vec::new());
        for (index, check) in self.ready {
            let lapse = *gathering.ready.entry(index).or_insert(now) + LEADS;
            let waits = check.point.node.is_some() && now < lapse;
            if waits && leading.contains(&topic(check)) {
                led.extend(vantages(check).filter(|from| from.node.is_some()).cloned());
                lapses = lapses.into_iter().chain([lapse]).min();
            } else {
                ready.push(check);
            }
        }
        led.extend(self.late.into_iter().flat_map(vantages).cloned());
        (awaited(led, ready), lapses)
    }
}

fn topic(check: &Check) -> Topic<'_> {
    let point = &check.point;
    (
        &check.claim,
        point.pool.as_ref(),
        point.source,
        point.family,
    )
}

/// The vantage points that will observe more in further rounds, if the assertions under way hold as well as
/// those before.
pub(crate) fn unheld(checks: &[CheckState], now: Duration) -> BTreeSet<VantageKey> {
    let is_due = |state: &CheckState| matches!(state.stage, Stage::Due(at) if at <= now);
    if !checks.iter().any(is_due) {
        return BTreeSet::new();
    }
    let (mut late, mut ready) = (Vec::new(), Vec::new());
    for state in checks.iter().filter(|state| state.is_on_course()) {
        match state.stage {
            _ if is_due(state) => ready.push(&state.check),
            Stage::Due(_) | Stage::Round(_) => late.push(&state.check),
            Stage::Waiting | Stage::Confirming(_) | Stage::Done => {}
        }
    }
    awaited(
        late.into_iter().flat_map(vantages).cloned().collect(),
        ready,
    )
}

/// The vantage points that are still awaited: the given ones, and those of each `ready` check that observes
/// from one of these among others, and so waits with it.
fn awaited(mut awaited: BTreeSet<VantageKey>, mut ready: Vec<&Check>) -> BTreeSet<VantageKey> {
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

pub(crate) fn is_among(check: &Check, vantages_of: &BTreeSet<VantageKey>) -> bool {
    vantages(check).any(|from| vantages_of.contains(from))
}

fn vantages(check: &Check) -> impl Iterator<Item = &VantageKey> {
    check
        .assertions
        .iter()
        .filter_map(|assertion| assertion.from.as_ref())
}
