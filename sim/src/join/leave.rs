//! What goes when nodes leave.

use std::collections::BTreeMap;

use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::{DeleteParams, ListParams, ObjectMeta, Preconditions};
use thiserror::Error;

use super::AT_ONCE;
use crate::cluster::Cluster;
use crate::node::{self, LEASES};

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

/// The UIDs of nodes, by name: another simulator may have made a node of the same name meanwhile.
pub(super) type Made = BTreeMap<String, String>;

/// The nodes that this simulator has made.
pub(super) async fn made(cluster: &Cluster) -> Result<Made, LeaveError> {
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    let asked = stream::iter(cluster.nodes.values()).map(|node| {
        let nodes = &nodes;
        async move {
            if let Some(uid) = node.uid.get() {
                return Ok(Some((node.name.clone(), uid.clone())));
            }
            // It may have been made without our having heard of it
            let found = cluster.insist("node", || nodes.get_opt(&node.name)).await?;
            let found = found.filter(|found| node::is_own(found, node));
            Ok(found.and_then(|found| Some((node.name.clone(), found.metadata.uid?))))
        }
    });
    let all: Vec<_> = asked
        .buffer_unordered(AT_ONCE)
        .try_collect()
        .await
        .map_err(|source| LeaveError::Refused {
            what: "nodes",
            source,
        })?;
    Ok(all.into_iter().flatten().collect())
}

/// Removes nodes with their leases and pods, and nothing of others of the same names.
pub(super) async fn remove(cluster: &Cluster, made: &Made) -> Result<(), LeaveError> {
    let Cluster { client, traces, .. } = cluster;
    if made.is_empty() {
        return Ok(());
    }
    let refused = |what| move |source| LeaveError::Refused { what, source };
    let nodes: Api<Node> = Api::all(client.clone());
    let leases: Api<Lease> = Api::namespaced(client.clone(), LEASES);
    stream::iter(made)
        .map(Ok)
        .try_for_each_concurrent(AT_ONCE, |(name, uid)| async {
            let now = now(Some(uid.clone()));
            gone(cluster.insist("node", || nodes.delete(name, &now)).await)
                .map_err(refused("nodes"))?;
            traces.gone("node", name);
            Ok(())
        })
        .await?;
    // The garbage collector would come for them in time, where there is one
    let all = ListParams::default();
    let found = cluster
        .insist("leases", || leases.list_metadata(&all))
        .await;
    let owned = found.map_err(refused("leases"))?.items.into_iter();
    let owned = owned.filter(|lease| is_of(&lease.metadata, made));
    stream::iter(owned)
        .map(Ok)
        .try_for_each_concurrent(AT_ONCE, |lease| async {
            let name = lease.metadata.name.unwrap_or_default();
            let now = now(lease.metadata.uid);
            gone(cluster.insist("lease", || leases.delete(&name, &now)).await)
                .map_err(refused("leases"))
        })
        .await?;
    // Nodes first: the scheduler places nothing more; twice, for what it placed meanwhile
    let bound = ListParams::default().fields("spec.nodeName!=");
    let pods: Api<Pod> = Api::all(client.clone());
    for _ in 0..2 {
        let found = cluster.insist("pods", || pods.list(&bound)).await;
        let ours = found
            .map_err(refused("pods"))?
            .items
            .into_iter()
            .filter(|pod| {
                let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
                node.is_some_and(|node| made.contains_key(node))
            });
        stream::iter(ours)
            .map(Ok)
            .try_for_each_concurrent(AT_ONCE, |pod| async {
                let namespace = pod.metadata.namespace.unwrap_or_default();
                let name = pod.metadata.name.unwrap_or_default();
                let now = now(pod.metadata.uid);
                let pods: Api<Pod> = Api::namespaced(client.clone(), &namespace);
                gone(cluster.insist("pod", || pods.delete(&name, &now)).await)
                    .map_err(refused("pods"))
            })
            .await?;
    }
    Ok(())
}

/// Without grace, and only the object of this UID.
fn now(uid: Option<String>) -> DeleteParams {
    let own = Preconditions {
        uid,
        resource_version: None,
    };
    DeleteParams {
        grace_period_seconds: Some(0),
        ..DeleteParams::default()
    }
    .preconditions(own)
}

/// Whether a lease is that of one of these nodes.
fn is_of(lease: &ObjectMeta, made: &Made) -> bool {
    let mut owners = lease.owner_references.iter().flatten();
    owners.any(|owner| made.get(&owner.name) == Some(&owner.uid))
}

/// That something is not there any more, or another of its name, is what deleting is for.
pub(super) fn gone<T>(deleted: kube::Result<T>) -> kube::Result<()> {
    match deleted {
        Err(kube::Error::Api(status)) if [404, 409].contains(&status.code) => Ok(()),
        other => other.map(drop),
    }
}
