//! Vantage points that wait for more to observe: one session serves many assertions, so that neither the first
//! fixture that is ready nor the first check that is to hold makes a session of its own, and no node asks for
//! what one place of its kind has not seen yet.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use winconform_core::claims::ClaimId;
use winconform_core::facts::{IpFamily, PoolName};
use winconform_core::method::{SourceKind, VantageKey};
use winconform_core::plan::Check;

use super::progress::{CheckState, Stage};

/// Since when each vantage point could observe something, and each check, by its place in the plan.
#[derive(Debug, Default)]
pub(crate) struct Batching {
    since: BTreeMap<VantageKey, Duration>,
    ready: BTreeMap<usize, Duration>,
}

impl Batching {
    /// When a check whose fixtures all stand may begin, if not now: none of its vantage points is among
    /// those `awaited` by other checks, or it has waited for `patience`.
    pub(crate) fn until(
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

/// What a check observes, how, and from what kind of place; those of each node have that in common with the
/// one of the pool's prober.
type Topic<'a> = (
    &'a ClaimId,
    Option<&'a PoolName>,
    Option<SourceKind>,
    Option<IpFamily>,
);

/// How long a check of each node waits for one place, once it could observe: what has not come right by then is
/// as likely never to.
const LEADS: Duration = Duration::from_secs(10);

/// What has not been seen as expected.
#[derive(Default)]
pub(crate) struct Unseen<'a> {
    /// What waits for fixtures.
    pub(crate) late: Vec<&'a Check>,
    /// What could begin, by its place in the plan.
    pub(crate) ready: BTreeMap<usize, &'a Check>,
    pub(crate) begun: Vec<&'a Check>,
}

impl Unseen<'_> {
    /// From where it will be observed later, and when that ends for the first of each node's checks. What
    /// one place does not see yet is not asked from each node: it has still to come right, or is seen by
    /// nobody.
    pub(crate) fn awaited(
        self,
        now: Duration,
        gathering: &mut Batching,
    ) -> (BTreeSet<VantageKey>, Option<Duration>) {
        let all = self.begun.iter().chain(self.ready.values());
        let leading: BTreeSet<_> = all
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

/// From where more is to be observed once more, as soon as assertions that are under way have ended as
/// well as those so far.
pub(crate) fn unheld(checks: &[CheckState], now: Duration) -> BTreeSet<VantageKey> {
    let (mut late, mut ready) = (Vec::new(), Vec::new());
    for state in checks.iter().filter(|state| state.is_on_course()) {
        match state.stage {
            Stage::Due(at) if at <= now => ready.push(&state.check),
            Stage::Due(_) | Stage::Round(_) => late.push(&state.check),
            Stage::Waiting | Stage::Confirming(_) | Stage::Done => {}
        }
    }
    awaited(
        late.into_iter().flat_map(vantages).cloned().collect(),
        ready,
    )
}

/// The vantage points that are still awaited: those that are anyway, and those of whoever of the `ready` waits with
/// them, since it observes from more than one place.
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
