//! A fixture's pods, waited for until they are Ready or it is said where they go.

use std::collections::BTreeMap;

use serde_json::Value as Json;
use tokio::time::Instant;
use winconform_core::way::{FixtureKey, StandingPod, Trouble};

use super::fixtures::Fixtures;
use super::hindered::belongs;
use super::stands::{never_begun, restarts, settles_in, standing_pod};
use crate::cluster::kinds::PODS;
use crate::cluster::pods::{PodWait, have_begun};
use crate::cluster::{Condition, labels, wait_for_objects};

impl Fixtures {
    /// Waits until the scheduler has said of each pod where it goes or why it goes nowhere, and, where
    /// it matters, the kubelet whether it starts.
    pub(super) async fn wait_for_settled(
        &mut self,
        key: &FixtureKey,
        applied: &[Json],
        starts: bool,
    ) -> Result<(), Trouble> {
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
        let (durations, limits) = (self.api.durations().clone(), self.api.limits().clone());
        let what = format!("pods of {key}");
        let mut waits = BTreeMap::new();
        wait_for_objects(&mut self.pods, durations.fixture, &what, |pods| {
            let now = Instant::now();
            for name in &names {
                let wait = waits
                    .entry(name)
                    .or_insert_with(|| PodWait::new(&durations, &limits));
                wait.unseen(self.api.last_away());
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
    ) -> Result<Vec<StandingPod>, Trouble> {
        let what = format!("pods of {key}");
        let (durations, limits) = (self.api.durations().clone(), self.api.limits().clone());
        let settle = settles_in(key.name, &durations);
        let mut waits = BTreeMap::new();
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
                let wait = waits
                    .entry(name.clone())
                    .or_insert_with(|| PodWait::new(&durations, &limits));
                wait.unseen(self.api.last_away());
                match wait.look(pod, now) {
                    Condition::Done(()) => {
                        ready.insert(name.clone(), restarts(pod));
                    }
                    Condition::NotYet(status) => {
                        preparing |= !have_begun(pod);
                        waiting.push(status);
                    }
                    Condition::Never(trouble) => {
                        preparing = false;
                        return Condition::Never(trouble);
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
                return Condition::Done(ready.filter_map(|(_, pod)| standing_pod(pod)).collect());
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
