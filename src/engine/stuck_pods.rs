//! What keeps a fixture's pods back without any of them saying so, asked for only while they lag.

use std::collections::BTreeSet;
use std::mem::replace;

use ordered_watch as watch;
use serde_json::Value as Json;
use tokio::sync::Mutex;
use tokio::time::Instant;
use winconform_core::method::{ApiRequest, ErrorKind, FixtureKey, ObservationError, is_disrupted};

use crate::cluster::hindrance::{Hindrance, awaits_sandbox, refused, sandbox};
use crate::cluster::kinds::{DEPLOYMENTS, Kind};
use crate::cluster::{Condition, Objects, Watched, labels, poll_until};
use crate::transport::{Api, encode};

/// So much longer one of many like it goes without being asked for.
const RARELY: u32 = 4;

/// Returns when something keeps them back for good, or has for as long as a sandbox may take or, of
/// anything else, the scheduler may find no node; never otherwise.
pub(super) async fn stuck_pods(
    api: &Api,
    key: &FixtureKey,
    applied: &[Json],
    pods: &watch::Receiver<Watched>,
) -> ObservationError {
    let durations = api.durations();
    let deployments = applied
        .iter()
        .filter(|object| Kind::of(object) == Some(&DEPLOYMENTS));
    let deployments: Vec<_> = deployments.collect();
    let first_seen: Mutex<Option<Instant>> = Mutex::new(None);
    // Most have their sandbox before anybody has to ask
    let late = Mutex::new(BTreeSet::new());
    let first = match key.node {
        None => durations.observe_again,
        // They are many, and it is asked for each
        Some(_) => durations.observe_again * RARELY,
    };
    let found = poll_until(first, durations.fixture, "a hindrance", async || {
        let of_fixture = |objects: &Objects| -> Vec<Json> {
            let own = objects.values().filter(|pod| belongs(pod, key));
            own.cloned().collect()
        };
        let there = of_fixture(&pods.borrow().objects);
        let mut found = None;
        for deployment in &deployments {
            let wanted = deployment["spec"]["replicas"].as_u64().unwrap_or(1);
            if (there.len() as u64) < wanted {
                found = found.or(refusal(api, deployment).await);
            }
        }
        let waits: Vec<_> = there.iter().filter(|pod| awaits_sandbox(pod)).collect();
        let names = waits.iter().map(|pod| name_of(pod)).collect();
        let late = replace(&mut *late.lock().await, names);
        let late = waits.into_iter().filter(|pod| late.contains(&name_of(pod)));
        found = found.or(failed_sandbox(api, &late.collect::<Vec<_>>()).await);
        let mut first_seen = first_seen.lock().await;
        let Some(Hindrance { error, lasting }) = found else {
            *first_seen = None;
            return Condition::NotYet("nothing".to_owned());
        };
        let now = Instant::now();
        let since = *first_seen.get_or_insert(now);
        let patience = match error.kind {
            ErrorKind::SandboxFailed => durations.sandbox,
            _ => durations.unscheduled,
        };
        match lasting || now.saturating_duration_since(since) >= patience {
            true => Condition::Done(error),
            false => Condition::NotYet(error.detail),
        }
    });
    match found.await {
        Ok(error) => error,
        // Whoever waits for the fixture itself ends now, too, and says more
        Err(_) => std::future::pending().await,
    }
}

/// Whether a pod is one of a fixture's and not on its way out.
pub(super) fn belongs(pod: &Json, key: &FixtureKey) -> bool {
    is_of(pod, key) && pod["metadata"]["deletionTimestamp"].is_null()
}

/// Whether a pod is one of a fixture's; one that the cluster ended is not, where its controller makes another.
pub(super) fn is_of(pod: &Json, key: &FixtureKey) -> bool {
    let pool = key.pool.as_ref().map_or("", |pool| pool.as_str());
    let labels = &pod["metadata"]["labels"];
    let node = key.node.map(|node| node.to_string());
    labels[labels::FIXTURE] == key.name.as_str()
        && labels[labels::POOL] == pool
        && labels[labels::NODE].as_str() == node.as_deref()
        && (pod["metadata"]["ownerReferences"].is_null() || !is_disrupted(pod))
}

/// What nobody could ask for hinders nothing: the wait for the fixture itself goes on.
async fn refusal(api: &Api, deployment: &Json) -> Option<Hindrance> {
    let metadata = &deployment["metadata"];
    let (namespace, name) = (metadata["namespace"].as_str(), metadata["name"].as_str()?);
    let request = ApiRequest::get(DEPLOYMENTS.object_path(namespace, name));
    let reply = api.send(&request).await.ok()?;
    refused(&reply.body).filter(|_| reply.status == 200)
}

fn name_of(pod: &Json) -> Option<String> {
    pod["metadata"]["name"].as_str().map(str::to_owned)
}

/// Of several pods in one request, however many they are.
async fn failed_sandbox(api: &Api, pods: &[&Json]) -> Option<Hindrance> {
    let names: Vec<_> = pods.iter().filter_map(|pod| name_of(pod)).collect();
    let namespace = pods.first()?["metadata"]["namespace"].as_str()?;
    let selector = match names.as_slice() {
        [name] => format!("involvedObject.name={name},reason=FailedCreatePodSandBox"),
        _ => "reason=FailedCreatePodSandBox".to_owned(),
    };
    let path = format!(
        "/api/v1/namespaces/{}/events?fieldSelector={}",
        encode(namespace),
        encode(&selector)
    );
    let reply = api.send(&ApiRequest::get(path)).await.ok()?;
    let own = |event: &&Json| {
        let name = event["involvedObject"]["name"].as_str();
        name.is_none_or(|name| names.iter().any(|own| own == name))
    };
    let events = reply.body["items"].as_array()?.iter().filter(own);
    let mut events = events.filter_map(sandbox);
    let first = events.next()?;
    Some(events.find(|event| event.lasting).unwrap_or(first))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::fake::{Fake, watched};
    use crate::transport::pause;
    use serde_json::json;
    use std::time::Duration;
    use tokio::time::timeout;
    use winconform_core::facts::{PoolName, WindowsBuild};
    use winconform_core::method::FixtureName;

    const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/a/deployments/d";
    const EVENTS: &str = "GET /api/v1/namespaces/a/events ";

    fn key() -> FixtureKey {
        FixtureName::Iis.at(Some(&PoolName::windows(WindowsBuild::SERVER_2022)))
    }

    fn deployment(conditions: &Json) -> Json {
        json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"namespace": "a", "name": "d"}, "spec": {"replicas": 1},
            "status": {"conditions": conditions}})
    }

    fn pod(made: &str) -> Json {
        json!({"metadata": {"namespace": "a", "name": "p",
                "labels": {labels::FIXTURE: "iis", labels::POOL: "windows-2022"}},
            "status": {"phase": "Pending", "conditions": [
                {"type": "PodScheduled", "status": "True"},
                {"type": "PodReadyToStartContainers", "status": made}]}})
    }

    fn event(message: &str) -> Json {
        json!({"items": [{"reason": "FailedCreatePodSandBox", "message": message}]})
    }

    /// A server with a Deployment that nothing is said of.
    fn fake() -> Fake {
        let fake = Fake::default();
        fake.put(DEPLOYMENT, deployment(&json!([])));
        fake
    }

    /// What hinders within so long, and after how long.
    async fn within(
        fake: &Fake,
        pods: Vec<Json>,
        length: Duration,
    ) -> (Option<ObservationError>, Duration) {
        let (begun, api) = (Instant::now(), fake.api());
        let applied = [deployment(&json!([]))];
        let named = pods.into_iter().enumerate();
        let named = named.map(|(n, pod)| (format!("a/{n}"), pod));
        let (_send, pods) = watch::channel(watched(named));
        let found = timeout(length, stuck_pods(&api, &key(), &applied, &pods)).await;
        (found.ok(), begun.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn what_policies_refuse_ends_the_wait_at_once() {
        let fake = Fake::default();
        let failure = json!([{"type": "ReplicaFailure", "status": "True",
            "message": "pods \"d-x\" is forbidden: exceeded quota: q"}]);
        fake.put(DEPLOYMENT, deployment(&failure));
        let (found, took) = within(&fake, Vec::new(), Duration::from_mins(20)).await;
        let error = found.expect("it is refused");
        assert_eq!(error.kind, ErrorKind::Forbidden);
        assert!(took < Duration::from_secs(1), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_sandbox_that_is_late_is_given_time_and_one_that_cannot_be_is_not() {
        let fake = fake();
        fake.script(
            EVENTS,
            200,
            event("plugin type=\"win-bridge\" failed (add)"),
        );
        let patience = fake.api().durations().sandbox;
        let (found, took) = within(&fake, vec![pod("False")], Duration::from_mins(20)).await;
        let error = found.expect("it lasted");
        assert_eq!(error.kind, ErrorKind::SandboxFailed);
        assert!((patience..patience * 2).contains(&took), "{took:?}");

        fake.script(EVENTS, 200, event("no runtime for \"x\" is configured"));
        let (found, took) = within(&fake, vec![pod("False")], Duration::from_mins(20)).await;
        assert!(found.is_some() && took < Duration::from_secs(1), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn what_passed_is_forgotten_when_it_happens_again() {
        let fake = fake();
        fake.script(EVENTS, 200, event("late"));
        let api = fake.api();
        let (patience, applied) = (api.durations().sandbox, [deployment(&json!([]))]);
        let watched = |made: &str| watched([("a/p".to_owned(), pod(made))]);
        let (send, pods) = watch::channel(watched("False"));
        let of = key();
        let goes_on = async {
            for (made, length) in [("True", patience / 2), ("False", patience)] {
                pause(length).await;
                send.send_replace(watched(made));
            }
            pause(Duration::from_secs(35)).await;
        };
        let error = tokio::select! {
            biased;
            error = stuck_pods(&api, &of, &applied, &pods) => Some(error),
            () = goes_on => None,
        };
        assert_eq!(error, None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_pod_without_a_sandbox_is_asked_about_at_the_second_look() {
        let fake = fake();
        let pause = fake.api().durations().observe_again;
        for (length, asked) in [(pause / 2, 0), (pause + pause / 2, 1)] {
            let (found, _) = within(&fake, vec![pod("False")], length).await;
            assert_eq!(found, None);
            let log = fake.log();
            let events = log.iter().filter(|line| line.contains("/events"));
            assert_eq!(events.count(), asked, "{log:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn of_several_pods_one_request_tells_and_nothing_of_others() {
        let pods = ["p", "q"].map(|name| {
            let mut pod = pod("False");
            pod["metadata"]["name"] = json!(name);
            pod
        });
        for (name, hinders) in [("q", true), ("another", false)] {
            let fake = fake();
            let pause = fake.api().durations().observe_again;
            let mut events = event("no runtime for \"x\" is configured");
            events["items"][0]["involvedObject"] = json!({"name": name});
            fake.script(EVENTS, 200, events);
            let (found, _) = within(&fake, pods.to_vec(), pause + pause / 2).await;
            assert_eq!(found.is_some(), hinders, "{name}");
            let log = fake.log();
            let events = log.iter().filter(|line| line.contains("/events"));
            assert_eq!(events.count(), 1, "{log:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn pods_that_pull_are_asked_nothing_about() {
        let fake = Fake::default();
        let (found, _) = within(&fake, vec![pod("True")], Duration::from_mins(19)).await;
        assert_eq!(found, None);
        assert!(fake.log().is_empty(), "{:?}", fake.log());
    }
}
