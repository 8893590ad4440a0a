//! The executor: performs what the dispatcher commands, and reports the results to it.
//!
//! It decides nothing. Everything under way runs in tasks that one token ends.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use winconform_core::fixture::FixtureKey;
use winconform_core::method::{ErrorKind, ObservationError, ReadyFixtures, VantageKey};
use winconform_core::plan::{CheckId, Plan};
use winconform_core::record::{Event, FixtureOutcome};
use winconform_core::verdict::SkipReason;

use super::ask::Asker;
use super::exec_session::exec_session;
use super::facts::RunFacts;
use super::observer::{Changed, Observer};
use super::shared::SharedRequests;
use super::vantage::Vantages;
use crate::engine::fixtures::apply::{FixtureResult, Fixtures};
use crate::engine::integrity::applied::{AppliedObjects, Dependency};
use crate::engine::integrity::node_liveness::NodeLiveness;
use crate::engine::integrity::node_readiness::NodeReadiness;
use crate::engine::record::diagnose::diagnose_one;
use crate::engine::record::spans::{Spans, millis};
use crate::engine::scheduler::command::{AssertionIx, AssertionOutcome, Command, Input};
use crate::engine::scheduler::dispatcher::Dispatcher;
use crate::engine::scheduler::repeat::Leave;
use crate::engine::stop::Stop;

/// What tasks send back.
enum Message {
    FixtureDone {
        key: FixtureKey,
        result: Box<FixtureResult>,
        took: Duration,
    },
    Changed(Changed),
    Input(Input),
}

/// Performs commands.
pub(crate) struct Executor {
    dispatcher: Dispatcher,
    fixtures: Fixtures,
    vantages: Vantages,
    shared: SharedRequests,
    spans: Spans,
    facts: RunFacts,
    ready: Arc<ReadyFixtures>,
    objects: BTreeMap<FixtureKey, Arc<AppliedObjects>>,
    nodes: NodeReadiness,
    liveness: NodeLiveness,
    wake: Option<Instant>,
    tracker: TaskTracker,
    cancel: CancellationToken,
    sender: mpsc::UnboundedSender<Message>,
    receiver: mpsc::UnboundedReceiver<Message>,
}

impl Executor {
    pub(crate) fn new(
        plan: Plan,
        leave: Leave,
        mut fixtures: Fixtures,
        ready: ReadyFixtures,
        spans: Spans,
        (tracker, cancel): (TaskTracker, CancellationToken),
    ) -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        let (api, outside) = (fixtures.api.clone(), Arc::clone(&ready.outside));
        let report = sender.clone();
        fixtures.pods_ready = Arc::new(move |key| {
            let _ = report.send(Message::Input(Input::PodsReady(key.clone())));
        });
        let room = (fixtures.loads(plan.fixtures()), leave);
        let (durations, limits) = (api.durations(), api.limits());
        Self {
            dispatcher: Dispatcher::new(plan, fixtures.repeat, room, durations, limits),
            vantages: Vantages::new(
                api.clone(),
                fixtures.run.clone(),
                outside,
                fixtures.journal.clone(),
            ),
            shared: SharedRequests::default(),
            spans,
            liveness: NodeLiveness::new(&fixtures.facts),
            facts: RunFacts::new(Arc::clone(&fixtures.facts), api),
            fixtures,
            ready: Arc::new(ready),
            objects: BTreeMap::new(),
            nodes: NodeReadiness::default(),
            wake: None,
            tracker,
            cancel,
            sender,
            receiver,
        }
    }

    /// Runs until the dispatcher commands tear-down. `stop` returns why the run has to end early, if it
    /// has to: one that has to before it began begins nothing. Returns the spans, for what follows, when all
    /// tasks are over.
    pub(crate) async fn run(mut self, stop: impl Future<Output = Stop>) -> Spans {
        let mut stop = pin!(stop.fuse());
        let _ = self.sender.send(Message::Input(Input::Started));
        loop {
            let input = loop {
                // Without a time to wake at, a far time: a message or a stop always comes before
                let far = Instant::now() + Duration::from_hours(24);
                let message = tokio::select! {
                    biased;
                    stop = &mut stop => break self.stop(stop),
                    message = timeout_at(self.wake.unwrap_or(far), self.receiver.recv()) => message,
                };
                match message {
                    Ok(Some(Message::Input(input))) => {
                        self.over(&input);
                        break input;
                    }
                    Ok(Some(Message::FixtureDone { key, result, took })) => {
                        break self.fixture_done(key, *result, took);
                    }
                    Ok(Some(Message::Changed(changed))) => {
                        // Many assertions may report a change of the same objects
                        if changed.objects.is_news() {
                            break self.failed(changed.key, changed.error, Duration::ZERO);
                        }
                    }
                    Ok(None) => break Input::Stop(SkipReason::Interrupted),
                    Err(_) => {
                        self.wake = None;
                        break Input::Woken;
                    }
                }
            };
            for command in self.dispatcher.step(self.spans.began().elapsed(), input) {
                if matches!(command, Command::TearDown) {
                    self.cancel.cancel();
                    self.tracker.close();
                    self.tracker.wait().await;
                    return self.spans;
                }
                self.perform(command);
            }
            self.spans.settled();
        }
    }

    fn stop(&self, stop: Stop) -> Input {
        let reason = stop.reason();
        self.note(stop.event());
        Input::Stop(reason)
    }

    fn perform(&mut self, command: Command) {
        match command {
            Command::Apply(key) => {
                self.spans.applies(&key);
                self.apply(key);
            }
            Command::Remove { key, diagnose } => self.remove(key, diagnose),
            Command::Observe(ix) => {
                if let Some(state) = self.dispatcher.state(ix.check) {
                    self.spans.asks(ix, &state.check, state.paused);
                }
                self.ask(ix);
            }
            Command::ExecSession(from, assertions) => {
                let check = |ix: AssertionIx| Some((ix, &self.dispatcher.state(ix.check)?.check));
                let checks = assertions.iter().copied().filter_map(check);
                self.spans.exec_sessions(&from, checks);
                self.exec_session(from, &assertions);
            }
            Command::Confirm(ix, outcome) => self.confirm(ix, outcome),
            Command::Repeat(number) => {
                self.shared.forget();
                self.facts.forget();
                self.spans.repeats();
                self.note(Event::Repetition { number });
            }
            Command::WakeAt(at) => self.wake = Some(self.spans.began() + at),
            Command::Attempted(attempt, began) => self.spans.attempted(attempt, began),
            Command::Conclude(index, conclusion) => {
                if let Some(state) = self.dispatcher.state(index) {
                    let check = state.check.id.clone();
                    self.note(Event::Verdict { check, conclusion });
                }
            }
            Command::TearDown => {}
        }
    }

    /// Takes note that a request or an exec session is over.
    fn over(&mut self, input: &Input) {
        match input {
            Input::Asked(assertion, _) => self.spans.asked(*assertion),
            Input::SessionReplies(from, _) => self.spans.exec_session_done(from),
            _ => {}
        }
    }

    /// Writes an event; the run asks the journal whether the record's file failed.
    fn note(&self, event: Event) {
        if let Err(error) = self.fixtures.journal.write(event) {
            tracing::debug!(%error, "record");
        }
    }

    /// What a task about a fixture needs: where it is applied, whom it reports to, and what ends it.
    fn for_a_task(&self) -> (Fixtures, mpsc::UnboundedSender<Message>, CancellationToken) {
        (
            self.fixtures.clone(),
            self.sender.clone(),
            self.cancel.clone(),
        )
    }

    fn apply(&self, key: FixtureKey) {
        let (fixtures, sender, cancel) = self.for_a_task();
        self.tracker.spawn(async move {
            let began = Instant::now();
            // Not cancelled as a whole: each request must be answered before tear-down lists the objects
            let ready = AssertUnwindSafe(fixtures.ready(&key, &cancel)).catch_unwind();
            let result = ready.await.unwrap_or_else(|_| FixtureResult {
                objects: Arc::default(),
                outcome: Err(panicked()),
            });
            let took = began.elapsed();
            let result = Box::new(result);
            let _ = sender.send(Message::FixtureDone { key, result, took });
        });
    }

    /// Reports where the pods of a fixture are that the run has not placed, and when they have started.
    fn watch_start(&self, key: FixtureKey) {
        self.tell_bound(&key);
        let (fixtures, report, cancel) = self.for_a_task();
        self.tracker
            .spawn(cancel.run_until_cancelled_owned(async move {
                if fixtures.wait_for_start(&key).await.is_ok() {
                    let _ = report.send(Message::Input(Input::PodsReady(key)));
                }
            }));
    }

    /// Reports how many pods of a fixture are on each node now.
    fn tell_bound(&self, key: &FixtureKey) {
        let bound = Input::Bound(key.clone(), self.fixtures.bound(key));
        let _ = self.sender.send(Message::Input(bound));
    }

    /// Removes the pods of a fixture, with `diagnose` after their diagnosis. Where that fails they stay until
    /// tear-down, and count as long.
    fn remove(&mut self, key: FixtureKey, diagnose: Option<Vec<CheckId>>) {
        Arc::make_mut(&mut self.ready).fixtures.remove(&key);
        let (fixtures, sender, cancel) = self.for_a_task();
        self.tracker.spawn(async move {
            let removing = Box::pin(async {
                if let Some(checks) = diagnose {
                    let (api, journal) = (&fixtures.api, &fixtures.journal);
                    diagnose_one(api, &fixtures.run, journal, &key, checks).await;
                }
                fixtures.remove_pods(&key).await
            });
            if let Some(removed) = cancel.run_until_cancelled(removing).await {
                if let Err(error) = &removed {
                    tracing::debug!(%error, %key, "remove pods");
                }
                let _ = sender.send(Message::Input(Input::Removed(key, removed.is_ok())));
            }
        });
    }

    fn fixture_done(&mut self, key: FixtureKey, result: FixtureResult, took: Duration) -> Input {
        self.spans.fixture_done(&key);
        if key.name.is_aimed() {
            self.watch_start(key.clone());
        } else if !key.name.changes().is_empty() {
            // More were there while they were changed
            self.tell_bound(&key);
        }
        self.objects.insert(key.clone(), result.objects);
        let fixture = match result.outcome {
            Ok(fixture) => fixture,
            Err(error) => return self.failed(key, error, took),
        };
        if let Some(objects) = self.objects.get(&key) {
            objects.bind(self.ready.namespace_of(key.name), &fixture.pods);
        }
        // Assertions under way keep the fixtures that were ready when they began
        let ready = Arc::make_mut(&mut self.ready);
        ready.fixtures.insert(key.clone(), fixture.clone());
        self.note(Event::Fixture {
            key: key.clone(),
            outcome: FixtureOutcome::Ready(Box::new(fixture)),
            took_ms: millis(took),
        });
        Input::Ready(key)
    }

    fn failed(&self, key: FixtureKey, error: ObservationError, took: Duration) -> Input {
        self.note(Event::Fixture {
            key: key.clone(),
            outcome: FixtureOutcome::Failed(error.clone()),
            took_ms: millis(took),
        });
        Input::Failed(key, error)
    }

    fn observer(&self, ix: AssertionIx) -> Option<Observer> {
        let state = self.dispatcher.state(ix.check)?;
        let (check, limits) = (&state.check, self.fixtures.api.limits());
        let assertion = check.assertions.get(ix.assertion)?;
        let dependencies = assertion.depends_on().filter_map(|(key, need)| {
            let objects = Arc::clone(self.objects.get(&key)?);
            Some(Dependency { key, need, objects })
        });
        Some(Observer {
            ix,
            test: assertion.test.clone(),
            presumed: assertion.presumed.clone(),
            attempt: state.attempted_so_far(),
            from: assertion.from.clone(),
            pool: check.point.pool.clone(),
            to: check.point.to.clone(),
            node: assertion.at_node(),
            build: check.build,
            image: check.image.clone(),
            family: check.point.family,
            once: state.asks_once(limits),
            anew: state.controls_again,
            settles: ix.assertion != 0 || state.may_settle(limits),
            ready: Arc::clone(&self.ready),
            dependencies: dependencies.collect(),
            nodes: self.nodes.clone(),
            liveness: self.liveness.clone(),
            recorded: limits.recorded_reply,
            pods: self.fixtures.pods.clone(),
        })
    }

    fn ask(&self, ix: AssertionIx) {
        let Some(observer) = self.observer(ix) else {
            return;
        };
        let (api, report) = (self.fixtures.api.clone(), self.reporter());
        let asker = Asker {
            fixtures: self.fixtures.clone(),
            facts: self.facts.clone(),
            shared: self.shared.clone(),
            tracker: self.tracker.clone(),
            cancel: self.cancel.clone(),
        };
        let asking = async move {
            let prepared = observer.prepare();
            let reply = match prepared.as_ref().map(|prepared| &prepared.request) {
                Ok(request) => asker.ask(&observer, request).await,
                Err(error) => Err(error.clone()),
            };
            let (since, outcome) = (Instant::now(), observer.outcome(prepared, reply));
            Input::Asked(ix, observer.confirmed(&api, since, outcome, &report).await)
        };
        self.spawn(asking, Input::Asked(ix, AssertionOutcome::lost(panicked())));
    }

    fn confirm(&self, ix: AssertionIx, outcome: AssertionOutcome) {
        let Some(observer) = self.observer(ix) else {
            return;
        };
        let (api, report) = (self.fixtures.api.clone(), self.reporter());
        let confirming = async move {
            let outcome = observer.confirmed_alive(&api, outcome, &report).await;
            Input::Confirmed(ix, outcome)
        };
        self.spawn(
            confirming,
            Input::Confirmed(ix, AssertionOutcome::lost(panicked())),
        );
    }

    fn exec_session(&self, from: VantageKey, assertions: &[AssertionIx]) {
        let observers = assertions.iter().filter_map(|ix| self.observer(*ix));
        let observers: Vec<_> = observers.collect();
        let (api, vantages) = (self.fixtures.api.clone(), self.vantages.clone());
        let report = self.reporter();
        let lost = |ix: &AssertionIx| (*ix, AssertionOutcome::lost(panicked()));
        let broken = Input::SessionReplies(from.clone(), assertions.iter().map(lost).collect());
        let in_exec_session = async move {
            let observed = exec_session(&vantages, &from, &observers).await;
            let since = Instant::now();
            let mut outcomes = Vec::with_capacity(observed.len());
            for (observer, outcome) in observed {
                let outcome = observer.confirmed(&api, since, outcome, &report).await;
                outcomes.push((observer.ix, outcome));
            }
            Input::SessionReplies(from, outcomes)
        };
        self.spawn(in_exec_session, broken);
    }

    /// The function by which an assertion reports that a fixture that it depends on has changed.
    fn reporter(&self) -> impl Fn(Changed) + Send + Sync + use<> {
        let sender = self.sender.clone();
        move |changed| {
            let _ = sender.send(Message::Changed(changed));
        }
    }

    /// Runs an assertion, at most until the run ends, and sends its result; `panicked` after a panic.
    fn spawn(&self, assertion: impl Future<Output = Input> + Send + 'static, panicked: Input) {
        let (cancel, sender) = (self.cancel.clone(), self.sender.clone());
        self.tracker.spawn(async move {
            let assertion = AssertUnwindSafe(assertion).catch_unwind();
            if let Some(observed) = cancel.run_until_cancelled(assertion).await {
                let _ = sender.send(Message::Input(observed.unwrap_or(panicked)));
            }
        });
    }
}

/// The error of a bug in winconform, which must end neither the run nor its tear-down.
pub(super) fn panicked() -> ObservationError {
    ErrorKind::NotApplied.error("winconform itself failed here: please report it")
}
