//! One assertion as the executor makes it: what to ask, what a reply came to, and whether it counts.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use tokio::time::Instant;
use winconform_core::facts::{IpFamily, NodeOrdinal, PoolName, WindowsBuild};
use winconform_core::fixture::{FixtureKey, Need};
use winconform_core::method::{
    Bound, Comparison, Difference, ErrorKind, Evaluated, Host, HttpGet, HttpReply,
    ObservationError, Prepared, ReadyFixtures, ReadyPod, Reply, Request, Result, Test, VantageKey,
};

use super::shared::Attempt;
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
    /// Whether it wants an answer to a request of its own: none that was sent before or for others.
    pub(crate) anew: bool,
    /// Whether the attempt may end with what it sees now.
    pub(crate) settles: bool,
    pub(crate) ready: Arc<ReadyFixtures>,
    pub(crate) rests: Vec<Dependency>,
    pub(crate) nodes: NodeReadiness,
    pub(crate) heard: NodeLiveness,
    pub(crate) recorded: usize,
}

/// A fixture that is no longer as it was made.
pub(crate) struct Changed {
    pub(crate) key: FixtureKey,
    pub(crate) made: Arc<AppliedObjects>,
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

    /// What depends on something presumed tells nothing when it is not as presumed.
    fn withhold_presumed(&self, taken: Evaluated) -> Result<Evaluated> {
        match (&self.presumed, &taken.comparison) {
            (
                Some(presumed),
                Comparison::NotMet(difference) | Comparison::Unexpected(difference),
            ) => {
                let Difference { expected, seen } = difference;
                let detail = format!("expected {expected}, since {presumed}; seen: {seen}");
                Err(ErrorKind::FactUnknown.error(detail))
            }
            _ => Ok(taken),
        }
    }

    /// Of which attempt the facts are to be.
    pub(crate) fn attempt_of_facts(&self) -> Attempt {
        match &self.test {
            Test::Fact(assertion) if assertion.query.is_changed_by_a_run() => 0,
            _ => self.attempt,
        }
    }

    pub(crate) fn prepare(&self) -> Result<Prepared<'_, Evaluated>> {
        self.test.prepare(&self.bound())
    }

    /// What it would ask now.
    fn request(&self) -> Result<Request> {
        self.prepare().map(|prepared| prepared.request)
    }

    /// What the reply to its request came to, if it could be asked.
    pub(crate) fn outcome(
        &self,
        prepared: Result<Prepared<'_, Evaluated>>,
        reply: Result<Reply>,
    ) -> AssertionOutcome {
        let read = |prepared: Prepared<'_, _>| {
            self.withhold_presumed(prepared.read(reply.as_ref().map_err(Clone::clone)?)?)
        };
        AssertionOutcome {
            taken: prepared.and_then(read),
            reply: reply.ok().and_then(|reply| reply.recorded(self.recorded)),
        }
    }

    /// The outcome if what it depends on still stands after `since`, when it was brought; otherwise
    /// the error that it does not, or that nobody could tell. What has changed is handed to
    /// `tell` before.
    pub(crate) async fn confirmed(
        &self,
        api: &Api,
        since: Instant,
        mut outcome: AssertionOutcome,
        tell: impl Fn(Changed),
    ) -> AssertionOutcome {
        if !self.is_doubtful(&outcome) {
            return outcome;
        }
        let holds = outcome.holds();
        let traits = self.test.traits();
        let met = holds && traits.tells_who_answers;
        let observed = holds && !traits.expects_no_answer;
        let prober = self.from.as_ref().and_then(VantageKey::prober);
        for Dependency { key, need, made } in &self.rests {
            // Who observed, and who answered, was there; of these there is one per node to be asked for
            if key.node.is_some() && (met || observed && prober.as_ref() == Some(key)) {
                continue;
            }
            let mut health = made.health(api, since).await;
            let stands = health.changed.is_none() && health.unready.is_none();
            if stands && traits.needs_source && !met {
                health = health.or(made.health_of_pods(api, since).await);
                health.changed = health.changed.or(health.restarted.take());
            }
            // What its pods say of themselves counts for nothing once they had to begin anew elsewhere
            if health.changed.is_none() && matches!(self.test, Test::State(_)) && !outcome.holds() {
                health.changed = made.health_of_pods(api, since).await.changed;
            }
            if let Some(error) = health.changed {
                tell(Changed {
                    key: key.clone(),
                    made: Arc::clone(made),
                    error: error.clone(),
                });
                outcome.taken = Err(error);
                return outcome;
            }
            if self.family.is_some() {
                let second = made.second.health(api, since).await;
                // Not told, which would have all of the first family observed anew
                if let Some(error) = second.changed {
                    outcome.taken = Err(error);
                    return outcome;
                }
                health.unknown = health.unknown.or(second.unknown);
            }
            // Whether it is ready may be the very question
            let unready = health.unready.filter(|_| *need == Need::Ready);
            if let (Some(error), true) = (health.unknown.or(unready), outcome.taken.is_ok()) {
                outcome.taken = Err(error);
            }
        }
        if outcome.taken.is_ok()
            && !outcome.holds()
            && let Ok(request) = self.request()
        {
            let amiss = self.nodes.amiss(api, since, &request, &self.ready.nodes);
            if let Some(error) = amiss.await {
                outcome.taken = Err(error);
            }
        }
        outcome
    }

    /// What it brought, if every node that it may have failed on was heard of since and what it rests
    /// on still stands; otherwise why it tells nothing.
    pub(crate) async fn heard(
        &self,
        api: &Api,
        mut outcome: AssertionOutcome,
        tell: impl Fn(Changed),
    ) -> AssertionOutcome {
        let hosts = self.failed(outcome.reply.as_ref());
        let names = hosts.iter().any(|host| matches!(host, Host::Name(_)));
        let nodes = self.nodes_on_the_way(&hosts);
        match self.heard.amiss(api, Instant::now(), &nodes, names).await {
            Some(error) => {
                outcome.taken = Err(error);
                outcome
            }
            None => self.confirmed(api, Instant::now(), outcome, tell).await,
        }
    }

    /// Of its GETs those that whoever is meant answered.
    pub(crate) fn answered<'g>(
        &self,
        gets: &'g [HttpGet],
        outcome: &AssertionOutcome,
    ) -> Vec<&'g HttpGet> {
        let Ok(taken) = &outcome.taken else {
            return Vec::new();
        };
        let holds = outcome.holds() && !self.test.traits().expects_no_answer;
        let is_met = |at: usize| taken.observation["targets"][at]["by"].is_string();
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

    /// Whom it asked without an answer, or else whom it asked.
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
            (Some(Request::Api(_) | Request::Facts) | None, _) => return Vec::new(),
        };
        // Fewer where it observed others than it would now
        if hosts.len() != failed.len() || !failed.contains(&true) {
            return hosts;
        }
        let all = hosts.into_iter().zip(failed);
        all.filter_map(|(host, failed)| failed.then_some(host))
            .collect()
    }

    /// The nodes on the way to hosts: that it observes from, theirs, and those of the pods behind them.
    fn nodes_on_the_way(&self, hosts: &[Host]) -> BTreeSet<String> {
        let is_host = |addresses: &[IpAddr]| {
            let mut hosts = hosts.iter();
            hosts.any(|host| matches!(host, Host::Address(one) if addresses.contains(one)))
        };
        let prober = self.from.as_ref().and_then(VantageKey::prober);
        let stand = |key| self.ready.fixtures.get(key).into_iter();
        let pods = |key| stand(key).flat_map(|fixture| &fixture.pods);
        let keys = self.rests.iter().map(|rest| &rest.key);
        let observed = keys.filter(|key| Some(*key) != prober.as_ref());
        let observed: Vec<_> = observed.flat_map(pods).collect();
        // Asked by their own addresses it is only those; behind a Service it may be any
        let is_asked = |pod: &&ReadyPod| is_host(&pod.addresses);
        let by_address = observed.iter().copied().any(|pod| is_asked(&pod));
        let asked = observed
            .into_iter()
            .filter(|pod| !by_address || is_asked(pod));
        let from = prober.as_ref().into_iter().flat_map(pods);
        let of_pods = asked.chain(from).map(|pod| pod.node.clone());
        let own = self.ready.nodes.iter();
        let own = own.filter(|node| is_host(&node.addresses));
        of_pods.chain(own.map(|node| node.name.clone())).collect()
    }

    /// Whether it could have come of a change of what it depends on.
    fn is_doubtful(&self, outcome: &AssertionOutcome) -> bool {
        let traits = self.test.traits();
        match &outcome.taken {
            Ok(taken) => match taken.comparison {
                // What has changed while nobody answered is told in the round that settles it
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
        let made = AppliedObjects::from_applied(&key, &[fake.get(POD).expect("it was put")]);
        let rest = Dependency {
            key,
            need,
            made: Arc::new(made),
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
            rests: vec![rest],
            nodes: NodeReadiness::default(),
            heard: NodeLiveness::default(),
            recorded: 100,
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
        let stands = |pods| ReadyFixture {
            service: Some((IpAddr::from([10, 96, 0, 1]), 80)),
            name: Some("web".to_owned()),
            port: Some(80),
            pods,
            ..ReadyFixture::default()
        };
        let samples = vec![pod("one", "near", 1), pod("two", "far", 2)];
        let fixtures = [
            (sample.clone(), stands(samples)),
            (prober.clone(), stands(vec![pod("prober", "near", 3)])),
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
            let rests = [&sample, &prober].map(|key| Dependency {
                key: key.clone(),
                need: Need::Ready,
                made: Arc::default(),
            });
            let observer = Observer {
                from,
                pool: Some(pool.clone()),
                ready: Arc::clone(&ready),
                rests: rests.into(),
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
            // Otherwise than expected is what they say, or it has observed others
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

    fn brought(comparison: Comparison) -> AssertionOutcome {
        let observation = json!(null);
        let taken = Ok(Evaluated {
            observation,
            comparison,
        });
        AssertionOutcome { reply: None, taken }
    }

    fn holds() -> AssertionOutcome {
        brought(Comparison::Met(difference()))
    }

    /// The kind of error that became of an outcome, and how many changes were told.
    type Confirmed = (Option<ErrorKind>, usize);

    const CHANGED: Confirmed = (Some(ErrorKind::FixtureChanged), 1);

    async fn confirmed(fake: &Fake, observer: &Observer, outcome: AssertionOutcome) -> Confirmed {
        let changes = RefCell::new(0);
        let tell = |_: Changed| *changes.borrow_mut() += 1;
        let api = fake.api();
        let outcome = observer.confirmed(&api, Instant::now(), outcome, tell);
        let error = outcome.await.taken.err().map(|error| error.kind);
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
            let outcome = brought(comparison);
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
            gone.rests[0].key = FixtureName::RING.in_pool(None).on(Some(1));
            fake.remove(POD);
            let before = fake.log().len();
            assert_eq!(confirmed(&fake, &gone, brought(comparison)).await, told);
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
            // The round that follows will tell
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
            gone.rests[0].key = from.prober().expect("a prober");
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
            taken: Err(ErrorKind::ExecTransport.error("404")),
        };
        let cut_alone = (Some(ErrorKind::ExecTransport), 0);
        assert_eq!(confirmed(&fake, &still, cut()).await, cut_alone);
        fake.remove(POD);
        assert_eq!(confirmed(&fake, &gone, cut()).await, CHANGED);
    }

    #[tokio::test(start_paused = true)]
    async fn pods_that_are_not_ready_are_no_answer_but_may_be_the_question() {
        let fake = fake("False");
        let refuted = || brought(Comparison::NotMet(difference()));
        let rests = observer(&fake, http(), Need::Ready);
        let untold = (Some(ErrorKind::FixtureChanged), 0);
        assert_eq!(confirmed(&fake, &rests, refuted()).await, untold);
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
            let made = AppliedObjects::from_applied(&observer.rests[0].key, &applied);
            observer.rests[0].made = Arc::new(made);
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
