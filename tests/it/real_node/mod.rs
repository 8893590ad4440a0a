//! The tool's scenarios on the same Linux pods of a real node and of a simulated one: the kubelets of both take every
//! step.
//!
//! Needs the kubeconfig of a cluster with a real Linux node, as `ci/real-node/up` prints it, in
//! `WINCONFORM_REAL_NODE_KUBECONFIG`.

mod stage;

use std::collections::BTreeMap;

use futures::future::join_all;
use hybrid_sim::{FaultPlan, JoinOptions, Loopback, NodeSpec, Pool, Topology, join};
use serde::Deserialize;
use serde_json::{Value as Json, json};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use winconform::cluster::{ConnectOptions, apply, connect, labels, remove_run, watch_pods};
use winconform::transport::{Api, PodRef};
use winconform_core::config::{Durations, Limits};
use winconform_core::method::{ApiRequest, Scenario};

use self::stage::{Stage, words};
use super::not_run;

const VARIABLE: &str = "WINCONFORM_REAL_NODE_KUBECONFIG";

/// The scenarios whose programs are all programs of Windows.
const OF_WINDOWS: [&str; 1] = ["memory-over-use"];

/// A pod for a scenario; `pods.yaml` explains the fields.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    steps: usize,
    pod: Json,
}

fn cases() -> BTreeMap<String, Case> {
    serde_saphyr::from_str(include_str!("pods.yaml")).expect("pods.yaml is as documented")
}

#[test]
fn every_scenario_has_a_pod_and_its_steps() {
    let cases = cases();
    let with_pod = |scenario: &&Scenario| !OF_WINDOWS.contains(&scenario.as_str());
    let expected = Scenario::ALL.iter().filter(with_pod);
    let expected: BTreeMap<_, _> = expected
        .map(|scenario| (scenario.as_str(), words(*scenario).len()))
        .collect();
    let seen = cases.iter().map(|(name, case)| (name.as_str(), case.steps));
    assert_eq!(seen.collect::<BTreeMap<_, _>>(), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_simulated_node_takes_the_steps_of_a_real_one() {
    let Some(kubeconfig) = std::env::var_os(VARIABLE) else {
        let why = format!("{VARIABLE} is not set");
        not_run("a_simulated_node_takes_the_steps_of_a_real_one", &why);
        return;
    };
    let _ = rustls::crypto::ring::default_provider().install_default();
    let options = ConnectOptions {
        context: None,
        kubeconfig: Some(kubeconfig.into()),
    };
    let cluster = connect(&options, Durations::default(), Limits::default()).await;
    let api = cluster.expect("connected").api;
    let run = format!("s{}", std::process::id());
    let options = JoinOptions {
        topology: Topology {
            nodes: vec![NodeSpec::new("linux-a", Pool::Linux)],
            ..Topology::hybrid()
        },
        faults: FaultPlan::default(),
        seed: 7,
        speed: 1.0,
        prefix: format!("played-{run}-"),
        loopback: Loopback::default(),
    };
    let real = real_node(&api).await;
    let joined = join(api.client().clone(), options).await;
    let joined = joined.expect("the node joins");
    let seen = played(&api, &run, [&real, &joined.nodes()[0]]).await;
    let removed = remove_run(&api, Some(&run), api.durations().tear_down).await;
    joined.leave().await.expect("the node leaves");
    let removed = removed.expect("removed");
    assert!(removed.is_clean(), "{removed:?}");

    let each = Scenario::ALL.iter().flat_map(|scenario| {
        let side = |side: &str| (format!("{}-{side}", scenario.as_str()), words(*scenario));
        ["real", "simulated"].map(side)
    });
    let mut expected: BTreeMap<_, _> = each.collect();
    expected.retain(|name, _| !OF_WINDOWS.iter().any(|of| name.starts_with(*of)));
    assert_eq!(seen, expected);
}

/// Plays all scenarios on two nodes, a real one and a simulated one; returns for each pod the steps that came, and the
/// first that did not.
async fn played(api: &Api, run: &str, nodes: [&str; 2]) -> BTreeMap<String, Vec<String>> {
    let (tracker, cancel) = (TaskTracker::new(), CancellationToken::new());
    let pods = watch_pods(api, run, &tracker, cancel.clone());
    let (cases, namespace) = (cases(), format!("winconform-{run}"));
    let own = json!({labels::MANAGED_BY: labels::WINCONFORM, labels::RUN: run});
    let object = json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": namespace, "labels": own}});
    apply(api, &object).await.expect("applied");
    let mut plays = Vec::new();
    for scenario in Scenario::ALL {
        let Some(case) = cases.get(scenario.as_str()) else {
            continue;
        };
        for (side, node) in ["real", "simulated"].into_iter().zip(nodes) {
            let name = format!("{}-{side}", scenario.as_str());
            let mut metadata = json!({"name": name, "namespace": namespace, "labels": own});
            metadata["labels"]["app"] = json!(name);
            let mut spec = case.pod.clone();
            spec["nodeSelector"] = json!({"kubernetes.io/hostname": node});
            spec["automountServiceAccountToken"] = json!(false);
            let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata,
                "spec": {"selector": {"app": name}, "ports": [{"port": 80}]}});
            let pod =
                json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec});
            let of = PodRef {
                namespace: namespace.clone(),
                name,
                container: "main".to_owned(),
            };
            let stage = Stage {
                api: api.clone(),
                pods: pods.clone(),
                of,
            };
            plays.push(stage.play(*scenario, [service, pod]));
        }
    }
    let seen = join_all(plays).await;
    cancel.cancel();
    tracker.close();
    tracker.wait().await;
    seen.into_iter().collect()
}

/// The first Linux node that belongs to no simulator.
async fn real_node(api: &Api) -> String {
    let reply = api.send(&ApiRequest::get("/api/v1/nodes")).await;
    let reply = reply.expect("an answer");
    let nodes = reply.body["items"].as_array().expect("a list of nodes");
    let is_real = |node: &&Json| {
        let has = &node["metadata"]["labels"];
        has["kubernetes.io/os"] == "linux" && has[labels::MANAGED_BY] != "hybrid-sim"
    };
    let mut real = nodes.iter().filter(is_real);
    let name = real
        .next()
        .and_then(|node| node["metadata"]["name"].as_str());
    name.expect("the cluster has a real Linux node").to_owned()
}
