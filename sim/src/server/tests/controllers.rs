//! What controllers do with objects.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use super::{MERGE, STRATEGIC, Scene, path_of, pod, template};
use crate::base::clock;
use crate::base::fields::Fields;
use crate::server::controllers::pods::{condition, is_going};
use crate::server::kinds::Kind;
use crate::topology::Effect;

const APPS: &str = "/apis/apps/v1/namespaces/default";
const PODS: &str = "/api/v1/namespaces/default/pods";

/// Creates a workload of pods of `i:1`; returns its path.
async fn workload(scene: &Scene, plural: &str, mut spec: Value) -> String {
    spec["selector"] = json!({"matchLabels": {"app": "x"}});
    spec["template"] = template("i:1");
    let object = json!({"metadata": {"name": "w"}, "spec": spec});
    scene.create(&format!("{APPS}/{plural}"), object).await;
    format!("{APPS}/{plural}/w")
}

fn names(pods: &[Value]) -> BTreeSet<&str> {
    pods.iter()
        .map(|pod| pod["metadata"]["name"].text())
        .collect()
}

#[tokio::test]
async fn a_deployment_rolls_without_falling_below_what_it_promises() {
    let scene = Scene::new();
    scene.node("n", json!({})).await;
    let rolling = json!({"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}});
    let spec = json!({"replicas": 3, "strategy": rolling});
    let path = workload(&scene, "deployments", spec).await;
    let first = scene.pods("default").await;
    assert_eq!(first.len(), 3);
    for pod in &first {
        scene.run(pod).await;
    }
    let (_, stands) = scene.get(&path).await;
    let status = &stands["status"];
    for (count, is) in [
        ("readyReplicas", 3),
        ("availableReplicas", 3),
        ("observedGeneration", 1),
    ] {
        assert_eq!(status[count], is, "{count}");
    }
    assert_eq!(status["conditions"][0]["status"], "True");
    let of = |image: &str| json!({"spec": {"template": template(image)}});
    scene.patch(&path, MERGE, of("i:2")).await;
    // The deployment creates one more pod, and deletes an old one for each new one that is ready
    for ready in 1..=3 {
        let pods = scene.pods("default").await;
        let active: Vec<&Value> = pods.iter().filter(|pod| !is_going(pod)).collect();
        assert_eq!(active.len(), 4, "{ready}");
        let mut waits = active.into_iter().filter(|pod| {
            pod["spec"]["containers"][0]["image"] == "i:2" && pod["status"]["phase"] == "Pending"
        });
        scene.run(waits.next().expect("one waits")).await;
        assert_eq!(waits.next(), None, "{ready}");
        for pod in scene
            .pods("default")
            .await
            .iter()
            .filter(|pod| is_going(pod))
        {
            scene
                .delete(&path_of(pod), json!({"gracePeriodSeconds": 0}))
                .await;
        }
    }
    let last = scene.pods("default").await;
    assert!(last.len() == 3 && names(&last).is_disjoint(&names(&first)));
    let revision = |object: &Value| {
        let annotations = &object["metadata"]["annotations"];
        annotations["deployment.kubernetes.io/revision"]
            .text()
            .to_owned()
    };
    let (_, stands) = scene.get(&path).await;
    assert_eq!(revision(&stands), "2");
    let progressing = condition(&stands, "Progressing").expect("it is told");
    assert_eq!(progressing["reason"], "NewReplicaSetAvailable");
    // Back to the first template: its replica set is reused, as the newest
    scene.patch(&path, MERGE, of("i:1")).await;
    let (_, sets) = scene.get(&format!("{APPS}/replicasets")).await;
    let revisions: BTreeSet<String> = sets["items"].items().map(revision).collect();
    assert_eq!(revisions, ["2", "3"].map(str::to_owned).into());
    scene.delete(&path, json!({})).await;
    let last = scene.pods("default").await;
    assert!(!last.is_empty() && last.iter().all(is_going));
}

#[tokio::test(start_paused = true)]
async fn a_daemon_set_waits_longer_with_each_failed_pod_of_a_node() {
    let scene = Scene::new();
    scene.node("n", json!({})).await;
    workload(&scene, "daemonsets", json!({})).await;
    for seconds in [0, 1, 2, 4] {
        let failed = &scene.pods("default").await[0];
        let status = json!({"status": {"phase": "Failed"}});
        let path = path_of(failed);
        scene
            .patch(&format!("{path}/status"), STRATEGIC, status)
            .await;
        for _ in 0..seconds {
            assert_eq!(scene.get(&path).await.0, 200, "after less than {seconds} s");
            clock::elapse(Duration::from_secs(1)).await;
        }
        assert_eq!(scene.get(&path).await.0, 404, "after {seconds} s");
        assert_eq!(scene.pods("default").await.len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_daemon_set_waits_longer_with_each_pod_that_loses_its_affinity() {
    let field = "spec.affinity".parse().expect("a field");
    let scene = Scene::with_effect(Effect::Drops(field));
    scene.node("n", json!({})).await;
    // More than the node has, so that the pods stay unbound
    let mut template = template("i:1");
    template["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "3"}});
    let spec = json!({"selector": {"matchLabels": {"app": "x"}}, "template": template});
    let set = json!({"metadata": {"name": "w"}, "spec": spec});
    scene.create(&format!("{APPS}/daemonsets"), set).await;
    for (seconds, pods) in [(0, 2), (1, 3), (2, 4), (4, 5)] {
        for _ in 0..seconds {
            clock::elapse(Duration::from_secs(1)).await;
        }
        assert_eq!(scene.pods("default").await.len(), pods, "after {seconds} s");
    }
}

#[tokio::test]
async fn a_job_ends_with_its_pods_or_with_too_many_failures() {
    let scene = Scene::new();
    scene.node("n", json!({})).await;
    let path = "/apis/batch/v1/namespaces/default/jobs";
    for (phase, ends) in [("Succeeded", "Complete"), ("Failed", "Failed")] {
        let name = phase.to_lowercase();
        let spec = json!({"completions": 2, "backoffLimit": 1, "template": {"spec": {"restartPolicy": "Never",
            "containers": [{"name": "main", "image": "i:1"}]}}});
        let job = json!({"metadata": {"name": name}, "spec": spec});
        scene.create(path, job).await;
        for _ in 0..2 {
            let pods = scene.pods("default").await;
            let active = pods.iter().find(|pod| pod["status"]["phase"] == "Pending");
            let at = format!("{}/status", path_of(active.expect("a pod of the job")));
            let status = json!({"status": {"phase": phase}});
            scene.patch(&at, STRATEGIC, status).await;
        }
        let (_, job) = scene.get(&format!("{path}/{name}")).await;
        let end = condition(&job, ends).expect("it has ended");
        assert_eq!(
            (&end["status"], &job["status"]["active"]),
            (&json!("True"), &Value::Null)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_cron_job_makes_a_job_at_the_minute_and_keeps_the_last() {
    let scene = Scene::new();
    scene.node("n", json!({})).await;
    let path = "/apis/batch/v1/namespaces/default/cronjobs";
    let template = json!({"spec": {"template": {"spec": {"restartPolicy": "Never",
        "containers": [{"name": "main", "image": "i:1"}]}}}});
    let cron = json!({"metadata": {"name": "c"}, "spec": {"schedule": "* * * * *",
        "concurrencyPolicy": "Forbid", "successfulJobsHistoryLimit": 1, "jobTemplate": template}});
    scene.create(path, cron).await;
    let jobs = "/apis/batch/v1/namespaces/default/jobs";
    let names = async || {
        let (_, list) = scene.get(jobs).await;
        let names = list["items"]
            .items()
            .map(|job| job["metadata"]["name"].text());
        names.map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(names().await.is_empty());
    let mut made = Vec::new();
    for _ in 0..3 {
        clock::elapse(Duration::from_mins(1)).await;
        // The one that runs keeps the next from beginning
        clock::elapse(Duration::from_mins(1)).await;
        let pods = scene.pods("default").await;
        let active: Vec<_> = pods
            .iter()
            .filter(|pod| pod["status"]["phase"] == "Pending")
            .collect();
        assert_eq!(active.len(), 1, "{pods:?}");
        let at = format!("{}/status", path_of(active[0]));
        scene
            .patch(&at, STRATEGIC, json!({"status": {"phase": "Succeeded"}}))
            .await;
        let (_, cron) = scene.get(&format!("{path}/c")).await;
        assert!(cron["status"]["lastSuccessfulTime"].is_string(), "{cron}");
        made.push(names().await);
    }
    // The next begins at once, since its minute has passed
    assert!(made.iter().all(|names| names.len() == 2), "{made:?}");
    made.dedup();
    assert_eq!(made.len(), 3, "{made:?}");
}

#[tokio::test(start_paused = true)]
async fn a_cron_job_keeps_as_many_failed_jobs_as_it_says() {
    for (limit, code) in [(0, 404), (1, 200)] {
        let scene = Scene::new();
        scene.node("n", json!({})).await;
        let template = json!({"spec": {"backoffLimit": 0, "template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "main", "image": "i:1"}]}}}});
        let cron = json!({"metadata": {"name": "c"}, "spec": {"schedule": "* * * * *",
            "successfulJobsHistoryLimit": 0, "failedJobsHistoryLimit": limit,
            "jobTemplate": template}});
        let jobs = "/apis/batch/v1/namespaces/default/jobs";
        scene
            .create("/apis/batch/v1/namespaces/default/cronjobs", cron)
            .await;
        clock::elapse(Duration::from_secs(61)).await;
        let (_, job) = scene.get(&format!("{jobs}/c-1")).await;
        let due = "batch.kubernetes.io/cronjob-scheduled-timestamp";
        let due = &job["metadata"]["annotations"][due];
        assert_eq!(*due, "1970-01-01T00:01:00Z");
        let pods = scene.pods("default").await;
        let at = format!("{}/status", path_of(&pods[0]));
        scene
            .patch(&at, STRATEGIC, json!({"status": {"phase": "Failed"}}))
            .await;
        assert_eq!(scene.get(&format!("{jobs}/c-1")).await.0, code, "{limit}");
    }
}

#[tokio::test]
async fn a_quota_counts_the_pods_that_have_not_ended() {
    let scene = Scene::new();
    let quotas = "/api/v1/namespaces/default/resourcequotas";
    let hard = json!({"requests.example.com/thing": "1"});
    let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": hard}});
    scene.create(quotas, quota).await;
    let used = async || {
        let (_, quota) = scene.get(&format!("{quotas}/q")).await;
        assert_eq!(quota["status"]["hard"], hard);
        quota["status"]["used"]["requests.example.com/thing"].clone()
    };
    assert_eq!(used().await, "0");
    let thing = |name: &str| {
        let mut one = pod(name, json!({}));
        let limits = json!({"limits": {"example.com/thing": "1"}});
        one["spec"]["containers"][0]["resources"] = limits;
        one
    };
    let first = scene.create(PODS, thing("first")).await;
    assert_eq!(used().await, "1");
    let second = thing("second").to_string();
    let (code, refusal) = scene.send("POST", PODS, "application/json", second).await;
    assert_eq!(code, 403);
    assert_eq!(
        refusal["message"],
        "pods \"second\" is forbidden: exceeded quota: q, requested: requests.example.com/thing=1, \
         used: requests.example.com/thing=1, limited: requests.example.com/thing=1"
    );
    let at = format!("{}/status", path_of(&first));
    scene
        .patch(&at, STRATEGIC, json!({"status": {"phase": "Succeeded"}}))
        .await;
    assert_eq!(used().await, "0");
    scene.create(PODS, thing("second")).await;
    assert_eq!(used().await, "1");
    scene.delete(&format!("{PODS}/second"), json!({})).await;
    assert_eq!(used().await, "0");
}

#[tokio::test(start_paused = true)]
async fn many_endpoints_are_told_together() {
    let scene = Scene::new();
    scene.node("n", json!({})).await;
    let service = json!({"metadata": {"name": "x"}, "spec": {"selector": {"app": "x"},
        "ports": [{"port": 80}]}});
    scene
        .create("/api/v1/namespaces/default/services", service)
        .await;
    for number in 0..60 {
        let mut one = pod(&format!("p-{number}"), json!({}));
        one["metadata"]["labels"] = json!({"app": "x"});
        let made = scene.create(PODS, one).await;
        scene.run(&made).await;
    }
    let told = || -> Vec<usize> {
        let state = scene.server.shared.state();
        let slices = state.store.since(Kind::named("endpointslices"), 0);
        let slices = slices.expect("all are remembered");
        // The first is the API server's own
        slices
            .skip(1)
            .map(|change| change.object["endpoints"].items().len())
            .collect()
    };
    let each: Vec<usize> = (0..=8).collect();
    assert_eq!(told(), each);
    clock::elapse(Duration::from_secs(2)).await;
    assert_eq!(told(), [each, vec![60]].concat());
}

#[tokio::test(start_paused = true)]
async fn many_pods_of_a_replica_set_are_counted_together() {
    let scene = Scene::new();
    scene.node("n", json!({})).await;
    let path = "/apis/apps/v1/namespaces/default/replicasets";
    let labels = json!({"app": "x"});
    let spec = json!({"replicas": 9, "selector": {"matchLabels": labels}, "template": {
        "metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "i:1"}]}}});
    let set = json!({"metadata": {"name": "x"}, "spec": spec});
    scene.create(path, set).await;
    for pod in scene.pods("default").await {
        scene.run(&pod).await;
    }
    let ready = async || scene.get(&format!("{path}/x")).await.1["status"]["readyReplicas"].clone();
    assert_eq!(ready().await, Value::Null);
    clock::elapse(Duration::from_secs(2)).await;
    assert_eq!(ready().await, 9);
}
