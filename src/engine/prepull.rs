//! Pulls the images of a run beforehand on every node that it may use, with a pod for each that ends at
//! once.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt, StreamExt};
use ordered_watch as watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use winconform_core::facts::{Pool, PoolName};
use winconform_core::fixture::{FixtureKey, FixtureName};
use winconform_core::method::{ErrorKind, ObservationError, Result};
use winconform_core::plan::{Answer, Pulls};
use winconform_core::record::TornDown;

use super::access;
use super::fixtures::manifest::Pull;
use super::life::{Life, RunError, RunOptions};
use super::run::{self, said};
use super::stop::{lost, signalled};
use crate::cluster::apply;
use crate::cluster::objects::pods::{PodWait, pulled};
use crate::cluster::{
    Cluster, Condition, LeaseHeld, Objects, review, wait_for_objects, watch_pods,
};
use crate::engine::fixtures::apply::Fixtures;
use crate::engine::fixtures::manifest;
use crate::engine::fixtures::readiness::{as_trouble, ended};
use crate::engine::fixtures::tear_down::tear_down;
use crate::engine::record::journal::Journal;

#[derive(Clone, Debug)]
pub struct Prepulled {
    /// How many of the wanted pulls did not succeed.
    pub missing: usize,
    /// What ended it early, if anything did.
    pub ended_by: Option<EndedBy>,
    /// What tear-down did.
    pub torn_down: TornDown,
}

/// What ends pulling before every pull is reported.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum EndedBy {
    Signal,
    /// The loss of the Lease, for this reason: another run may be at work.
    Lease(String),
}

/// Reports each pull once its result is known: how long after the beginning the image was there, or why it
/// will not be.
pub type Tell<'t> = dyn FnMut(&Pull, Result<Duration, &ObservationError>) + Send + 't;

/// Asks the server for every permission and, if it has them all, pulls the wanted images and removes what it
/// created. The first of the `signals` ends it, and so does the loss of its Lease.
pub async fn prepull(
    cluster: &Cluster,
    wanted: &BTreeMap<PoolName, Pulls>,
    pools: BTreeMap<PoolName, Pool>,
    options: &RunOptions,
    mut signals: watch::Receiver<u32>,
    report: &mut Tell<'_>,
) -> Result<Prepulled, RunError> {
    let journal = Journal::create(
        cluster.api.env().clone(),
        None,
        Vec::new(),
        Box::new(|_| {}),
    )
    .map_err(RunError::Journal)?;
    let life = Life {
        cluster,
        options,
        journal: &journal,
    };
    let taken = tokio::select! {
        biased;
        () = signalled(&mut signals, 1) => None,
        taken = take_lease(cluster, options) => Some(taken),
    };
    let lease = match taken {
        Some(Ok(lease)) => lease,
        Some(Err(error)) => {
            if error.may_leave_a_lease() {
                tear_down(life, None).await;
            }
            return Err(error);
        }
        None => {
            return Ok(Prepulled {
                missing: by_pod(wanted).len(),
                ended_by: Some(EndedBy::Signal),
                // The Lease may exist nevertheless
                torn_down: tear_down(life, None).await,
            });
        }
    };
    let (tracker, cancel) = (TaskTracker::new(), CancellationToken::new());
    let pods = watch_pods(&cluster.api, &options.run, &tracker, cancel.clone());
    // Nothing that is pulled depends on further facts
    let fixtures = run::fixtures(life, pools, Arc::default(), pods);
    let mut left = by_pod(wanted);
    let mut panic = None;
    let ended_by = {
        let pulling = AssertUnwindSafe(pull_all(fixtures, &mut left, &cancel, report));
        let mut pulling = pin!(pulling.catch_unwind());
        let ended_by = tokio::select! {
            biased;
            () = signalled(&mut signals, 1) => Some(EndedBy::Signal),
            why = lost(Some(lease.lost())) => Some(EndedBy::Lease(why)),
            pulled = &mut pulling => {
                panic = pulled.err();
                None
            }
        };
        if ended_by.is_some() {
            // A request under way must not create anything after tear-down lists the objects
            cancel.cancel();
            panic = pulling.await.err();
        }
        ended_by
    };
    let missing = left.values().filter(|wanted| !wanted.there).count();
    cancel.cancel();
    tracker.close();
    tracker.wait().await;
    let torn_down = tear_down(life, Some(lease)).await;
    if let Some(panic) = panic {
        return Err(RunError::Panicked(said(&*panic)));
    }
    Ok(Prepulled {
        missing,
        ended_by,
        torn_down,
    })
}

/// Takes the Lease, if the server allows all that follows.
async fn take_lease(cluster: &Cluster, options: &RunOptions) -> Result<LeaseHeld, RunError> {
    let needs = access::of_prepull(&options.config.images);
    let denied: BTreeMap<_, _> = review(&cluster.api, &needs)
        .await
        .into_iter()
        .filter_map(|(access, answer)| match answer {
            Answer::Denied(words) => Some((access, words)),
            // Where the answer is unknown, the attempt shows it
            Answer::Allowed | Answer::Unknown(_) => None,
        })
        .collect();
    if !denied.is_empty() {
        return Err(RunError::Denied(denied));
    }
    run::acquired(cluster, options, |_| ()).await
}

/// The wanted pulls, by the name of their pods.
type Left = BTreeMap<String, Wanted>;

/// An image on a node, with the fixture whose pods run it.
#[derive(Clone, Debug)]
struct Wanted {
    pull: Pull,
    key: FixtureKey,
    there: bool,
}

fn by_pod(wanted: &BTreeMap<PoolName, Pulls>) -> Left {
    let mut left = Left::new();
    for (pool, pulls) in wanted {
        for node in &pulls.nodes {
            for (image, fixtures) in &pulls.images {
                let Some(name) = fixtures.first().copied() else {
                    continue;
                };
                let pull = Pull {
                    node: node.clone(),
                    image: image.clone(),
                };
                let key = FixtureKey {
                    name,
                    pool: Some(pool.clone()),
                    node: None,
                };
                let there = false;
                left.insert(format!("pull-{}", left.len()), Wanted { pull, key, there });
            }
        }
    }
    left
}

/// Returns once every pull is reported, or soon after `cancel` with no request under way.
async fn pull_all(
    mut fixtures: Fixtures,
    left: &mut Left,
    cancel: &CancellationToken,
    report: &mut Tell<'_>,
) {
    let begun = Instant::now();
    let namespaces = FixtureName::NAMESPACES.in_pool(None);
    let outcome = fixtures.clone().ready(&namespaces, cancel).await.outcome;
    let ready = match outcome {
        Ok(_) => fixtures.copy_pull_secrets(cancel).await,
        Err(error) => Err(error),
    };
    if cancel.is_cancelled() {
        return;
    }
    if let Err(error) = ready {
        for wanted in left.values() {
            report(&wanted.pull, Err(&error));
        }
        return;
    }
    let api = fixtures.api.clone();
    let (durations, limits) = (api.durations(), api.limits());
    let many = limits.api_in_flight.max(1);
    let applying = left.iter().map(|(name, wanted)| {
        let fixtures = &fixtures;
        async move { (name.clone(), applied(fixtures, name, wanted, cancel).await) }
    });
    let applied: Vec<_> = futures::stream::iter(applying)
        .buffer_unordered(many)
        .collect()
        .await;
    let mut waits = BTreeMap::new();
    for (name, applied) in applied {
        match applied {
            Ok(()) => {
                waits.insert(name, PodWait::new(durations, limits));
            }
            Err(_) if cancel.is_cancelled() => return,
            Err(error) => report(&left[&name].pull, Err(&error)),
        }
    }
    // A node pulls one image after the other
    let most = left.values().fold(BTreeMap::new(), |mut counts, wanted| {
        *counts.entry(wanted.pull.node.clone()).or_insert(0_u32) += 1;
        counts
    });
    let limit = durations.fixture * most.into_values().max().unwrap_or(1);
    let waited = wait_for_objects(&mut fixtures.pods, limit, "images", |pods| {
        look(pods, &mut waits, left, begun, report);
        match waits.len() {
            0 => Condition::Done(()),
            some => Condition::NotYet(format!("{some} are pulled still")),
        }
    });
    if let Some(Err(error)) = cancel.run_until_cancelled(waited).await {
        for name in waits.keys() {
            report(&left[name].pull, Err(&error));
        }
    }
}

async fn applied(
    fixtures: &Fixtures,
    name: &str,
    wanted: &Wanted,
    cancel: &CancellationToken,
) -> Result<()> {
    if cancel.is_cancelled() {
        return Err(ended());
    }
    let Wanted { pull, key, .. } = wanted;
    let pool = manifest::pool_of(key, &fixtures.pools);
    let pool = pool.ok_or_else(|| ErrorKind::NotApplied.error("its pool is gone"))?;
    let (run, durations) = (&fixtures.run, fixtures.api.durations());
    let images = &fixtures.config.images;
    let pod = manifest::pulling(name, key, run, pool, pull, images, durations);
    let applied = apply(&fixtures.api, &pod).await;
    applied.map(drop).map_err(as_trouble)
}

/// Reports the pulls whose result is known now, and stops waiting for their pods.
fn look(
    pods: &Objects,
    waits: &mut BTreeMap<String, PodWait>,
    left: &mut Left,
    begun: Instant,
    report: &mut Tell<'_>,
) {
    let now = Instant::now();
    for (key, pod) in pods {
        let name = key.rsplit('/').next().unwrap_or_default();
        let (Some(wait), Some(wanted)) = (waits.get_mut(name), left.get_mut(name)) else {
            continue;
        };
        let done = pulled(pod).unwrap_or_else(|| wait.look(pod, now));
        match done {
            Condition::NotYet(_) => continue,
            Condition::Done(()) => {
                wanted.there = true;
                report(&wanted.pull, Ok(now.saturating_duration_since(begun)));
            }
            Condition::Never(error) => report(&wanted.pull, Err(&error)),
        }
        waits.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Keep, Repeat};
    use super::*;
    use crate::cluster::fake::Fake;
    use serde_json::json;
    use std::collections::BTreeSet;
    use winconform_core::config::{Config, read};
    use winconform_core::facts::{Os, WindowsBuild};
    use winconform_core::plan::Selection;

    const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

    async fn prepulled(fake: &Fake, config: Config) -> Result<Prepulled, RunError> {
        let (_keep, signals) = watch::channel(0);
        let wanted = BTreeMap::new();
        Box::pin(prepulled_until(fake, config, &wanted, signals)).await
    }

    async fn prepulled_until(
        fake: &Fake,
        config: Config,
        wanted: &BTreeMap<PoolName, Pulls>,
        signals: watch::Receiver<u32>,
    ) -> Result<Prepulled, RunError> {
        let cluster = Cluster {
            api: fake.api(),
            context: "test".to_owned(),
            name: None,
            unverified: false,
        };
        let options = RunOptions {
            run: "r1".to_owned(),
            lease: "winconform".to_owned(),
            holder: "test".to_owned(),
            config,
            selection: Selection::default(),
            deadline: None,
            repeat: Repeat::Times(1),
            resume: None,
            keep: Keep::Never,
        };
        let pools = wanted.iter().map(|(name, pulls)| {
            let pool = Pool {
                os: Os::Windows,
                build: Some(WindowsBuild::SERVER_2022),
                nodes: pulls.nodes.clone(),
                spared: Vec::new(),
                excluded: Vec::new(),
                unusable: Vec::new(),
                taints: Vec::new(),
                handlers: None,
                runtimes: BTreeSet::new(),
            };
            (name.clone(), pool)
        });
        let mut told =
            |_: &Pull, outcome: Result<Duration, &ObservationError>| panic!("{outcome:?}");
        let pools = pools.collect();
        prepull(&cluster, wanted, pools, &options, signals, &mut told).await
    }

    #[tokio::test(start_paused = true)]
    async fn all_that_is_missing_is_told_at_once_and_nothing_is_begun() {
        let fake = Fake::default();
        let no = json!({"status": {"allowed": false, "reason": "RBAC: no"}});
        fake.script(&format!("POST {REVIEWS} "), 201, no);
        let mut found = Vec::new();
        let text = "images: {pull-secrets: [registry/regcred]}";
        let config = read("config.yaml", text, &mut found);
        let said = match Box::pin(prepulled(&fake, config)).await {
            Err(error @ RunError::Denied(_)) => error.to_string(),
            other => panic!("{other:?}"),
        };
        for line in [
            "create leases.coordination.k8s.io in namespace default: RBAC: no",
            "create namespaces: RBAC: no",
            "patch pods in the run's namespaces: RBAC: no",
            "watch pods: RBAC: no",
            "get secrets regcred in namespace registry: RBAC: no",
        ] {
            assert!(said.lines().any(|told| told == line), "{line} in:\n{said}");
        }
        assert!(fake.log().iter().all(|request| request.contains(REVIEWS)));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_not_told_beforehand_is_tried() {
        let fake = Fake::default();
        let failed = json!({"kind": "Status", "message": "no reviews here"});
        fake.script(&format!("POST {REVIEWS} "), 403, failed);
        let done = Box::pin(prepulled(&fake, Config::default())).await;
        let done = done.expect("tried");
        assert_eq!((done.missing, done.ended_by), (0, None));
        let begun = "PATCH /api/v1/namespaces/winconform-r1";
        assert!(fake.log().iter().any(|request| request == begun));
    }

    fn one_image() -> BTreeMap<PoolName, Pulls> {
        let image = "mcr.microsoft.com/windows/servercore:ltsc2022".to_owned();
        let pulls = Pulls {
            nodes: vec!["win-a".to_owned(), "win-b".to_owned()],
            images: [(image, [FixtureName::WIN_WEBSERVER].into())].into(),
        };
        [(PoolName::windows(WindowsBuild::SERVER_2022), pulls)].into()
    }

    /// Asserts that a signal ends the pulls of one image on two nodes.
    async fn assert_ends(fake: &Fake, signals: watch::Receiver<u32>) {
        let (config, image) = (Config::default(), one_image());
        let done = Box::pin(prepulled_until(fake, config, &image, signals)).await;
        let done = done.expect("ended");
        assert_eq!((done.missing, done.ended_by), (2, Some(EndedBy::Signal)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_signal_counts_before_anything_is_begun() {
        let fake = Fake::default();
        let (send, signals) = watch::channel(0);
        fake.signal_at(&format!("POST {REVIEWS}"), send);
        assert_ends(&fake, signals).await;
        let log = fake.log();
        let begins =
            |request: &String| request.starts_with("PATCH") || request.contains("POST /apis/coord");
        assert!(!log.iter().any(begins), "{log:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_sent_when_a_signal_comes_is_awaited_and_nothing_follows_it() {
        const NAMESPACE: &str = "/api/v1/namespaces/winconform-r1";
        let fake = Fake::default();
        let allowed = json!({"status": {"allowed": true}});
        fake.script(&format!("POST {REVIEWS} "), 201, allowed);
        let (send, signals) = watch::channel(0);
        fake.signal_at(&format!("PATCH {NAMESPACE}"), send);
        assert_ends(&fake, signals).await;
        // It was created before tear-down listed the objects
        let log = fake.log();
        let patch = format!("PATCH {NAMESPACE}");
        let at = log.iter().position(|line| *line == patch);
        let after = &log[at.expect("it was sent") + 1..];
        assert!(after.contains(&format!("DELETE {NAMESPACE}")), "{log:?}");
        let mut verbs = after.iter().map(|line| line.split(' ').next());
        assert!(verbs.all(|verb| verb != Some("PATCH")), "{log:?}");
        assert_eq!(fake.get(NAMESPACE), None);
    }
}
