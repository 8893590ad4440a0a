//! What goes when nodes leave.

use std::collections::BTreeSet;

use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, ListParams};
use kube::{Api, Client};
use thiserror::Error;

use super::AT_ONCE;
use crate::cluster::insist;
use crate::node::LEASES;
use crate::traces::Traces;

/// Why something of the nodes may have been left behind.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LeaveError {
    /// The API server refused.
    #[error("failed to delete {what} of the simulated nodes")]
    Refused {
        /// What may be left.
        what: &'static str,
        /// Why.
        source: kube::Error,
    },
    /// The API server did not answer in time.
    #[error("failed to delete the simulated nodes within a minute")]
    TimedOut,
}

/// Removes nodes with their leases and pods.
pub(super) async fn remove(
    client: &Client,
    traces: &Traces,
    names: &[String],
) -> Result<(), LeaveError> {
    if names.is_empty() {
        return Ok(());
    }
    let refused = |what| move |source| LeaveError::Refused { what, source };
    let nodes: Api<Node> = Api::all(client.clone());
    let leases: Api<Lease> = Api::namespaced(client.clone(), LEASES);
    let now = DeleteParams {
        grace_period_seconds: Some(0),
        ..DeleteParams::default()
    };
    stream::iter(names)
        .map(Ok)
        .try_for_each_concurrent(AT_ONCE, |name| async {
            gone(insist("node", || nodes.delete(name, &now)).await).map_err(refused("nodes"))?;
            traces.gone("node", name);
            gone(insist("lease", || leases.delete(name, &now)).await).map_err(refused("leases"))
        })
        .await?;
    // Nodes first: the scheduler places nothing more; twice, for what it placed meanwhile
    let names: BTreeSet<&str> = names.iter().map(String::as_str).collect();
    let bound = ListParams::default().fields("spec.nodeName!=");
    let pods: Api<Pod> = Api::all(client.clone());
    for _ in 0..2 {
        let found = insist("pods", || pods.list(&bound)).await;
        let ours = found
            .map_err(refused("pods"))?
            .items
            .into_iter()
            .filter(|pod| {
                let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
                node.is_some_and(|node| names.contains(node))
            });
        stream::iter(ours)
            .map(Ok)
            .try_for_each_concurrent(AT_ONCE, |pod| async {
                let namespace = pod.metadata.namespace.unwrap_or_default();
                let name = pod.metadata.name.unwrap_or_default();
                let pods: Api<Pod> = Api::namespaced(client.clone(), &namespace);
                gone(insist("pod", || pods.delete(&name, &now)).await).map_err(refused("pods"))
            })
            .await?;
    }
    Ok(())
}

/// That something is not there any more is what deleting is for.
pub(super) fn gone<T>(deleted: kube::Result<T>) -> kube::Result<()> {
    match deleted {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        other => other.map(drop),
    }
}
