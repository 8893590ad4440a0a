//! Fixtures brought to stand: announced, applied, waited for.

use std::collections::BTreeMap;
use std::sync::Arc;

use ordered_watch as watch;
use serde_json::Value as Json;
use tokio::sync::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use winconform_core::config::{Durations, Images};
use winconform_core::facts::{IpFamily, NodeFact, Pool, PoolName};
use winconform_core::method::{
    ErrorKind, FixtureKey, FixtureName, ObservationError, ReadyFixture, Result,
};
use winconform_core::record::{Event, ObjectName};

use super::applied::AppliedObjects;
use super::churn::Backend;
use super::journal::Journal;
use super::manifest::{self, ManifestError, pool_of};
use super::pod_template::{Ground, set_pod_templates};
use super::readiness::{as_trouble, ended, is_of_second, object_name, ready_fixture};
use super::repeat::Repeat;
use super::second_family;
use super::stuck_pods::stuck_pods;
use crate::cluster::kinds::PODS;
use crate::cluster::pods::is_over;
use crate::cluster::{ApplyError, Condition, Watched, apply, poll};
use crate::transport::{Api, Pace};

/// What bringing up fixtures needs. Clones share everything.
#[derive(Clone)]
pub(super) struct Fixtures {
    pub(super) api: Api,
    /// The run's id.
    pub(super) run: String,
    /// The cluster's pools.
    pub(super) pools: Arc<BTreeMap<PoolName, Pool>>,
    /// The cluster's nodes.
    pub(super) nodes: Arc<Vec<NodeFact>>,
    /// How many nodes of a pool are each observed from, at most.
    pub(super) most: usize,
    pub(super) images: Arc<Images>,
    /// Where intents go before anything is created.
    pub(super) journal: Journal,
    /// The second family that Services are observed in, if they are.
    pub(super) second: Option<IpFamily>,
    /// The cluster's DNS suffix, once it was told.
    pub(super) domain: Arc<Mutex<Option<String>>>,
    /// What came of copying pull secrets into the run's namespaces as they are now, once it was tried.
    pub(super) copied: Arc<Mutex<Option<Result<()>>>>,
    /// The run's pods as they change.
    pub(super) pods: watch::Receiver<Watched>,
    /// How often everything is observed, which pods are to outlive.
    pub(super) repeat: Repeat,
}

/// What came of bringing up a fixture.
pub(super) struct Stood {
    /// What was applied, all of it or not.
    pub(super) made: Arc<AppliedObjects>,
    /// The fixture, or why it is not ready.
    pub(super) outcome: Result<ReadyFixture>,
}

impl Fixtures {
    /// Applies a fixture and waits until it stands, or says why it will not. The waiting ends
    /// when `cancel` says so, the applying does not: an object that was sent for must not appear
    /// after tear-down has observed.
    pub(super) async fn stand(self, key: &FixtureKey, cancel: &CancellationToken) -> Stood {
        let mut applied = Vec::new();
        let sent = self.apply_all(key, cancel, &mut applied).await;
        let made = Arc::new(AppliedObjects::of(key, &applied));
        let outcome = match sent {
            Err(error) => Err(error),
            Ok(broken) => {
                let ready = Box::pin(self.wait_and_churn(key, &applied, &made, cancel));
                let ready = cancel.run_until_cancelled(ready).await;
                let mut ready = ready.unwrap_or_else(|| Err(ended()));
                if let (Ok(ready), Some(_)) = (&mut ready, self.second_of(key)) {
                    second_family::complete(ready, &applied, broken);
                }
                ready
            }
        };
        Stood { made, outcome }
    }

    /// Applies the objects of a fixture; gives why a Service in the second family is not there, which
    /// nothing in the first needs.
    async fn apply_all(
        &self,
        key: &FixtureKey,
        cancel: &CancellationToken,
        applied: &mut Vec<Json>,
    ) -> Result<Option<ObservationError>> {
        let domain = match key.name {
            FixtureName::Alias => {
                let told = cancel.run_until_cancelled(self.domain());
                told.await.unwrap_or_else(|| Err(ended()))?
            }
            _ => None,
        };
        let objects = self
            .objects(key, domain.as_deref())
            .map_err(|error| ErrorKind::NotApplied.error(error.to_string()))?;
        if key.name == FixtureName::Namespaces {
            // Made anew they have none
            *self.copied.lock().await = None;
        } else if key.name.image().is_some() {
            self.copy_pull_secrets(cancel).await?;
        }
        let mut broken = None;
        for object in &objects {
            if cancel.is_cancelled() {
                return Err(ended());
            }
            self.announce(object)?;
            match self.apply(object, cancel).await {
                Ok(object) => applied.extend(object),
                Err(error) if is_of_second(object) => {
                    broken.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(broken)
    }

    pub(super) fn objects(
        &self,
        key: &FixtureKey,
        domain: Option<&str>,
    ) -> Result<Vec<Json>, ManifestError> {
        let (run, images) = (&self.run, &self.images);
        let durations = self.api.durations();
        let durations = &Durations {
            pod_deadline: self.repeat.outlived_by(durations.pod_deadline),
            ..durations.clone()
        };
        // Where they go is the question: they are aimed, and not placed
        let aimed = matches!(key.name, FixtureName::Sched(_));
        let pool = pool_of(key, &self.pools).filter(|_| !aimed);
        let observed_from = pool.filter(|_| key.name.is_on_each_node());
        let observed_from = observed_from.map(|pool| manifest::observed_from(pool, self.most));
        let pool = observed_from.as_ref().or(pool);
        let mut objects = manifest::objects(key, run, pool, images, durations, domain)?;
        if aimed {
            let ground = Ground {
                pools: &self.pools,
                nodes: &self.nodes,
                images,
            };
            set_pod_templates(&mut objects, key, run, &ground)?;
        } else if let Some(family) = self.second_of(key) {
            second_family::add(&mut objects, family);
        }
        Ok(objects)
    }

    /// The second family that a fixture's Services are observed in, if they are.
    fn second_of(&self, key: &FixtureKey) -> Option<IpFamily> {
        self.second.filter(|_| key.name.is_in_second_family())
    }

    /// Applies an object, again while an earlier one of its name is still going; a pod that has ended, by
    /// its deadline or by an eviction, is removed first, or nothing would change. `None` of a Service
    /// in a second family that the server has no addresses of.
    pub(super) async fn apply(
        &self,
        object: &Json,
        cancel: &CancellationToken,
    ) -> Result<Option<Json>> {
        let ObjectName { kind, name, .. } = object_name(object);
        let durations = self.api.durations();
        let (first, limit) = (durations.observe_again, durations.fixture);
        let (begun, what) = (Instant::now(), format!("{kind} {name}"));
        // What was sent must be answered before tear-down looks for it
        poll(Pace::new(first), limit, &what, async || {
            match apply(&self.api, object).await {
                // Its admission knows of a class only from its own watch
                Err(ApplyError::Refused { message, .. })
                    if message.contains("no PriorityClass with name")
                        && begun.elapsed() < durations.converge =>
                {
                    Condition::NotYet(message)
                }
                Err(error) if second_family::is_unknown_to(&error, object) => Condition::Done(None),
                Err(error) => Condition::Never(as_trouble(error)),
                Ok(applied) if !is_going(&applied) && !is_over(&applied) => {
                    Condition::Done(Some(applied))
                }
                Ok(_) if cancel.is_cancelled() => Condition::Never(ended()),
                // Such as on a node that fell silent
                Ok(_)
                    if kind == PODS.kind
                        && self
                            .api
                            .last_away()
                            .max(Some(begun))
                            .is_some_and(|since| since.elapsed() > durations.leaving) =>
                {
                    let detail = format!("{what}: an earlier one is being deleted, and stays");
                    Condition::Never(ErrorKind::FixtureChanged.error(detail))
                }
                Ok(applied) if !is_going(&applied) => self.remove(&applied).await,
                Ok(_) => Condition::NotYet("an earlier one is still being deleted".to_owned()),
            }
        })
        .await
    }

    /// Removes a pod of an earlier application that has ended.
    async fn remove<T>(&self, pod: &Json) -> Condition<T> {
        let removed = match Backend::of(pod) {
            Some(pod) => self.delete(&pod).await,
            None => Ok(()),
        };
        let status = |()| "an earlier one that has ended is removed".to_owned();
        Condition::NotYet(removed.map_or_else(|error| error.detail, status))
    }

    /// Waits until a fixture is ready and is what was applied, at most until somebody changes that.
    pub(super) async fn wait_while_it_lasts(
        &self,
        key: &FixtureKey,
        applied: &[Json],
        made: &AppliedObjects,
    ) -> Result<ReadyFixture> {
        let (api, durations) = (&self.api, self.api.durations());
        let (first, limit) = (durations.observe_again, durations.fixture);
        let what = key.to_string();
        // Pods of an earlier application may be Ready for a while: what counts is what the
        // Deployment of this one says
        let ready = poll(Pace::new(first), limit, &what, || {
            let mut fixtures = self.clone();
            async move {
                let ready = match fixtures.wait_until_standing(key, applied).await {
                    Ok(ready) => ready,
                    Err(error) => return Condition::Never(error),
                };
                if made.is(&ready.pods) {
                    return Condition::Done(ready);
                }
                let health = made.health(api, Instant::now()).await;
                let not_yet = health.unknown.or(health.unready);
                match (health.changed, not_yet) {
                    (Some(error), _) => Condition::Never(error),
                    (None, Some(error)) if error.kind.is_lasting() => Condition::Never(error),
                    (None, Some(error)) => Condition::NotYet(error.detail),
                    (None, None) => Condition::Done(ready),
                }
            }
        });
        Box::pin(self.while_it_lasts(key, applied, made, ready)).await
    }

    /// Awaits what is done with a fixture, at most until somebody changes that or keeps its pods back.
    pub(super) async fn while_it_lasts<T>(
        &self,
        key: &FixtureKey,
        applied: &[Json],
        made: &AppliedObjects,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let api = &self.api;
        let mut watched = self.pods.clone();
        let done = tokio::select! {
            biased;
            error = made.changed(api, &mut watched) => return Err(error),
            done = work => done,
            error = stuck_pods(api, key, applied, &self.pods) => Err(error),
        };
        match done {
            Ok(done) => Ok(done),
            // That somebody took it away is why it is not ready
            Err(error) => {
                let health = made.health(api, Instant::now()).await;
                Err(health.changed.unwrap_or(error))
            }
        }
    }

    async fn wait_until_standing(
        &mut self,
        key: &FixtureKey,
        applied: &[Json],
    ) -> Result<ReadyFixture> {
        match key.name {
            FixtureName::Namespaces => {
                for namespace in applied
                    .iter()
                    .filter(|object| object["kind"] == "Namespace")
                {
                    self.wait_for_service_account(namespace).await?;
                }
                Ok(ReadyFixture::default())
            }
            FixtureName::WinWebserver
            | FixtureName::Iis
            | FixtureName::SlowStarter
            | FixtureName::NanoServer
            | FixtureName::NodeSample
            | FixtureName::Churn
            | FixtureName::LinuxServer
            | FixtureName::PolicyDenied
            | FixtureName::PolicyAllowed
            | FixtureName::WindowsPodProber
            | FixtureName::Ring
            | FixtureName::EachLinuxPod
            | FixtureName::EachLinuxNode
            | FixtureName::EachWindowsNode
            | FixtureName::LinuxNodeProber
            | FixtureName::WindowsNodeProber => {
                let mut replicas = applied.iter().map(|object| &object["spec"]["replicas"]);
                let replicas = replicas.find_map(Json::as_u64).unwrap_or(1);
                let replicas = usize::try_from(replicas).unwrap_or(usize::MAX);
                let pods = self.wait_for_pods(key, applied, replicas).await?;
                Ok(ready_fixture(applied, pods))
            }
            FixtureName::Sched(fixture) => {
                self.wait_for_settled(key, applied, fixture.starts())
                    .await?;
                Ok(ReadyFixture::default())
            }
            // They are there as soon as they are applied, and never more than that
            FixtureName::UnboundPods => Ok(ReadyFixture::default()),
            FixtureName::Alias => Ok(ready_fixture(applied, Vec::new())),
            FixtureName::LoadBalancer => self.wait_for_balancer(applied).await,
            FixtureName::LinuxPodProber => {
                let pods = self.wait_for_pods(key, applied, 1).await?;
                let domain = self.domain().await?;
                Ok(ReadyFixture {
                    domain,
                    ..ready_fixture(applied, pods)
                })
            }
        }
    }

    /// Writes the intent; without it on record nothing is created, since nothing would lead a
    /// later clean-up's reader to it.
    pub(super) fn announce(&self, object: &Json) -> Result<()> {
        self.journal
            .write(Event::Intent(object_name(object)))
            .map_err(|error| {
                let detail = format!("not created, since it could not be announced: {error}");
                ErrorKind::NotApplied.error(detail)
            })
    }
}

fn is_going(object: &Json) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use super::*;
    use crate::cluster::fake::{Fake, watched};
    use crate::cluster::labels;
    use crate::transport::pause;
    use serde_json::json;
    use winconform_core::facts::{Os, WindowsBuild};
    use winconform_core::method::Served;

    const SERVICE: &str = "/api/v1/namespaces/winconform-r1/services/win-webserver-windows-2022";
    const UNBOUND: &str = "/api/v1/namespaces/winconform-host-r1/pods/winconform-unbound";

    /// Fixtures of a cluster that has no pods, which never change.
    pub(in super::super) fn fixtures(fake: &Fake) -> Fixtures {
        let build = WindowsBuild::SERVER_2022;
        let pool = Pool {
            os: Os::Windows,
            build: Some(build),
            nodes: vec!["win-a".to_owned()],
            unusable: Vec::new(),
            taints: Vec::new(),
            runtimes: std::collections::BTreeSet::new(),
        };
        Fixtures {
            api: fake.api(),
            run: "r1".to_owned(),
            pools: Arc::new([(PoolName::windows(build), pool)].into()),
            nodes: Arc::default(),
            most: 16,
            images: Arc::new(Images::default()),
            second: None,
            journal: super::super::journal::tests::in_memory(),
            domain: Arc::default(),
            copied: Arc::default(),
            pods: watch::channel(Watched::default()).1,
            repeat: Repeat::Times(1),
        }
    }

    fn key(name: FixtureName) -> FixtureKey {
        let pool = PoolName::windows(WindowsBuild::SERVER_2022);
        name.at(Some(&pool))
    }

    async fn stand(fake: &Fake, name: FixtureName) -> Result<ReadyFixture> {
        let cancel = CancellationToken::new();
        fixtures(fake).stand(&key(name), &cancel).await.outcome
    }

    #[tokio::test(start_paused = true)]
    async fn trouble_with_a_service_in_the_second_family_leaves_the_first_alone() {
        const POD: &str = "/api/v1/namespaces/winconform-r1/pods/prober-windows-2022";
        const SECOND: &str = "/api/v1/namespaces/winconform-r1/services/prober-windows-2022-ipv6";
        let (key, cancel) = (key(FixtureName::WindowsPodProber), CancellationToken::new());
        for (status, message, expected) in [
            (
                422,
                "IPv6 is not configured on this cluster",
                Ok(Served::default()),
            ),
            (
                403,
                "denied by the house",
                Err(ErrorKind::Forbidden.error(
                    "`Service winconform-r1/prober-windows-2022-ipv6` was refused with 403: \
                     denied by the house",
                )),
            ),
        ] {
            let fake = Fake::default();
            let said = json!({"kind": "Status", "message": message});
            fake.script(&format!("PATCH {SECOND} "), status, said);
            let (send, pods) = watch::channel(Watched::default());
            let fixtures = Fixtures {
                second: Some(IpFamily::Ipv6),
                pods,
                ..fixtures(&fake)
            };
            let (stood, ()) = tokio::join!(fixtures.stand(&key, &cancel), async {
                pause(Duration::from_secs(1)).await;
                let mut pod = fake.get(POD).expect("it was applied");
                pod["spec"]["nodeName"] = json!("win-a");
                pod["status"] = json!({"podIPs": [{"ip": "10.0.0.1"}],
                    "conditions": [{"type": "Ready", "status": "True"}]});
                fake.put(POD, pod.clone());
                send.send_replace(watched([("winconform-r1/prober".to_owned(), pod)]));
            });
            let stands = stood.outcome.expect("it stands in the first family");
            assert_eq!(stands.name.as_deref(), Some("prober-windows-2022"));
            let second = (stands.second, stands.second_broken);
            let expected = (expected.clone().ok(), expected.err());
            assert_eq!((stands.pods.len(), second), (1, expected));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_ends_when_somebody_deletes_what_was_applied() {
        let fake = Fake::default();
        // The pods would be waited for long after
        let (_send, pods) = watch::channel(Watched::default());
        let fixtures = Fixtures {
            pods,
            ..fixtures(&fake)
        };
        let (key, cancel) = (key(FixtureName::WinWebserver), CancellationToken::new());
        let durations = fixtures.api.durations().clone();
        let begun = Instant::now();
        let (stood, ()) = tokio::join!(fixtures.stand(&key, &cancel), async {
            pause(durations.converge).await;
            fake.remove(SERVICE);
        });
        let error = stood.outcome.expect_err("it is gone");
        assert_eq!(error.kind, ErrorKind::FixtureChanged);
        let said = "Service winconform-r1/win-webserver-windows-2022 was deleted by somebody else \
                    during the run";
        assert_eq!(error.detail, said);
        let took = begun.elapsed();
        assert!(took < durations.fixture / 2, "{took:?}");
    }

    fn going() -> Json {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"uid": "old",
            "name": "winconform-unbound", "namespace": "winconform-host-r1",
            "deletionTimestamp": "2026-01-01T00:00:00Z"}})
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_being_deleted_and_stays_is_given_up() {
        let fake = Fake::default();
        fake.script(&format!("PATCH {UNBOUND} "), 200, going());
        let begun = Instant::now();
        let error = stand(&fake, FixtureName::UnboundPods).await;
        let error = error.expect_err("it stays");
        assert_eq!(error.kind, ErrorKind::FixtureChanged);
        assert!(
            error.detail.ends_with("is being deleted, and stays"),
            "{error}"
        );
        assert!(begun.elapsed() < fake.api().durations().leaving * 2);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_still_being_deleted_is_applied_again() {
        let fake = Fake::default();
        fake.script(&format!("PATCH {UNBOUND} "), 200, going());
        let (stood, ()) = tokio::join!(stand(&fake, FixtureName::UnboundPods), async {
            pause(Duration::from_secs(3)).await;
            let anew = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"uid": "new",
                "name": "winconform-unbound", "namespace": "winconform-host-r1"}});
            fake.script(&format!("PATCH {UNBOUND} "), 200, anew.clone());
            fake.script(&format!("GET {UNBOUND} "), 200, anew);
        });
        assert_eq!(stood, Ok(ReadyFixture::default()));
        let patch = format!("PATCH {UNBOUND}");
        let applied = fake.log().iter().filter(|line| **line == patch).count();
        assert!((2..10).contains(&applied), "{applied}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_pod_of_ours_that_ended_is_removed_and_applied_again() {
        let fake = Fake::default();
        let pod = |uid: &str, phase: &str| {
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"uid": uid,
                "name": "winconform-unbound", "namespace": "winconform-host-r1",
                "labels": {labels::RUN: "r1"}}, "status": {"phase": phase}})
        };
        fake.script(&format!("PATCH {UNBOUND} "), 200, pod("old", "Failed"));
        let (stood, ()) = tokio::join!(stand(&fake, FixtureName::UnboundPods), async {
            pause(Duration::from_secs(3)).await;
            fake.script(&format!("PATCH {UNBOUND} "), 200, pod("new", "Pending"));
            fake.script(&format!("GET {UNBOUND} "), 200, pod("new", "Pending"));
        });
        assert_eq!(stood, Ok(ReadyFixture::default()));
        let removed = format!("DELETE {UNBOUND}");
        assert!(fake.log().contains(&removed), "{:?}", fake.log());
    }

    #[tokio::test(start_paused = true)]
    async fn a_namespace_that_is_going_was_deleted_by_somebody() {
        let going = "pods \"a\" is forbidden: unable to create new content in namespace b because \
                     it is being terminated";
        let gone = "namespaces \"b\" not found";
        for (status, message, kind) in [
            (403, going, ErrorKind::FixtureChanged),
            (404, gone, ErrorKind::FixtureChanged),
            (403, "exceeded quota: pods", ErrorKind::Forbidden),
        ] {
            let fake = Fake::default();
            let refusal = json!({"kind": "Status", "message": message});
            fake.script("PATCH", status, refusal);
            let stood = stand(&fake, FixtureName::UnboundPods).await;
            let error = stood.expect_err("refused");
            assert_eq!(error.kind, kind, "{error}");
        }
    }
}
