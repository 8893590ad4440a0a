//! Puts on record what takes time in a run and what it waits for, so that the critical path can be computed
//! afterwards.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;
use winconform_core::fixture::{FixtureKey, FixtureName};
use winconform_core::method::VantageKey;
use winconform_core::plan::Check;
use winconform_core::record::{Activity, After, Attempted, Event, Span, Tried};
use winconform_core::report::Doing;

use super::journal::Journal;
use crate::engine::scheduler::command::AssertionIx;
use crate::transport::{Api, Env};

/// The spans of a run. The executor reports to it what begins and ends, and it decides nothing.
pub(crate) struct Spans {
    journal: Journal,
    env: Env,
    began: Instant,
    next: u32,
    /// The pause between two rounds of one check with a vantage point.
    observe_again: Duration,
    /// How many API requests may be under way at once.
    in_flight: usize,
    /// The request that has just ended and made room for another, where there was none.
    made_room: Option<u32>,
    /// The span that every later one waits for: the plan, then the Lease.
    root: Option<u32>,
    fixtures: BTreeMap<FixtureKey, u32>,
    applying: BTreeMap<FixtureKey, Begun>,
    asking: BTreeMap<AssertionIx, Begun>,
    in_exec_session: BTreeMap<VantageKey, Begun>,
    checks: BTreeMap<usize, Rounds>,
    /// Whether a repetition has begun: further spans would let a long run's record grow without bounds.
    over: bool,
}

/// Something under way.
pub(crate) struct Begun {
    id: u32,
    what: Activity,
    at: Instant,
    after: Vec<After>,
}

/// The spans of the assertions in a check's round under way, and of those in the round before.
#[derive(Default)]
struct Rounds {
    before: Vec<u32>,
    now: BTreeMap<usize, u32>,
}

impl Spans {
    pub(crate) fn new(journal: Journal, began: Instant, api: &Api) -> Self {
        Self {
            journal,
            env: api.env().clone(),
            began,
            next: 0,
            observe_again: api.durations().observe_again,
            in_flight: api.limits().api_in_flight,
            made_room: None,
            root: None,
            fixtures: BTreeMap::new(),
            applying: BTreeMap::new(),
            asking: BTreeMap::new(),
            in_exec_session: BTreeMap::new(),
            checks: BTreeMap::new(),
            over: false,
        }
    }

    pub(crate) fn began(&self) -> Instant {
        self.began
    }

    /// Something begins that everything later waits for.
    pub(crate) fn stage(&mut self, what: Activity) -> Begun {
        let begun = self.begin(what, Instant::now(), &[]);
        self.shows(&begun, 0);
        begun
    }

    /// Shows what begins. API requests are many and short.
    fn shows(&self, begun: &Begun, transfers: usize) {
        self.journal
            .show(|| Doing::Begins(begun.what.clone(), transfers));
    }

    pub(crate) fn passed(&mut self, stage: Begun) {
        self.root = Some(stage.id);
        self.end(stage);
    }

    pub(crate) fn applies(&mut self, key: &FixtureKey) {
        let namespaces = FixtureName::NAMESPACES.in_pool(None);
        // Every fixture needs the namespaces
        let before = self.fixtures.get(&namespaces).copied();
        let before: Vec<_> = before.into_iter().map(at_once).collect();
        let begun = self.begin(Activity::Fixture(key.clone()), Instant::now(), &before);
        self.shows(&begun, 0);
        self.applying.insert(key.clone(), begun);
    }

    pub(crate) fn fixture_done(&mut self, key: &FixtureKey) {
        if let Some(begun) = self.applying.remove(key) {
            self.fixtures.insert(key.clone(), begun.id);
            self.end(begun);
        }
    }

    /// An API request begins, this long after the round before.
    pub(crate) fn asks(&mut self, assertion: AssertionIx, check: &Check, pause: Duration) {
        let mut after = self.due(assertion, check, pause);
        after.extend(self.made_room.take().map(at_once));
        let begun = self.begin(Activity::Request, Instant::now(), &after);
        self.in_span(assertion, begun.id);
        self.asking.insert(assertion, begun);
    }

    pub(crate) fn asked(&mut self, assertion: AssertionIx) {
        let full = self.asking.len() >= self.in_flight;
        if let Some(begun) = self.asking.remove(&assertion) {
            self.made_room = full.then_some(begun.id);
            self.end(begun);
        }
    }

    pub(crate) fn exec_sessions<'c>(
        &mut self,
        from: &VantageKey,
        assertions: impl Iterator<Item = (AssertionIx, &'c Check)>,
    ) {
        let mut after: BTreeMap<u32, After> = BTreeMap::new();
        let mut session = Vec::new();
        for (assertion, check) in assertions {
            for one in self.due(assertion, check, self.observe_again) {
                // The longest pause before an assertion counts for the whole session
                let known = after.entry(one.id).or_insert(one);
                known.pause_ms = known.pause_ms.max(one.pause_ms);
            }
            session.push(assertion);
        }
        let after: Vec<_> = after.into_values().collect();
        let begun = self.begin(Activity::ExecSession(from.clone()), Instant::now(), &after);
        self.shows(&begun, session.len());
        for assertion in session {
            self.in_span(assertion, begun.id);
        }
        self.in_exec_session.insert(from.clone(), begun);
    }

    pub(crate) fn exec_session_done(&mut self, from: &VantageKey) {
        if let Some(begun) = self.in_exec_session.remove(from) {
            self.end(begun);
        }
    }

    /// Puts an attempt on record that began this long after the start, and ends now.
    pub(crate) fn attempted(&self, mut attempt: Attempted, began: Duration) {
        let (took, now) = (self.began.elapsed().saturating_sub(began), self.env.now());
        attempt.tried = Some(Tried {
            began: now.saturating_sub(took).unwrap_or(now),
            took_ms: millis(took),
        });
        // The run asks the journal whether the record's file failed
        let _ = self.journal.write(Event::Attempt(attempt));
    }

    /// Everything that could begin has begun: nothing waits for room.
    pub(crate) fn settled(&mut self) {
        self.made_room = None;
    }

    /// Another repetition begins: no more spans.
    pub(crate) fn repeats(&mut self) {
        self.over = true;
    }

    /// The spans that have to end before an assertion: the fixtures of its whole check, and the round before.
    fn due(&mut self, assertion: AssertionIx, check: &Check, pause: Duration) -> Vec<After> {
        let rounds = self.checks.entry(assertion.check).or_default();
        if rounds.now.contains_key(&assertion.assertion) {
            rounds.before = std::mem::take(&mut rounds.now).into_values().collect();
        }
        let pause_ms = millis(pause);
        let before = rounds.before.iter().map(|id| After { id: *id, pause_ms });
        let needs = check.depends_on();
        let needs = needs.filter_map(|(key, _)| self.fixtures.get(&key).copied());
        let mut after: Vec<_> = before.chain(needs.map(at_once)).collect();
        after.sort_unstable_by_key(|after| after.id);
        after.dedup_by_key(|after| after.id);
        after
    }

    fn in_span(&mut self, assertion: AssertionIx, id: u32) {
        let rounds = self.checks.entry(assertion.check).or_default();
        rounds.now.insert(assertion.assertion, id);
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
        self.journal.show(|| Doing::Ends(begun.what.clone()));
        if self.over {
            return;
        }
        let span = Span {
            id: begun.id,
            what: begun.what,
            began_ms: millis(begun.at.duration_since(self.began)),
            took_ms: millis(begun.at.elapsed()),
            after: begun.after,
        };
        // The run asks the journal whether the record's file failed
        let _ = self.journal.write(Event::Span(span));
    }
}

fn at_once(id: u32) -> After {
    After { id, pause_ms: 0 }
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use winconform_core::claims::{ClaimId, ClaimType};
    use winconform_core::fixture::Need;
    use winconform_core::method::{Assertion, SourceKind, StateExpectation, StateQuery, Test};
    use winconform_core::plan::{CheckId, Disposition, Point};
    use winconform_core::verdict::{Role, Scope};

    use super::super::journal::tests::of_run;
    use winconform_core::plan::PlannedAssertion;

    use super::*;
    use crate::cluster::fake::Fake;

    /// The pause between two rounds without a vantage point.
    const PAUSE: Duration = Duration::from_secs(5);

    fn spans() -> (Spans, Journal) {
        let journal = of_run();
        let spans = Spans::new(journal.clone(), Instant::now(), &Fake::default().api());
        (spans, journal)
    }

    fn linux_pod() -> VantageKey {
        VantageKey {
            kind: SourceKind::LinuxPod,
            pool: None,
            node: None,
        }
    }

    /// A check with an assertion from a Linux pod at a Windows sample, and one at the API server.
    fn check() -> Check {
        let assertion = |name: &str, from, needs| PlannedAssertion {
            name: name.to_owned(),
            role: Role::SamePath,
            from,
            needs,
            test: Test::State(Assertion {
                query: StateQuery::Pods(FixtureName::WIN_WEBSERVER),
                expectation: StateExpectation::Ready { pods: 2 },
            }),
            presumed: None,
        };
        let sample = (FixtureName::WIN_WEBSERVER.in_pool(None), Need::Ready);
        let claim = ClaimId::parse("net.claim").expect("an id");
        Check {
            id: CheckId::new(&claim, None, &Point::default()),
            claim,
            claim_type: ClaimType::Capability,
            title: String::new(),
            hint: String::new(),
            when: Vec::new(),
            point: Point::default(),
            represents_all: false,
            build: None,
            image: None,
            limitation: None,
            scope: Scope::Within,
            reads: BTreeSet::new(),
            disposition: Disposition::Observe,
            assertions: vec![
                assertion("test", Some(linux_pod()), vec![sample]),
                assertion("control", None, Vec::new()),
            ],
        }
    }

    fn assertion(assertion: usize) -> AssertionIx {
        AssertionIx {
            check: 0,
            assertion,
        }
    }

    /// What each span waited for, with the pause, by its number.
    fn waited(journal: &Journal) -> Vec<(u32, Vec<(u32, u64)>)> {
        let view = journal.view().expect("a record");
        let waited = view.spans.iter().map(|span| {
            let after = span.after.iter();
            (
                span.id,
                after.map(|after| (after.id, after.pause_ms)).collect(),
            )
        });
        let mut waited: Vec<_> = waited.collect();
        waited.sort_unstable();
        waited
    }

    #[tokio::test(start_paused = true)]
    async fn a_round_waits_for_what_its_check_needs_and_for_the_round_before() {
        let (mut spans, journal) = spans();
        let plan = spans.stage(Activity::Plan);
        spans.passed(plan);
        let both = [FixtureName::NAMESPACES, FixtureName::WIN_WEBSERVER];
        let [namespaces, sample] = both.map(|name| name.in_pool(None));
        let prober = linux_pod().prober().expect("a pod is one");
        spans.applies(&namespaces);
        spans.fixture_done(&namespaces);
        spans.applies(&sample);
        spans.applies(&prober);
        spans.fixture_done(&prober);
        spans.fixture_done(&sample);
        let (check, from) = (check(), linux_pod());
        for _ in 0..2 {
            spans.asks(assertion(1), &check, PAUSE);
            spans.exec_sessions(&from, [(assertion(0), &check)].into_iter());
            spans.asked(assertion(1));
            spans.exec_session_done(&from);
        }
        let (pause, swept) = (millis(PAUSE), 500);
        assert_eq!(
            waited(&journal),
            [
                (0, vec![]),
                (1, vec![(0, 0)]),
                (2, vec![(1, 0)]),
                (3, vec![(1, 0)]),
                // The first round: both assertions wait for what either needs
                (4, vec![(2, 0), (3, 0)]),
                (5, vec![(2, 0), (3, 0)]),
                // The second
                (6, vec![(2, 0), (3, 0), (4, pause), (5, pause)]),
                (7, vec![(2, 0), (3, 0), (4, swept), (5, swept)]),
            ]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn spans_say_when_they_began_and_how_long_they_took() {
        let (mut spans, journal) = spans();
        tokio::time::advance(Duration::from_millis(20)).await;
        let plan = spans.stage(Activity::Plan);
        tokio::time::advance(Duration::from_millis(300)).await;
        spans.passed(plan);
        let view = journal.view().expect("a record");
        let times = view.spans.iter().map(|span| (span.began_ms, span.took_ms));
        assert_eq!(times.collect::<Vec<_>>(), [(20, 300)]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_look_that_waits_for_room_comes_after_the_one_that_made_it() {
        let (mut spans, journal) = spans();
        let check = check();
        let assertion = |check| AssertionIx {
            check,
            assertion: 1,
        };
        let most = spans.in_flight;
        for index in 0..most {
            spans.asks(assertion(index), &check, PAUSE);
        }
        spans.settled();
        // The fourth ends: another takes its place
        spans.asked(assertion(3));
        spans.asks(assertion(most), &check, PAUSE);
        spans.settled();
        // The fifth ends, and nothing waits: what comes later found room
        spans.asked(assertion(4));
        spans.settled();
        spans.asks(assertion(most + 1), &check, PAUSE);
        for index in [most, most + 1] {
            spans.asked(assertion(index));
        }
        let waited = waited(&journal).into_iter().map(|(_, after)| after);
        let waited: Vec<_> = waited.collect();
        assert_eq!(waited, [vec![], vec![], vec![(3, 0)], vec![]]);
    }

    #[tokio::test(start_paused = true)]
    async fn repetitions_leave_no_spans() {
        let (mut spans, journal) = spans();
        spans.asks(assertion(1), &check(), PAUSE);
        spans.asked(assertion(1));
        spans.repeats();
        spans.asks(assertion(1), &check(), PAUSE);
        spans.asked(assertion(1));
        assert_eq!(waited(&journal), [(0, vec![])]);
    }
}
