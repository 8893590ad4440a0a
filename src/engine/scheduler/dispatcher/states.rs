//! The fixtures of a plan with their states, and which checks need each.
//!
//! Every step asks for the states of what each waiting check needs. A fixture has a number here, because its
//! key is dear to compare.

use winconform_core::fixture::{FixtureKey, FixtureName, Need};
use winconform_core::method::{ErrorKind, ObservationError};
use winconform_core::plan::{Check, PlannedAssertion};
use winconform_core::verdict::Role;

#[derive(Clone, Debug)]
pub(super) enum FixtureState {
    Unapplied,
    Applied,
    Ready,
    Failed(ObservationError),
    /// Its pods are being removed.
    Leaving,
    /// Nothing observes it: its pods are removed, or it was not applied at all.
    Over,
}

/// Whether the fixtures that a check needs are ready.
pub(super) enum Readiness {
    NotYet,
    Ready,
    Never(FixtureKey, ObservationError),
}

/// A fixture of a plan, by its place among its fixtures.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct FixtureIx(usize);

#[derive(Debug)]
pub(super) struct Fixtures {
    /// In ascending order.
    keys: Vec<FixtureKey>,
    states: Vec<FixtureState>,
    /// The checks that need each, by their places in the plan.
    needed_by: Vec<Vec<usize>>,
    /// What each check needs, each once, in the order of its assertions after the namespaces.
    needs: Vec<Vec<(FixtureIx, Need)>>,
}

impl Fixtures {
    /// The fixtures of `checks`, none of them applied. Every fixture needs the namespaces: without these
    /// nothing else is applied.
    pub(super) fn new(checks: &[Check]) -> Self {
        let depend = |check: &Check| {
            let namespaces = (FixtureName::NAMESPACES.in_pool(None), Need::Ready);
            let mut all: Vec<_> = check.depends_on().collect();
            if !all.is_empty() {
                all.insert(0, namespaces);
            }
            all
        };
        let depend: Vec<_> = checks.iter().map(depend).collect();
        let mut keys: Vec<_> = depend
            .iter()
            .flatten()
            .map(|(key, _)| key.clone())
            .collect();
        keys.sort();
        keys.dedup();
        let mut needed_by = vec![Vec::new(); keys.len()];
        let mut needs = Vec::new();
        for (check, depend) in depend.into_iter().enumerate() {
            let mut of_check = Vec::new();
            for (key, need) in depend {
                let Ok(at) = keys.binary_search(&key) else {
                    continue;
                };
                if !of_check.contains(&(FixtureIx(at), need)) {
                    of_check.push((FixtureIx(at), need));
                }
                if needed_by[at].last() != Some(&check) {
                    needed_by[at].push(check);
                }
            }
            needs.push(of_check);
        }
        Self {
            states: vec![FixtureState::Unapplied; keys.len()],
            keys,
            needed_by,
            needs,
        }
    }

    pub(super) fn ix(&self, key: &FixtureKey) -> Option<FixtureIx> {
        self.keys.binary_search(key).ok().map(FixtureIx)
    }

    pub(super) fn key(&self, ix: FixtureIx) -> &FixtureKey {
        &self.keys[ix.0]
    }

    pub(super) fn state(&self, ix: FixtureIx) -> &FixtureState {
        &self.states[ix.0]
    }

    pub(super) fn set(&mut self, ix: FixtureIx, state: FixtureState) {
        self.states[ix.0] = state;
    }

    /// The checks that need a fixture, by their places in the plan.
    pub(super) fn needed_by(&self, ix: FixtureIx) -> &[usize] {
        &self.needed_by[ix.0]
    }

    /// What the check at a place in the plan needs.
    pub(super) fn needs(&self, check: usize) -> impl Iterator<Item = FixtureIx> {
        self.needs[check].iter().map(|(ix, _)| *ix)
    }

    /// Those in a state, in the order of their keys.
    pub(super) fn which(&self, is_so: impl Fn(&FixtureState) -> bool) -> Vec<FixtureIx> {
        let states = self.states.iter().enumerate();
        let so = states.filter(|(_, state)| is_so(state));
        so.map(|(at, _)| FixtureIx(at)).collect()
    }

    /// Whether a fixture that the check at a place in the plan needs is not applied yet.
    pub(super) fn waits_for_room(&self, check: usize) -> bool {
        let mut needed = self.needs[check].iter();
        needed.any(|(ix, _)| matches!(self.state(*ix), FixtureState::Unapplied))
    }

    /// Why a control of the other operating system cannot be observed: a fixture that it depends on failed.
    pub(super) fn lost(&self, planned: &PlannedAssertion) -> Option<ObservationError> {
        if planned.role != Role::OtherOs {
            return None;
        }
        planned
            .depends_on()
            .find_map(|(key, _)| match self.state(self.ix(&key)?) {
                FixtureState::Failed(error) => Some(error.clone()),
                _ => None,
            })
    }

    /// Whether what the check at a place in the plan needs is ready.
    pub(super) fn readiness(&self, check: usize) -> Readiness {
        let mut readiness = Readiness::Ready;
        for (ix, need) in &self.needs[check] {
            match (self.state(*ix), need) {
                (FixtureState::Ready, _) | (FixtureState::Failed(_), Need::Compared) => {}
                (FixtureState::Failed(error), Need::Settled)
                    if error.kind == ErrorKind::FixtureFailed => {}
                (FixtureState::Failed(error), Need::Ready | Need::Played | Need::Settled) => {
                    return Readiness::Never(self.key(*ix).clone(), error.clone());
                }
                // Nothing needs what is leaving or over
                (
                    FixtureState::Unapplied
                    | FixtureState::Applied
                    | FixtureState::Leaving
                    | FixtureState::Over,
                    _,
                ) => readiness = Readiness::NotYet,
            }
        }
        readiness
    }
}
