//! What a fixture has to have before it stands, waited for: pods that are Ready or of which it is said where
//! they go, a service account, an address.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value as Json;
use tokio::time::Instant;
use winconform_core::method::{ApiRequest, ErrorKind, FixtureKey, ReadyFixture, ReadyPod, Result};
use winconform_core::text::printable;

use super::fixtures::Fixtures;
use super::readiness::{never_begun, ready_fixture, ready_pod, restarts, services, settles_in};
use super::stuck_pods::belongs;
use crate::cluster::kinds::{PODS, SERVICES};
use crate::cluster::pods::{PodWaits, have_begun};
use crate::cluster::status::text;
use crate::cluster::{Condition, labels, poll_until, wait_for_objects};

impl Fixtures {
    /// Asks for an object until `read` makes something of it, or nobody may.
    async fn wait_for_object<T>(
        &self,
        path: String,
        what: &str,
        (first, limit): (Duration, Duration),
        read: impl Fn(&Json) -> Condition<T>,
    ) -> Result<T> {
        let request = ApiRequest::get(path);
        poll_until(first, limit, what, async || {
            match self.api.send(&request).await {
                Ok(reply) if reply.status == 200 => read(&reply.body),
                Ok(reply) if reply.status == 403 => {
                    Condition::Never(ErrorKind::Forbidden.error(reply.message()))
                }
                Ok(reply) => {
                    let (status, words) = (reply.status, reply.message());
                    Condition::NotYet(format!("status {status}: {words}"))
                }
                Err(error) if error.kind.is_lasting() => Condition::Never(error),
                Err(error) => Condition::NotYet(error.to_string()),
            }
        })
        .await
    }

    /// Pods are refused until the controller manager has made the default service account.
    pub(super) async fn wait_for_service_account(&self, namespace: &Json) -> Result<()> {
        let name = text(&namespace["metadata"]["name"]);
        let path = format!("/api/v1/namespaces/{name}/serviceaccounts/default");
        let what = format!("service account of namespace {name}");
        let durations = self.api.durations();
        let times = (durations.transport_pause, durations.fixture);
        self.wait_for_object(path, &what, times, |_| Condition::Done(()))
            .await
    }

    /// The Service that was applied, once a load balancer's controller has given it an address.
    pub(super) async fn wait_for_balancer(&self, applied: &[Json]) -> Result<ReadyFixture> {
        let service = services(applied).next();
        let metadata = service.map_or(&Json::Null, |service| &service["metadata"]);
        let name = text(&metadata["name"]);
        let path = SERVICES.object_path(metadata["namespace"].as_str(), name);
        let what = format!("an address of Service {}", printable(name));
        let durations = self.api.durations();
        let times = (durations.observe_again, durations.balancer);
        self.wait_for_object(path, &what, times, |service| {
            let stands = ready_fixture(std::slice::from_ref(service), Vec::new());
            match stands.balancer {
                Some(_) => Condition::Done(stands),
                None => Condition::NotYet("it is pending".to_owned()),
            }
        })
        .await
    }

    /// Waits until the scheduler has said of each pod where it goes or why it goes nowhere, and, where
    /// it matters, the kubelet whether it starts.
    pub(super) async fn wait_for_settled(
        &mut self,
        key: &FixtureKey,
        applied: &[Json],
        starts: bool,
    ) -> Result<()> {
        let stays = |object: &&Json| {
            object["kind"] == "Pod" && object["metadata"]["labels"][labels::MAY_GO].is_null()
        };
        let names = applied.iter().filter(stays);
        let names: Vec<_> = names
            .filter_map(|pod| {
                let metadata = &pod["metadata"];
                let namespace = metadata["namespace"].as_str()?;
                Some(format!("{namespace}/{}", metadata["name"].as_str()?))
            })
            .collect();
        let limit = self.api.durations().fixture;
        let what = format!("pods of {key}");
        let mut waits = PodWaits::new(&self.api);
        wait_for_objects(&mut self.pods, limit, &what, |pods| {
            let now = Instant::now();
            for name in &names {
                let wait = waits.of(name, self.api.last_away());
                let pod = pods.get(name).filter(|pod| !is_earlier(applied, pod));
                match pod.map(|pod| wait.settled(pod, starts, now)) {
                    Some(Condition::Done(())) => {}
                    Some(other) => return other,
                    None => return Condition::NotYet(format!("{name} is not seen yet")),
                }
            }
            Condition::Done(())
        })
        .await
    }

    /// The pods of a fixture, once so many are Ready.
    pub(super) async fn wait_for_pods(
        &mut self,
        key: &FixtureKey,
        applied: &[Json],
        count: usize,
    ) -> Result<Vec<ReadyPod>> {
        let what = format!("pods of {key}");
        let durations = self.api.durations();
        let settle = settles_in(key.name, durations);
        let mut waits = PodWaits::new(&self.api);
        let mut ready_since: Option<(Instant, BTreeMap<String, u64>)> = None;
        // Whether all that is amiss is that some have not begun
        let mut preparing = false;
        let waited = wait_for_objects(&mut self.pods, durations.fixture, &what, |pods| {
            let now = Instant::now();
            let mut ready = BTreeMap::new();
            let mut waiting = Vec::new();
            preparing = false;
            let own = |pod: &Json| belongs(pod, key) && !is_earlier(applied, pod);
            for (name, pod) in pods.iter().filter(|(_, pod)| own(pod)) {
                match waits.of(name, self.api.last_away()).look(pod, now) {
                    Condition::Done(()) => {
                        ready.insert(name.clone(), restarts(pod));
                    }
                    Condition::NotYet(status) => {
                        preparing |= !have_begun(pod);
                        waiting.push(status);
                    }
                    Condition::Never(error) => {
                        preparing = false;
                        return Condition::Never(error);
                    }
                }
            }
            let status = format!("{} of {count} Ready; {}", ready.len(), waiting.join("; "));
            if ready.len() < count {
                ready_since = None;
                return Condition::NotYet(status);
            }
            let since = match ready_since.take() {
                Some((since, same)) if same == ready => since,
                _ => now,
            };
            let done = now.saturating_duration_since(since) >= settle;
            if done {
                let ready = pods.iter().filter(|(name, _)| ready.contains_key(*name));
                return Condition::Done(ready.filter_map(|(_, pod)| ready_pod(pod)).collect());
            }
            ready_since = Some((since, ready));
            Condition::NotYet(status)
        })
        .await;
        match preparing {
            true => waited.map_err(never_begun),
            false => waited,
        }
    }
}

/// Whether a pod is one that was there before one of its name was applied, which the watch shows a while
/// longer.
fn is_earlier(applied: &[Json], pod: &Json) -> bool {
    let metadata = &pod["metadata"];
    let named = |object: &&Json| {
        let keys = ["namespace", "name"];
        object["kind"] == PODS.kind
            && keys
                .iter()
                .all(|key| object["metadata"][key] == metadata[key])
    };
    let own = applied.iter().find(named);
    own.is_some_and(|own| own["metadata"]["uid"] != metadata["uid"])
}
