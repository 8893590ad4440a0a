//! Where pods go, and why not.

use serde_json::{Value, json};

use super::{MERGE, Scene, path_of, pod};

const PODS: &str = "/api/v1/namespaces/default/pods";

/// Why a pod is not placed.
fn why(pod: &Value) -> &str {
    let conditions = pod["status"]["conditions"].as_array().expect("conditions");
    let placed = conditions
        .iter()
        .find(|one| one["type"] == "PodScheduled")
        .expect("it is told");
    assert_eq!(
        (&placed["status"], &placed["reason"]),
        (&json!("False"), &json!("Unschedulable"))
    );
    placed["message"].as_str().expect("a message")
}

fn requests(name: &str, cpu: &str) -> Value {
    let mut pod = pod(name, json!({}));
    pod["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": cpu}});
    pod
}

#[tokio::test]
async fn pods_go_where_they_are_let_and_say_why_they_do_not() {
    let scene = Scene::new();
    scene.node("a", json!({"os": "linux"})).await;
    scene.node("b", json!({"os": "windows"})).await;
    let taint =
        json!({"spec": {"taints": [{"key": "os", "value": "windows", "effect": "NoSchedule"}]}});
    scene.patch("/api/v1/nodes/b", MERGE, taint).await;
    let toleration = json!([{"key": "os", "operator": "Equal", "value": "windows"}]);
    let named = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["b"]}]}]}}});
    for (name, spec, goes) in [
        ("plain", json!({}), Ok("a")),
        (
            "selects",
            json!({"nodeSelector": {"os": "windows"}, "tolerations": toleration}),
            Ok("b"),
        ),
        (
            "intolerant",
            json!({"nodeSelector": {"os": "windows"}}),
            Err(
                "1 node(s) didn't match Pod's node affinity/selector, 1 node(s) had untolerated taint(s)",
            ),
        ),
        (
            "aimed",
            json!({"affinity": named}),
            Err(
                "1 node(s) didn't satisfy plugin(s) [NodeAffinity], 1 node(s) had untolerated taint(s)",
            ),
        ),
        (
            "nowhere",
            json!({"nodeSelector": {"os": "beos"}, "tolerations": toleration}),
            Err("2 node(s) didn't match Pod's node affinity/selector"),
        ),
    ] {
        let mut bare = pod(name, spec);
        bare["metadata"] = json!({"name": name});
        scene.create(PODS, bare).await;
        let (_, pod) = scene.get(&format!("{PODS}/{name}")).await;
        match goes {
            Ok(node) => assert_eq!(pod["spec"]["nodeName"], node, "{name}"),
            Err(reasons) => assert_eq!(
                why(&pod),
                format!(
                    "0/2 nodes are available: {reasons}. preemption: 0/2 nodes \
                are available: 2 Preemption is not helpful for scheduling."
                ),
                "{name}"
            ),
        }
    }
    let (_, events) = scene
        .get("/api/v1/namespaces/default/events?fieldSelector=reason%3DFailedScheduling")
        .await;
    assert_eq!(events["items"].as_array().map(Vec::len), Some(3));
    // What stood in the way goes
    scene
        .patch("/api/v1/nodes/b", MERGE, json!({"spec": {"taints": null}}))
        .await;
    let (_, pod) = scene.get(&format!("{PODS}/aimed")).await;
    assert_eq!(pod["spec"]["nodeName"], "b");
}

#[tokio::test]
async fn what_is_taken_is_taken_until_it_is_given_back() {
    let scene = Scene::new();
    scene.node("n", json!({})).await;
    let large = scene.create(PODS, requests("large", "1500m")).await;
    scene.create(PODS, requests("more", "600m")).await;
    let (_, more) = scene.get(&format!("{PODS}/more")).await;
    assert!(
        why(&more).starts_with(
            "0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are \
        available: 1 No preemption victims found for incoming pod."
        ),
        "{}",
        why(&more)
    );
    scene
        .delete(&path_of(&large), json!({"gracePeriodSeconds": 0}))
        .await;
    let (_, more) = scene.get(&format!("{PODS}/more")).await;
    assert_eq!(more["spec"]["nodeName"], "n");
}

#[tokio::test]
async fn pods_of_one_owner_spread() {
    let scene = Scene::new();
    for name in ["a", "b", "c"] {
        scene.node(name, json!({})).await;
    }
    let set = json!({"metadata": {"name": "s"}, "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "x"}},
        "template": super::template("i:1")}});
    scene
        .create("/apis/apps/v1/namespaces/default/replicasets", set)
        .await;
    let pods = scene.pods("default").await;
    let mut nodes: Vec<&str> = pods
        .iter()
        .filter_map(|pod| pod["spec"]["nodeName"].as_str())
        .collect();
    nodes.sort_unstable();
    assert_eq!(nodes, ["a", "b", "c"]);
}

#[tokio::test]
async fn one_of_lower_priority_goes_for_one_of_higher() {
    let scene = Scene::new();
    scene.node("n", json!({})).await;
    let classes = "/apis/scheduling.k8s.io/v1/priorityclasses";
    scene
        .create(
            classes,
            json!({"metadata": {"name": "low"}, "value": -5, "preemptionPolicy": "Never"}),
        )
        .await;
    scene
        .create(classes, json!({"metadata": {"name": "high"}, "value": 5}))
        .await;
    let of = |name: &str, class: &str| {
        let mut pod = requests(name, "1500m");
        pod["spec"]["priorityClassName"] = json!(class);
        pod
    };
    let victim = scene.create(PODS, of("victim", "low")).await;
    assert_eq!(
        (
            &victim["spec"]["priority"],
            &victim["spec"]["preemptionPolicy"]
        ),
        (&json!(-5), &json!("Never"))
    );
    scene.create(PODS, of("also-low", "low")).await;
    let (_, low) = scene.get(&format!("{PODS}/also-low")).await;
    assert!(why(&low).ends_with("preemption: not eligible due to preemptionPolicy=Never."));
    let high = scene.create(PODS, of("high", "high")).await;
    let (_, waits) = scene.get(&path_of(&high)).await;
    assert_eq!(waits["status"]["nominatedNodeName"], "n");
    let (_, going) = scene.get(&path_of(&victim)).await;
    assert!(going["metadata"]["deletionTimestamp"].is_string());
    let conditions = going["status"]["conditions"]
        .as_array()
        .expect("conditions");
    assert!(
        conditions
            .iter()
            .any(|one| one["reason"] == "PreemptionByScheduler")
    );
    let (_, events) = scene
        .get("/api/v1/namespaces/default/events?fieldSelector=reason%3DPreempted")
        .await;
    let uid = high["metadata"]["uid"].as_str().expect("a UID");
    assert_eq!(
        events["items"][0]["message"],
        format!("Preempted by pod {uid} on node n")
    );
    scene
        .delete(&path_of(&victim), json!({"gracePeriodSeconds": 0}))
        .await;
    let (_, placed) = scene.get(&path_of(&high)).await;
    assert_eq!(
        (
            &placed["spec"]["nodeName"],
            placed["status"].get("nominatedNodeName")
        ),
        (&json!("n"), None)
    );
}

#[tokio::test]
async fn a_pod_gets_what_admission_adds() {
    let scene = Scene::new();
    let class = json!({"metadata": {"name": "w"}, "handler": "h", "scheduling": {"nodeSelector": {"os": "windows"},
        "tolerations": [{"key": "os", "operator": "Exists"}]}});
    scene
        .create("/apis/node.k8s.io/v1/runtimeclasses", class)
        .await;
    let made = scene
        .create(PODS, pod("p", json!({"runtimeClassName": "w"})))
        .await;
    let spec = &made["spec"];
    assert_eq!(
        (&spec["nodeSelector"], &spec["tolerations"][0]),
        (
            &json!({"os": "windows"}),
            &json!({"key": "os", "operator": "Exists"})
        )
    );
    assert_eq!(spec["serviceAccountName"], "default");
    assert_eq!(
        spec["containers"][0]["volumeMounts"][0]["name"],
        spec["volumes"][0]["name"]
    );
    for (spec, words) in [
        (
            json!({"runtimeClassName": "none"}),
            "RuntimeClass \"none\" not found",
        ),
        (
            json!({"priorityClassName": "none"}),
            "no PriorityClass with name none was found",
        ),
        (
            json!({"serviceAccountName": "none"}),
            "serviceaccount \"none\" not found",
        ),
        (
            json!({"runtimeClassName": "w", "nodeSelector": {"os": "linux"}}),
            "pod rejected: conflict",
        ),
    ] {
        let body = pod("q", spec).to_string();
        let (code, refused) = scene
            .send(http::Method::POST, PODS, "application/json", body)
            .await;
        let message = refused["message"].as_str().expect("a message");
        assert!(code == 403 && message.contains(words), "{code} {message}");
    }
}

/// The tool asks so for the nodes whose pods are to be together.
#[tokio::test]
async fn of_several_nodes_those_that_are_preferred_take_the_pods() {
    let scene = Scene::new();
    for node in ["a", "b", "c"] {
        scene.node(node, json!({})).await;
    }
    let named = |name: &str| {
        json!({"weight": 100, "preference": {"matchFields":
            [{"key": "metadata.name", "operator": "In", "values": [name]}]}})
    };
    let preferred = json!({"nodeAffinity":
        {"preferredDuringSchedulingIgnoredDuringExecution": [named("b"), named("c")]}});
    let spec = json!({"affinity": preferred});
    for name in ["one", "two", "three", "four"] {
        let made = scene.create(PODS, pod(name, spec.clone())).await;
        let (_, placed) = scene.get(&path_of(&made)).await;
        let node = placed["spec"]["nodeName"].as_str().unwrap_or_default();
        assert!(["b", "c"].contains(&node), "{name} is on {node}");
    }
}
