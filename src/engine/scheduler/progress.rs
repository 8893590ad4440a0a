//! One check on its way to a conclusion: rounds, attempts, and when an attempt is over.

use std::time::Duration;

use winconform_core::claims::ClaimType;
use winconform_core::config::{Durations, Limits};
use winconform_core::fixture::{FixtureKey, FixtureName};
use winconform_core::method::{Difference, ErrorKind, Test, Traits};
use winconform_core::plan::Check;
use winconform_core::record::{AssertionRecord, Attempted};
use winconform_core::verdict::{
    Reason, Repeated, Scope, SkipReason, Verdict, conclude, is_news, judge, reason_for,
};

use super::command::AssertionOutcome;
use super::converge::time_to_converge;
use super::differing::DifferingRounds;
use super::excused::Excused;

/// A check and its progress.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each says whether one thing happened"
)]
pub(crate) struct CheckState {
    pub(crate) check: Check,
    pub(crate) stage: Stage,
    pub(crate) attempts: Vec<(Verdict, Reason)>,
    /// How many attempts the earlier repetitions had.
    before: usize,
    /// The conclusions of the finished repetitions.
    pub(crate) repetitions: Repeated,
    /// How many rounds began since its time to converge did.
    tried: u32,
    /// Since when rounds end in observation errors, and whether one of these was a change of a fixture.
    observation_error: Option<(Duration, bool)>,
    /// Whether this attempt was given back the time to converge that such errors took.
    made_up_for: bool,
    /// Whether a round of this attempt observed something else than expected.
    refuted: bool,
    /// Whether a round of this repetition failed while its controls held.
    controls_held: bool,
    /// Whether it fails for Linux, too.
    excused: Excused,
    pub(crate) differing: DifferingRounds,
    /// Whether the round under way observes only the controls again, after the check's own assertion failed.
    pub(crate) controls_again: bool,
    /// Whether it is concluded.
    pub(crate) concluded: bool,
    /// When its first round began, or the first since its fixture was applied again: the time to converge
    /// counts from there.
    pub(crate) began: Option<Duration>,
    /// When the first round of this attempt began, or the first since its fixture was applied again.
    pub(crate) attempt_began: Duration,
    pub(crate) rounds: u32,
    pub(crate) good_rounds: u32,
    /// When the first of the good rounds in a row ended.
    pub(crate) good_since: Option<Duration>,
    /// The pause before its next round.
    pub(crate) paused: Duration,
}

#[derive(Debug)]
pub(crate) enum Stage {
    /// Its fixtures are not ready yet.
    Waiting,
    /// The next round may begin at this time.
    Due(Duration),
    /// A round is under way, with these outcomes of its assertions so far.
    Round(Vec<Option<AssertionOutcome>>),
    /// The outcomes of an attempt that would count against the cluster, while the liveness of the nodes
    /// is checked.
    Confirming(Vec<AssertionOutcome>),
    Done,
}

impl Stage {
    pub(crate) fn is_done(&self) -> bool {
        matches!(self, Self::Done)
    }
}

impl CheckState {
    pub(crate) fn new(check: Check) -> Self {
        Self {
            check,
            stage: Stage::Waiting,
            attempts: Vec::new(),
            before: 0,
            repetitions: Repeated::default(),
            tried: 0,
            observation_error: None,
            made_up_for: false,
            refuted: false,
            controls_held: false,
            excused: Excused::default(),
            differing: DifferingRounds::default(),
            controls_again: false,
            concluded: false,
            began: None,
            attempt_began: Duration::ZERO,
            good_since: None,
            paused: Duration::ZERO,
            rounds: 0,
            good_rounds: 0,
        }
    }

    /// The fixture among its dependencies whose backends come and go.
    pub(crate) fn churned(&self) -> Option<FixtureKey> {
        let mut keys = self.check.depends_on().map(|(key, _)| key);
        keys.find(|key| key.name == FixtureName::CHURN)
    }

    /// Forgets the rounds on a fixture that is to be applied again, which gets the same time to converge as
    /// before.
    pub(crate) fn begin_anew(&mut self) {
        self.began = None;
        self.tried = 0;
        self.forget_rounds();
    }

    fn forget_rounds(&mut self) {
        self.good_rounds = 0;
        self.good_since = None;
        self.differing = DifferingRounds::default();
        self.controls_held = false;
        self.excused = Excused::default();
    }

    /// How many attempts have ended, over all repetitions.
    pub(crate) fn attempted_so_far(&self) -> u32 {
        u32::try_from(self.before + self.attempts.len()).unwrap_or(u32::MAX)
    }

    pub(crate) fn end_repetition(&mut self) {
        self.stage = Stage::Done;
        if let Some(conclusion) = conclude(&self.attempts, self.differing.is_any()) {
            self.repetitions.add(conclusion);
        }
    }

    /// Whether another repetition could have another result: a fixture that never became ready will not, but
    /// one that somebody else changed may be applied again.
    pub(crate) fn is_worth_repeating(&self) -> bool {
        let never_ready = self.repetitions.last().is_some_and(|last| {
            matches!(last.reason, Reason::Fixture { .. }) && !last.reason.is_of_a_change()
        });
        self.check.repeats() && !self.concluded && !never_ready
    }

    /// Whether the last repetition has a conclusive verdict.
    pub(crate) fn was_conclusive(&self) -> bool {
        let last = self.repetitions.last();
        last.is_some_and(|last| last.verdict.is_conclusive())
    }

    /// Begins another repetition at that time. A check that has converged gets no more time to converge.
    pub(crate) fn repeat(&mut self, at: Duration) {
        self.before += self.attempts.len();
        self.attempts.clear();
        self.rounds = 0;
        self.forget_rounds();
        self.stage = Stage::Due(at);
    }

    /// Whether an attempt is put on record: one that is as in the repetition before is not, or a long run's
    /// record would grow without bounds.
    pub(crate) fn is_news(&self, verdict: Verdict) -> bool {
        let last = self.repetitions.last().map(|last| last.verdict);
        last != Some(verdict) || !verdict.is_expected() || !self.differing.assertions().is_empty()
    }

    pub(crate) fn judge(&self, outcomes: &[AssertionOutcome]) -> (Verdict, Reason) {
        let observed: Vec<_> = outcomes
            .iter()
            .map(|outcome| outcome.evaluated.as_ref().map(|it| &it.comparison))
            .collect();
        // A check to be observed has an assertion; without one there is no observation
        let Some(test) = observed.first().copied() else {
            let error = ErrorKind::FixtureFailed.error("the check has no assertion");
            return (Verdict::Inconclusive, Reason::ObservationError(error));
        };
        let controls = self.check.controls(&observed);
        let verdict = judge(self.check.claim_type, test, &controls, &self.check.scope);
        match reason_for(verdict, test, &controls) {
            // Linux failed as well for a moment, or the cluster broke meanwhile
            Reason::Skipped(SkipReason::NotWindowsSpecific {
                control: name,
                expected,
                seen,
            }) if self.controls_held => {
                let difference = Difference { expected, seen };
                (Verdict::Inconclusive, Reason::Control { name, difference })
            }
            reason => (verdict, reason),
        }
    }

    fn traits(&self) -> impl Iterator<Item = Traits> {
        let assertions = self.check.assertions.iter();
        assertions.map(|assertion| assertion.test.traits())
    }

    /// Whether any of its assertions may take time to converge.
    fn converges(&self) -> bool {
        self.traits().any(|traits| traits.converges) && !self.is_of_a_scenario()
    }

    /// Whether another round follows a good one, and none so far failed: the first is under way, or all so
    /// far were good.
    pub(crate) fn is_on_course(&self) -> bool {
        let first = self.rounds == 1 && matches!(self.stage, Stage::Round(_));
        let is_to_hold = self.check.claim_type != ClaimType::Informational && self.converges();
        self.attempts.is_empty() && is_to_hold && (first || self.good_rounds > 0)
    }

    /// Whether a round sends a single request where it would otherwise send many. Before the first good round
    /// each may take as long as its time-out, and another round follows one that holds.
    pub(crate) fn asks_once(&self, limits: &Limits) -> bool {
        // A limitation is lifted, and information is complete, with a single round
        let is_told_at_once = match self.check.claim_type {
            ClaimType::Limitation => self.check.scope == Scope::Within,
            claim_type => claim_type == ClaimType::Informational,
        };
        !is_told_at_once && self.good_rounds == 0 && limits.hold_rounds > 1
    }

    /// Whether the attempt may end with the round that is under way, if the check's own assertion holds.
    pub(crate) fn may_settle(&self, limits: &Limits) -> bool {
        self.check.claim_type == ClaimType::Informational
            || self.good_rounds + 1 >= limits.hold_rounds
    }

    /// Begins a round. The time that it has waited for others since it was due does not count as time to
    /// converge.
    pub(crate) fn begin_round(&mut self, now: Duration) {
        let waited = match self.stage {
            Stage::Due(at) => now.saturating_sub(at),
            Stage::Waiting | Stage::Round(_) | Stage::Confirming(_) | Stage::Done => Duration::ZERO,
        };
        if self.rounds == 0 || self.began.is_none() {
            self.attempt_began = now;
        }
        self.began = Some(self.began.map_or(now, |began| began + waited));
        self.rounds += 1;
        self.tried += 1;
        self.controls_again = false;
        self.stage = Stage::Round(vec![None; self.check.assertions.len()]);
    }

    /// Whether the controls are observed again before a round counts: the check's own assertion failed, and
    /// the cluster may have broken since the controls were observed.
    pub(crate) fn needs_controls_again(
        &self,
        now: Duration,
        verdict: Verdict,
        durations: &Durations,
    ) -> bool {
        (is_news(verdict) || self.excused.is_new(now, durations.converge))
            && !self.controls_again
            && self.check.assertions.len() > 1
    }

    /// Begins to observe only the controls, and keeps the outcome `test` of the check's own assertion.
    pub(crate) fn begin_controls_again(&mut self, test: AssertionOutcome) {
        let mut assertions = vec![None; self.check.assertions.len()];
        assertions[0] = Some(test);
        self.controls_again = true;
        self.stage = Stage::Round(assertions);
    }

    /// Takes note of whether a round fails after an earlier one of the attempt held.
    pub(crate) fn note_differing(
        &mut self,
        verdict: Verdict,
        reason: &Reason,
        assertions: &[AssertionOutcome],
    ) {
        if reason.is_of_a_change() {
            self.differing = DifferingRounds::default();
        } else if let Some((plan, test)) = self.check.assertions.first().zip(assertions.first()) {
            let more = plan.test.traits().asks_many && !test.lacks_an_answer();
            let more = more || test.is_refused_alone(plan.from.as_ref());
            let records = || self.records(assertions.to_vec());
            let assertions = (is_news(verdict) && !more && self.differing.is_next()).then(records);
            let holds = verdict.is_conclusive() && verdict.is_expected();
            self.differing.note(holds, assertions.unwrap_or_default());
        }
    }

    /// Takes note of the result of a round. The first without an observation error after others with one gets
    /// back the time that they took, or all of it after a change such as a node's boot: once in an attempt.
    pub(crate) fn end_round(&mut self, now: Duration, verdict: Verdict, reason: &Reason) {
        if verdict.is_expected() && verdict != Verdict::Skip {
            self.good_rounds += 1;
            self.good_since.get_or_insert(now);
        } else {
            self.good_rounds = 0;
            self.good_since = None;
            self.refuted |= reason.tells();
            self.controls_held |= is_news(verdict);
        }
        self.excused.note(now, reason);
        if let (Some((since, changed)), true, false) =
            (self.observation_error, reason.tells(), self.made_up_for)
        {
            self.made_up_for = true;
            self.tried = 0;
            self.began = match (changed, self.began) {
                (false, Some(began)) => Some(began + now.saturating_sub(since)),
                (true, _) | (_, None) => Some(now),
            };
        }
        self.note_observation_error(now, reason);
    }

    fn note_observation_error(&mut self, now: Duration, reason: &Reason) {
        self.observation_error = match (self.observation_error, reason.tells()) {
            (_, true) => None,
            (None, false) => Some((now, reason.is_of_a_change())),
            (Some((since, changed)), false) => Some((since, changed || reason.is_of_a_change())),
        };
    }

    /// Takes note of the result of an attempt.
    pub(crate) fn end_attempt(&mut self, now: Duration, verdict: Verdict, reason: Reason) {
        // An observation error may come only after the round
        self.note_observation_error(now, &reason);
        self.made_up_for = false;
        self.refuted = false;
        if reason.is_of_a_change() {
            self.differing = DifferingRounds::default();
        }
        self.attempts.push((verdict, reason));
    }

    fn is_of_a_scenario(&self) -> bool {
        let test = self.check.assertions.first().map(|planned| &planned.test);
        matches!(test, Some(Test::Scenario(_)))
    }

    /// Whether a node that has fallen silent may have caused the result of an attempt: one of the first two
    /// failures of the check, or that nothing answers any more where nothing should.
    pub(crate) fn is_to_be_confirmed(&self, verdict: Verdict) -> bool {
        match verdict {
            // Two failures decide
            Verdict::Fail | Verdict::Warn => {
                let verdicts = self.attempts.iter().map(|(verdict, _)| verdict);
                let news = verdicts.filter(|one| matches!(one, Verdict::Fail | Verdict::Warn));
                (self.converges() || self.is_of_a_scenario()) && news.count() < 2
            }
            Verdict::Pass | Verdict::KnownLimitation => {
                let test = self.traits().next();
                self.refuted && test.is_some_and(|test| test.expects_no_answer)
            }
            Verdict::LimitationLifted
            | Verdict::Informational
            | Verdict::Skip
            | Verdict::Inconclusive => false,
        }
    }

    /// The pause until the next round. A result that cannot have changed and changed back meanwhile, such as
    /// the node of a pod, is observed once more when it has lasted. What takes minutes is asked less often.
    pub(crate) fn pause(&self, now: Duration, durations: &Durations) -> Duration {
        match self.good_since {
            Some(since) if self.traits().all(|traits| traits.stays) => (since
                + self.lasts(durations))
            .saturating_sub(now)
            .max(durations.observe_again),
            Some(_) => durations.observe_again,
            None => (time_to_converge(&self.check, durations) / 120).max(durations.observe_again),
        }
    }

    /// How long it has to hold.
    fn lasts(&self, durations: &Durations) -> Duration {
        match self.traits().any(|traits| traits.must_last) {
            true => durations.stays_ready,
            false => Duration::ZERO,
        }
    }

    /// Whether this round, with the outcome `test` of the check's own assertion, settles the attempt: it held
    /// as often as it must, or further rounds cannot be expected to change it. Only what crosses the network
    /// takes time to converge, and it gets that time once.
    pub(crate) fn attempt_is_over(
        &self,
        now: Duration,
        (verdict, reason): (Verdict, &Reason),
        test: Option<&AssertionOutcome>,
        limits: &Limits,
        durations: &Durations,
    ) -> bool {
        if !self.converges() {
            return true;
        }
        match verdict {
            Verdict::Pass | Verdict::KnownLimitation => {
                let lasts = self.lasts(durations);
                self.good_rounds >= limits.hold_rounds
                    && self.good_since.is_some_and(|since| now >= since + lasts)
            }
            // What fails for Linux as well may still converge for Windows
            Verdict::Skip if !reason.tells() => true,
            Verdict::LimitationLifted => true,
            // A server that refuses may not listen yet, or may never listen
            Verdict::Informational => {
                let planned = self.check.assertions.first();
                let from = planned.and_then(|planned| planned.from.as_ref());
                self.has_had_time(now, durations)
                    || !test.is_some_and(|test| test.is_refused_alone(from))
            }
            Verdict::Fail | Verdict::Warn | Verdict::Inconclusive | Verdict::Skip => {
                let error = reason.error();
                let lasting = error.is_some_and(|error| error.kind.is_lasting());
                // A single round may have been too early, if its neighbours' time-outs used up the time. A check
                // that is skipped because Linux fails, too, tells nothing of Windows: its controls are enough
                let once = reason.tells() && self.tried == 1 && verdict != Verdict::Skip;
                lasting || (self.has_had_time(now, durations) && !once)
            }
        }
    }

    /// Whether its time to converge is over. A fixture that was applied again has it again.
    fn has_had_time(&self, now: Duration, durations: &Durations) -> bool {
        let converge = time_to_converge(&self.check, durations);
        self.began.is_some_and(|began| now >= began + converge)
    }

    pub(crate) fn attempted(&self, verdict: Verdict, outcomes: Vec<AssertionOutcome>) -> Attempted {
        Attempted {
            check: self.check.id.clone(),
            number: self.attempted_so_far(),
            rounds: self.rounds,
            verdict,
            assertions: self.records(outcomes),
            came_apart: self.differing.assertions().to_vec(),
            tried: None,
        }
    }

    fn records(&self, outcomes: Vec<AssertionOutcome>) -> Vec<AssertionRecord> {
        let both = self.check.assertions.iter().zip(outcomes);
        let records = both.map(|(planned, outcome)| outcome.into_record(planned));
        records.collect()
    }
}
