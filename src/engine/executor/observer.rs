//! One assertion as the executor makes it: its request, the outcome of a reply, and whether that counts.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use ordered_watch as watch;
use tokio::time::Instant;
use winconform_core::facts::{IpFamily, NodeOrdinal, PoolName, WindowsBuild};
use winconform_core::fixture::{FixtureKey, Need};
use winconform_core::method::{
    Bound, Comparison, Difference, ErrorKind, Evaluated, Host, HttpGet, HttpReply,
    ObservationError, Prepared, ReadyFixtures, ReadyPod, Reply, Request, Result, Test, VantageKey,
};

use super::shared::Attempt;
use crate::cluster::Watched;
use crate::engine::integrity::applied::{AppliedObjects, Dependency};
use crate::engine::integrity::node_liveness::NodeLiveness;
use crate::engine::integrity::node_readiness::NodeReadiness;
use crate::engine::scheduler::command::{AssertionIx, AssertionOutcome};
use crate::transport::Api;

/// Everything one assertion needs, apart from the dispatcher's state.
pub(crate) struct Observer {
    pub(crate) ix: AssertionIx,
    pub(crate) test: Test,
    pub(crate) presumed: Option<String>,
    pub(crate) attempt: Attempt,
    pub(crate) from: Option<VantageKey>,
    pub(crate) pool: Option<PoolName>,
    pub(crate) to: Option<PoolName>,
    pub(crate) node: Option<NodeOrdinal>,
    pub(crate) build: Option<WindowsBuild>,
    pub(crate) image: Option<String>,
    pub(crate) family: Option<IpFamily>,
    pub(crate) once: bool,
    /// Whether it needs a new request, rather than an answer that it shares with others.
    pub(crate) anew: bool,
    /// Whether the attempt may end with what it sees now.
    pub(crate) settles: bool,
    pub(crate) ready: Arc<ReadyFixtures>,
    pub(crate) dependencies: Vec<Dependency>,
    pub(crate) nodes: NodeReadiness,
    pub(crate) liveness: NodeLiveness,
    pub(crate) recorded: usize,
    /// The run's pods as they change.
    pub(crate) pods: watch::Receiver<Watched>,
}

/// A fixture that is no longer as it was applied.
pub(crate) struct Changed {
    pub(crate) key: FixtureKey,
    pub(crate) objects: Arc<AppliedObjects>,
    pub(crate) error: ObservationError,
}

impl Observer {
    fn bound(&self) -> Bound<'_> {
        Bound {
            ready: &self.ready,
            from: self.from.as_ref(),
            pool: self.pool.as_ref(),
            to: self.to.as_ref(),
            node: self.node,
            build: self.build,
            image: self.image.as_deref(),
            family: self.family,
            once: self.once,
        }
    }

    /// An assertion that presumes something is an observation error when the result contradicts that.
    fn withhold_presumed(&self, evaluated: Evaluated) -> Result<Evaluated> {
        match (&self.presumed, &evaluated.comparison) {
            (
                Some(presumed),
                Comparison::NotMet(difference) | Comparison::Unexpected(difference),
            ) => {
                let Difference { expected, seen } = difference;
                let detail = format!("expected {expected}, since {presumed}; seen: {seen}");
                Err(ErrorKind::FactUnknown.error(detail))
            }
            _ => Ok(evaluated),
        }
    }

    /// The attempt whose facts it gets.
    pub(crate) fn attempt_of_facts(&self) -> Attempt {
        match &self.test {
            Test::Fact(assertion) if assertion.query.is_changed_by_a_run() => 0,
            _ => self.attempt,
        }
    }

    pub(crate) fn prepare(&self) -> Result<Prepared<'_, Evaluated>> {
        self.test.prepare(&self.bound())
    }

    /// The request that it would send now.
    fn request(&self) -> Result<Request> {
        self.prepare().map(|prepared| prepared.request)
    }

    /// The outcome of the reply to its request, if that could be prepared.
    pub(crate) fn outcome(
        &self,
        prepared: Result<Prepared<'_, Evaluated>>,
        reply: Result<Reply>,
    ) -> AssertionOutcome {
        let read = |prepared: Prepared<'_, _>| {
            self.withhold_presumed(prepared.read(reply.as_ref().map_err(Clone::clone)?)?)
        };
        AssertionOutcome {
            evaluated: prepared.and_then(read),
            reply: reply.ok().and_then(|reply| reply.recorded(self.recorded)),
        }
    }

    /// The outcome, if its fixtures are still healthy after `since`, when the reply came; otherwise the error
    /// that they are not, or that this is unknown. `report` gets a changed fixture before.
    pub(crate) async fn confirmed(
        &self,
        api: &Api,
        since: Instant,
        mut outcome: AssertionOutcome,
        report: impl Fn(Changed),
    ) -> AssertionOutcome {
        if !self.is_doubtful(&outcome) {
            return outcome;
        }
        let holds = outcome.holds();
        let traits = self.test.traits();
        let met = holds && traits.tells_who_answers;
        let observed = holds && !traits.expects_no_answer;
        let prober = self.from.as_ref().and_then(VantageKey::prober);
        for Dependency { key, need, objects } in &self.dependencies {
            // A prober that observed, or a pod that answered, was there; to read one per node or for each control
            // costs much. A control of the other system that holds changes nothing
            let is_of_many = key.node.is_some() || self.ix.assertion > 0;
            let was_there = met || observed && prober.as_ref() == Some(key);
            if is_of_many && was_there || *need == Need::Compared && holds || *need == Need::Played
            {
                continue;
            }
            let mut health = objects.health(api, since).await;
            let is_healthy = health.changed.is_none() && health.unready.is_none();
            if is_healthy && traits.needs_source && !met {
                health = health.or(objects.health_of_pods(api, since).await);
                health.changed = health.changed.or(health.restarted.take());
            }
            // The state of its pods does not count once they had to begin again elsewhere
            if health.changed.is_none() && matches!(self.test, Test::State(_)) && !outcome.holds() {
                health.changed = objects.health_of_pods(api, since).await.changed;
            }
            if let Some(error) = health.changed {
                report(Changed {
                    key: key.clone(),
                    objects: Arc::clone(objects),
                    error: error.clone(),
                });
                outcome.evaluated = Err(error);
                return outcome;
            }
            if self.family.is_some() {
                let second = objects.second.health(api, since).await;
                // Not reported, or the whole first family would be observed again
                if let Some(error) = second.changed {
                    outcome.evaluated = Err(error);
                    return outcome;
                }
                health.unknown = health.unknown.or(second.unknown);
            }
            // The assertion may observe just whether it is ready
            let unready = health.unready.filter(|_| *need != Need::Settled);
            if let (Some(error), true) = (health.unknown.or(unready), outcome.evaluated.is_ok()) {
                outcome.evaluated = Err(error);
            }
        }
        if outcome.evaluated.is_ok()
            && !outcome.holds()
            && let Ok(request) = self.request()
        {
            let amiss = self.nodes.amiss(api, since, &request, &self.ready.nodes);
            if let Some(error) = amiss.await {
                outcome.evaluated = Err(error);
            }
        }
        let holds = outcome.holds();
        outcome.evaluated = match outcome.evaluated {
            Ok(evaluated) if !holds => self.unaltered().map(|()| evaluated),
            Err(error) => Err(self.with_alteration(error)),
            held => held,
        };
        outcome
    }

    /// An error if a pod that it observes is stored otherwise than it was sent, or a controller of the fixture has no pods.
    fn unaltered(&self) -> Result<()> {
        let Some(deciding) = self.test.decided_by() else {
            return Ok(());
        };
        let pods = self.pods.borrow();
        for Dependency { key, objects, .. } in &self.dependencies {
            if let Some(error) = objects.alteration(&pods, deciding) {
                return Err(error);
            }
            let is_to_have = matches!(self.test, Test::State(_)) && !key.name.is_to_replace();
            if is_to_have && objects.lacks_pods(&pods) {
                let detail = format!("{key} has no pods: nothing to observe");
                return Err(ErrorKind::NotApplied.error(detail));
            }
        }
        Ok(())
    }

    /// The error, with the field for which a pod is bound to no node, if it is stored otherwise than it was sent.
    fn with_alteration(&self, error: ObservationError) -> ObservationError {
        let pods = self.pods.borrow();
        let mut dependencies = self.dependencies.iter();
        let told = dependencies.find_map(|Dependency { objects, .. }| {
            let told = objects.with_alteration(error.clone(), &pods);
            (told != error).then_some(told)
        });
        told.unwrap_or(error)
    }

    /// The outcome, if every node that it may have failed on gave a sign of life since, and the fixtures that
    /// it depends on are still healthy; otherwise the observation error.
    pub(crate) async fn confirmed_alive(
        &self,
        api: &Api,
        mut outcome: AssertionOutcome,
        report: impl Fn(Changed),
    ) -> AssertionOutcome {
        let hosts = self.failed(outcome.reply.as_ref());
        let names = hosts.iter().any(|host| matches!(host, Host::Name(_)));
        let path = self.nodes_on_the_way(&hosts);
        match self.liveness.amiss(api, Instant::now(), &path, names).await {
            Some(error) => {
                outcome.evaluated = Err(error);
                outcome
            }
            None => self.confirmed(api, Instant::now(), outcome, report).await,
        }
    }

    /// Those of its GETs that the intended target answered.
    pub(crate) fn answered<'g>(
        &self,
        gets: &'g [HttpGet],
        outcome: &AssertionOutcome,
    ) -> Vec<&'g HttpGet> {
        let Ok(evaluated) = &outcome.evaluated else {
            return Vec::new();
        };
        let holds = outcome.holds() && !self.test.traits().expects_no_answer;
        let is_met = |at: usize| evaluated.observation["targets"][at]["by"].is_string();
        let answered = gets.iter().zip(0..).filter(|(_, at)| holds || is_met(*at));
        answered.map(|(get, _)| get).collect()
    }

    pub(crate) fn is_at_node(&self, get: &HttpGet) -> bool {
        let Host::Address(address) = &get.host else {
            return false;
        };
        let mut nodes = self.ready.nodes.iter();
        nodes.any(|node| node.addresses.contains(address))
    }

    /// The hosts that did not answer it; all that it asked, if every host answered or this is unknown.
    fn failed(&self, reply: Option<&Reply>) -> Vec<Host> {
        let (hosts, failed): (Vec<_>, Vec<_>) = match (self.request().ok(), reply) {
            (Some(Request::Get(gets)), reply) => {
                let hosts = gets.into_iter().map(|get| get.host).collect();
                let Some(Reply::Get(replies)) = reply else {
                    return hosts;
                };
                let failed = |reply: &HttpReply| !matches!(reply, HttpReply::Answered { .. });
                (hosts, replies.iter().map(failed).collect())
            }
            (Some(Request::Ping(addresses)), _) => {
                return addresses.into_iter().map(Host::Address).collect();
            }
            (
                Some(
                    Request::Api(_)
                    | Request::Text(_)
                    | Request::Exec(..)
                    | Request::Facts
                    | Request::Play(_),
                )
                | None,
                _,
            ) => return Vec::new(),
        };
        // Another number, if its targets have changed since
        if hosts.len() != failed.len() || !failed.contains(&true) {
            return hosts;
        }
        let both = hosts.into_iter().zip(failed);
        both.filter_map(|(host, failed)| failed.then_some(host))
            .collect()
    }

    /// The nodes on the way to hosts: the node of the prober, their own, and those of the pods behind them.
    fn nodes_on_the_way(&self, hosts: &[Host]) -> BTreeSet<String> {
        let is_host = |addresses: &[IpAddr]| {
            let mut hosts = hosts.iter();
            hosts.any(|host| matches!(host, Host::Address(one) if addresses.contains(one)))
        };
        let prober = self.from.as_ref().and_then(VantageKey::prober);
        let ready = |key| self.ready.fixtures.get(key).into_iter();
        let pods = |key| ready(key).flat_map(|fixture| &fixture.pods);
        let keys = self.dependencies.iter().map(|dependency| &dependency.key);
        let observed = keys.filter(|key| Some(*key) != prober.as_ref());
        let observed: Vec<_> = observed.flat_map(pods).collect();
        // It asked the pods at their own addresses, or any of them behind a Service
        let is_asked = |pod: &&ReadyPod| is_host(&pod.addresses);
        let by_address = observed.iter().copied().any(|pod| is_asked(&pod));
        let targets = observed
            .into_iter()
            .filter(|pod| !by_address || is_asked(pod));
        let from = prober.as_ref().into_iter().flat_map(pods);
        let of_pods = targets.chain(from).map(|pod| pod.node.clone());
        let nodes = self.ready.nodes.iter();
        let nodes = nodes.filter(|node| is_host(&node.addresses));
        of_pods.chain(nodes.map(|node| node.name.clone())).collect()
    }

    /// Whether a change of the fixtures that it depends on may have caused the outcome.
    fn is_doubtful(&self, outcome: &AssertionOutcome) -> bool {
        let traits = self.test.traits();
        match &outcome.evaluated {
            Ok(evaluated) => match evaluated.comparison {
                // Where no answer is expected, the round that settles the attempt finds a change
                Comparison::Met(_) => {
                    traits.needs_source && (self.settles || !traits.expects_no_answer)
                }
                Comparison::NotMet(_) | Comparison::Unexpected(_) => true,
                Comparison::NotApplicable(_) => false,
            },
            Err(error) => !error.kind.is_denied(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::fake::Fake;
    use serde_json::json;
    use std::cell::RefCell;
    use std::net::IpAddr;
    use winconform_core::fixture::FixtureName;
    use winconform_core::method::{
        Assertion, FactExpectation, HttpExpectation, HttpQuery, PingQuery, ReachExpectation,
        ReadyFixture, SourceKind, StateExpectation, StateQuery, Target, Topic,
    };

    const POD: &str = "/api/v1/namespaces/a/pods/p";

    fn http() -> Test {
        let query = HttpQuery {
            of: Some(FixtureName::WIN_WEBSERVER),
            through: None,
            target: Target::ServiceIp,
        };
        let expectation = HttpExpectation::Answers {
            status: 200,
            body: "marker".to_owned(),
        };
        Test::Http(Assertion { query, expectation })
    }

    fn state() -> Test {
        let query = StateQuery::Pods(FixtureName::WIN_WEBSERVER);
        let expectation = StateExpectation::Ready { pods: 2 };
        Test::State(Assertion { query, expectation })
    }

    fn fake(ready: &str) -> Fake {
        let fake = Fake::default();
        let pod = json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "p", "namespace": "a"},
            "status": {"conditions": [{"type": "Ready", "status": ready}]}});
        fake.put(POD, pod);
        fake
    }

    fn observer(fake: &Fake, test: Test, need: Need) -> Observer {
        let key = FixtureName::LINUX_POD_PROBER.in_pool(None);
        let objects =
            AppliedObjects::from_applied(&key, &[], &[fake.get(POD).expect("it was put")]);
        let dependency = Dependency {
            key,
            need,
            objects: Arc::new(objects),
        };
        Observer {
            ix: AssertionIx {
                check: 0,
                assertion: 0,
            },
            test,
            presumed: None,
            attempt: 0,
            from: None,
            pool: None,
            to: None,
            node: None,
            build: None,
            image: None,
            family: None,
            once: false,
            anew: false,
            settles: true,
            ready: Arc::default(),
            dependencies: vec![dependency],
            nodes: NodeReadiness::default(),
            liveness: NodeLiveness::default(),
            recorded: 100,
            pods: watch::channel(Watched::default()).1,
        }
    }

    #[test]
    fn a_failure_may_be_of_who_looks_and_whom_it_asks() {
        let fake = fake("True");
        let pool = PoolName::windows(WindowsBuild::SERVER_2022);
        let pod = |name: &str, node: &str, last| ReadyPod {
            name: name.to_owned(),
            uid: name.to_owned(),
            node: node.to_owned(),
            addresses: vec![IpAddr::from([10, 0, 0, last])],
            restarts: 0,
        };
        let sample = FixtureName::WIN_WEBSERVER.in_pool(Some(&pool));
        let from = VantageKey {
            kind: SourceKind::WindowsPod,
            pool: Some(pool.clone()),
            node: None,
        };
        let prober = from.prober().expect("a prober");
        let fixture = |pods| ReadyFixture {
            service: Some((IpAddr::from([10, 96, 0, 1]), 80)),
            name: Some("web".to_owned()),
            port: Some(80),
            pods,
            ..ReadyFixture::default()
        };
        let samples = vec![pod("one", "near", 1), pod("two", "far", 2)];
        let fixtures = [
            (sample.clone(), fixture(samples)),
            (prober.clone(), fixture(vec![pod("prober", "near", 3)])),
        ];
        let ready = Arc::new(ReadyFixtures {
            fixtures: fixtures.into(),
            ..ReadyFixtures::default()
        });
        let on_the_way = |target, reply: Option<Reply>| {
            let (Test::Http(mut assertion), from) = (http(), Some(from.clone())) else {
                unreachable!("it is of HTTP")
            };
            assertion.query.target = target;
            let dependencies = [&sample, &prober].map(|key| Dependency {
                key: key.clone(),
                need: Need::Ready,
                objects: Arc::default(),
            });
            let observer = Observer {
                from,
                pool: Some(pool.clone()),
                ready: Arc::clone(&ready),
                dependencies: dependencies.into(),
                ..observer(&fake, Test::Http(assertion), Need::Ready)
            };
            let hosts = observer.failed(reply.as_ref());
            assert!(!hosts.is_empty());
            let nodes = observer.nodes_on_the_way(&hosts).into_iter();
            nodes.collect::<Vec<_>>().join(" ")
        };
        let answered = || HttpReply::Answered {
            status: 200,
            body: String::new(),
        };
        let failed = || HttpReply::Failed {
            code: 28,
            text: String::new(),
        };
        assert_eq!(on_the_way(Target::ServiceIp, None), "far near");
        assert_eq!(on_the_way(Target::ShortName, None), "far near");
        assert_eq!(on_the_way(Target::PodsOnSameNode, None), "near");
        for (replies, nodes) in [
            (vec![failed(), answered()], "near"),
            (vec![answered(), failed()], "far near"),
            // All answered, but not as expected; or its targets have changed
            (vec![answered(), answered()], "far near"),
            (vec![failed()], "far near"),
        ] {
            assert_eq!(on_the_way(Target::Pods, Some(Reply::Get(replies))), nodes);
        }
    }

    #[test]
    fn what_a_run_changes_is_told_by_what_it_began_with() {
        let fake = fake("True");
        let told = |topic| {
            let expectation = FactExpectation::Told;
            let test = Test::Fact(Assertion {
                query: topic,
                expectation,
            });
            let again = Observer {
                attempt: 1,
                ..observer(&fake, test, Need::Ready)
            };
            again.attempt_of_facts()
        };
        assert_eq!(told(Topic::Images(Vec::new())), 0);
        assert_eq!(told(Topic::Labels), 1);
    }

    fn difference() -> Difference {
        Difference {
            expected: "this".to_owned(),
            seen: "that".to_owned(),
        }
    }

    fn outcome_of(comparison: Comparison) -> AssertionOutcome {
        AssertionOutcome {
            reply: None,
            evaluated: Ok(Evaluated {
                observation: json!(null),
                comparison,
            }),
        }
    }

    fn holds() -> AssertionOutcome {
        outcome_of(Comparison::Met(difference()))
    }

    /// The error kind of a confirmed outcome, and the number of changes that were reported.
    type Confirmed = (Option<ErrorKind>, usize);

    const CHANGED: Confirmed = (Some(ErrorKind::FixtureChanged), 1);

    async fn confirmed(fake: &Fake, observer: &Observer, outcome: AssertionOutcome) -> Confirmed {
        let changes = RefCell::new(0);
        let report = |_: Changed| *changes.borrow_mut() += 1;
        let api = fake.api();
        let outcome = observer.confirmed(&api, Instant::now(), outcome, report);
        let error = outcome.await.evaluated.err().map(|error| error.kind);
        (error, changes.into_inner())
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_told_of_what_somebody_took_away() {
        for comparison in [
            Comparison::Met(difference()),
            Comparison::NotMet(difference()),
            Comparison::Unexpected(difference()),
        ] {
            let fake = fake("True");
            let [still, gone] = [(); 2].map(|()| observer(&fake, http(), Need::Ready));
            let outcome = outcome_of(comparison);
            assert_eq!(confirmed(&fake, &still, outcome.clone()).await, (None, 0));
            fake.remove(POD);
            assert_eq!(confirmed(&fake, &gone, outcome).await, CHANGED);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn of_who_looks_from_each_node_is_asked_only_after_a_failure() {
        for (comparison, told) in [
            (Comparison::Met(difference()), (None, 0)),
            (Comparison::NotMet(difference()), CHANGED),
        ] {
            let fake = fake("True");
            let mut gone = observer(&fake, http(), Need::Ready);
            gone.dependencies[0].key = FixtureName::RING.in_pool(None).on(Some(1));
            fake.remove(POD);
            let before = fake.log().len();
            assert_eq!(confirmed(&fake, &gone, outcome_of(comparison)).await, told);
            assert_eq!(fake.log().len() == before, told.0.is_none());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_observed_from_a_node_was_there_if_anybody_answered() {
        let ping = |expectation| {
            let query = PingQuery {
                of: Some(FixtureName::WIN_WEBSERVER),
                target: Target::Pods,
            };
            Test::Ping(Assertion { query, expectation })
        };
        let fails = ReachExpectation::Fails(BTreeSet::new());
        for (expectation, settles, told) in [
            (ReachExpectation::Answers, true, None),
            (fails.clone(), true, Some(ErrorKind::FixtureChanged)),
            // A later round will find it
            (fails, false, None),
        ] {
            let fake = fake("True");
            let mut gone = observer(&fake, ping(expectation), Need::Ready);
            gone.settles = settles;
            let from = VantageKey {
                kind: SourceKind::LinuxPod,
                pool: Some(PoolName::linux()),
                node: Some(2),
            };
            gone.dependencies[0].key = from.prober().expect("a prober");
            gone.from = Some(from);
            fake.remove(POD);
            assert_eq!(confirmed(&fake, &gone, holds()).await.0, told);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn why_a_look_failed_is_that_its_vantage_is_gone() {
        let fake = fake("True");
        let [still, gone] = [(); 2].map(|()| observer(&fake, http(), Need::Ready));
        let cut = || AssertionOutcome {
            reply: None,
            evaluated: Err(ErrorKind::ExecTransport.error("404")),
        };
        let cut_alone = (Some(ErrorKind::ExecTransport), 0);
        assert_eq!(confirmed(&fake, &still, cut()).await, cut_alone);
        fake.remove(POD);
        assert_eq!(confirmed(&fake, &gone, cut()).await, CHANGED);
    }

    #[tokio::test(start_paused = true)]
    async fn pods_that_are_not_ready_are_no_answer_but_may_be_the_question() {
        let fake = fake("False");
        let refuted = || outcome_of(Comparison::NotMet(difference()));
        let depends = observer(&fake, http(), Need::Ready);
        let untold = (Some(ErrorKind::FixtureChanged), 0);
        assert_eq!(confirmed(&fake, &depends, refuted()).await, untold);
        let asks = observer(&fake, state(), Need::Settled);
        assert_eq!(confirmed(&fake, &asks, refuted()).await, (None, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn what_nobody_can_tell_counts_for_nothing() {
        let fake = fake("True");
        let observer = observer(&fake, http(), Need::Ready);
        fake.script("GET", 403, json!({"message": "no"}));
        let untold = (Some(ErrorKind::Forbidden), 0);
        assert_eq!(confirmed(&fake, &observer, holds()).await, untold);
    }

    #[tokio::test(start_paused = true)]
    async fn a_service_of_the_second_family_that_is_gone_counts_in_that_alone() {
        const SERVICE: &str = "/api/v1/namespaces/a/services/s-ipv6";
        let fake = fake("True");
        let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s-ipv6",
            "namespace": "a", "labels": {crate::cluster::objects::labels::FAMILY: "ipv6"}}});
        fake.put(SERVICE, service);
        let applied = [POD, SERVICE].map(|path| fake.get(path).expect("it was put"));
        let of = |family| {
            let mut observer = observer(&fake, http(), Need::Ready);
            let objects =
                AppliedObjects::from_applied(&observer.dependencies[0].key, &[], &applied);
            observer.dependencies[0].objects = Arc::new(objects);
            Observer { family, ..observer }
        };
        let (first, second) = (of(None), of(Some(IpFamily::Ipv6)));
        assert_eq!(confirmed(&fake, &second, holds()).await, (None, 0));
        fake.remove(SERVICE);
        assert_eq!(confirmed(&fake, &first, holds()).await, (None, 0));
        let gone = (Some(ErrorKind::FixtureChanged), 0);
        let second = of(Some(IpFamily::Ipv6));
        assert_eq!(confirmed(&fake, &second, holds()).await, gone);
    }

    #[tokio::test(start_paused = true)]
    async fn what_can_only_come_of_our_own_pods_needs_no_asking() {
        let fake = fake("True");
        let observer = observer(&fake, state(), Need::Settled);
        assert_eq!(confirmed(&fake, &observer, holds()).await, (None, 0));
        assert!(fake.log().is_empty());
    }
}
