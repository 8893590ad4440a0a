//! The dispatcher: a pure reducer that alone decides what happens next.
//!
//! [`Dispatcher::step`] takes what has happened and returns what to do. It performs nothing, knows no clock
//! but the `now` that it is given, and learns of every effect by a later input. It leaves judging to
//! `verdict`.

mod conclude;
mod fixtures;
mod states;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use winconform_core::config::{Durations, Limits};
use winconform_core::fixture::FixtureKey;
use winconform_core::method::VantageKey;
use winconform_core::plan::Plan;
use winconform_core::verdict::{Reason, Verdict};

use super::batching::{Batching, Unseen, is_among, unheld};
use super::command::{AssertionIx, AssertionOutcome, Command, Input};
use super::progress::{CheckState, Stage};
use super::repeat::{Leave, Repeat};
use super::room::{Loads, Room};
use states::{FixtureState, Fixtures, Readiness};

/// Decides what happens next.
#[derive(Debug)]
pub(crate) struct Dispatcher {
    checks: Vec<CheckState>,
    fixtures: Fixtures,
    /// The fixtures that were applied again after somebody else had changed them, which happens once in a
    /// repetition.
    again: BTreeSet<FixtureKey>,
    room: Room,
    /// How many fixtures were diagnosed before their pods went.
    diagnosed: usize,
    leave: Leave,
    /// Whether fixtures may have to be applied or removed: more than replies came, or a check is done.
    fixtures_due: bool,
    asking: BTreeSet<AssertionIx>,
    ask_queue: BTreeSet<AssertionIx>,
    in_exec_session: BTreeSet<VantageKey>,
    exec_session_queue: BTreeMap<VantageKey, BTreeSet<AssertionIx>>,
    gathering: Batching,
    phase: Phase,
    /// The time since the start.
    now: Duration,
    /// The commands of this step so far.
    commands: Vec<Command>,
    repeat: Repeat,
    /// The repetition under way, from 1.
    repetition: u32,
    limits: Limits,
    durations: Durations,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Phase {
    NotStarted,
    Running,
    /// Tear-down was commanded.
    Over,
}

impl Dispatcher {
    /// `loads` is what fixtures take of Windows nodes.
    pub(crate) fn new(
        plan: Plan,
        repeat: Repeat,
        (loads, leave): (Loads, Leave),
        durations: &Durations,
        limits: &Limits,
    ) -> Self {
        Self {
            fixtures: Fixtures::new(&plan.checks),
            checks: plan.checks.into_iter().map(CheckState::new).collect(),
            again: BTreeSet::new(),
            room: Room::new(loads),
            diagnosed: 0,
            leave,
            fixtures_due: false,
            asking: BTreeSet::new(),
            ask_queue: BTreeSet::new(),
            in_exec_session: BTreeSet::new(),
            exec_session_queue: BTreeMap::new(),
            gathering: Batching::default(),
            phase: Phase::NotStarted,
            now: Duration::ZERO,
            commands: Vec::new(),
            repeat,
            repetition: 1,
            limits: limits.clone(),
            durations: durations.clone(),
        }
    }

    /// The progress of the check at a place in the plan.
    pub(crate) fn state(&self, index: usize) -> Option<&CheckState> {
        self.checks.get(index)
    }

    /// Takes what has happened at `now` since the start and returns what to do.
    pub(crate) fn step(&mut self, now: Duration, input: Input) -> Vec<Command> {
        self.now = now;
        self.fixtures_due = !matches!(
            input,
            Input::Asked(..) | Input::Confirmed(..) | Input::SessionReplies(..)
        );
        match (self.phase, input) {
            (Phase::NotStarted, Input::Started) => {
                self.phase = Phase::Running;
                self.conclude_by_disposition();
            }
            (Phase::NotStarted | Phase::Running, Input::Stop(reason)) => {
                self.phase = Phase::Running;
                self.skip_the_rest(&reason);
            }
            (Phase::Running, Input::PodsReady(key)) => self.have_started(&key),
            (Phase::Running, Input::Bound(key, load)) => self.room.bound(&key, load),
            (Phase::Running, Input::Ready(key)) => {
                // Pods that are only placed start after that, or fail to for ever
                if !key.name.is_aimed() {
                    self.have_started(&key);
                }
                self.becomes(&key, FixtureState::Ready);
            }
            (Phase::Running, Input::Removed(key, are_gone)) => {
                if are_gone {
                    self.room.removed(&key);
                }
                self.has_left(&key);
            }
            (Phase::Running, Input::Failed(key, error)) => self.fail(key, error),
            (Phase::Running, Input::Asked(assertion, outcome)) => {
                if self.asking.remove(&assertion) {
                    self.accept(assertion, outcome);
                }
            }
            (Phase::Running, Input::Confirmed(assertion, outcome)) => {
                self.confirmed(assertion, outcome);
            }
            (Phase::Running, Input::SessionReplies(from, outcomes)) => {
                if self.in_exec_session.remove(&from) {
                    for (assertion, outcome) in outcomes {
                        self.accept(assertion, outcome);
                    }
                }
            }
            // Waking changes only the time, and late results of what was under way change nothing
            (Phase::Running, Input::Started | Input::Woken)
            | (Phase::NotStarted | Phase::Over, _) => {}
        }
        if self.phase == Phase::Running {
            self.advance();
        }
        std::mem::take(&mut self.commands)
    }

    /// Adds every command that can be performed now.
    fn advance(&mut self) {
        let gathered = self.begin_rounds();
        if self.fixtures_due {
            self.remove_fixtures();
            self.apply_fixtures();
        }
        self.ask();
        self.exec_session();
        if self.checks.iter().all(|state| state.stage.is_done()) && !self.observe_again() {
            for index in 0..self.checks.len() {
                self.conclude(index);
            }
            self.phase = Phase::Over;
            self.commands.push(Command::TearDown);
            return;
        }
        let next = self.checks.iter().filter_map(|state| match state.stage {
            Stage::Due(at) if at > self.now => Some(at),
            _ => None,
        });
        let wake = next.chain(gathered).min();
        self.commands.extend(wake.map(Command::WakeAt));
    }

    /// Begins another repetition, if one is due and there is anything to observe again.
    fn observe_again(&mut self) -> bool {
        let due = self.repeat.goes_on_after(self.repetition, self.now);
        let worth = self.checks.iter_mut();
        let worth: Vec<_> = worth.filter(|it| it.is_worth_repeating()).collect();
        if !due || worth.is_empty() {
            return false;
        }
        // Checks that are all inconclusive will probably not be conclusive at once
        let conclusive = worth.iter().any(|state| state.was_conclusive());
        let at = self.now
            + match conclusive {
                true => self.durations.observe_again,
                false => self.durations.converge,
            };
        let mut churned = BTreeSet::new();
        for state in worth {
            state.repeat(at);
            churned.extend(state.churned());
        }
        for key in churned {
            if let Some(fixture) = self.fixtures.ix(&key) {
                self.reapply(fixture);
            }
        }
        self.reapply_changed();
        self.reapply_removed();
        self.repetition = self.repetition.saturating_add(1);
        self.commands.push(Command::Repeat(self.repetition));
        true
    }

    /// Begins what can begin; returns when the first vantage point has waited long enough for more.
    fn begin_rounds(&mut self) -> Option<Duration> {
        let now = self.now;
        let (unseen, mut gathered) = self.unseen();
        let unheld = unheld(&self.checks, now);
        for index in 0..self.checks.len() {
            let due = match self.checks[index].stage {
                Stage::Waiting => None,
                Stage::Due(at) if at <= now => Some(at),
                Stage::Due(_) | Stage::Round(_) | Stage::Confirming(_) | Stage::Done => continue,
            };
            match self.fixtures.readiness(index) {
                Readiness::NotYet => {}
                Readiness::Never(fixture, error) => {
                    let attempt = (Verdict::Inconclusive, Reason::Fixture { fixture, error });
                    self.checks[index].attempts.push(attempt);
                    self.finish(index);
                }
                Readiness::Ready => {
                    let state = &self.checks[index];
                    let patience = match state.check.point.node {
                        None => self.durations.gather,
                        Some(_) => self.durations.gather_per_node,
                    };
                    let until = match due {
                        None => self.gathering.until(now, &state.check, &unseen, patience),
                        Some(at) => Some(at + patience).filter(|end| {
                            *end > now && state.good_rounds > 0 && is_among(&state.check, &unheld)
                        }),
                    };
                    match until {
                        Some(end) => gathered = Some(gathered.map_or(end, |at| at.min(end))),
                        None => {
                            self.checks[index].begin_round(now);
                            self.queue_assertions(index, 0);
                        }
                    }
                }
            }
        }
        gathered
    }

    /// The vantage points that will observe more once fixtures are ready, or once a check of each node holds
    /// from a single vantage point, and when the first of the latter stops waiting.
    fn unseen(&mut self) -> (BTreeSet<VantageKey>, Option<Duration>) {
        let mut unseen = Unseen::default();
        for (index, state) in self.checks.iter().enumerate() {
            match (&state.stage, state.good_rounds) {
                (Stage::Waiting, _) => match self.fixtures.readiness(index) {
                    // What waits for room may wait for this very vantage point
                    Readiness::NotYet
                        if self.fixtures.waits_for_room(index)
                            && state.check.point.node.is_none() => {}
                    Readiness::NotYet => unseen.late.push(&state.check),
                    Readiness::Ready => _ = unseen.ready.insert(index, &state.check),
                    Readiness::Never(..) => {}
                },
                (Stage::Due(_) | Stage::Round(_), 0) => unseen.begun.push(&state.check),
                (Stage::Due(_) | Stage::Round(_) | Stage::Confirming(_) | Stage::Done, _) => {}
            }
        }
        unseen.awaited(self.now, &mut self.gathering)
    }

    /// Queues the assertions of a check, from `first` on.
    fn queue_assertions(&mut self, index: usize, first: usize) {
        let assertions = self.checks[index].check.assertions.iter().enumerate();
        let mut lost = Vec::new();
        for (assertion, planned) in assertions.skip(first) {
            let ix = AssertionIx {
                check: index,
                assertion,
            };
            match (self.fixtures.lost(planned), &planned.from) {
                (Some(error), _) => lost.push((ix, AssertionOutcome::lost(error))),
                (None, Some(from)) => {
                    self.exec_session_queue
                        .entry(from.clone())
                        .or_default()
                        .insert(ix);
                }
                (None, None) => {
                    self.ask_queue.insert(ix);
                }
            }
        }
        for (ix, outcome) in lost {
            self.accept(ix, outcome);
        }
    }

    fn ask(&mut self) {
        while self.asking.len() < self.limits.api_in_flight
            && let Some(assertion) = self.ask_queue.pop_first()
        {
            self.asking.insert(assertion);
            self.commands.push(Command::Observe(assertion));
        }
    }

    fn exec_session(&mut self) {
        for (from, queue) in &mut self.exec_session_queue {
            if self.in_exec_session.len() >= self.limits.exec_sessions_in_flight {
                break;
            }
            if queue.is_empty() || self.in_exec_session.contains(from) {
                continue;
            }
            let mut assertions = Vec::new();
            while assertions.len() < self.limits.assertions_per_exec_session
                && let Some(assertion) = queue.pop_first()
            {
                assertions.push(assertion);
            }
            self.in_exec_session.insert(from.clone());
            self.gathering.begins(from);
            self.commands
                .push(Command::ExecSession(from.clone(), assertions));
        }
    }

    fn accept(&mut self, ix: AssertionIx, outcome: AssertionOutcome) {
        let Some(state) = self.checks.get_mut(ix.check) else {
            return;
        };
        let Stage::Round(assertions) = &mut state.stage else {
            return;
        };
        if let Some(place) = assertions.get_mut(ix.assertion) {
            *place = Some(outcome);
        }
        let outcomes: Option<Vec<_>> = assertions.iter().cloned().collect();
        if let Some(outcomes) = outcomes {
            self.judge_round(ix.check, outcomes);
        }
    }
}
