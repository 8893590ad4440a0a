//! Backends that come and go under a Service: what is done to them before anybody assertions, one thing
//! after the other.
//!
//! Whatever a node keeps of those that have gone (HNS endpoints, load balancers, conntrack) is what is
//! looked for afterwards; here nothing is judged.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value as Json, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use winconform_core::method::{
    ErrorKind, FixtureKey, FixtureName, ObservationError, ReadyFixture, Result,
};
use winconform_core::text::printable;

use super::applied::AppliedObjects;
use super::fixtures::Fixtures;
use super::stuck_pods::{belongs, is_of};
use crate::cluster::kinds::{DEPLOYMENTS, Kind, PODS};
use crate::cluster::pods::PodWaits;
use crate::cluster::status::text;
use crate::cluster::{Condition, Objects, wait_for_objects};

/// So many more for a while.
const MORE: u64 = 2;

/// The annotation by which the pods of one template differ from those of the next.
const ROUND: &str = "winconform/round";

/// One thing that is done to the backends.
#[derive(Clone, Copy, Debug)]
enum Step {
    ScaleUp,
    ScaleDown,
    Replace,
    Delete,
}

const STEPS: [Step; 4] = [Step::ScaleUp, Step::ScaleDown, Step::Replace, Step::Delete];

impl Fixtures {
    /// Waits until a fixture is ready, and then, where its backends are to come and go, until they have.
    pub(super) async fn wait_and_churn(
        &self,
        key: &FixtureKey,
        applied: &[Json],
        made: &AppliedObjects,
        cancel: &CancellationToken,
    ) -> Result<ReadyFixture> {
        let ready = Box::pin(self.wait_while_it_lasts(key, applied, made)).await?;
        if key.name != FixtureName::Churn {
            return Ok(ready);
        }
        for step in STEPS {
            let done = self.clone().churn(step, key, cancel);
            Box::pin(self.while_it_lasts(key, applied, made, done)).await?;
        }
        Box::pin(self.wait_while_it_lasts(key, applied, made)).await
    }

    /// Does one thing to the backends, and waits until those that are wanted are Ready and nobody
    /// else is there.
    async fn churn(
        mut self,
        step: Step,
        key: &FixtureKey,
        cancel: &CancellationToken,
    ) -> Result<()> {
        let mut deployment = self.deployment(key)?;
        let wanted = deployment["spec"]["replicas"].as_u64().unwrap_or(1);
        let before = backends(&self.pods.borrow().objects, key);
        let mut gone = BTreeSet::new();
        let mut scaled = wanted;
        match step {
            Step::ScaleUp => {
                scaled += MORE;
                deployment["spec"]["replicas"] = json!(scaled);
                self.apply(&deployment, cancel).await?;
            }
            Step::ScaleDown => {
                self.apply(&deployment, cancel).await?;
            }
            Step::Replace => {
                // Nothing else of the template need differ for other pods to be made
                deployment["spec"]["template"]["metadata"]["annotations"] = json!({ROUND: "2"});
                self.apply(&deployment, cancel).await?;
                gone.extend(before.into_iter().map(|pod| pod.uid));
            }
            Step::Delete => {
                for pod in before.into_iter().take(1) {
                    self.delete(&pod).await?;
                    gone.insert(pod.uid);
                }
            }
        }
        self.wait_for_these(key, scaled, &gone).await
    }

    fn deployment(&self, key: &FixtureKey) -> Result<Json> {
        let failed = |detail: String| ErrorKind::NotApplied.error(detail);
        let objects = self.objects(key, None);
        let mut objects = objects
            .map_err(|error| failed(error.to_string()))?
            .into_iter();
        let deployment = objects.find(|object| Kind::of(object) == Some(&DEPLOYMENTS));
        deployment.ok_or_else(|| failed(format!("{key} has no Deployment")))
    }

    /// Deletes a pod of ours, and none of the same name that came meanwhile.
    pub(super) async fn delete(&self, pod: &Backend) -> Result<()> {
        let own = json!({"uid": pod.uid});
        let request = PODS.deletion(Some(&pod.namespace), &pod.name, &own);
        let reply = self.api.send(&request).await?;
        if matches!(reply.status, 200..=202 | 404 | 409) {
            return Ok(());
        }
        let kind = reply.refusal(ErrorKind::NotApplied);
        let (name, status, words) = (printable(&pod.name), reply.status, reply.message());
        let detail = format!("pod {name} could not be deleted: status {status}: {words}");
        Err(kind.error(detail))
    }

    /// Waits until so many are Ready, and neither anybody else nor any of `gone` is there.
    async fn wait_for_these(
        &mut self,
        key: &FixtureKey,
        wanted: u64,
        gone: &BTreeSet<String>,
    ) -> Result<()> {
        let durations = self.api.durations();
        let what = format!("pods of {key} after they were told to come and go");
        let (mut waits, mut leaving) = (PodWaits::new(&self.api), BTreeMap::new());
        wait_for_objects(&mut self.pods, durations.fixture, &what, |pods| {
            let now = Instant::now();
            let (mut ready, mut others) = (0, 0);
            for (name, pod) in pods.iter().filter(|(_, pod)| is_of(pod, key)) {
                let uid = pod["metadata"]["uid"].as_str().unwrap_or_default();
                let going = !pod["metadata"]["deletionTimestamp"].is_null();
                if going {
                    let since = *leaving.entry(uid.to_owned()).or_insert(now);
                    if now > since + durations.leaving {
                        return Condition::Never(stays(pod, now - since));
                    }
                }
                if going || gone.contains(uid) {
                    others += 1;
                    continue;
                }
                match waits.of(name, self.api.last_away()).look(pod, now) {
                    Condition::Done(()) => ready += 1,
                    Condition::NotYet(_) => others += 1,
                    Condition::Never(error) => return Condition::Never(error),
                }
            }
            if ready == wanted && others == 0 {
                return Condition::Done(());
            }
            Condition::NotYet(format!(
                "{ready} of {wanted} Ready, and {others} others are still there"
            ))
        })
        .await
    }
}

/// One that was told to go, and does not.
fn stays(pod: &Json, since: Duration) -> ObservationError {
    let metadata = &pod["metadata"];
    let name = printable(text(&metadata["name"]));
    let finalizers = metadata["finalizers"].as_array().into_iter().flatten();
    let finalizers: Vec<_> = finalizers.map(|one| printable(text(one))).collect();
    let held = match (finalizers.as_slice(), text(&pod["spec"]["nodeName"])) {
        ([], "") => "it is on no node".to_owned(),
        ([], node) => format!("its node {} does not end it", printable(node)),
        (finalizers, _) => format!("it is held by {}", finalizers.join(", ")),
    };
    let since = since.as_secs();
    let detail = format!("pod {name} is being deleted for {since} s, and {held}");
    ErrorKind::FixtureFailed.error(detail)
}

/// A pod under the Service.
pub(super) struct Backend {
    namespace: String,
    name: String,
    uid: String,
}

/// Those that are not on their way out, by name.
fn backends(pods: &Objects, key: &FixtureKey) -> Vec<Backend> {
    let own = pods.values().filter(|pod| belongs(pod, key));
    own.filter_map(Backend::of).collect()
}

impl Backend {
    pub(super) fn of(pod: &Json) -> Option<Self> {
        let text = |value: &Json| value.as_str().map(str::to_owned);
        Some(Self {
            namespace: text(&pod["metadata"]["namespace"])?,
            name: text(&pod["metadata"]["name"])?,
            uid: text(&pod["metadata"]["uid"])?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::tests::fixtures;
    use super::*;
    use crate::cluster::fake::{Fake, watched};
    use crate::cluster::{Watched, labels};
    use crate::transport::pause;
    use ordered_watch as watch;
    use winconform_core::facts::{PoolName, WindowsBuild};

    const DEPLOYMENT: &str =
        "/apis/apps/v1/namespaces/winconform-r1/deployments/churn-windows-2022";
    const PODS_OF_RUN: &str = "/api/v1/namespaces/winconform-r1/pods";

    fn key() -> FixtureKey {
        FixtureName::Churn.at(Some(&PoolName::windows(WindowsBuild::SERVER_2022)))
    }

    fn pod(name: &str, round: &str) -> Json {
        json!({"metadata": {"name": name, "namespace": "winconform-r1", "uid": name,
                "annotations": {ROUND: round},
                "labels": {labels::FIXTURE: "churn", labels::POOL: "windows-2022"}},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]}})
    }

    /// Makes of the Deployment what its controller would, a pod a second.
    async fn control(fake: &Fake, send: &watch::Sender<Watched>) {
        for number in 0.. {
            let deployment = fake.get(DEPLOYMENT).unwrap_or_default();
            let spec = &deployment["spec"];
            let wanted = spec["replicas"].as_u64().unwrap_or(0);
            let annotations = &spec["template"]["metadata"]["annotations"];
            let round = annotations[ROUND].as_str().unwrap_or_default().to_owned();
            let path = |name: &str| format!("{PODS_OF_RUN}/{name}");
            let mut pods = Objects::clone(&send.borrow().objects);
            // Who was deleted is gone
            pods.retain(|_, pod| {
                let name = pod["metadata"]["name"].as_str().expect("a name");
                fake.get(&path(name)).is_some()
            });
            let old = |pod: &Json| pod["metadata"]["annotations"][ROUND] != *round;
            let of_this = pods.values().filter(|pod| !old(pod)).count() as u64;
            let goes = |pod: &Json| old(pod) && of_this == wanted || of_this > wanted;
            let surplus = pods.iter().find(|(_, pod)| goes(pod));
            let surplus = surplus.map(|(name, _)| name.clone());
            if of_this < wanted {
                let name = format!("churn-{number}");
                fake.put(&path(&name), pod(&name, &round));
                pods.insert(name.clone(), fake.get(&path(&name)).expect("it was put"));
            } else if let Some(name) = surplus {
                fake.remove(&path(&name));
                pods.remove(&name);
            }
            send.send_replace(watched(pods));
            pause(Duration::from_secs(1)).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn each_step_ends_with_those_that_are_wanted_and_nobody_else() {
        let fake = Fake::default();
        let (send, pods) = watch::channel(Watched::default());
        let mut fixtures = fixtures(&fake);
        fixtures.pods = pods;
        fake.put(DEPLOYMENT, json!({"spec": {"replicas": 2}}));
        let (key, cancel) = (key(), CancellationToken::new());
        let churn = async {
            let there = |fixtures: &Fixtures| -> BTreeSet<String> {
                let there = backends(&fixtures.pods.borrow().objects, &key);
                there.into_iter().map(|pod| pod.uid).collect()
            };
            let none = BTreeSet::new();
            let began = fixtures.clone().wait_for_these(&key, 2, &none).await;
            began.expect("two pods");
            let mut all = vec![there(&fixtures)];
            for step in STEPS {
                let done = fixtures.clone().churn(step, &key, &cancel).await;
                done.expect("it is done");
                all.push(there(&fixtures));
            }
            all
        };
        let all = tokio::select! {
            biased;
            all = churn => all,
            () = control(&fake, &send) => unreachable!("it goes on for ever"),
        };
        let counts: Vec<_> = all.iter().map(BTreeSet::len).collect();
        assert_eq!(counts, [2, 4, 2, 2, 2]);
        assert!(all[0].is_subset(&all[1]) && all[2].is_subset(&all[1]));
        assert!(all[3].is_disjoint(&all[2]));
        assert_eq!(all[4].intersection(&all[3]).count(), 1);
        let log = fake.log();
        let count = |verb: &str| log.iter().filter(|line| line.starts_with(verb)).count();
        assert_eq!((count("PATCH"), count("DELETE")), (3, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_does_not_go_ends_the_wait() {
        let fake = Fake::default();
        let mut fixtures = fixtures(&fake);
        let mut stays = pod("churn-1", "1");
        stays["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        stays["spec"] = json!({"nodeName": "win-a"});
        let pod = ("winconform-r1/churn-1".to_owned(), stays);
        let (_send, pods) = watch::channel(watched([pod]));
        fixtures.pods = pods;
        let ended = fixtures.wait_for_these(&key(), 2, &BTreeSet::new()).await;
        let error = ended.expect_err("it stays");
        let said = "pod churn-1 is being deleted for 121 s, and its node win-a does not end it";
        assert_eq!(error.detail, said);
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_the_cluster_ended_is_not_waited_for_once_its_controller_has_made_another() {
        let mut fixtures = fixtures(&Fake::default());
        let mut evicted = pod("churn-1", "1");
        evicted["metadata"]["ownerReferences"] = json!([{"kind": "ReplicaSet"}]);
        evicted["status"] = json!({"phase": "Failed", "reason": "Evicted"});
        let mut another = pod("churn-2", "1");
        another["spec"] = json!({"nodeName": "win-a"});
        another["status"]["phase"] = json!("Running");
        let objects = [evicted, another].map(|pod| (pod["metadata"]["name"].to_string(), pod));
        let (_send, pods) = watch::channel(watched(objects));
        fixtures.pods = pods;
        let stand = fixtures.wait_for_pods(&key(), &[], 1).await;
        assert_eq!(stand.map(drop), Ok(()));
        let churned = fixtures.wait_for_these(&key(), 1, &BTreeSet::new()).await;
        assert_eq!(churned, Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn what_may_not_be_deleted_is_told() {
        let fake = Fake::default();
        fake.script("DELETE", 403, json!({"message": "no"}));
        let of = |name: &str| Backend {
            namespace: "winconform-r1".to_owned(),
            name: name.to_owned(),
            uid: name.to_owned(),
        };
        let refused = fixtures(&fake).delete(&of("a")).await;
        let error = refused.expect_err("refused");
        assert_eq!(error.kind, ErrorKind::Forbidden);
        assert_eq!(error.detail, "pod a could not be deleted: status 403: no");
    }
}
