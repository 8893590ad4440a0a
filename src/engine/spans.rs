//! What takes time in a run, put on record with what it had to wait for, so that the critical path
//! can be told afterwards.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;
use winconform_core::plan::Check;
use winconform_core::record::{Activity, After, Event, Span};
use winconform_core::way::{FixtureKey, FixtureName, VantageKey};

use super::command::LookIx;
use super::journal::Journal;

/// The spans of a run. It is told of what begins and ends, and decides nothing.
pub(super) struct Spans {
    journal: Journal,
    began: Instant,
    next: u32,
    /// The pause between two rounds of one check.
    look_again: Duration,
    /// What everything that comes waits for: the plan, then the Lease.
    root: Option<u32>,
    fixtures: BTreeMap<FixtureKey, u32>,
    raising: BTreeMap<FixtureKey, Begun>,
    asking: BTreeMap<LookIx, Begun>,
    sweeping: BTreeMap<VantageKey, Begun>,
    checks: BTreeMap<usize, Rounds>,
    /// Spans of repetitions would have a long run's record grow without bounds.
    over: bool,
}

/// Something under way.
pub(super) struct Begun {
    id: u32,
    what: Activity,
    at: Instant,
    after: Vec<After>,
}

/// The looks of a check's round under way, and of the one before, by the spans they are in.
#[derive(Default)]
struct Rounds {
    before: Vec<u32>,
    now: BTreeMap<usize, u32>,
}

impl Spans {
    pub(super) fn new(journal: Journal, began: Instant, look_again: Duration) -> Self {
        Self {
            journal,
            began,
            next: 0,
            look_again,
            root: None,
            fixtures: BTreeMap::new(),
            raising: BTreeMap::new(),
            asking: BTreeMap::new(),
            sweeping: BTreeMap::new(),
            checks: BTreeMap::new(),
            over: false,
        }
    }

    /// Something begins that everything later waits for.
    pub(super) fn stage(&mut self, what: Activity) -> Begun {
        self.begin(what, Instant::now(), &[])
    }

    /// It is over.
    pub(super) fn passed(&mut self, stage: Begun) {
        self.root = Some(stage.id);
        self.end(stage);
    }

    pub(super) fn applies(&mut self, key: &FixtureKey) {
        let namespaces = FixtureName::Namespaces.at(None);
        // Nothing stands without them
        let before = self.fixtures.get(&namespaces).copied();
        let before: Vec<_> = before.into_iter().map(at_once).collect();
        let begun = self.begin(Activity::Fixture(key.clone()), Instant::now(), &before);
        self.raising.insert(key.clone(), begun);
    }

    pub(super) fn stands(&mut self, key: &FixtureKey) {
        if let Some(begun) = self.raising.remove(key) {
            self.fixtures.insert(key.clone(), begun.id);
            self.end(begun);
        }
    }

    pub(super) fn asks(&mut self, look: LookIx, check: &Check) {
        let after = self.due(look, check);
        let begun = self.begin(Activity::Ask, Instant::now(), &after);
        self.in_span(look, begun.id);
        self.asking.insert(look, begun);
    }

    pub(super) fn asked(&mut self, look: LookIx) {
        if let Some(begun) = self.asking.remove(&look) {
            self.end(begun);
        }
    }

    pub(super) fn sweeps<'c>(
        &mut self,
        from: &VantageKey,
        looks: impl Iterator<Item = (LookIx, &'c Check)>,
    ) {
        let mut after: BTreeMap<u32, After> = BTreeMap::new();
        let mut swept = Vec::new();
        for (look, check) in looks {
            for one in self.due(look, check) {
                // The pause before the second round counts for those that are in it
                let known = after.entry(one.id).or_insert(one);
                known.pause_ms = known.pause_ms.max(one.pause_ms);
            }
            swept.push(look);
        }
        let after: Vec<_> = after.into_values().collect();
        let begun = self.begin(Activity::Sweep(from.clone()), Instant::now(), &after);
        for look in swept {
            self.in_span(look, begun.id);
        }
        self.sweeping.insert(from.clone(), begun);
    }

    pub(super) fn swept(&mut self, from: &VantageKey) {
        if let Some(begun) = self.sweeping.remove(from) {
            self.end(begun);
        }
    }

    /// Everything is looked at again: no more spans.
    pub(super) fn repeats(&mut self) {
        self.over = true;
    }

    /// What has to be over before a look: what its whole check needs, and the round before.
    fn due(&mut self, look: LookIx, check: &Check) -> Vec<After> {
        let rounds = self.checks.entry(look.check).or_default();
        if rounds.now.contains_key(&look.look) {
            rounds.before = std::mem::take(&mut rounds.now).into_values().collect();
        }
        let pause_ms = millis(self.look_again);
        let before = rounds.before.iter().map(|id| After { id: *id, pause_ms });
        let needs = check.looks.iter().flat_map(|look| {
            let needs = look.needs.iter().map(|(key, _)| key.clone());
            needs.chain(look.from.as_ref().and_then(VantageKey::prober))
        });
        let needs = needs.filter_map(|key| self.fixtures.get(&key).copied());
        let mut after: Vec<_> = before.chain(needs.map(at_once)).collect();
        after.sort_unstable_by_key(|after| after.id);
        after.dedup_by_key(|after| after.id);
        after
    }

    fn in_span(&mut self, look: LookIx, id: u32) {
        let rounds = self.checks.entry(look.check).or_default();
        rounds.now.insert(look.look, id);
    }

    fn begin(&mut self, what: Activity, at: Instant, after: &[After]) -> Begun {
        let id = self.next;
        self.next = self.next.saturating_add(1);
        let root = self.root.filter(|_| after.is_empty()).map(at_once);
        let after = after.iter().copied().chain(root).collect();
        Begun {
            id,
            what,
            at,
            after,
        }
    }

    fn end(&self, begun: Begun) {
        if self.over {
            return;
        }
        let Begun {
            id,
            what,
            at,
            after,
        } = begun;
        let span = Span {
            id,
            what,
            began_ms: millis(at.duration_since(self.began)),
            took_ms: millis(at.elapsed()),
            after,
        };
        // That the record's file failed is asked of the journal by the run
        let _ = self.journal.write(Event::Span(span));
    }
}

fn at_once(id: u32) -> After {
    After { id, pause_ms: 0 }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
