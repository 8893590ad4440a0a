//! Whether the API server reaches the kubelets, which exec and logs need.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, LogParams, PostParams};
use serde_json::json;
use thiserror::Error;
use tokio::time::timeout;

use crate::nodes::cluster::Cluster;

const NAMESPACE: &str = "default";

/// How long the API server may take to reach a kubelet on its own machine.
const REACHING: Duration = Duration::from_secs(10);

/// The API server does not reach a kubelet, so exec and logs will not work.
#[derive(Debug, Error)]
#[error(
    "the API server does not reach the kubelet of `{0}` at {1}, so exec and logs will not \
     work: {2}; simulated kubelets listen on loopback alone: the API server must run on the same machine, \
     outside of containers with a network of their own"
)]
pub struct Unreached(String, String, String);

/// Requests the log of a pod on the first node. Any answer of the kubelet proves that it is reached, even one
/// without a log; if the pod cannot be created, the result is unknown and only logged. The API server's
/// direct way to nodes (`nodes/…/proxy`) does not go to loopback.
pub(super) async fn reached(cluster: &Cluster) -> Result<(), Unreached> {
    let Some((node, state)) = cluster.nodes.first_key_value() else {
        return Ok(());
    };
    let name = format!("hybrid-sim-reach-{node}");
    let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), NAMESPACE);
    let containers = json!([{"name": "reach", "image": "registry.k8s.io/pause:3.10"}]);
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"nodeName": node, "containers": containers, "restartPolicy": "Never",
            "automountServiceAccountToken": false, "tolerations": [{"operator": "Exists"}]},
    });
    let creating = async {
        let pod = serde_json::from_value(pod).map_err(kube::Error::SerdeError)?;
        pods.create(&PostParams::default(), &pod).await
    };
    if let Err(error) = creating.await {
        tracing::debug!(%error, "whether kubelets are reached is not known");
        return Ok(());
    }
    let answer = timeout(REACHING, pods.logs(&name, &LogParams::default())).await;
    let now = DeleteParams::default().grace_period(0);
    if let Err(error) = pods.delete(&name, &now).await {
        tracing::debug!(%error, "the pod that was asked for its log goes with its node");
    }
    let why = match answer {
        Ok(Err(kube::Error::Api(status))) if status.code >= 500 => status.message,
        Err(_) => format!("no answer within {} s", REACHING.as_secs()),
        Ok(_) => return Ok(()),
    };
    Err(Unreached(
        node.clone(),
        format!("{}:{}", state.view.address, state.view.kubelet_port),
        why,
    ))
}
