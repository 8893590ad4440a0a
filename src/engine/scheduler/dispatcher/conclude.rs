//! Ends rounds and attempts, and concludes checks.

use winconform_core::plan::Disposition;
use winconform_core::verdict::{Reason, SkipReason, Verdict, is_unconfirmed};

use super::super::command::{AssertionIx, AssertionOutcome, Command};
use super::super::progress::Stage;
use super::super::repeat::Repeat;
use super::Dispatcher;
use super::states::FixtureState;

/// The most attempts while another has to confirm an unexpected verdict, unless more are configured.
const TO_CONFIRM: u32 = 4;

impl Dispatcher {
    pub(super) fn judge_round(&mut self, index: usize, outcomes: Vec<AssertionOutcome>) {
        let state = &mut self.checks[index];
        let (verdict, reason) = state.judge(&outcomes);
        if !state.controls_again {
            state.note_differing(verdict, &reason, &outcomes);
        }
        state.end_round(self.now, verdict, &reason);
        let (test, limits, durations) = (outcomes.first(), &self.limits, &self.durations);
        if !state.attempt_is_over(self.now, (verdict, &reason), test, limits, durations) {
            state.paused = state.pause(self.now, &self.durations);
            state.stage = Stage::Due(self.now + state.paused);
        } else if state.needs_controls_again(self.now, verdict, durations)
            && let Some(test) = outcomes.first()
        {
            state.begin_controls_again(test.clone());
            self.queue_assertions(index, 1);
        } else if let Some(test) = outcomes.first()
            && state.is_to_be_confirmed(verdict)
        {
            let ix = AssertionIx {
                check: index,
                assertion: 0,
            };
            self.commands.push(Command::Confirm(ix, test.clone()));
            state.stage = Stage::Confirming(outcomes);
        } else {
            self.end_attempt(index, outcomes);
        }
    }

    /// Takes the confirmed outcome of an attempt that would count against the cluster.
    pub(super) fn confirmed(&mut self, ix: AssertionIx, outcome: AssertionOutcome) {
        let Some(state) = self.checks.get_mut(ix.check) else {
            return;
        };
        let Stage::Confirming(outcomes) = &mut state.stage else {
            return;
        };
        let mut outcomes = std::mem::take(outcomes);
        if state.began.is_none() {
            // The fixture that it observed is applied again
            state.stage = Stage::Due(self.now + self.durations.observe_again);
            return;
        }
        if let Some(place) = outcomes.get_mut(ix.assertion) {
            *place = outcome;
        }
        self.end_attempt(ix.check, outcomes);
    }

    pub(super) fn end_attempt(&mut self, index: usize, outcomes: Vec<AssertionOutcome>) {
        let state = &mut self.checks[index];
        let (verdict, reason) = state.judge(&outcomes);
        // An observation that is denied now is denied a moment later too
        let denied = matches!(
            &reason,
            Reason::ObservationError(error) | Reason::ControlError { error, .. }
                if error.kind.is_denied()
        );
        state.end_attempt(self.now, verdict, reason);
        if state.is_news(verdict) {
            let attempted = state.attempted(verdict, outcomes);
            self.commands
                .push(Command::Attempted(attempted, state.attempt_began));
        }
        let unconfirmed = is_unconfirmed(&state.attempts);
        let most = match unconfirmed {
            true => self.limits.attempts.max(TO_CONFIRM),
            false => self.limits.attempts,
        };
        let attempts = u32::try_from(state.attempts.len()).unwrap_or(u32::MAX);
        if denied || attempts >= most || verdict.is_expected() && !unconfirmed {
            self.finish(index);
        } else {
            state.rounds = 0;
            state.differing.next_attempt();
            state.stage = Stage::Due(self.now + self.durations.observe_again);
        }
    }

    pub(super) fn finish(&mut self, index: usize) {
        self.fixtures_due = true;
        let state = &mut self.checks[index];
        state.end_repetition();
        if self.repeat.ends_with(self.repetition) || !state.is_worth_repeating() {
            self.conclude(index);
        }
    }

    pub(super) fn conclude(&mut self, index: usize) {
        let state = &mut self.checks[index];
        if !state.concluded
            && let Some(conclusion) = state.repetitions.conclude()
        {
            state.concluded = true;
            self.commands.push(Command::Conclude(index, conclusion));
        }
    }

    /// Concludes the checks whose verdict the plan already holds.
    pub(super) fn conclude_by_disposition(&mut self) {
        for index in 0..self.checks.len() {
            let attempt = match &self.checks[index].check.disposition {
                Disposition::Observe => continue,
                Disposition::Skip(reason) => (Verdict::Skip, Reason::Skipped(reason.clone())),
                Disposition::Inconclusive(error) => (
                    Verdict::Inconclusive,
                    Reason::ObservationError(error.clone()),
                ),
            };
            self.checks[index].attempts.push(attempt);
            self.finish(index);
        }
    }

    /// Concludes every open check by its finished repetitions, or else as skipped, whatever its attempts so
    /// far: an attempt that would have been repeated gives no verdict.
    pub(super) fn skip_the_rest(&mut self, reason: &SkipReason) {
        for index in 0..self.checks.len() {
            let state = &mut self.checks[index];
            if state.repetitions.last().is_none() {
                state.attempts = vec![(Verdict::Skip, Reason::Skipped(reason.clone()))];
                state.end_repetition();
            }
            state.stage = Stage::Done;
            self.conclude(index);
        }
        self.repeat = Repeat::Times(0);
        self.ask_queue.clear();
        self.exec_session_queue.clear();
        let unapplied = |state: &FixtureState| matches!(state, FixtureState::Unapplied);
        for fixture in self.fixtures.which(unapplied) {
            self.fixtures.set(fixture, FixtureState::Applied);
        }
    }
}
