//! Applies fixtures where there is room, again where somebody else changed them, and removes their pods early.

use winconform_core::config::Image;
use winconform_core::fixture::{FixtureKey, FixtureName};
use winconform_core::method::{ErrorKind, ObservationError, SourceKind};
use winconform_core::plan::PlannedAssertion;
use winconform_core::verdict::Verdict;

use super::super::command::Command;
use super::super::progress::{CheckState, Stage};
use super::super::repeat::Leave;
use super::Dispatcher;
use super::states::{FixtureIx, FixtureState, Readiness};

/// How many fixtures are diagnosed before their pods go, half of them without a failed check: the end needs some
/// of the limit, too.
const EARLY: usize = 8;

impl Dispatcher {
    /// Has the fixtures applied again that failed because somebody else changed them, and the namespaces with
    /// them, which may be what was deleted.
    pub(super) fn reapply_changed(&mut self) {
        self.again.clear();
        let changed = self.fixtures.which(|state| {
            matches!(state, FixtureState::Failed(error) if error.kind == ErrorKind::FixtureChanged)
        });
        if !changed.is_empty()
            && let Some(namespaces) = self.namespaces()
        {
            self.fixtures.set(namespaces, FixtureState::Unapplied);
        }
        for fixture in changed {
            self.reapply(fixture);
        }
    }

    fn namespaces(&self) -> Option<FixtureIx> {
        self.fixtures.ix(&FixtureName::NAMESPACES.in_pool(None))
    }

    /// Has a fixture applied again, and gives its checks their time to converge again.
    pub(super) fn reapply(&mut self, fixture: FixtureIx) {
        if matches!(self.fixtures.state(fixture), FixtureState::Leaving) {
            // It is applied again once it has left
            return;
        }
        for check in self.fixtures.needed_by(fixture) {
            self.checks[*check].begin_anew();
        }
        self.room.removed(self.fixtures.key(fixture));
        self.fixtures.set(fixture, FixtureState::Unapplied);
    }

    /// Has each fixture applied for which there is room, in their order; room is kept for the first that has none, but
    /// not from those that pods wait for. Where nothing else could make room, that one is applied all the same.
    pub(super) fn apply_fixtures(&mut self) {
        let namespaces = self.namespaces();
        let may_apply =
            namespaces.is_some_and(|it| matches!(self.fixtures.state(it), FixtureState::Ready));
        let mut unapplied = self
            .fixtures
            .which(|state| matches!(state, FixtureState::Unapplied));
        // What disrupts is made when all other checks are done
        unapplied.retain(|fixture| {
            let disrupts = self.fixtures.key(*fixture).name.disrupts();
            (may_apply || Some(*fixture) == namespaces) && (!disrupts || self.all_else_is_done())
        });
        let is_last = self.repeat.ends_with(self.repetition);
        let leave = self.removes();
        let mut first: Option<FixtureIx> = None;
        for fixture in unapplied {
            let kept_for = first.filter(|_| !self.is_awaited(fixture));
            let kept_for = kept_for.map(|first| self.fixtures.key(first));
            let key = self.fixtures.key(fixture);
            if (is_last || leave) && !self.is_observed(fixture) {
                self.fixtures.set(fixture, FixtureState::Over);
            } else if self.room.is_enough_for(key, kept_for, leave) {
                self.apply(fixture);
            } else {
                first = first.or(Some(fixture));
            }
        }
        if let Some(first) = first.filter(|_| self.is_idle()) {
            self.apply(first);
        }
    }

    /// Whether all checks are done but those for which a node boots.
    fn all_else_is_done(&self) -> bool {
        let mut open = self.checks.iter().filter(|state| !state.stage.is_done());
        open.all(|state| {
            state
                .check
                .assertions
                .iter()
                .any(PlannedAssertion::disrupts)
        })
    }

    fn apply(&mut self, fixture: FixtureIx) {
        let key = self.fixtures.key(fixture).clone();
        self.room.applies(&key);
        self.fixtures.set(fixture, FixtureState::Applied);
        self.commands.push(Command::Apply(key));
    }

    /// Whether a check that is not done needs a fixture; all need the namespaces.
    fn is_observed(&self, fixture: FixtureIx) -> bool {
        self.observers(fixture).any(|state| !state.stage.is_done())
    }

    /// Whether pods that are there wait for a fixture, those of probers apart: an open check needs both.
    fn is_awaited(&self, fixture: FixtureIx) -> bool {
        let mut checks = self.fixtures.needed_by(fixture).iter();
        checks.any(|check| {
            let mut needed = self.fixtures.needs(*check);
            !self.checks[*check].stage.is_done()
                && needed.any(|other| {
                    let key = self.fixtures.key(other);
                    self.room.has(key) && !observes(key)
                })
        })
    }

    /// The checks that need a fixture.
    fn observers(&self, fixture: FixtureIx) -> impl Iterator<Item = &CheckState> + Clone {
        let checks = self.fixtures.needed_by(fixture).iter();
        checks.map(|check| &self.checks[*check])
    }

    /// Whether nothing is under way that could make room.
    fn is_idle(&self) -> bool {
        let moving = self
            .fixtures
            .which(|state| matches!(state, FixtureState::Applied | FixtureState::Leaving));
        let waits = |(check, state): (usize, &CheckState)| match state.stage {
            Stage::Done => true,
            Stage::Due(at) if at > self.now => false,
            Stage::Waiting | Stage::Due(_) => {
                matches!(self.fixtures.readiness(check), Readiness::NotYet)
            }
            Stage::Round(_) | Stage::Confirming(_) => false,
        };
        moving.is_empty() && self.checks.iter().enumerate().all(waits)
    }

    /// Has the pods removed that nothing observes any more; those that failed, or that a failed check observed, are
    /// diagnosed first.
    pub(super) fn remove_fixtures(&mut self) {
        let is_open = |state: &&CheckState| !state.stage.is_done();
        let mut open = self.checks.iter().filter(is_open).peekable();
        if open.peek().is_none() {
            // Tear-down follows
            return;
        }
        let asks_outside = open.any(is_outside);
        let mut over = Vec::new();
        for fixture in self
            .fixtures
            .which(|state| matches!(state, FixtureState::Ready | FixtureState::Failed(_)))
        {
            let key = self.fixtures.key(fixture);
            let mut observers = self.observers(fixture);
            if self.room.has(key) && observers.all(|state| state.stage.is_done()) {
                over.push(fixture);
            }
        }
        for fixture in over {
            let key = self.fixtures.key(fixture).clone();
            let is_ready = matches!(self.fixtures.state(fixture), FixtureState::Ready);
            // The diagnosis observes from probers
            let observes = is_ready && observes(&key);
            // What answered outside shows that the way to the cluster is whole
            let shows_the_way = asks_outside && self.observers(fixture).any(is_outside);
            if !self.removes() || observes || shows_the_way && is_ready {
                self.room.started(&key);
                continue;
            }
            let failed = self.observers(fixture).filter(|state| has_failed(state));
            let failed: Vec<_> = failed.map(|state| state.check.id.clone()).collect();
            let most = match (is_ready, failed.is_empty()) {
                (true, true) => 0,
                (false, true) => EARLY / 2,
                (_, false) => EARLY,
            };
            let diagnose = (self.diagnosed < most).then_some(failed);
            self.diagnosed += usize::from(diagnose.is_some());
            self.fixtures.set(fixture, FixtureState::Leaving);
            self.commands.push(Command::Remove { key, diagnose });
        }
    }

    /// Whether pods are removed in this repetition.
    fn removes(&self) -> bool {
        match self.leave {
            Leave::Never => false,
            Leave::InTheLastRepetition => self.repeat.ends_with(self.repetition),
            Leave::InEach => true,
        }
    }

    /// Takes note that the pods of a fixture are removed. If a repetition has begun meanwhile that needs it, it is applied
    /// again.
    pub(super) fn has_left(&mut self, key: &FixtureKey) {
        self.becomes(key, FixtureState::Over);
        if let Some(fixture) = self.fixtures.ix(key).filter(|it| self.is_observed(*it)) {
            self.reapply(fixture);
        }
    }

    /// Has the fixtures applied again that are removed, and that checks of this repetition need.
    pub(super) fn reapply_removed(&mut self) {
        let over = self
            .fixtures
            .which(|state| matches!(state, FixtureState::Over));
        for fixture in over {
            if self.is_observed(fixture) {
                self.reapply(fixture);
            }
        }
    }

    /// Takes note that a fixture failed; one that somebody else changed is applied again, once, unless its node would
    /// boot again.
    pub(super) fn fail(&mut self, key: FixtureKey, error: ObservationError) {
        let changed = error.kind == ErrorKind::FixtureChanged && !key.name.disrupts();
        self.room.started(&key);
        let Some(fixture) = self.fixtures.ix(&key) else {
            return;
        };
        if changed && self.again.insert(key) {
            self.reapply(fixture);
        } else {
            self.fixtures.set(fixture, FixtureState::Failed(error));
        }
    }

    /// Gives the places of pods that have started to others, unless an autoscaler makes more.
    pub(super) fn have_started(&mut self, key: &FixtureKey) {
        if !key.name.is_autoscaled() {
            self.room.started(key);
        }
    }

    /// Takes note of what became of a fixture.
    pub(super) fn becomes(&mut self, key: &FixtureKey, state: FixtureState) {
        if let Some(fixture) = self.fixtures.ix(key) {
            self.fixtures.set(fixture, state);
        }
    }
}

/// Whether the run observes from the pods of a fixture.
fn observes(key: &FixtureKey) -> bool {
    let image = key.name.image();
    matches!(image, Some(Image::WindowsProber | Image::HostProcess))
}

fn has_failed(state: &CheckState) -> bool {
    let last = state.repetitions.last();
    last.is_some_and(|last| last.verdict == Verdict::Fail)
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
