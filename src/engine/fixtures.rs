//! Fixtures brought to stand: announced, applied, waited for.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value as Json;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use winconform_core::config::Images;
use winconform_core::facts::{Pool, PoolName};
use winconform_core::record::{Event, ObjectName};
use winconform_core::way::{
    ApiRequest, FixtureKey, FixtureName, StandingFixture, Trouble, TroubleKind,
};

use super::journal::Journal;
use super::manifest::{self, pool_of};
use crate::cluster::pods::PodWait;
use crate::cluster::{ApplyError, Condition, Objects, apply, labels, poll_until, wait_until};
use crate::transport::Api;

/// What bringing up fixtures needs. Clones share everything.
#[derive(Clone)]
pub(super) struct Fixtures {
    /// The API server.
    pub(super) api: Api,
    /// The run's id.
    pub(super) run: String,
    /// The cluster's pools.
    pub(super) pools: Arc<BTreeMap<PoolName, Pool>>,
    /// The image table.
    pub(super) images: Arc<Images>,
    /// Where intents go before anything is created.
    pub(super) journal: Journal,
    /// The run's pods as they change.
    pub(super) pods: watch::Receiver<Arc<Objects>>,
}

impl Fixtures {
    /// Applies a fixture and waits until it stands, or says why it will not. The waiting ends
    /// when `cancel` says so, the applying does not: an object that was sent for must not appear
    /// after tear-down has looked.
    pub(super) async fn stand(
        mut self,
        key: &FixtureKey,
        cancel: &CancellationToken,
    ) -> Result<StandingFixture, Trouble> {
        let pool = pool_of(key, &self.pools);
        let objects = manifest::objects(key, &self.run, pool, &self.images, self.api.durations())
            .map_err(|error| Trouble::new(TroubleKind::NotApplied, error.to_string()))?;
        let mut applied = Vec::with_capacity(objects.len());
        for object in &objects {
            if cancel.is_cancelled() {
                return Err(ended());
            }
            self.announce(object)?;
            applied.push(apply(&self.api, object).await.map_err(as_trouble)?);
        }
        let standing = self.wait_until_standing(key, &applied);
        cancel
            .run_until_cancelled(standing)
            .await
            .unwrap_or_else(|| Err(ended()))
    }

    async fn wait_until_standing(
        &mut self,
        key: &FixtureKey,
        applied: &[Json],
    ) -> Result<StandingFixture, Trouble> {
        match key.name {
            FixtureName::Namespaces => {
                for namespace in applied
                    .iter()
                    .filter(|object| object["kind"] == "Namespace")
                {
                    self.wait_for_service_account(namespace).await?;
                }
                Ok(StandingFixture::default())
            }
            FixtureName::WinWebserver => {
                let replicas = applied[0]["spec"]["replicas"].as_u64().unwrap_or(1);
                self.wait_for_pods(key, usize::try_from(replicas).unwrap_or(usize::MAX))
                    .await?;
                let service = applied.iter().find(|object| object["kind"] == "Service");
                Ok(StandingFixture {
                    service: service.and_then(service_address),
                })
            }
            // They are there as soon as they are applied, and never more than that
            FixtureName::UnboundPods => Ok(StandingFixture::default()),
            FixtureName::LinuxPodProber
            | FixtureName::WindowsPodProber
            | FixtureName::WindowsNodeProber => {
                self.wait_for_pods(key, 1).await?;
                Ok(StandingFixture::default())
            }
        }
    }

    /// Writes the intent; without it on record nothing is created, since nothing would lead a
    /// later clean-up's reader to it.
    fn announce(&self, object: &Json) -> Result<(), Trouble> {
        self.journal
            .write(Event::Intent(object_name(object)))
            .map_err(|error| {
                let detail = format!("not created, since it could not be announced: {error}");
                Trouble::new(TroubleKind::NotApplied, detail)
            })
    }

    /// Pods are refused until the controller manager has made the default service account.
    async fn wait_for_service_account(&self, namespace: &Json) -> Result<(), Trouble> {
        let name = namespace["metadata"]["name"].as_str().unwrap_or_default();
        let path = format!("/api/v1/namespaces/{name}/serviceaccounts/default");
        let request = ApiRequest::get(path);
        let what = format!("service account of namespace {name}");
        let durations = self.api.durations();
        let (first, limit) = (durations.transport_pause, durations.fixture);
        poll_until(first, limit, &what, async || {
            match self.api.send(&request).await {
                Ok(reply) if reply.status == 200 => Condition::Done(()),
                Ok(reply) if reply.status == 403 => Condition::Never(Trouble::new(
                    TroubleKind::Forbidden,
                    reply.body["message"].as_str().unwrap_or("may not be read"),
                )),
                Ok(reply) => Condition::NotYet(format!("status {}", reply.status)),
                Err(trouble) if trouble.kind.is_lasting() => Condition::Never(trouble),
                Err(trouble) => Condition::NotYet(trouble.to_string()),
            }
        })
        .await
    }

    async fn wait_for_pods(&mut self, key: &FixtureKey, count: usize) -> Result<(), Trouble> {
        let pool = key.pool.as_ref().map_or("", |pool| pool.as_str());
        let of_fixture = |pod: &Json| {
            let labels = &pod["metadata"]["labels"];
            labels[labels::FIXTURE] == key.name.as_str()
                && labels[labels::POOL] == pool
                && pod["metadata"]["deletionTimestamp"].is_null()
        };
        let what = format!("pods of {key}");
        let durations = self.api.durations().clone();
        // The sample has no readiness probe: it is Ready while it is about to crash, too
        let settle = match key.name {
            FixtureName::WinWebserver => durations.settle,
            FixtureName::Namespaces
            | FixtureName::UnboundPods
            | FixtureName::LinuxPodProber
            | FixtureName::WindowsPodProber
            | FixtureName::WindowsNodeProber => Duration::ZERO,
        };
        let mut waits = BTreeMap::new();
        let mut ready_since: Option<(Instant, BTreeMap<String, u64>)> = None;
        wait_until(&mut self.pods, durations.fixture, &what, |pods| {
            let now = Instant::now();
            let mut ready = BTreeMap::new();
            let mut waiting = Vec::new();
            for (name, pod) in pods.iter().filter(|(_, pod)| of_fixture(pod)) {
                let wait = waits
                    .entry(name.clone())
                    .or_insert_with(|| PodWait::new(durations.unscheduled));
                match wait.look(pod, now) {
                    Condition::Done(()) => {
                        ready.insert(name.clone(), restarts(pod));
                    }
                    Condition::NotYet(status) => waiting.push(status),
                    Condition::Never(trouble) => return Condition::Never(trouble),
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
            ready_since = Some((since, ready));
            if now.saturating_duration_since(since) >= settle {
                return Condition::Done(());
            }
            Condition::NotYet(status)
        })
        .await
    }
}

/// How often a pod's containers were started again.
fn restarts(pod: &Json) -> u64 {
    let statuses = pod["status"]["containerStatuses"]
        .as_array()
        .into_iter()
        .flatten();
    statuses
        .filter_map(|status| status["restartCount"].as_u64())
        .sum()
}

/// An object's kind, namespace and name.
pub(super) fn object_name(object: &Json) -> ObjectName {
    let text = |value: &Json| value.as_str().map(str::to_owned);
    ObjectName {
        kind: text(&object["kind"]).unwrap_or_default(),
        namespace: text(&object["metadata"]["namespace"]),
        name: text(&object["metadata"]["name"]).unwrap_or_default(),
    }
}

fn ended() -> Trouble {
    Trouble::new(TroubleKind::NotApplied, "the run ended before it stood")
}

fn service_address(service: &Json) -> Option<(IpAddr, u16)> {
    let address = service["spec"]["clusterIP"].as_str()?.parse().ok()?;
    let port = service["spec"]["ports"][0]["port"].as_u64()?;
    Some((address, u16::try_from(port).ok()?))
}

fn as_trouble(error: ApplyError) -> Trouble {
    match error {
        ApplyError::Trouble { object, source } => Trouble::new(
            source.kind,
            format!("`{object}` could not be applied: {}", source.detail),
        ),
        // What the cluster's policies refuse is not for us to judge
        refused => Trouble::new(TroubleKind::Forbidden, refused.to_string()),
    }
}
