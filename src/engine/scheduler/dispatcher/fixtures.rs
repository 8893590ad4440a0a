//! Applies fixtures where there is room, again where somebody else changed them, and removes their pods early.

use winconform_core::config::Image;
use winconform_core::fixture::{FixtureKey, FixtureName, Need};
use winconform_core::method::{ErrorKind, ObservationError, SourceKind};

use super::super::command::Command;
use super::super::progress::{CheckState, Stage};
use super::{Dispatcher, FixtureState, Readiness};

impl Dispatcher {
    /// Has the fixtures applied again that failed because somebody else changed them, and the namespaces with
    /// them, which may be what was deleted.
    pub(super) fn reapply_changed(&mut self) {
        self.again.clear();
        let changed = self.fixtures.iter().filter_map(|(key, state)| match state {
            FixtureState::Failed(error) if error.kind == ErrorKind::FixtureChanged => {
                Some(key.clone())
            }
            FixtureState::Failed(_)
            | FixtureState::Unapplied
            | FixtureState::Applied
            | FixtureState::Ready
            | FixtureState::Leaving
            | FixtureState::Over => None,
        });
        let changed: Vec<_> = changed.collect();
        if !changed.is_empty() {
            let namespaces = FixtureName::NAMESPACES.in_pool(None);
            self.fixtures.insert(namespaces, FixtureState::Unapplied);
        }
        for key in changed {
            self.reapply(key);
        }
    }

    /// Has a fixture applied again, and gives its checks their time to converge again.
    pub(super) fn reapply(&mut self, key: FixtureKey) {
        for state in self.checks.iter_mut().filter(|state| state.needs(&key)) {
            state.begin_anew();
        }
        self.room.removed(&key);
        self.fixtures.insert(key, FixtureState::Unapplied);
    }

    /// Has each fixture applied for which there is room, in their order. Where nothing else could make room,
    /// the first is applied all the same.
    pub(super) fn apply_fixtures(&mut self) {
        let namespaces = FixtureName::NAMESPACES.in_pool(None);
        let may_apply = matches!(self.fixtures.get(&namespaces), Some(FixtureState::Ready));
        let unapplied = self.fixtures.iter().filter(|(key, state)| {
            matches!(state, FixtureState::Unapplied) && (may_apply || **key == namespaces)
        });
        let unapplied: Vec<_> = unapplied.map(|(key, _)| key.clone()).collect();
        let is_last = self.repeat.ends_with(self.repetition);
        let mut first = None;
        for key in unapplied {
            if is_last && !self.is_observed(&key) {
                self.fixtures.insert(key, FixtureState::Over);
            } else if self.room.is_enough_for(&key) {
                self.apply(key);
            } else {
                first = first.or(Some(key));
            }
        }
        if let Some(first) = first.filter(|_| self.is_idle()) {
            self.apply(first);
        }
    }

    fn apply(&mut self, key: FixtureKey) {
        self.room.applies(&key);
        self.fixtures.insert(key.clone(), FixtureState::Applied);
        self.commands.push(Command::Apply(key));
    }

    /// Whether a check that is not done needs a fixture; all need the namespaces.
    fn is_observed(&self, key: &FixtureKey) -> bool {
        let mut open = self.checks.iter().filter(|state| !state.stage.is_done());
        open.any(|state| state.depends_on.iter().any(|(needed, _)| needed == key))
    }

    /// Whether nothing is under way that could make room.
    fn is_idle(&self) -> bool {
        let moves =
            |state: &FixtureState| matches!(state, FixtureState::Applied | FixtureState::Leaving);
        let waits = |state: &CheckState| match state.stage {
            Stage::Done => true,
            Stage::Due(at) if at > self.now => false,
            Stage::Waiting | Stage::Due(_) => matches!(self.readiness(state), Readiness::NotYet),
            Stage::Round(_) | Stage::Confirming(_) => false,
        };
        !self.fixtures.values().any(moves) && self.checks.iter().all(waits)
    }

    /// Has the pods removed that nothing observes any more. Those of a check that is not as expected stay for
    /// the diagnosis.
    pub(super) fn remove_fixtures(&mut self) {
        let mut open = self
            .checks
            .iter()
            .filter(|state| !state.stage.is_done())
            .peekable();
        if open.peek().is_none() {
            // Tear-down follows
            return;
        }
        let asks_outside = open.any(is_outside);
        let (mut over, mut stay) = (Vec::new(), Vec::new());
        for (key, state) in &self.fixtures {
            // The diagnosis observes from probers
            let is_prober = matches!(
                key.name.image(),
                Some(Image::WindowsProber | Image::HostProcess)
            );
            if !matches!(state, FixtureState::Ready) || !self.room.has(key) || is_prober {
                continue;
            }
            let mut observed = self.checks.iter().filter(|state| state.needs(key));
            // What answered outside shows that the way to the cluster is whole
            let shows_the_way = asks_outside && observed.clone().any(is_outside);
            let is_as_expected = observed.clone().all(is_over_as_expected);
            if self.removes() && is_as_expected && !shows_the_way {
                over.push(key.clone());
            } else if observed.all(|state| state.stage.is_done()) {
                stay.push(key.clone());
            }
        }
        for key in stay {
            self.room.started(&key);
        }
        for key in over {
            self.fixtures.insert(key.clone(), FixtureState::Leaving);
            self.commands.push(Command::Remove(key));
        }
    }

    /// Whether pods are removed in this repetition, after which there is no other.
    fn removes(&self) -> bool {
        self.removes && self.repeat.ends_with(self.repetition)
    }

    /// Takes note that a fixture failed; one that somebody else changed is applied again, once.
    pub(super) fn fail(&mut self, key: FixtureKey, error: ObservationError) {
        let changed = error.kind == ErrorKind::FixtureChanged;
        self.room.started(&key);
        if changed && self.again.insert(key.clone()) {
            self.reapply(key);
        } else {
            self.fixtures.insert(key, FixtureState::Failed(error));
        }
    }

    /// Whether a fixture that a check needs is not applied yet.
    pub(super) fn waits_for_room(&self, state: &CheckState) -> bool {
        let mut states = state
            .depends_on
            .iter()
            .map(|(key, _)| self.fixtures.get(key));
        states.any(|state| matches!(state, Some(FixtureState::Unapplied)))
    }

    pub(super) fn readiness(&self, state: &CheckState) -> Readiness {
        let mut readiness = Readiness::Ready;
        for (key, need) in &state.depends_on {
            match (self.fixtures.get(key), need) {
                (Some(FixtureState::Ready), _) => {}
                (Some(FixtureState::Failed(error)), Need::Settled)
                    if error.kind == ErrorKind::FixtureFailed => {}
                (Some(FixtureState::Failed(error)), Need::Ready | Need::Settled) => {
                    return Readiness::Never(key.clone(), error.clone());
                }
                // Nothing needs what is leaving or over
                (
                    Some(
                        FixtureState::Unapplied
                        | FixtureState::Applied
                        | FixtureState::Leaving
                        | FixtureState::Over,
                    )
                    | None,
                    _,
                ) => {
                    readiness = Readiness::NotYet;
                }
            }
        }
        readiness
    }
}

/// Whether a check is done, with a verdict of a healthy cluster.
fn is_over_as_expected(state: &CheckState) -> bool {
    let last = state.repetitions.last();
    state.stage.is_done() && last.is_some_and(|last| last.verdict.is_expected())
}

/// Whether an assertion of a check observes from outside the cluster.
fn is_outside(state: &CheckState) -> bool {
    let from = state
        .check
        .assertions
        .iter()
        .filter_map(|it| it.from.as_ref());
    from.map(|from| from.kind)
        .any(|from| from == SourceKind::Outside)
}
