//! The cluster layer before a real control plane without nodes.
//!
//! Runs only with `WINCONFORM_TEST_KUBECONFIG`, as `ci/control-plane/up` prints it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value as Json, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use winconform::cluster::{
    ApplyError, Cluster, Condition, ConnectError, ConnectOptions, KubeconfigError, LeaseError,
    Removed, acquire, apply, collect, connect, labels, pods, remove_run, wait_for_objects,
    watch_pods,
};
use winconform_core::config::{Durations, Limits};
use winconform_core::way::{ApiRequest, TroubleKind};

const LIMIT: Duration = Duration::from_secs(30);

/// The real server's kubeconfig, or word that the test was not run.
fn kubeconfig(test: &str) -> Option<PathBuf> {
    let path = std::env::var_os("WINCONFORM_TEST_KUBECONFIG").map(PathBuf::from);
    if path.is_none() {
        // Past the test harness, which shows nothing of a test that passes
        let told = format!("not run: {test}: WINCONFORM_TEST_KUBECONFIG is not set\n");
        let _ = std::io::Write::write_all(&mut std::io::stderr(), told.as_bytes());
    }
    path
}

async fn try_connect(path: &Path, context: Option<&str>) -> Result<Cluster, ConnectError> {
    let options = ConnectOptions {
        context: context.map(str::to_owned),
        kubeconfig: Some(path.to_owned()),
    };
    connect(&options, Durations::default(), Limits::default()).await
}

/// A copy of the kubeconfig, each of its lines changed.
fn altered(path: &Path, folder: &TempDir, change: impl Fn(&str) -> String) -> PathBuf {
    let copy = folder.path().join("config");
    let text = fs::read_to_string(path).expect("the kubeconfig");
    let text: Vec<_> = text.lines().map(change).collect();
    fs::write(&copy, text.join("\n")).expect("written");
    copy
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

#[tokio::test]
async fn what_a_run_makes_is_seen_and_removed() {
    let Some(path) = kubeconfig("what_a_run_makes_is_seen_and_removed") else {
        return;
    };
    let cluster = try_connect(&path, None).await.expect("connected");
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
    let lease = acquire(api, &name, &run, "this test", &durations)
        .await
        .expect("a Lease");
    let error = acquire(api, &name, &run, "another", &durations)
        .await
        .expect_err("held");
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
    // Without nodes none is found for it
    assert!(pending.await.expect("seen").contains("no nodes available"));
    let never = wait_for_objects(&mut seen, Duration::from_secs(2), "readiness", |there| {
        let pod = there.get(&key);
        pod.map_or(Condition::NotYet("gone".to_owned()), pods::readiness)
    });
    let trouble = never.await.expect_err("without nodes");
    assert_eq!(trouble.kind, TroubleKind::FixtureFailed);
    assert!(trouble.detail.contains("no node yet"), "{trouble}");

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
    // Namespace, deployment, service, Lease and three pods; and what the controller may have put in
    // the place of a pod before it heard that the deployment was gone
    let (pods, rest): (Vec<_>, Vec<_>) = removed
        .removed
        .iter()
        .partition(|object| object.kind.kind == "Pod");
    assert_eq!(rest.len(), 4, "{removed:?}");
    assert!((3..=5).contains(&pods.len()), "{removed:?}");
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

#[tokio::test]
async fn a_server_that_is_not_to_be_trusted() {
    let Some(path) = kubeconfig("a_server_that_is_not_to_be_trusted") else {
        return;
    };
    let folder = TempDir::new().expect("a folder");
    let copy = altered(&path, &folder, |line| {
        match line.split_once("certificate-authority") {
            Some((indent, _)) => format!("{indent}certificate-authority-data: {ANOTHER_AUTHORITY}"),
            None => line.to_owned(),
        }
    });
    let error = try_connect(&copy, None).await.expect_err("not trusted");
    assert!(matches!(error, ConnectError::Untrusted { .. }), "{error:?}");
    assert_eq!(error.exit_code(), 21);
}

#[tokio::test]
async fn a_token_that_is_not_accepted() {
    let Some(path) = kubeconfig("a_token_that_is_not_accepted") else {
        return;
    };
    let folder = TempDir::new().expect("a folder");
    let copy = altered(&path, &folder, |line| {
        let trimmed = line.trim_start();
        match trimmed.split_once("client-certificate") {
            Some((dash, _)) => {
                let indent = &line[..line.len() - trimmed.len()];
                format!("{indent}{dash}token: not-a-token")
            }
            None if trimmed.starts_with("client-key") => String::new(),
            None => line.to_owned(),
        }
    });
    let error = try_connect(&copy, None).await.expect_err("not accepted");
    assert!(
        matches!(error, ConnectError::Unauthenticated { .. }),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_context_that_is_not_there() {
    let Some(path) = kubeconfig("a_context_that_is_not_there") else {
        return;
    };
    let error = try_connect(&path, Some("nowhere"))
        .await
        .expect_err("unknown");
    let unknown = |error: &KubeconfigError| matches!(error, KubeconfigError::UnknownContext { .. });
    assert!(
        matches!(&error, ConnectError::Kubeconfig(error) if unknown(error)),
        "{error:?}"
    );
    assert_eq!(error.exit_code(), 2);
}

#[tokio::test]
async fn a_server_that_is_not_there() {
    let Some(path) = kubeconfig("a_server_that_is_not_there") else {
        return;
    };
    let folder = TempDir::new().expect("a folder");
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = nobody.local_addr().expect("an address").port();
    drop(nobody);
    let copy = altered(&path, &folder, |line| match line.split_once("server:") {
        Some((indent, _)) => format!("{indent}server: https://127.0.0.1:{port}"),
        None => line.to_owned(),
    });
    let error = try_connect(&copy, None).await.expect_err("refused");
    assert!(
        matches!(error, ConnectError::Unreachable { .. }),
        "{error:?}"
    );
    let said = error.to_string();
    assert!(
        said.contains("refused") && said.contains(&port.to_string()),
        "{said}"
    );
}

/// A certificate authority that signed nothing, valid for a hundred years; base64 of PEM.
const ANOTHER_AUTHORITY: &str = "\
    LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUJrRENDQVRXZ0F3SUJBZ0lVSCszR0xXUEZQcFdBS3NodTIr\
    UXlCcDVFd0xVd0NnWUlLb1pJemowRUF3SXcKSERFYU1CZ0dBMVVFQXd3UllXNXZkR2hsY2kxaGRYUm9iM0pwZEhr\
    d0lCY05Nall4TVRJeE1EQXhPVEl3V2hnUApNakV5TmpFd01qZ3dNREU1TWpCYU1Cd3hHakFZQmdOVkJBTU1FV0Z1\
    YjNSb1pYSXRZWFYwYUc5eWFYUjVNRmt3CkV3WUhLb1pJemowQ0FRWUlLb1pJemowREFRY0RRZ0FFWGlrSm5WQ0dk\
    VlhiOVF3UnhoQzZEdWNxOFdkNzJoQ2YKRHF1TVl2MHA4WWRNMEkvbklKZkJWekk4RWsyTVdCL0FPSXdZSDhlUGVm\
    YlVWMzhxb2ZBejJLTlRNRkV3SFFZRApWUjBPQkJZRUZEOWF3bjZRclQ0a3RzbUdrRXkxNEZzQzhoZk1NQjhHQTFV\
    ZEl3UVlNQmFBRkQ5YXduNlFyVDRrCnRzbUdrRXkxNEZzQzhoZk1NQThHQTFVZEV3RUIvd1FGTUFNQkFmOHdDZ1lJ\
    S29aSXpqMEVBd0lEU1FBd1JnSWgKQVBuRUdDc3RYcXRKTk1sTjNUWWxGbW84NW1EMVZtZXVHSHRRSUNoNkRaZjZB\
    aUVBckJ2UFd6N2ExbTkyWmpGYwovWHljbnVFQVFzNlZPMy93RXh4VDJCN2M4cWs9Ci0tLS0tRU5EIENFUlRJRklD\
    QVRFLS0tLS0K\
";
