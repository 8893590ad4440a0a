//! One check on its way to a conclusion: rounds, attempts, and when an attempt is over.

use std::time::Duration;

use winconform_core::claims::ClaimType;
use winconform_core::config::{Durations, Limits};
use winconform_core::fixture::{FixtureKey, FixtureName, Need};
use winconform_core::method::{Difference, ErrorKind, Traits};
use winconform_core::plan::{Check, Disposition};
use winconform_core::record::{AssertionRecord, Attempted};
use winconform_core::verdict::{
    Reason, Repeated, SkipReason, Verdict, conclude, is_news, judge, reason_for,
};

use super::came_apart::CameApart;
use super::command::AssertionOutcome;

/// A check and how far it is.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each says whether one thing happened"
)]
pub(crate) struct CheckState {
    pub(crate) check: Check,
    /// The fixtures that its assertions depend on, each once, in their order.
    pub(crate) depends_on: Vec<(FixtureKey, Need)>,
    pub(crate) stage: Stage,
    pub(crate) attempts: Vec<(Verdict, Reason)>,
    /// How many attempts the repetitions before had.
    before: usize,
    /// What the repetitions that are over came to.
    pub(crate) repetitions: Repeated,
    /// How many rounds began since then.
    tried: u32,
    /// Since when nothing could be told, and whether what it observes changed meanwhile.
    untold: Option<(Duration, bool)>,
    /// Whether time to come right that was lost by that was made up for, in this attempt.
    made_up_for: bool,
    /// Whether a round of this attempt told something else than expected.
    refuted: bool,
    /// Whether a round of this repetition failed while its controls held.
    controls_held: bool,
    pub(crate) apart: CameApart,
    /// Whether the round under way observes the controls alone once more, after its own assertion failed.
    pub(crate) controls_again: bool,
    /// Whether its conclusion was given.
    pub(crate) concluded: bool,
    /// When its first round of all began, or that since what it observes was made anew: the time to come
    /// right counts from there.
    pub(crate) began: Option<Duration>,
    pub(crate) rounds: u32,
    pub(crate) good_rounds: u32,
    /// When the first of the good rounds in a row ended.
    pub(crate) good_since: Option<Duration>,
    /// How long the next round was put off.
    pub(crate) paused: Duration,
}

#[derive(Debug)]
pub(crate) enum Stage {
    /// What it needs is not there yet.
    Waiting,
    /// The next round may begin at this time.
    Due(Duration),
    /// A round is under way; what its assertions brought so far.
    Round(Vec<Option<AssertionOutcome>>),
    /// What an attempt brought would be held against the cluster, if the nodes it was seen on are
    /// heard of.
    Confirming(Vec<AssertionOutcome>),
    Done,
}

impl CheckState {
    pub(crate) fn new(check: Check) -> Self {
        // Whatever stands, stands in a namespace: without them nothing else is even applied
        let namespaces = (FixtureName::NAMESPACES.in_pool(None), Need::Ready);
        let mut depends_on = Vec::new();
        for need in check.depends_on() {
            for need in [namespaces.clone(), need] {
                if !depends_on.contains(&need) {
                    depends_on.push(need);
                }
            }
        }
        Self {
            check,
            depends_on,
            stage: Stage::Waiting,
            attempts: Vec::new(),
            before: 0,
            repetitions: Repeated::default(),
            tried: 0,
            untold: None,
            made_up_for: false,
            refuted: false,
            controls_held: false,
            apart: CameApart::default(),
            controls_again: false,
            concluded: false,
            began: None,
            good_since: None,
            paused: Duration::ZERO,
            rounds: 0,
            good_rounds: 0,
        }
    }

    pub(crate) fn needs(&self, fixture: &FixtureKey) -> bool {
        self.check.depends_on().any(|(key, _)| key == *fixture)
    }

    /// The fixture it observes whose backends come and go.
    pub(crate) fn churned(&self) -> Option<FixtureKey> {
        let mut all = self.depends_on.iter().map(|(key, _)| key);
        all.find(|key| key.name == FixtureName::CHURN).cloned()
    }

    /// Forgets what was seen of a fixture that is to be made anew, which may take its time to come
    /// right as the first one did.
    pub(crate) fn begin_anew(&mut self) {
        self.began = None;
        self.tried = 0;
        self.good_rounds = 0;
        self.good_since = None;
        self.apart = CameApart::default();
        self.controls_held = false;
    }

    /// How many attempts have ended, over all repetitions.
    pub(crate) fn attempted_so_far(&self) -> u32 {
        u32::try_from(self.before + self.attempts.len()).unwrap_or(u32::MAX)
    }

    pub(crate) fn end_repetition(&mut self) {
        self.stage = Stage::Done;
        if let Some(conclusion) = conclude(&self.attempts, self.apart.is_any()) {
            self.repetitions.add(conclusion);
        }
    }

    /// Whether looking again could bring anything else: what did not come to stand will not, but what
    /// somebody took may be made anew.
    pub(crate) fn is_worth_repeating(&self) -> bool {
        let never_stood = self.repetitions.last().is_some_and(|last| {
            matches!(last.reason, Reason::Fixture { .. }) && !last.reason.is_of_a_change()
        });
        matches!(self.check.disposition, Disposition::Observe) && !self.concluded && !never_stood
    }

    /// Whether the repetition that is over told anything of the cluster.
    pub(crate) fn has_told(&self) -> bool {
        let last = self.repetitions.last();
        last.is_some_and(|last| last.verdict.is_conclusive())
    }

    /// Looks again from that time on. What has come right once is given no more time for it.
    pub(crate) fn repeat(&mut self, at: Duration) {
        self.before += self.attempts.len();
        self.attempts.clear();
        self.rounds = 0;
        self.good_rounds = 0;
        self.good_since = None;
        self.controls_held = false;
        self.apart = CameApart::default();
        self.stage = Stage::Due(at);
    }

    /// Whether an attempt is put on record: one that is as the repetition before is not, or a long
    /// run's record would have no bounds.
    pub(crate) fn is_news(&self, verdict: Verdict) -> bool {
        let last = self.repetitions.last().map(|last| last.verdict);
        last != Some(verdict) || !verdict.is_expected() || !self.apart.assertions().is_empty()
    }

    pub(crate) fn judge(&self, brought: &[AssertionOutcome]) -> (Verdict, Reason) {
        let observed: Vec<_> = brought
            .iter()
            .map(|outcome| outcome.taken.as_ref().map(|taken| &taken.comparison))
            .collect();
        // A check to be observed has its own assertion; without it nothing is told
        let Some(own) = observed.first().copied() else {
            let error = ErrorKind::FixtureFailed.error("the check has no assertion");
            return (Verdict::Inconclusive, Reason::ObservationError(error));
        };
        let controls = self.check.controls(&observed);
        let verdict = judge(self.check.claim_type, own, &controls, &self.check.scope);
        match reason_for(verdict, own, &controls) {
            // Linux went with it for a moment, or the cluster broke meanwhile
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

    /// Whether any of its assertions may take time to come right.
    fn converges(&self) -> bool {
        self.traits().any(|traits| traits.converges)
    }

    /// Whether a good round is followed by another, and nothing speaks against it: the first is
    /// under way, or all so far were good.
    pub(crate) fn is_on_course(&self) -> bool {
        let first = self.rounds == 1 && matches!(self.stage, Stage::Round(_));
        let is_to_hold = self.check.claim_type != ClaimType::Informational && self.converges();
        self.attempts.is_empty() && is_to_hold && (first || self.good_rounds > 0)
    }

    /// Whether a round asks once whatever takes many requests: nobody has answered yet, and where nobody
    /// does each of them takes as long as its time-out. One that holds is followed by another.
    pub(crate) fn asks_once(&self, limits: &Limits) -> bool {
        // What lifts a limitation is told at once
        let is_told_at_once = [ClaimType::Limitation, ClaimType::Informational];
        !is_told_at_once.contains(&self.check.claim_type)
            && self.good_rounds == 0
            && limits.hold_rounds > 1
    }

    /// Whether the attempt may end with the round that is under way, if its own assertion holds.
    pub(crate) fn may_settle(&self, limits: &Limits) -> bool {
        self.check.claim_type == ClaimType::Informational
            || self.good_rounds + 1 >= limits.hold_rounds
    }

    /// Begins a round. What it has waited for others since it was due is not taken from its time to
    /// come right.
    pub(crate) fn begin_round(&mut self, now: Duration) {
        let waited = match self.stage {
            Stage::Due(at) => now.saturating_sub(at),
            Stage::Waiting | Stage::Round(_) | Stage::Confirming(_) | Stage::Done => Duration::ZERO,
        };
        self.began = Some(self.began.map_or(now, |began| began + waited));
        self.rounds += 1;
        self.tried += 1;
        self.controls_again = false;
        self.stage = Stage::Round(vec![None; self.check.assertions.len()]);
    }

    /// Whether the controls are observed once more before what a round gave counts: its own assertion failed,
    /// and the cluster may have broken since they were observed.
    pub(crate) fn needs_controls_again(&self, verdict: Verdict, reason: &Reason) -> bool {
        let fails_for_all = verdict == Verdict::Skip && reason.tells();
        (is_news(verdict) || fails_for_all)
            && !self.controls_again
            && self.check.assertions.len() > 1
    }

    /// Begins to observe the controls alone, beside what its own assertion brought.
    pub(crate) fn begin_controls_again(&mut self, own: AssertionOutcome) {
        let mut assertions = vec![None; self.check.assertions.len()];
        assertions[0] = Some(own);
        self.controls_again = true;
        self.stage = Stage::Round(assertions);
    }

    /// Takes note of whether a round fails after another of the attempt held.
    pub(crate) fn note_apart(
        &mut self,
        verdict: Verdict,
        reason: &Reason,
        assertions: &[AssertionOutcome],
    ) {
        if reason.is_of_a_change() {
            self.apart = CameApart::default();
        } else if let Some((planned, own)) = self.check.assertions.first().zip(assertions.first()) {
            let is_more = planned.test.traits().asks_many && !own.lacks_an_answer();
            let is_more = is_more || own.is_refused_alone(planned.from.as_ref());
            let records = || self.records(assertions.to_vec());
            let assertions = (is_news(verdict) && !is_more && self.apart.is_next()).then(records);
            let holds = verdict.is_conclusive() && verdict.is_expected();
            self.apart.note(holds, assertions.unwrap_or_default());
        }
    }

    /// Takes note of what a round came to. The first that tells something after others could not has the
    /// time that they took, and all of it after a change, such as a boot of a node: once in an attempt.
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
        if let (Some((since, changed)), true, false) =
            (self.untold, reason.tells(), self.made_up_for)
        {
            self.made_up_for = true;
            self.tried = 0;
            self.began = match (changed, self.began) {
                (false, Some(began)) => Some(began + now.saturating_sub(since)),
                (true, _) | (_, None) => Some(now),
            };
        }
        self.is_untold(now, reason);
    }

    fn is_untold(&mut self, now: Duration, reason: &Reason) {
        self.untold = match (self.untold, reason.tells()) {
            (_, true) => None,
            (None, false) => Some((now, reason.is_of_a_change())),
            (Some((since, changed)), false) => Some((since, changed || reason.is_of_a_change())),
        };
    }

    /// Takes note of what an attempt came to.
    pub(crate) fn end_attempt(&mut self, now: Duration, verdict: Verdict, reason: Reason) {
        // Also where that was told only after its round
        self.is_untold(now, &reason);
        self.made_up_for = false;
        self.refuted = false;
        if reason.is_of_a_change() {
            self.apart = CameApart::default();
        }
        self.attempts.push((verdict, reason));
    }

    /// Whether a node that has fallen silent may have made what an attempt came to: a failure, the first
    /// of the check, or that nothing answers any more where nothing is to.
    pub(crate) fn is_to_be_confirmed(&self, verdict: Verdict) -> bool {
        match verdict {
            // Two of them decide
            Verdict::Fail | Verdict::Warn => {
                let verdicts = self.attempts.iter().map(|(verdict, _)| verdict);
                let news = verdicts.filter(|one| matches!(one, Verdict::Fail | Verdict::Warn));
                self.converges() && news.count() < 2
            }
            Verdict::Pass | Verdict::KnownLimitation => {
                let own = self.traits().next();
                self.refuted && own.is_some_and(|own| own.expects_no_answer)
            }
            Verdict::LimitationLifted
            | Verdict::Informational
            | Verdict::Skip
            | Verdict::Inconclusive => false,
        }
    }

    /// How long it is until the next round. What cannot have come and gone meanwhile, such as where a pod
    /// was put, is observed once more when it has lasted.
    pub(crate) fn pause(&self, now: Duration, durations: &Durations) -> Duration {
        match self.good_since {
            Some(since) if self.traits().all(|traits| traits.stays) => (since
                + self.lasts(durations))
            .saturating_sub(now)
            .max(durations.observe_again),
            Some(_) | None => durations.observe_again,
        }
    }

    /// How long it has to hold.
    fn lasts(&self, durations: &Durations) -> Duration {
        match self.traits().any(|traits| traits.must_last) {
            true => durations.stays_ready,
            false => Duration::ZERO,
        }
    }

    /// Whether this round, with what its `own` assertion brought, settles the attempt: it held as often as it must, or
    /// further rounds cannot be expected to change it. Only what crosses the network takes time to come right, and
    /// that time is granted once.
    pub(crate) fn attempt_is_over(
        &self,
        now: Duration,
        (verdict, reason): (Verdict, &Reason),
        own: Option<&AssertionOutcome>,
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
            // What does not work for Linux either may come right for Windows
            Verdict::Skip if !reason.tells() => true,
            Verdict::LimitationLifted => true,
            // Nobody listens yet, or nobody ever will
            Verdict::Informational => {
                let planned = self.check.assertions.first();
                let from = planned.and_then(|planned| planned.from.as_ref());
                self.has_had_time(now, durations)
                    || !own.is_some_and(|own| own.is_refused_alone(from))
            }
            Verdict::Fail | Verdict::Warn | Verdict::Inconclusive | Verdict::Skip => {
                let error = reason.error();
                let lasting = error.is_some_and(|error| error.kind.is_lasting());
                // Seen once, before its neighbours' time-outs used up the time, it may have been too early
                let once = reason.tells() && self.tried == 1;
                lasting || (self.has_had_time(now, durations) && !once)
            }
        }
    }

    /// Whether it has had its time to come right. What has been made anew meanwhile begins again.
    fn has_had_time(&self, now: Duration, durations: &Durations) -> bool {
        let balanced = self.check.assertions.iter().any(|assertion| {
            let is_balancer =
                |(key, _): &(FixtureKey, Need)| key.name == FixtureName::LOAD_BALANCER;
            assertion.test.traits().needs_source && assertion.needs.iter().any(is_balancer)
        });
        let converge = match balanced {
            true => durations.converge.max(durations.balancer),
            false => durations.converge,
        };
        self.began.is_some_and(|began| now >= began + converge)
    }

    pub(crate) fn attempted(&self, verdict: Verdict, brought: Vec<AssertionOutcome>) -> Attempted {
        Attempted {
            check: self.check.id.clone(),
            number: self.attempted_so_far(),
            rounds: self.rounds,
            verdict,
            assertions: self.records(brought),
            came_apart: self.apart.assertions().to_vec(),
        }
    }

    fn records(&self, brought: Vec<AssertionOutcome>) -> Vec<AssertionRecord> {
        let both = self.check.assertions.iter().zip(brought);
        let records = both.map(|(planned, outcome)| outcome.into_record(planned));
        records.collect()
    }
}
