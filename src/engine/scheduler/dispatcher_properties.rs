//! What holds for the dispatcher, whatever happens and in whatever order.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use proptest::prelude::*;
use serde_json::json;
use winconform_core::claims::{ClaimId, ClaimType};
use winconform_core::config::{Durations, Limits};
use winconform_core::facts::{IpFamily, PoolName, WindowsBuild};
use winconform_core::fixture::{FixtureKey, FixtureName, Need};
use winconform_core::method::{
    AT_LEAST, AdmissionExpectation, AdmissionQuery, Assertion, Change, Comparison, ContainerKind,
    Difference, ErrorKind, Evaluated, Hindrance, HttpExpectation, HttpQuery, ObservationError,
    PlacedPod, PlacementExpectation, SourceKind, StateExpectation, StateQuery, Target, Test,
    VantageKey, Workload,
};
use winconform_core::plan::{Check, CheckId, Disposition, Plan, PlannedAssertion, Point};
use winconform_core::verdict::{Conclusion, Role, Scope, SkipReason, Verdict};

use super::command::{AssertionIx, AssertionOutcome, Command, Input};
use super::dispatcher::Dispatcher;
use super::repeat::{Leave, Repeat};
use super::room::{Load, Loads};

/// How one assertion turns out in a generated world.
#[derive(Clone, Copy, Debug)]
enum Turn {
    Met,
    NotMet,
    Unexpected,
    ObservationError,
    Lasting,
    /// Somebody deletes a fixture that it depends on.
    Changed,
}

fn outcome(turn: Turn) -> AssertionOutcome {
    let difference = || Difference {
        expected: "this".to_owned(),
        seen: "that".to_owned(),
    };
    let evaluated = |comparison| {
        Ok(Evaluated {
            observation: serde_json::Value::Null,
            comparison,
        })
    };
    let evaluated = match turn {
        Turn::Met => evaluated(Comparison::Met(difference())),
        Turn::NotMet => evaluated(Comparison::NotMet(difference())),
        Turn::Unexpected => evaluated(Comparison::Unexpected(difference())),
        Turn::ObservationError => Err(ErrorKind::ExecTransport.error("cut")),
        Turn::Lasting => Err(ErrorKind::ToolMissing.error("no curl")),
        Turn::Changed => Err(changed()),
    };
    let reply = None;
    AssertionOutcome { reply, evaluated }
}

fn changed() -> ObservationError {
    ErrorKind::FixtureChanged.error("Service a/b was deleted")
}

fn pool(index: usize) -> PoolName {
    let builds = [
        WindowsBuild::SERVER_2019,
        WindowsBuild::SERVER_2022,
        WindowsBuild::SERVER_2025,
    ];
    PoolName::windows(builds[index % builds.len()])
}

/// An assertion without a vantage point.
fn look(needs: FixtureKey, need: Need, test: Test) -> PlannedAssertion {
    PlannedAssertion {
        name: "test".to_owned(),
        role: Role::SamePath,
        from: None,
        needs: vec![(needs, need)],
        test,
        presumed: None,
    }
}

fn http(kind: SourceKind, pool: &PoolName) -> PlannedAssertion {
    let query = HttpQuery {
        of: Some(FixtureName::WIN_WEBSERVER),
        through: None,
        target: Target::ServiceIp,
    };
    let expectation = HttpExpectation::Answers {
        status: 200,
        body: "marker".to_owned(),
    };
    let key = FixtureName::WIN_WEBSERVER.in_pool(Some(pool));
    let from = VantageKey {
        kind,
        node: None,
        pool: match kind {
            SourceKind::LinuxPod | SourceKind::LinuxNode => Some(PoolName::linux()),
            SourceKind::WindowsPod | SourceKind::WindowsNode => Some(pool.clone()),
            SourceKind::Outside => None,
        },
    };
    PlannedAssertion {
        from: Some(from),
        ..look(
            key,
            Need::Ready,
            Test::Http(Assertion { query, expectation }),
        )
    }
}

fn admission() -> PlannedAssertion {
    let query = AdmissionQuery {
        os: None,
        workload: Workload::Pod,
        container: ContainerKind::Container,
        change: Change::Create,
        with: json!({}),
        field: "spec.hostPID".to_owned(),
        value: None,
    };
    let expectation = AdmissionExpectation::Accepted;
    let test = Test::Admission(Assertion { query, expectation });
    look(FixtureName::NAMESPACES.in_pool(None), Need::Ready, test)
}

/// An assertion that observes whether a fixture is ready.
fn pods(pool: &PoolName) -> PlannedAssertion {
    let name = FixtureName::WIN_WEBSERVER;
    let query = StateQuery::Pods(name);
    let expectation = StateExpectation::Ready { pods: 2 };
    let test = Test::State(Assertion { query, expectation });
    look(name.in_pool(Some(pool)), Need::Settled, test)
}

fn check(index: usize, form: usize) -> Check {
    let pool = pool(form / 7);
    let skipped = SkipReason::NoUsableNode {
        of: "windows".to_owned(),
        why: Vec::new(),
    };
    let of = |kind| http(kind, &pool);
    let (kind, assertions) = match form % 7 {
        0 => (ClaimType::Capability, vec![of(SourceKind::WindowsPod)]),
        1 => {
            let both = [SourceKind::WindowsNode, SourceKind::WindowsPod];
            (ClaimType::Limitation, both.map(of).to_vec())
        }
        2 => (ClaimType::Rejection, vec![admission(); 3]),
        3 => (ClaimType::Informational, vec![of(SourceKind::LinuxPod)]),
        4 => (ClaimType::Capability, Vec::new()),
        5 => (ClaimType::Capability, vec![pods(&pool)]),
        _ => (ClaimType::Requirement, vec![admission()]),
    };
    let disposition = match assertions.is_empty() {
        true => Disposition::Skip(skipped),
        false => Disposition::Observe,
    };
    let claim = ClaimId::parse("net.claim").expect("an id");
    Check {
        id: CheckId::new(&claim, Some(&index.to_string()), &Point::default()),
        claim,
        claim_type: kind,
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
        disposition,
        assertions,
    }
}

/// A world in which every command is performed, in an order chosen by `choices`.
struct World {
    dispatcher: Dispatcher,
    limits: Limits,
    now: Duration,
    wake: Option<Duration>,
    pending: Vec<Input>,
    asking: BTreeSet<AssertionIx>,
    confirming: BTreeSet<AssertionIx>,
    in_exec_session: BTreeSet<VantageKey>,
    /// By check, whether its last exec session sent one request where it otherwise sends many.
    once: BTreeMap<usize, bool>,
    /// By check, whether its last exec session had to read the fixtures that it depends on.
    settles: BTreeMap<usize, bool>,
    verdicts: BTreeMap<usize, Verdict>,
    conclusions: Vec<Conclusion>,
    repetitions: u32,
    recorded: usize,
    /// The verdicts of each check's attempts on record, and how many of these had rounds that differ.
    attempts: BTreeMap<CheckId, Vec<Verdict>>,
    apart: usize,
    applied: BTreeMap<FixtureKey, usize>,
    /// The fixtures whose pods start.
    starting: BTreeSet<FixtureKey>,
    /// How often somebody else deleted each fixture.
    deleted: BTreeMap<FixtureKey, usize>,
    exec_sessions: usize,
    confirmations: usize,
    torn_down: bool,
}

impl World {
    fn step(&mut self, input: Input, turns: &mut impl Iterator<Item = Turn>) {
        match &input {
            Input::Asked(assertion, _) => assert!(self.asking.remove(assertion)),
            Input::Confirmed(assertion, _) => assert!(self.confirming.remove(assertion)),
            Input::SessionReplies(from, _) => assert!(self.in_exec_session.remove(from)),
            Input::Ready(key) | Input::Failed(key, _) => _ = self.starting.remove(key),
            _ => {}
        }
        let commands = self.dispatcher.step(self.now, input);
        for (index, command) in commands.iter().enumerate() {
            assert!(!self.torn_down, "a command after tear-down: {command:?}");
            self.obey(command, turns);
            if matches!(command, Command::TearDown) {
                assert_eq!(index + 1, commands.len(), "tear-down is the last command");
            }
        }
    }

    fn obey(&mut self, command: &Command, turns: &mut impl Iterator<Item = Turn>) {
        let mut turn = || turns.next().unwrap_or(Turn::Met);
        match command {
            Command::Apply(key) => {
                let times = |of: &BTreeMap<_, _>| of.get(key).copied().unwrap_or_default();
                let (applied, gone): (usize, usize) = (times(&self.applied), times(&self.deleted));
                // The namespaces are applied again with any fixture that a repetition applies again
                let anew = match key.name {
                    FixtureName::NAMESPACES => self.repetitions as usize - 1,
                    _ => 0,
                };
                let needed = gone..=gone + anew;
                assert!(needed.contains(&applied), "{key} is applied without need");
                *self.applied.entry(key.clone()).or_default() += 1;
                let most = 2 * self.repetitions as usize;
                assert!(self.applied[key] <= most, "{key} is applied ever again");
                self.starts(key);
                self.pending.push(match turn() {
                    Turn::Changed => {
                        *self.deleted.entry(key.clone()).or_default() += 1;
                        Input::Failed(key.clone(), changed())
                    }
                    Turn::Lasting => {
                        let error = ErrorKind::ImagePull.error("no such image");
                        Input::Failed(key.clone(), error)
                    }
                    // A workload that crashes: checks that observe just that go on
                    Turn::ObservationError if key.name == FixtureName::WIN_WEBSERVER => {
                        let error = ErrorKind::FixtureFailed.error("it crashes");
                        Input::Failed(key.clone(), error)
                    }
                    _ => Input::Ready(key.clone()),
                });
            }
            Command::Observe(assertion) => {
                let is_new = self.asking.insert(*assertion);
                assert!(is_new, "{assertion:?} is asked twice at once");
                let most = self.limits.api_in_flight;
                assert!(self.asking.len() <= most, "too much at once");
                let turn = turn();
                self.take_away(*assertion, turn);
                self.pending.push(Input::Asked(*assertion, outcome(turn)));
            }
            Command::ExecSession(from, assertions) => {
                self.exec_sessions += 1;
                let is_new = self.in_exec_session.insert(from.clone());
                assert!(is_new, "{from} has two exec sessions at once");
                let most = self.limits.assertions_per_exec_session;
                assert!(!assertions.is_empty() && assertions.len() <= most);
                let turns: Vec<_> = assertions
                    .iter()
                    .map(|assertion| (*assertion, turn()))
                    .collect();
                for (assertion, turn) in &turns {
                    self.take_away(*assertion, *turn);
                    let state = self.dispatcher.state(assertion.check);
                    let state = state.expect("it is planned");
                    let once = state.asks_once(&self.limits);
                    self.once.insert(assertion.check, once);
                    let settles = state.may_settle(&self.limits);
                    self.settles.insert(assertion.check, settles);
                }
                let outcomes = turns
                    .iter()
                    .map(|(assertion, turn)| (*assertion, outcome(*turn)));
                let outcomes = outcomes.collect();
                self.pending
                    .push(Input::SessionReplies(from.clone(), outcomes));
            }
            Command::Confirm(assertion, seen) => {
                self.confirmations += 1;
                assert!(
                    self.confirming.insert(*assertion),
                    "{assertion:?} is confirmed twice at once"
                );
                let outcome = match turn() {
                    turn @ (Turn::ObservationError | Turn::Lasting) => outcome(turn),
                    turn @ Turn::Changed => {
                        self.take_away(*assertion, turn);
                        outcome(turn)
                    }
                    Turn::Met | Turn::NotMet | Turn::Unexpected => seen.clone(),
                };
                self.pending.push(Input::Confirmed(*assertion, outcome));
            }
            Command::WakeAt(at) => {
                assert!(*at > self.now, "to wake in the past");
                self.wake = Some(*at);
            }
            Command::Attempted(attempt, _) => {
                self.recorded += 1;
                self.apart += usize::from(!attempt.came_apart.is_empty());
                let attempts = self.attempts.entry(attempt.check.clone()).or_default();
                attempts.push(attempt.verdict);
            }
            Command::Repeat(number) => {
                self.repetitions += 1;
                assert_eq!(*number, self.repetitions);
            }
            Command::Conclude(check, conclusion) => self.conclude(*check, conclusion),
            Command::Remove { key, .. } => self.remove(key),
            Command::TearDown => self.torn_down = true,
        }
    }
}

impl World {
    fn starts(&mut self, key: &FixtureKey) {
        self.starting.insert(key.clone());
        let (loads, starting) = (loads(), &self.starting);
        let starting = starting.iter().filter_map(|key| loads.get(key)?.get("win"));
        let starting: u64 = starting.map(|load| load.pods).sum();
        assert!(starting <= 4, "{starting} pods start on one node");
    }

    fn remove(&mut self, key: &FixtureKey) {
        for state in (0..).map_while(|index| self.dispatcher.state(index)) {
            let mut needs = state.check.depends_on();
            let is_over = state.stage.is_done() || !needs.any(|(needed, _)| needed == *key);
            assert!(is_over, "{key} is removed under {}", state.check.id);
        }
        // Unless somebody has deleted it already
        let applied = self.applied.get(key).copied().unwrap_or_default();
        let deleted = self.deleted.entry(key.clone()).or_default();
        *deleted = applied.max(*deleted);
        self.pending.push(Input::Removed(key.clone(), true));
    }

    fn conclude(&mut self, check: usize, conclusion: &Conclusion) {
        let before = self.verdicts.insert(check, conclusion.verdict);
        assert!(before.is_none(), "check {check} is concluded twice");
        let whole = self.once.get(&check) != Some(&true) || self.repetitions > 1;
        assert!(
            whole || !matches!(conclusion.verdict, Verdict::Pass | Verdict::Informational),
            "check {check} came to {conclusion:?} by asking once"
        );
        let asked = self.settles.get(&check) != Some(&false) || self.repetitions > 1;
        let told = [
            Verdict::Pass,
            Verdict::KnownLimitation,
            Verdict::Informational,
        ];
        assert!(
            asked || !told.contains(&conclusion.verdict),
            "check {check} came to {conclusion:?} without asking what it rests on"
        );
        self.conclusions.push(conclusion.clone());
    }

    /// Deletes the fixture of an assertion and reports that, once for each time that it was applied.
    fn take_away(&mut self, assertion: AssertionIx, turn: Turn) {
        let state = self.dispatcher.state(assertion.check);
        let check = &state.expect("it is planned").check;
        let needs = &check.assertions[assertion.assertion].needs;
        if let (Turn::Changed, Some((key, _))) = (turn, needs.first())
            && key.name != FixtureName::NAMESPACES
            && self.applied.get(key) > self.deleted.get(key)
        {
            *self.deleted.entry(key.clone()).or_default() += 1;
            self.pending.push(Input::Failed(key.clone(), changed()));
        }
    }
}

/// Two pods of each of these fixtures, all on one node.
fn loads() -> Loads {
    let names = [
        FixtureName::WIN_WEBSERVER,
        FixtureName::WINDOWS_POD_PROBER,
        FixtureName::WINDOWS_NODE_PROBER,
    ];
    let keys = names
        .into_iter()
        .flat_map(|name| (0..3).map(move |index| name.in_pool(Some(&pool(index)))));
    let load = Load {
        pods: 2,
        addresses: 2,
    };
    keys.map(|key| (key, [("win".to_owned(), load)].into()))
        .collect()
}

const LAST: Leave = Leave::InTheLastRepetition;

fn run(forms: &[usize], turns: Vec<Turn>, choices: &[usize], stop_at: Option<usize>) -> World {
    repeated((Repeat::Times(1), LAST), forms, turns, choices, stop_at)
}

/// A world in which nothing has happened yet.
fn begun((repeat, leave): (Repeat, Leave), forms: &[usize]) -> World {
    let checks = forms.iter().enumerate();
    let checks: Vec<_> = checks.map(|(i, form)| check(i, *form)).collect();
    let limits = Limits {
        api_in_flight: 2,
        assertions_per_exec_session: 2,
        ..Limits::default()
    };
    let durations = Durations {
        converge: Duration::from_secs(3),
        ..Durations::default()
    };
    World {
        dispatcher: Dispatcher::new(
            Plan { checks },
            repeat,
            (loads(), leave),
            &durations,
            &limits,
        ),
        starting: BTreeSet::new(),
        limits,
        now: Duration::ZERO,
        wake: None,
        pending: Vec::new(),
        asking: BTreeSet::new(),
        confirming: BTreeSet::new(),
        in_exec_session: BTreeSet::new(),
        once: BTreeMap::new(),
        settles: BTreeMap::new(),
        verdicts: BTreeMap::new(),
        conclusions: Vec::new(),
        repetitions: 1,
        recorded: 0,
        attempts: BTreeMap::new(),
        apart: 0,
        applied: BTreeMap::new(),
        deleted: BTreeMap::new(),
        exec_sessions: 0,
        confirmations: 0,
        torn_down: false,
    }
}

fn repeated(
    repeat: (Repeat, Leave),
    forms: &[usize],
    turns: Vec<Turn>,
    choices: &[usize],
    stop_at: Option<usize>,
) -> World {
    let mut world = begun(repeat, forms);
    let mut turns = turns.into_iter();
    world.step(Input::Started, &mut turns);
    for step in 0..10_000 {
        if world.torn_down {
            break;
        }
        if stop_at == Some(step) {
            world.step(Input::Stop(SkipReason::Interrupted), &mut turns);
            continue;
        }
        let choice = choices[step % choices.len()];
        let input = match (world.pending.is_empty(), world.wake) {
            (false, _) => world.pending.remove(choice % world.pending.len()),
            (true, Some(at)) => {
                world.now = at;
                world.wake = None;
                Input::Woken
            }
            (true, None) => panic!("nothing is under way and the run is not over"),
        };
        world.now += Duration::from_millis(7);
        world.step(input, &mut turns);
    }
    assert!(world.torn_down, "the run never ends");
    // What was under way when tear-down began may still report; nothing may come of it
    for input in std::mem::take(&mut world.pending) {
        assert!(world.dispatcher.step(world.now, input).is_empty());
    }
    world
}

fn turn() -> impl Strategy<Value = Turn> {
    prop_oneof![
        4 => Just(Turn::Met),
        2 => Just(Turn::NotMet),
        1 => Just(Turn::Unexpected),
        1 => Just(Turn::ObservationError),
        1 => Just(Turn::Lasting),
        1 => Just(Turn::Changed),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn every_check_is_concluded_once_and_tear_down_is_last(
        forms in prop::collection::vec(0_usize..21, 0..12),
        turns in prop::collection::vec(turn(), 0..300),
        choices in prop::collection::vec(0_usize..97, 1..40),
        stop_at in prop::option::of(0_usize..40),
        times in 1_u32..4,
        leave in prop::sample::select(vec![Leave::Never, LAST, Leave::InEach]),
    ) {
        let world = repeated((Repeat::Times(times), leave), &forms, turns, &choices, stop_at);
        prop_assert_eq!(world.verdicts.len(), forms.len());
        prop_assert!(world.repetitions <= times);
        for (index, verdict) in world.verdicts.iter().filter(|_| times == 1) {
            let id = &world.dispatcher.state(*index).expect("it is planned").check.id;
            let attempts = world.attempts.get(id).map_or(&[][..], Vec::as_slice);
            prop_assert!(attempts.len() <= 4, "{:?}", attempts);
            let agree = attempts.iter().filter(|one| *one == verdict).count();
            let is_news = verdict.is_conclusive() && !verdict.is_expected();
            prop_assert!(!is_news || agree >= 2, "{} of {:?}", verdict, attempts);
        }
    }

    #[test]
    fn trouble_alone_makes_no_pass_and_no_fail(
        forms in prop::collection::vec(0_usize..21, 1..8),
        lasting in prop::collection::vec(any::<bool>(), 1..300),
        choices in prop::collection::vec(0_usize..97, 1..40),
    ) {
        // Fixtures are ready (only `Lasting` fails them, as a pull would), every assertion is an error
        let turns = lasting.iter().cycle().take(5_000);
        let turns = turns.map(|l| if *l { Turn::Lasting } else { Turn::ObservationError }).collect();
        let world = run(&forms, turns, &choices, None);
        for verdict in world.verdicts.values() {
            prop_assert!(matches!(verdict, Verdict::Inconclusive | Verdict::Skip), "{}", verdict);
        }
    }
}

#[test]
fn a_healthy_check_is_observed_twice_and_passes() {
    let world = run(&[0], Vec::new(), &[0], None);
    assert_eq!(world.verdicts.get(&0), Some(&Verdict::Pass));
    assert_eq!(world.exec_sessions, 2);
}

#[test]
fn a_failure_counts_once_another_attempt_confirms_it() {
    use Turn::{Met, NotMet, ObservationError};
    use Verdict::{Fail, Inconclusive, Pass};
    for (turns, verdict, flaky, attempts) in [
        (
            &[NotMet, ObservationError, ObservationError, ObservationError][..],
            Inconclusive,
            false,
            4,
        ),
        (
            &[ObservationError, NotMet, ObservationError, ObservationError],
            Inconclusive,
            false,
            4,
        ),
        (&[NotMet, ObservationError, NotMet], Fail, false, 3),
        (&[NotMet, NotMet], Fail, false, 2),
        (&[ObservationError, NotMet, Met], Pass, true, 3),
        (
            &[ObservationError, ObservationError],
            Inconclusive,
            false,
            2,
        ),
    ] {
        let turns = [Met].into_iter().chain(turns.iter().copied());
        let world = run(&[6], turns.collect(), &[0], None);
        let came = &world.conclusions[0];
        let came = (came.verdict, came.flaky, world.recorded);
        assert_eq!(came, (verdict, flaky, attempts));
    }
}

#[test]
fn after_a_failure_its_controls_are_observed_again_before_it_counts() {
    use Turn::{Met, NotMet, ObservationError};
    // Its own assertion, both controls, and these once more
    for (again, verdict) in [
        ([Met, Met], Verdict::Fail),
        ([NotMet, Met], Verdict::Inconclusive),
        ([Met, ObservationError], Verdict::Inconclusive),
    ] {
        let attempt = [NotMet, Met, Met].into_iter().chain(again);
        let attempt: Vec<_> = attempt.collect();
        let turns = [Met].into_iter().chain(attempt.repeat(4));
        let world = run(&[2], turns.collect(), &[0], None);
        assert_eq!(world.verdicts[&0], verdict, "{again:?}");
    }
}

#[test]
fn what_held_then_failed_and_holds_again_is_flaky_and_on_record() {
    use Turn::{Changed, Met, NotMet};
    for (rounds, flaky) in [
        (&[Met, NotMet, Met, Met][..], true),
        // Convergence takes time
        (&[NotMet, NotMet, Met, Met], false),
        // Its fixture is applied again
        (&[Met, NotMet, Changed, Met, Met, Met], false),
    ] {
        let ready = [Met; 3].into_iter();
        let turns = ready.chain(rounds.iter().copied()).collect();
        let world = run(&[0], turns, &[0], None);
        let came = &world.conclusions[0];
        assert_eq!((came.verdict, came.flaky), (Verdict::Pass, flaky));
        assert_eq!(world.apart, usize::from(flaky), "{rounds:?}");
    }
}

/// A pod is Ready before its server listens: that it refuses at first is no result.
#[test]
fn what_refuses_at_first_is_recorded_once_it_answers_or_never_will() {
    for (class, after, rounds) in [
        ("refused", 3, 4),
        // For all its time to converge: a minute, each half second
        ("refused", usize::MAX, 121),
        ("timeout", usize::MAX, 1),
    ] {
        let mut assertions = 0;
        let (conclusions, _) = played(vec![check(0, 3)], 1, |_, _, _| {
            assertions += 1;
            let answers = assertions > after;
            let mut assertion = outcome(if answers { Turn::Met } else { Turn::NotMet });
            let failed = json!({"by": null, "answer": {"failed": {"class": class}}});
            let targets = if answers { json!([]) } else { json!([failed]) };
            assertion.evaluated.as_mut().expect("taken").observation = json!({"targets": targets});
            assertion
        });
        assert_eq!(conclusions[0].verdict, Verdict::Informational);
        assert_eq!(assertions, rounds, "{class} until {after}");
    }
}

/// A random number (splitmix64).
fn chance(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// The conclusions of these checks, and how often each fixture is applied, where every fixture becomes ready
/// and `brings` gives the outcome of each assertion and the time that it takes.
fn played(
    checks: Vec<Check>,
    times: u32,
    mut brings: impl FnMut(&Dispatcher, AssertionIx, &mut Duration) -> AssertionOutcome,
) -> (Vec<Conclusion>, BTreeMap<FixtureKey, usize>) {
    let (durations, limits) = (Durations::default(), Limits::default());
    let (plan, repeat) = (Plan { checks }, Repeat::Times(times));
    let room = (Loads::new(), Leave::Never);
    let mut dispatcher = Dispatcher::new(plan, repeat, room, &durations, &limits);
    let (mut now, mut conclusions) = (Duration::ZERO, Vec::new());
    let mut applied = BTreeMap::new();
    let mut open = VecDeque::from(dispatcher.step(now, Input::Started));
    while let Some(command) = open.pop_front() {
        let input = match command {
            Command::Apply(key) => {
                *applied.entry(key.clone()).or_default() += 1;
                match key.name {
                    FixtureName::LINUX_SERVER => {
                        let error = ErrorKind::FixtureFailed.error("it crashes");
                        Input::Failed(key, error)
                    }
                    _ => Input::Ready(key),
                }
            }
            Command::ExecSession(from, assertions) => {
                let assertions = assertions.into_iter();
                let assertions = assertions
                    .map(|assertion| (assertion, brings(&dispatcher, assertion, &mut now)));
                Input::SessionReplies(from, assertions.collect())
            }
            Command::Confirm(assertion, seen) => Input::Confirmed(assertion, seen),
            Command::WakeAt(at) => {
                now = now.max(at);
                Input::Woken
            }
            Command::Conclude(_, conclusion) => {
                conclusions.push(conclusion);
                continue;
            }
            _ => continue,
        };
        open.extend(dispatcher.step(now, input));
    }
    (conclusions, applied)
}

#[test]
fn what_is_made_of_a_snapshot_is_observed_in_one_repetition_alone() {
    let restored = FixtureName::parse("disk-restored").expect("a fixture");
    let mut of_snapshot = check(0, 0);
    of_snapshot.assertions[0].needs = vec![(restored.in_pool(Some(&pool(0))), Need::Ready)];
    let mut observed = [0, 0];
    let (conclusions, applied) = played(vec![of_snapshot, check(1, 0)], 3, |_, ix, _| {
        observed[ix.check] += 1;
        outcome(Turn::Met)
    });
    // Each repetition takes two rounds that hold
    assert_eq!(observed, [2, 6]);
    assert_eq!(applied[&restored.in_pool(Some(&pool(0)))], 1);
    let verdicts: Vec<_> = conclusions.iter().map(|one| one.verdict).collect();
    assert_eq!(verdicts, [Verdict::Pass, Verdict::Pass]);
}

/// A check that each pod behind a Service answers.
fn balanced() -> Check {
    let mut balanced = check(0, 0);
    let Test::Http(assertion) = &mut balanced.assertions[0].test else {
        unreachable!("it is of HTTP")
    };
    assertion.query.target = Target::EveryPodBehindServiceIp;
    balanced
}

/// Whether each pod answers is chance; what a wrong one answers is not.
#[test]
fn a_wrong_answer_among_many_after_a_round_that_held_makes_a_check_flaky() {
    for (target, flaky) in [
        (json!({"by": null}), true),
        (json!({"by": "one of ours"}), false),
        // It does not listen yet
        (
            json!({"by": null, "answer": {"failed": {"class": "refused"}}}),
            false,
        ),
    ] {
        let mut assertions = 0;
        let (conclusions, _) = played(vec![balanced()], 1, |_, _, _| {
            assertions += 1;
            let mut second = outcome(if assertions == 2 {
                Turn::Unexpected
            } else {
                Turn::Met
            });
            second.evaluated.as_mut().expect("taken").observation = json!({"targets": [target]});
            second
        });
        let came = (conclusions[0].verdict, conclusions[0].flaky);
        assert_eq!(came, (Verdict::Pass, flaky), "{target}");
    }
}

/// A Service loses one connection in five, and a round sends `AT_LEAST` requests once it has answered.
#[test]
fn a_loss_of_one_in_five_is_found_in_95_of_100_runs() {
    let found = |seed: u64| {
        let mut state = seed << 32;
        let (conclusions, _) = played(vec![balanced()], 1, |dispatcher, _, now| {
            let check = dispatcher.state(0).expect("it is planned");
            let once = check.asks_once(&Limits::default());
            let requests = 0..if once { 1 } else { AT_LEAST };
            let lost = requests
                .filter(|_| chance(&mut state).is_multiple_of(5))
                .count();
            // Each as long as its time-out
            *now += Duration::from_secs(4 * lost as u64);
            let mut outcome = outcome(if lost > 0 { Turn::NotMet } else { Turn::Met });
            let targets = vec![json!({"by": null}); lost];
            outcome.evaluated.as_mut().expect("taken").observation = json!({"targets": targets});
            outcome
        });
        conclusions[0].flaky || conclusions[0].verdict == Verdict::Fail
    };
    let found = (0..400).filter(|seed| found(*seed)).count();
    assert!(found >= 380, "{found} of 400");
}

/// A check fails for Windows throughout, and for Linux in `lasts` observations in a row.
#[test]
fn what_passes_for_linux_excuses_nothing_that_lasts_for_windows() {
    for (first, lasts) in (1..150).flat_map(|first| [(first, 1), (first, 3)]) {
        let mut both = check(0, 0);
        both.assertions.push(both.assertions[0].clone());
        both.assertions[1].role = Role::OtherOs;
        let mut seen = 0;
        let (conclusions, _) = played(vec![both], 1, |_, ix, _| {
            seen += ix.assertion;
            let fails = ix.assertion == 0 || (first..first + lasts).contains(&seen);
            outcome(if fails { Turn::NotMet } else { Turn::Met })
        });
        let verdict = conclusions[0].verdict;
        let is_untold = lasts > 1 && verdict == Verdict::Inconclusive;
        assert!(
            is_untold || verdict == Verdict::Fail,
            "{verdict}: {lasts} from {first}"
        );
    }
}

/// Each observation takes as long as many time-outs. Where Linux fails only once, the check's own assertion is observed
/// again.
#[test]
fn what_fails_for_linux_too_waits_for_its_own_time_outs_once() {
    for (linux, verdict, own) in [
        (&[Turn::NotMet, Turn::NotMet][..], Verdict::Skip, 1),
        (&[Turn::NotMet, Turn::Met], Verdict::Fail, 2),
    ] {
        let mut both = check(0, 0);
        both.assertions.push(both.assertions[0].clone());
        both.assertions[1].role = Role::OtherOs;
        let (mut asked, mut of_linux) = (0, linux.iter().copied());
        let (conclusions, _) = played(vec![both], 1, |dispatcher, ix, now| {
            *now += Duration::from_secs(90);
            let attempts = dispatcher.state(0).map(|state| state.attempts.len());
            match ix.assertion {
                0 => asked += usize::from(attempts == Some(0)),
                _ => return outcome(of_linux.next().unwrap_or(Turn::Met)),
            }
            outcome(Turn::NotMet)
        });
        assert_eq!((conclusions[0].verdict, asked), (verdict, own), "{linux:?}");
    }
}

#[test]
fn what_works_is_told_without_the_control_of_another_system() {
    for (turn, expected) in [
        (Turn::Met, Verdict::Pass),
        (Turn::NotMet, Verdict::Inconclusive),
    ] {
        let mut both = check(0, 0);
        let mut control = both.assertions[0].clone();
        control.role = Role::OtherOs;
        control.needs = vec![(FixtureName::LINUX_SERVER.in_pool(None), Need::Ready)];
        both.assertions.push(control);
        let (conclusions, _) = played(vec![both], 1, |_, ix, _| {
            assert_eq!(ix.assertion, 0, "the control's fixture is not there");
            outcome(turn)
        });
        assert_eq!(conclusions[0].verdict, expected);
    }
}

#[test]
fn everything_is_observed_again_as_often_as_asked_for() {
    let world = repeated((Repeat::Times(3), LAST), &[0, 4, 6], Vec::new(), &[0], None);
    assert_eq!((world.repetitions, world.verdicts.len()), (3, 3));
    assert_eq!(world.exec_sessions, 6);
    // One attempt of each, since nothing has changed
    assert_eq!(world.recorded, 2);
    let times = world.conclusions.iter();
    let times: Vec<_> = times.map(|one| one.repeated.clone()).collect();
    let thrice = BTreeMap::from([(Verdict::Pass, 3)]);
    // A check that its plan skips is concluded at once
    assert_eq!(times, [BTreeMap::new(), thrice.clone(), thrice]);
}

#[test]
fn what_fails_in_one_repetition_has_failed_and_is_flaky() {
    // Three fixtures and two rounds of four repetitions hold, then two attempts fail, the first in two rounds
    let turns = [Turn::Met; 11].into_iter().chain([Turn::NotMet; 3]);
    let world = repeated((Repeat::Times(6), LAST), &[0], turns.collect(), &[0], None);
    let [conclusion] = world.conclusions.as_slice() else {
        panic!("{:?}", world.conclusions)
    };
    assert_eq!(
        (conclusion.verdict, conclusion.flaky),
        (Verdict::Fail, true)
    );
    let repeated = BTreeMap::from([(Verdict::Pass, 5), (Verdict::Fail, 1)]);
    assert_eq!(conclusion.repeated, repeated);
    // The first, both attempts of the fifth, and that of the sixth
    assert_eq!(world.recorded, 4);
}

#[test]
fn a_soak_begins_nothing_after_its_time_and_ends_without_anything_to_look_at() {
    let soak = Repeat::For(Duration::from_secs(20));
    let world = repeated((soak, LAST), &[0], Vec::new(), &[0], None);
    assert!(world.repetitions > 5, "{}", world.repetitions);
    assert!(world.now < Duration::from_secs(24), "{:?}", world.now);
    let [conclusion] = world.conclusions.as_slice() else {
        panic!("{:?}", world.conclusions)
    };
    assert_eq!(conclusion.repeated[&Verdict::Pass], world.repetitions);
    // No fixture that could be observed is ready, so time would not pass
    let turns = vec![Turn::Met, Turn::Lasting, Turn::Lasting];
    let world = repeated((soak, LAST), &[0, 4], turns, &[0], None);
    assert_eq!(
        (world.repetitions, world.verdicts[&0]),
        (1, Verdict::Inconclusive)
    );
}

#[test]
fn what_a_stop_interrupts_is_concluded_by_the_repetitions_before() {
    let world = repeated(
        (Repeat::Times(1000), LAST),
        &[0],
        Vec::new(),
        &[0],
        Some(30),
    );
    let [conclusion] = world.conclusions.as_slice() else {
        panic!("{:?}", world.conclusions)
    };
    assert_eq!(
        (conclusion.verdict, conclusion.flaky),
        (Verdict::Pass, false)
    );
    assert!(world.repetitions > 2, "{}", world.repetitions);
}

#[test]
fn a_vantage_waits_for_what_else_it_looks_at_but_not_for_ever() {
    // Two checks from one prober, of two samples: one session serves both
    let world = run(&[3, 10], Vec::new(), &[0], None);
    assert_eq!((world.verdicts.len(), world.exec_sessions), (2, 1));
    // The other sample is ready late: the first check is concluded before
    let mut dispatcher = late(vec![check(0, 3), check(1, 10)]);
    let from_start = |seconds| Duration::from_secs(seconds);
    let patience = Durations::default().gather;
    let commands = dispatcher.step(from_start(1), Input::Woken);
    let wakes = commands.iter().find_map(|command| match command {
        Command::WakeAt(at) => Some(*at),
        _ => None,
    });
    assert_eq!(wakes, Some(patience), "{commands:?}");
    let commands = dispatcher.step(patience, Input::Woken);
    let from = check(0, 3).assertions[0].from.clone();
    assert_eq!(opened(&commands), [(from, 1)]);
}

#[test]
fn who_waits_with_another_place_is_waited_for_too() {
    // From the pod, from node and pod, and from the node alone, whose sample is ready late
    let (pod, both) = (check(0, 0), check(1, 1));
    let mut node = check(2, 7);
    node.assertions[0].from = both.assertions[0].from.clone();
    let [from_pod, from_node] = [&pod, &node].map(|check| check.assertions[0].from.clone());
    let mut dispatcher = late(vec![pod, both, node]);
    let second = Duration::from_secs(1);
    assert_eq!(opened(&dispatcher.step(second, Input::Woken)), []);
    let patience = Durations::default().gather;
    assert_eq!(
        opened(&dispatcher.step(patience, Input::Woken)),
        [(from_pod, 2), (from_node, 1)]
    );
}

#[test]
fn no_node_asks_for_what_one_place_has_not_seen_but_not_for_ever() {
    let (one, mut each, other) = (check(0, 0), check(1, 0), check(2, 10));
    each.point.node = Some(2);
    each.assertions[0].from.as_mut().expect("a vantage").node = Some(2);
    let from_one = one.assertions[0].from.clone().expect("a vantage");
    let from_each = each.assertions[0].from.clone();
    let second = Duration::from_secs(1);
    let seen = |turn, each: &Check| {
        let mut dispatcher = late(vec![one.clone(), each.clone(), other.clone()]);
        let assertion = AssertionIx {
            check: 0,
            assertion: 0,
        };
        let ended = Input::SessionReplies(from_one.clone(), vec![(assertion, outcome(turn))]);
        let commands = dispatcher.step(second, ended);
        (dispatcher, opened(&commands))
    };
    let begins = [(from_each, 1)];
    assert_eq!(seen(Turn::Met, &each).1, begins);
    let (mut dispatcher, swept_then) = seen(Turn::NotMet, &each);
    assert_eq!(swept_then, []);
    let commands = dispatcher.step(second * 10, Input::Woken);
    assert_eq!(opened(&commands)[1..], begins);
    // While the one vantage point still observes
    let mut dispatcher = late(vec![one.clone(), each.clone(), other.clone()]);
    let commands = dispatcher.step(second, Input::Woken);
    let [Command::WakeAt(at)] = commands.as_slice() else {
        panic!("{commands:?}")
    };
    assert_eq!(*at, second * 10);
    assert_eq!(opened(&dispatcher.step(second * 10, Input::Woken)), begins);
    // A check of another claim, or in another family, does not wait for it
    let another = |each: &mut Check| each.claim = ClaimId::parse("net.another").expect("an id");
    let in_second = |each: &mut Check| each.point.family = Some(IpFamily::Ipv6);
    for change in [another as fn(&mut Check), in_second] {
        let mut each = each.clone();
        change(&mut each);
        let (_, begun) = late_with_commands(vec![one.clone(), each, other.clone()]);
        assert!(opened(&begun).contains(&begins[0]), "{begun:?}");
    }
}

#[test]
fn what_holds_is_observed_again_with_what_else_is_to_hold() {
    let (pod, both, late_one) = (check(0, 0), check(1, 1), check(2, 10));
    let [from_pod, from_node] = [&pod, &both].map(|check| check.assertions[0].from.clone());
    let [at_pod, at_node] = [&from_pod, &from_node].map(|from| from.clone().expect("a vantage"));
    let good = |assertions: &[(usize, usize)]| {
        let assertions = assertions.iter().map(|(check, assertion)| AssertionIx {
            check: *check,
            assertion: *assertion,
        });
        assertions
            .map(|assertion| (assertion, outcome(Turn::Met)))
            .collect()
    };
    let second = Duration::from_secs(1);
    let (patience, again) = (
        Durations::default().gather,
        Durations::default().observe_again,
    );
    let begun = || {
        let mut dispatcher = late(vec![pod.clone(), both.clone(), late_one.clone()]);
        let ended = Input::SessionReplies(at_pod.clone(), good(&[(0, 0), (1, 1)]));
        assert_eq!(opened(&dispatcher.step(second, ended)), []);
        // The one that observed from the pod alone waits for the one that observes from the node, too
        let commands = dispatcher.step(second + again, Input::Woken);
        assert_eq!(opened(&commands), []);
        dispatcher
    };
    let mut dispatcher = begun();
    let ended = Input::SessionReplies(at_node.clone(), good(&[(1, 0)]));
    assert_eq!(opened(&dispatcher.step(second * 2, ended)), []);
    assert_eq!(
        opened(&dispatcher.step(second * 2 + again, Input::Woken)),
        [(from_pod.clone(), 2), (from_node, 1)]
    );
    // But not for ever, and the wait does not count as time to converge
    let mut dispatcher = begun();
    let commands = dispatcher.step(second + again + patience, Input::Woken);
    assert_eq!(opened(&commands), [(from_pod, 1)]);
    let bad = AssertionIx {
        check: 0,
        assertion: 0,
    };
    let ended = Input::SessionReplies(at_pod, vec![(bad, outcome(Turn::NotMet))]);
    let commands = dispatcher.step(second * 2 + again + patience, ended);
    let over = commands
        .iter()
        .any(|command| matches!(command, Command::Attempted(..)));
    assert!(!over, "{commands:?}");
}

#[test]
fn what_fails_counts_once_its_nodes_were_heard_of_and_has_its_time_after_a_silence() {
    let mut dispatcher = late(vec![check(0, 0), check(1, 10)]);
    let own = AssertionIx {
        check: 0,
        assertion: 0,
    };
    let from = check(0, 0).assertions[0].from.clone().expect("a vantage");
    let converge = Durations::default().converge;
    let refuted = || Input::SessionReplies(from.clone(), vec![(own, outcome(Turn::NotMet))]);
    // A single round may have been too early
    let mut now = converge * 2;
    let commands = dispatcher.step(now, refuted());
    assert!(
        matches!(commands.as_slice(), [Command::WakeAt(_)]),
        "{commands:?}"
    );
    let mut fails_after = |dispatcher: &mut Dispatcher, length: Duration| {
        now += Duration::from_secs(1);
        let begun = dispatcher.step(now, Input::Woken);
        assert_eq!(opened(&begun), [(Some(from.clone()), 1)]);
        now += length;
        let commands = dispatcher.step(now, refuted());
        let asked = commands
            .iter()
            .any(|one| matches!(one, Command::Confirm(ix, _) if *ix == own));
        (asked, now)
    };
    let ended = |dispatcher: &mut Dispatcher, now, turn| {
        let commands = dispatcher.step(now, Input::Confirmed(own, outcome(turn)));
        commands.into_iter().find_map(|command| match command {
            Command::Attempted(attempt, _) => Some(attempt.verdict),
            _ => None,
        })
    };
    let (asked, at) = fails_after(&mut dispatcher, converge);
    assert!(asked);
    let silent = ended(&mut dispatcher, at, Turn::Changed);
    assert_eq!(silent, Some(Verdict::Inconclusive));
    // The first round after the silence, and those that follow within the time
    for _ in 0..3 {
        assert!(!fails_after(&mut dispatcher, Duration::ZERO).0);
    }
    let (asked, at) = fails_after(&mut dispatcher, converge);
    assert!(asked);
    let heard_of = ended(&mut dispatcher, at, Turn::NotMet);
    assert_eq!(heard_of, Some(Verdict::Fail));
}

#[test]
fn what_waits_is_observed_again_once_it_has_waited_for_a_while() {
    let durations = Durations::default();
    let placement = |expectation| {
        let query = PlacedPod::Plain;
        let test = Test::Placement(Assertion { query, expectation });
        PlannedAssertion {
            test,
            ..admission()
        }
    };
    // When the second of two good rounds is due, which ends the attempt
    let when = |assertions: Vec<PlannedAssertion>| {
        let own = (0..assertions.len()).map(|assertion| AssertionIx {
            check: 0,
            assertion,
        });
        let own: Vec<_> = own.collect();
        let waits = Check {
            assertions,
            ..check(0, 6)
        };
        let mut dispatcher = late(vec![waits, check(1, 10)]);
        let mut held = |now| {
            let asked = own.iter().map(|ix| Input::Asked(*ix, outcome(Turn::Met)));
            let commands = asked.flat_map(|input| dispatcher.step(now, input));
            let commands: Vec<_> = commands.collect();
            let wakes = commands.iter().find_map(|command| match command {
                Command::WakeAt(at) => Some(*at),
                _ => None,
            });
            let mut commands = commands.iter();
            let ends = commands.any(|command| matches!(command, Command::Attempted(..)));
            if let Some(at) = wakes {
                dispatcher.step(at, Input::Woken);
            }
            (ends, wakes)
        };
        let (ends, at) = held(Duration::ZERO);
        let at = at.expect("a second look");
        assert!(!ends);
        (at, held(at).0)
    };
    let pending = || placement(PlacementExpectation::Pending(Hindrance::UntoleratedTaint));
    let starts = || placement(PlacementExpectation::Starts);
    let windows = pool(0);
    let (last, again) = (durations.stays_ready, durations.observe_again);
    // Another scheduler may bind it; what is bound stays so
    assert_eq!(when(vec![pending()]), (last, true));
    assert_eq!(when(vec![starts()]), (again, true));
    assert_eq!(when(vec![starts(), pending()]), (last, true));
    // Whether a pod is ready comes and goes
    assert_eq!(when(vec![pending(), pods(&windows)]), (again, false));
}

#[test]
fn nodes_are_heard_of_for_each_failure_that_decides() {
    let ready = [Turn::Met; 3];
    let turns = ready.into_iter().chain([Turn::NotMet; 200]);
    let world = run(&[0], turns.collect(), &[0], None);
    assert_eq!(world.verdicts.get(&0), Some(&Verdict::Fail));
    assert_eq!((world.confirmations, world.recorded), (2, 2));
}

/// The vantage points of the exec sessions that begin, and how many assertions each has.
fn opened(commands: &[Command]) -> Vec<(Option<VantageKey>, usize)> {
    let exec_sessions = commands.iter().filter_map(|command| match command {
        Command::ExecSession(from, assertions) => Some((Some(from.clone()), assertions.len())),
        _ => None,
    });
    exec_sessions.collect()
}

/// A dispatcher for which every fixture is ready at once, except the sample of the last check.
fn late(checks: Vec<Check>) -> Dispatcher {
    late_with_commands(checks).0
}

/// The same, and what it commanded meanwhile.
fn late_with_commands(checks: Vec<Check>) -> (Dispatcher, Vec<Command>) {
    let last = checks.last().expect("a check").assertions[0].needs[0]
        .0
        .clone();
    let plan = Plan { checks };
    let mut dispatcher = Dispatcher::new(
        plan,
        Repeat::Times(1),
        (Loads::new(), Leave::Never),
        &Durations::default(),
        &Limits::default(),
    );
    let mut open = VecDeque::from(dispatcher.step(Duration::ZERO, Input::Started));
    let mut others = Vec::new();
    while let Some(command) = open.pop_front() {
        match command {
            Command::Apply(key) if key != last => {
                open.extend(dispatcher.step(Duration::ZERO, Input::Ready(key)));
            }
            other => others.push(other),
        }
    }
    (dispatcher, others)
}

#[test]
fn backends_come_and_go_again_in_each_repetition() {
    let mut churned = check(0, 3);
    churned.assertions[0].needs[0].0.name = FixtureName::CHURN;
    let churn = churned.assertions[0].needs[0].0.clone();
    let (_, mut applied) = played(vec![churned, check(1, 10)], 3, |_, _, _| outcome(Turn::Met));
    assert_eq!(applied.remove(&churn), Some(3));
    assert!(applied.values().all(|times| *times == 1), "{applied:?}");
}

#[test]
fn a_limitation_whose_control_fails_is_broken() {
    // Namespaces, webserver and two probers are ready; then the pod, asked first, fails as the node does
    let ready = vec![Turn::Met; 4];
    let turns = ready
        .into_iter()
        .chain([Turn::NotMet, Turn::Met].repeat(200))
        .collect();
    let world = run(&[1], turns, &[0], None);
    assert_eq!(world.verdicts.get(&0), Some(&Verdict::Inconclusive));
}

#[test]
fn what_somebody_took_is_applied_again_and_looked_at_anew() {
    // Namespaces, webserver and prober are ready, then somebody deletes the webserver
    let ready = vec![Turn::Met; 3];
    let turns = || ready.iter().copied().chain([Turn::Changed]);
    let world = run(&[0], turns().collect(), &[0], None);
    assert_eq!(world.verdicts.get(&0), Some(&Verdict::Pass));
    assert_eq!(world.applied.values().sum::<usize>(), 4);
    // The first takes nearly all its time to converge; the one applied again has as much
    let late = [
        [Turn::NotMet; 5].as_slice(),
        &[Turn::Changed, Turn::Met],
        &[Turn::NotMet; 4],
    ];
    let world = run(
        &[0],
        [ready.as_slice(), &late.concat()].concat(),
        &[0],
        None,
    );
    assert_eq!(world.verdicts.get(&0), Some(&Verdict::Pass));
    assert_eq!(world.exec_sessions, 12);
}

#[test]
fn an_attempt_counts_from_its_first_round_on_what_was_applied_again() {
    let mut dispatcher = late(vec![check(0, 0), check(1, 10)]);
    let own = AssertionIx {
        check: 0,
        assertion: 0,
    };
    let planned = check(0, 0).assertions.remove(0);
    let (from, sample) = (planned.from.expect("a vantage"), planned.needs[0].0.clone());
    let replied = |turn| Input::SessionReplies(from.clone(), vec![(own, outcome(turn))]);
    let second = Duration::from_secs(1);
    dispatcher.step(second, Input::Failed(sample.clone(), changed()));
    dispatcher.step(second * 2, replied(Turn::Changed));
    dispatcher.step(second * 60, Input::Ready(sample));
    let began = (61..90).find_map(|at| {
        let commands = dispatcher.step(second * at, replied(Turn::Met));
        dispatcher.step(second * at, Input::Woken);
        commands.into_iter().find_map(|command| match command {
            Command::Attempted(_, began) => Some(began),
            _ => None,
        })
    });
    assert_eq!(began, Some(second * 60));
}

#[test]
fn what_somebody_takes_twice_is_given_up() {
    let ready = [Turn::Met; 3];
    let taken = [Turn::Changed, Turn::Met, Turn::Changed];
    let world = run(&[0], [ready, taken].concat(), &[0], None);
    assert_eq!(world.verdicts.get(&0), Some(&Verdict::Inconclusive));
    assert_eq!(world.applied.values().sum::<usize>(), 4);
    assert_eq!(world.exec_sessions, 2);
}

/// The first repetition is inconclusive, and in the second the check holds from its second assertion on.
#[test]
fn what_is_made_anew_for_the_next_repetition_has_its_time_to_come_right() {
    let mut world = begun((Repeat::Times(2), LAST), &[0]);
    let made = [Turn::Met; 3];
    let taken_twice = [Turn::Changed, Turn::Met, Turn::Changed];
    let anew = [Turn::Met, Turn::Met, Turn::NotMet];
    let mut turns = made.into_iter().chain(taken_twice).chain(anew);
    world.step(Input::Started, &mut turns);
    while !world.torn_down {
        let input = match (world.pending.is_empty(), world.wake) {
            (false, _) => world.pending.remove(0),
            (true, at) => {
                world.now = at.expect("something is to come").max(world.now);
                world.wake = None;
                Input::Woken
            }
        };
        // Each takes as long as all its time to converge
        world.now += Duration::from_secs(3);
        world.step(input, &mut turns);
    }
    // One inconclusive repetition of two is too many for a pass
    assert_eq!(world.conclusions[0].verdict, Verdict::Inconclusive);
    let repeated = BTreeMap::from([(Verdict::Inconclusive, 1), (Verdict::Pass, 1)]);
    assert_eq!(world.conclusions[0].repeated, repeated);
    let namespaces = FixtureName::NAMESPACES.in_pool(None);
    assert_eq!(world.applied[&namespaces], 2);
}
