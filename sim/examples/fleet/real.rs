//! 50 nodes and 150 pods in a real control plane.

use std::io::Write;
use std::time::Instant;

use hybrid_sim::{FaultPlan, JoinOptions, Topology, join};
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{DeleteParams, PostParams, PropagationPolicy};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::wait::await_condition;
use kube::{Api, Client, Config};
use serde_json::json;

use super::Trouble;

const NAME: &str = "hybrid-sim-bench";
const REPLICAS: i32 = 150;

/// Joins, deploys, and prints how long each took.
pub(super) async fn measure(kubeconfig: &str) -> Result<(), Trouble> {
    let read = Kubeconfig::read_from(kubeconfig)?;
    let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await?;
    let client = Client::try_from(config)?;
    let mut out = std::io::stdout();
    let began = Instant::now();
    let options = JoinOptions {
        topology: Topology::named("fifty").ok_or("no such topology")?,
        faults: FaultPlan::default(),
        seed: 1,
        speed: 20.0,
        prefix: "bench-".to_owned(),
    };
    let joined = join(client.clone(), options).await?;
    let (nodes, seconds) = (joined.nodes().len(), began.elapsed().as_secs_f64());
    writeln!(out, "{nodes} nodes Ready after {seconds:.1} s")?;

    let began = Instant::now();
    let deployments: Api<Deployment> = Api::default_namespaced(client);
    let labels = json!({"app": NAME});
    let deployment = json!({
        "metadata": {"name": NAME},
        "spec": {"replicas": REPLICAS, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels},
            "spec": {
                "containers": [{"name": "main", "image": "registry.k8s.io/pause:3.10"}],
                "tolerations": [{"operator": "Exists"}],
            },
        }},
    });
    let deployment = serde_json::from_value(deployment)?;
    deployments
        .create(&PostParams::default(), &deployment)
        .await?;
    let ready = |found: Option<&Deployment>| {
        let replicas = found.and_then(|found| found.status.as_ref()?.ready_replicas);
        replicas == Some(REPLICAS)
    };
    await_condition(deployments.clone(), NAME, ready).await?;
    let seconds = began.elapsed().as_secs_f64();
    writeln!(out, "{REPLICAS} pods Ready after {seconds:.1} s")?;

    let began = Instant::now();
    let params = DeleteParams {
        propagation_policy: Some(PropagationPolicy::Background),
        ..DeleteParams::default()
    };
    deployments.delete(NAME, &params).await?;
    joined.leave().await?;
    let seconds = began.elapsed().as_secs_f64();
    writeln!(out, "all gone after {seconds:.1} s")?;
    Ok(())
}
