//! What controllers make of objects.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use super::{MERGE, STRATEGIC, Scene, path_of, pod, template};
use crate::clock;
use crate::server::kinds::Kind;

const APPS: &str = "/apis/apps/v1/namespaces/default";
const PODS: &str = "/api/v1/namespaces/default/pods";

fn workload(name: &str, spec: Value) -> Value {
    let mut spec = spec;
    spec["selector"] = json!({"matchLabels": {"app": "x"}});
    spec["template"] = template("i:1");
    json!({"metadata": {"name": name}, "spec": spec})
}

fn names(pods: &[Value]) -> BTreeSet<String> {
    pods.iter()
        .map(|pod| pod["metadata"]["name"].as_str().expect("a name").to_owned())
        .collect()
}

#[tokio::test]
async fn a_deployment_rolls_without_falling_below_what_it_promises() {
    let scene = Scene::new();
    scene.node("n", json!({})).await;
    let path = format!("{APPS}/deployments/d");
    scene
        .create(
            &format!("{APPS}/deployments"),
            workload(
                "d",
                json!({"replicas": 3,
        "strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}}),
            ),
        )
        .await;
    let first = scene.pods("default").await;
    assert_eq!(first.len(), 3);
    for pod in &first {
        scene.run(pod).await;
    }
    let (_, stands) = scene.get(&path).await;
    let status = &stands["status"];
    assert_eq!(
        (
            &status["readyReplicas"],
            &status["availableReplicas"],
            &status["observedGeneration"]
        ),
        (&json!(3), &json!(3), &json!(1))
    );
    assert_eq!(status["conditions"][0]["status"], "True");
    scene
        .patch(&path, MERGE, json!({"spec": {"template": template("i:2")}}))
        .await;
    // One more is made, and an old one goes for each new one that is ready
    for ready in 1..=3 {
        let pods = scene.pods("default").await;
        let active: Vec<&Value> = pods
            .iter()
            .filter(|pod| pod["metadata"]["deletionTimestamp"].is_null())
            .collect();
        assert_eq!(active.len(), 4, "{ready}");
        let fresh = active
            .iter()
            .filter(|pod| pod["spec"]["containers"][0]["image"] == "i:2");
        let waits = fresh
            .filter(|pod| pod["status"]["phase"] == "Pending")
            .collect::<Vec<_>>();
        assert_eq!(waits.len(), 1, "{ready}");
        scene.run(waits[0]).await;
        for pod in scene.pods("default").await {
            if pod["metadata"]["deletionTimestamp"].is_string() {
                scene
                    .delete(&path_of(&pod), json!({"gracePeriodSeconds": 0}))
                    .await;
            }
        }
    }
    let last = scene.pods("default").await;
    assert!(last.len() == 3 && names(&last).is_disjoint(&names(&first)));
    let (_, stands) = scene.get(&path).await;
    assert_eq!(
        stands["metadata"]["annotations"]["deployment.kubernetes.io/revision"],
        "2"
    );
    let progressing = stands["status"]["conditions"]
        .as_array()
        .expect("conditions")
        .iter()
        .find(|one| one["type"] == "Progressing");
    assert_eq!(
        progressing.expect("it is told")["reason"],
        "NewReplicaSetAvailable"
    );
    // Back to what it was: the old replica set serves again, as the newest
    scene
        .patch(&path, MERGE, json!({"spec": {"template": template("i:1")}}))
        .await;
    let (_, sets) = scene.get(&format!("{APPS}/replicasets")).await;
    let revisions: BTreeSet<&str> = sets["items"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|set| {
            set["metadata"]["annotations"]["deployment.kubernetes.io/revision"].as_str()
        })
        .collect();
    assert_eq!(revisions, BTreeSet::from(["2", "3"]));
    scene.delete(&path, json!({})).await;
    for pod in scene.pods("default").await {
        assert!(pod["metadata"]["deletionTimestamp"].is_string());
    }
}

#[tokio::test]
async fn a_pod_that_goes_is_replaced_and_scaling_takes_the_unready_first() {
    let scene = Scene::new();
    scene.node("n", json!({})).await;
    let path = format!("{APPS}/deployments/d");
    scene
        .create(
            &format!("{APPS}/deployments"),
            workload("d", json!({"replicas": 2})),
        )
        .await;
    let pods = scene.pods("default").await;
    scene.run(&pods[1]).await;
    scene
        .patch(
            &format!("{path}/scale"),
            MERGE,
            json!({"spec": {"replicas": 1}}),
        )
        .await;
    let going: Vec<bool> = scene
        .pods("default")
        .await
        .iter()
        .map(|pod| pod["metadata"]["deletionTimestamp"].is_string())
        .collect();
    assert_eq!(going, [true, false]);
    scene
        .delete(&path_of(&pods[1]), json!({"gracePeriodSeconds": 0}))
        .await;
    assert_eq!(
        scene.pods("default").await.len(),
        2,
        "a new one, and the one that goes"
    );
}

#[tokio::test]
async fn a_daemon_set_has_a_pod_on_every_node_that_takes_it() {
    let scene = Scene::new();
    scene.node("a", json!({"os": "linux"})).await;
    scene.node("b", json!({"os": "windows"})).await;
    let mut set = workload("d", json!({}));
    set["spec"]["template"]["spec"]["nodeSelector"] = json!({"os": "linux"});
    scene.create(&format!("{APPS}/daemonsets"), set).await;
    scene.node("c", json!({"os": "linux"})).await;
    let pods = scene.pods("default").await;
    let nodes: BTreeSet<&str> = pods
        .iter()
        .filter_map(|pod| pod["spec"]["nodeName"].as_str())
        .collect();
    assert_eq!(nodes, BTreeSet::from(["a", "c"]));
    for pod in &pods {
        scene.run(pod).await;
    }
    let (_, set) = scene.get(&format!("{APPS}/daemonsets/d")).await;
    assert_eq!(
        (
            &set["status"]["desiredNumberScheduled"],
            &set["status"]["numberReady"]
        ),
        (&json!(2), &json!(2))
    );
}

#[tokio::test(start_paused = true)]
async fn a_daemon_set_waits_longer_with_each_failed_pod_of_a_node() {
    let scene = Scene::new();
    scene.node("n", json!({})).await;
    let set = workload("d", json!({}));
    scene.create(&format!("{APPS}/daemonsets"), set).await;
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

#[tokio::test]
async fn a_stateful_set_goes_one_by_one() {
    let scene = Scene::new();
    scene.node("n", json!({})).await;
    scene
        .create(
            &format!("{APPS}/statefulsets"),
            workload("s", json!({"replicas": 2, "serviceName": "s"})),
        )
        .await;
    assert_eq!(
        names(&scene.pods("default").await),
        BTreeSet::from(["s-0".to_owned()])
    );
    scene.run(&scene.pods("default").await[0]).await;
    assert_eq!(
        names(&scene.pods("default").await),
        BTreeSet::from(["s-0".to_owned(), "s-1".to_owned()])
    );
    scene.run(&scene.pods("default").await[1]).await;
    scene
        .patch(
            &format!("{APPS}/statefulsets/s"),
            MERGE,
            json!({"spec": {"replicas": 1}}),
        )
        .await;
    let going: Vec<bool> = scene
        .pods("default")
        .await
        .iter()
        .map(|pod| pod["metadata"]["deletionTimestamp"].is_string())
        .collect();
    assert_eq!(going, [false, true]);
}

#[tokio::test]
async fn a_job_ends_with_its_pods_or_with_too_many_failures() {
    let scene = Scene::new();
    scene.node("n", json!({})).await;
    let path = "/apis/batch/v1/namespaces/default/jobs";
    for (phase, ends, times) in [("Succeeded", "Complete", 2), ("Failed", "Failed", 2)] {
        let name = phase.to_lowercase();
        let spec = json!({"completions": 2, "backoffLimit": 1, "template": {"spec": {"restartPolicy": "Never",
            "containers": [{"name": "main", "image": "i:1"}]}}});
        scene
            .create(path, json!({"metadata": {"name": name}, "spec": spec}))
            .await;
        for _ in 0..times {
            let pods = scene.pods("default").await;
            let active = pods
                .iter()
                .find(|pod| pod["status"]["phase"] == "Pending")
                .expect("a pod of the job");
            scene
                .patch(
                    &format!("{}/status", path_of(active)),
                    STRATEGIC,
                    json!({"status": {"phase": phase}}),
                )
                .await;
        }
        let (_, job) = scene.get(&format!("{path}/{name}")).await;
        let conditions = job["status"]["conditions"].as_array().expect("conditions");
        assert!(
            conditions
                .iter()
                .any(|one| one["type"] == ends && one["status"] == "True"),
            "{job}"
        );
        assert_eq!(job["status"]["active"], Value::Null);
    }
}

#[tokio::test]
async fn endpoints_follow_the_pods_that_a_service_selects() {
    let scene = Scene::new();
    scene
        .node("n", json!({"topology.kubernetes.io/zone": "z"}))
        .await;
    let mut serving = pod("web", json!({}));
    serving["spec"]["containers"][0]["ports"] = json!([{"name": "http", "containerPort": 8080}]);
    let made = scene.create(PODS, serving).await;
    let service = json!({"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"},
        "ports": [{"port": 80, "targetPort": "http"}]}});
    scene
        .create("/api/v1/namespaces/default/services", service)
        .await;
    let slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    let slice = async || {
        let (_, list) = scene
            .get(&format!(
                "{slices}?labelSelector=kubernetes.io/service-name%3Dweb"
            ))
            .await;
        assert_eq!(list["items"].as_array().map(Vec::len), Some(1));
        list["items"][0].clone()
    };
    assert_eq!(slice().await["endpoints"], json!([]), "without an address");
    scene.run(&made).await;
    let now = slice().await;
    assert_eq!(
        now["ports"],
        json!([{"name": "", "protocol": "TCP", "port": 8080}])
    );
    let endpoint = &now["endpoints"][0];
    assert_eq!(
        endpoint["conditions"],
        json!({"ready": true, "serving": true, "terminating": false})
    );
    assert_eq!(
        (
            &endpoint["addresses"],
            &endpoint["zone"],
            &endpoint["nodeName"]
        ),
        (&json!(["10.0.0.1"]), &json!("z"), &json!("n"))
    );
    scene.delete(&path_of(&made), json!({})).await;
    let going = slice().await["endpoints"][0]["conditions"].clone();
    assert_eq!(
        going,
        json!({"ready": false, "serving": true, "terminating": true})
    );
    scene
        .delete(&path_of(&made), json!({"gracePeriodSeconds": 0}))
        .await;
    assert_eq!(slice().await["endpoints"], json!([]));
    scene
        .delete("/api/v1/namespaces/default/services/web", json!({}))
        .await;
    let (_, list) = scene.get(slices).await;
    assert_eq!(list["items"], json!([]));
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
        let endpoints = slices.map(|change| change.object["endpoints"].as_array());
        endpoints
            .map(|endpoints| endpoints.map_or(0, Vec::len))
            .collect()
    };
    let each: Vec<usize> = (0..=20).collect();
    assert_eq!(told(), each);
    clock::elapse(Duration::from_secs(2)).await;
    assert_eq!(told(), [each, vec![60]].concat());
}

fn taints(node: &Value) -> Vec<String> {
    let taints = node["spec"]["taints"].as_array().into_iter().flatten();
    taints
        .map(|taint| {
            format!(
                "{}:{}",
                taint["key"].as_str().unwrap_or(""),
                taint["effect"].as_str().unwrap_or("")
            )
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_node_that_falls_silent_loses_its_pods_in_time() {
    let scene = Scene::new();
    let node = json!({"metadata": {"name": "n"}});
    scene.create("/api/v1/nodes", node).await;
    let (_, node) = scene.get("/api/v1/nodes/n").await;
    assert_eq!(taints(&node), ["node.kubernetes.io/not-ready:NoSchedule"]);
    let lease =
        json!({"metadata": {"name": "n"}, "spec": {"renewTime": "2026-01-01T00:00:00.000000Z"}});
    scene
        .create(
            "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases",
            lease,
        )
        .await;
    scene.node_status("n").await;
    let (_, node) = scene.get("/api/v1/nodes/n").await;
    assert_eq!(taints(&node), Vec::<String>::new());
    let made = scene.create(PODS, pod("p", json!({}))).await;
    scene.run(&made).await;
    clock::elapse(Duration::from_secs(49)).await;
    assert_eq!(
        taints(&scene.get("/api/v1/nodes/n").await.1),
        Vec::<String>::new()
    );
    clock::elapse(Duration::from_secs(2)).await;
    let (_, node) = scene.get("/api/v1/nodes/n").await;
    assert_eq!(
        taints(&node),
        [
            "node.kubernetes.io/unreachable:NoSchedule",
            "node.kubernetes.io/unreachable:NoExecute"
        ]
    );
    let (_, pod) = scene.get(&path_of(&made)).await;
    let conditions = pod["status"]["conditions"].as_array().expect("conditions");
    let ready = conditions.iter().find(|one| one["type"] == "Ready");
    assert_eq!(ready.expect("it is told")["status"], "False");
    // Somebody who is heard again is ready when he says so
    scene.node_status("n").await;
    assert_eq!(
        taints(&scene.get("/api/v1/nodes/n").await.1),
        Vec::<String>::new()
    );
    scene.delete("/api/v1/nodes/n", json!({})).await;
    clock::elapse(Duration::from_secs(39)).await;
    assert_eq!(scene.get(&path_of(&made)).await.0, 200);
    clock::elapse(Duration::from_secs(2)).await;
    assert_eq!(scene.get(&path_of(&made)).await.0, 404);
}
