//! The cluster layer against a real control plane without nodes.
//!
//! Runs only with `WINCONFORM_TEST_KUBECONFIG`, as `ci/control-plane/up` prints it.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value as Json, json};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use winconform::cluster::{
    ApplyError, Cluster, Condition, ConnectOptions, LeaseError, Removed, acquire, apply, collect,
    connect, labels, pods, remove_run, wait_for_objects, watch_pods,
};
use winconform_core::config::{Durations, Limits};
use winconform_core::method::{ApiRequest, ErrorKind};

use super::control_plane;

const LIMIT: Duration = Duration::from_secs(30);

async fn connected(path: PathBuf) -> Cluster {
    let options = ConnectOptions {
        context: None,
        kubeconfig: Some(path),
    };
    let cluster = connect(&options, Durations::default(), Limits::default()).await;
    cluster.expect("connected")
}

fn labelled(mut object: Json, run: &str) -> Json {
    object["metadata"]["labels"] =
        json!({labels::MANAGED_BY: labels::WINCONFORM, labels::RUN: run});
    object
}

fn objects(run: &str) -> [Json; 4] {
    let namespace = format!("winconform-{run}");
    let spec = json!({
        "automountServiceAccountToken": false,
        "containers": [{"name": "main", "image": "registry.k8s.io/pause:3.10"}],
    });
    let pod = labelled(json!({"metadata": {}}), run)["metadata"].take();
    let selector = pod["labels"].clone();
    [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
        json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "prober", "namespace": namespace}, "spec": spec}),
        json!({"apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "web", "namespace": namespace},
            "spec": {"selector": selector, "ports": [{"port": 80}]}}),
        json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "web", "namespace": namespace},
            "spec": {"replicas": 2, "selector": {"matchLabels": selector},
                "template": {"metadata": pod, "spec": spec}}}),
    ]
    .map(|object| labelled(object, run))
}

/// What was removed is what `objects` makes, with the Lease.
fn has_all_of_them(removed: &Removed) {
    // Three pods, and those with which the controller may have replaced others before it noticed that the
    // Deployment was gone; its ReplicaSet, if the garbage collector was slower than the list
    let mut kinds = std::collections::BTreeMap::<&str, usize>::new();
    for object in &removed.removed {
        *kinds.entry(object.kind.kind).or_default() += 1;
    }
    let pods = kinds.remove("Pod").unwrap_or_default();
    assert!((3..=5).contains(&pods), "{removed:?}");
    assert!(
        kinds.remove("ReplicaSet").unwrap_or_default() <= 1,
        "{removed:?}"
    );
    let once = ["Deployment", "Lease", "Namespace", "Service"].map(|kind| (kind, 1));
    assert_eq!(kinds, once.into(), "{removed:?}");
}

#[tokio::test]
async fn what_a_run_makes_is_seen_and_removed() {
    let Some(path) = control_plane("what_a_run_makes_is_seen_and_removed") else {
        return;
    };
    let cluster = connected(path).await;
    let api = &cluster.api;
    let facts = collect(api).await;
    assert!(
        facts
            .kubernetes()
            .is_some_and(|version| version.minor >= 30),
        "{facts:?}"
    );
    assert!(
        facts.cluster.value().is_some_and(|uid| uid.len() == 36),
        "{facts:?}"
    );
    assert!(facts.nodes.value().is_some(), "{facts:?}");

    let run = format!("t{}", std::process::id());
    let durations = Durations::default();
    let name = format!("winconform-{run}");
    let take = |holder| acquire(api, &name, (&run, holder), &durations, |_| ());
    let lease = take("this test").await.expect("a Lease");
    let error = take("another").await.expect_err("held");
    assert!(matches!(error, LeaseError::Held { .. }), "{error}");

    let (tracker, cancel) = (TaskTracker::new(), CancellationToken::new());
    let mut seen = watch_pods(api, &run, &tracker, cancel.clone());
    for object in objects(&run) {
        apply(api, &object).await.expect("applied");
        apply(api, &object).await.expect("applied again");
    }
    let key = format!("winconform-{run}/prober");
    let pending = wait_for_objects(&mut seen, LIMIT, "three pods", |there| {
        match there.get(&key) {
            Some(pod) if there.len() == 3 => match (pods::readiness(pod), pods::unscheduled(pod)) {
                (Condition::NotYet(_), Some(why)) => Condition::Done(why),
                other => Condition::NotYet(format!("{other:?}")),
            },
            _ => Condition::NotYet(format!("{} pods", there.len())),
        }
    });
    // The cluster has no node for it
    assert!(pending.await.expect("seen").contains("no nodes available"));
    let never = wait_for_objects(&mut seen, Duration::from_secs(2), "readiness", |there| {
        let pod = there.get(&key);
        pod.map_or(Condition::NotYet("gone".to_owned()), pods::readiness)
    });
    let error = never.await.expect_err("without nodes");
    assert_eq!(error.kind, ErrorKind::FixtureFailed);
    assert!(error.detail.contains("no node yet"), "{error}");

    let mistyped = labelled(
        json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "x", "namespace": format!("winconform-{run}")},
            "spec": {"containers": [{"name": "main", "image": "x", "imagee": "y"}]}}),
        &run,
    );
    let error = apply(api, &mistyped).await.expect_err("refused");
    assert!(
        matches!(
            error,
            ApplyError::Refused {
                status: 400 | 500,
                ..
            }
        ),
        "{error}"
    );

    let removed = remove_run(api, Some(&run), durations.tear_down)
        .await
        .expect("removed");
    assert!(removed.is_clean(), "{removed:?}");
    has_all_of_them(&removed);
    lease.release().await.expect("nothing left to release");
    let gone = wait_for_objects(&mut seen, LIMIT, "no pods", |pods| match pods.len() {
        0 => Condition::Done(()),
        some => Condition::NotYet(format!("{some} pods")),
    });
    gone.await.expect("seen to be gone");
    let again = remove_run(api, Some(&run), durations.tear_down)
        .await
        .expect("nothing to do");
    assert_eq!(again, Removed::default());
    let path = format!("/api/v1/namespaces/winconform-{run}");
    assert_eq!(
        api.send(&ApiRequest::get(path))
            .await
            .expect("a reply")
            .status,
        404
    );
    cancel.cancel();
    tracker.close();
    tracker.wait().await;
}
