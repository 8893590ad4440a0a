//! Vantages that wait for more to look at: one session serves many looks, so that neither the first
//! fixture that stands nor the first check that is to hold makes a session of its own, and no node asks for
//! what one place of its kind has not seen yet.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use winconform_core::claims::ClaimId;
use winconform_core::facts::PoolName;
use winconform_core::plan::Check;
use winconform_core::way::{SourceKind, VantageKey};

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

/// What a check looks at and from what kind of place; those of each node have that in common with the one
/// of the pool's prober.
type Topic<'a> = (&'a ClaimId, Option<&'a PoolName>, Option<SourceKind>);

/// How long one place leads: what has not come right by then is as likely never to.
const LEADS: Duration = Duration::from_secs(10);

/// What has not been seen as expected.
#[derive(Default)]
pub(super) struct Unseen<'a> {
    /// What waits for fixtures.
    pub(super) late: Vec<&'a Check>,
    /// What could begin.
    pub(super) ready: Vec<&'a Check>,
    /// What one place sees before each node is asked.
    leading: BTreeSet<Topic<'a>>,
}

impl<'a> Unseen<'a> {
    /// Takes note of a check that has begun, and when.
    pub(super) fn lead(&mut self, check: &'a Check, began: Option<Duration>, now: Duration) {
        let soon = began.is_none_or(|began| now < began + LEADS);
        if check.point.node.is_none() && soon {
            self.leading.insert(topic(check));
        }
    }

    /// From where it will be looked at later. What one place does not see yet is not asked from each node: it
    /// has still to come right, or is seen by nobody.
    pub(super) fn from(mut self) -> BTreeSet<VantageKey> {
        for check in self.ready.clone() {
            self.lead(check, None, Duration::ZERO);
        }
        let leading = &self.leading;
        let (led, ready) = self
            .ready
            .into_iter()
            .partition(|check| check.point.node.is_some() && leading.contains(&topic(check)));
        self.late.extend::<Vec<_>>(led);
        awaited(self.late, ready)
    }
}

fn topic(check: &Check) -> Topic<'_> {
    (&check.claim, check.point.pool.as_ref(), check.point.source)
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
fn awaited<'a>(late: Vec<&'a Check>, mut ready: Vec<&'a Check>) -> BTreeSet<VantageKey> {
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
