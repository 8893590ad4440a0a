//! What goes when nodes leave.

use std::collections::BTreeMap;
use std::fmt::Debug;

use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, ListParams, ObjectMeta, Preconditions};
use kube::{Api, ResourceExt};
use serde::de::DeserializeOwned;
use thiserror::Error;

use super::AT_ONCE;
use crate::nodes::cluster::Cluster;
use crate::nodes::node::{self, LEASES};

/// Why something of the nodes may have been left behind.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LeaveError {
    /// The API server refused to delete what may be left.
    #[error("failed to delete {0} of the simulated nodes")]
    Refused(&'static str, #[source] kube::Error),
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
    let all: kube::Result<Vec<_>> = asked.buffer_unordered(AT_ONCE).try_collect().await;
    let all = all.map_err(refused("nodes"))?;
    Ok(all.into_iter().flatten().collect())
}

pub(super) fn refused(what: &'static str) -> impl Fn(kube::Error) -> LeaveError + Copy {
    move |source| LeaveError::Refused(what, source)
}

/// Removes nodes with their leases and pods, and nothing of others of the same names.
pub(super) async fn remove(cluster: &Cluster, made: &Made) -> Result<(), LeaveError> {
    let Cluster { client, traces, .. } = cluster;
    if made.is_empty() {
        return Ok(());
    }
    let nodes: Api<Node> = Api::all(client.clone());
    let named = made.iter();
    let named = named.map(|(name, uid)| (nodes.clone(), name.clone(), Some(uid.clone())));
    delete(cluster, "nodes", named, |name| traces.gone("node", name)).await?;
    // The garbage collector would come for them in time, where there is one
    let all = ListParams::default();
    let leases: Api<Lease> = Api::namespaced(client.clone(), LEASES);
    let found = cluster.insist("leases", || leases.list_metadata(&all));
    let found = found.await.map_err(refused("leases"))?.items.into_iter();
    let metas = found.map(|lease| lease.metadata);
    let owned = metas.filter(|lease| is_of(lease, made));
    let owned = owned.map(|lease| (leases.clone(), lease.name.unwrap_or_default(), lease.uid));
    delete(cluster, "leases", owned, |_| {}).await?;
    // Nodes first: the scheduler places nothing more; twice, for what it placed meanwhile
    let bound = ListParams::default().fields("spec.nodeName!=");
    let pods: Api<Pod> = Api::all(client.clone());
    for _ in 0..2 {
        let found = cluster.insist("pods", || pods.list(&bound)).await;
        let found = found.map_err(refused("pods"))?.items.into_iter();
        let ours = found.filter(|pod| {
            let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
            node.is_some_and(|node| made.contains_key(node))
        });
        let ours = ours.map(|pod| {
            let pods = Api::<Pod>::namespaced(client.clone(), &pod.namespace().unwrap_or_default());
            (pods, pod.name_any(), pod.metadata.uid)
        });
        delete(cluster, "pods", ours, |_| {}).await?;
    }
    Ok(())
}

/// Deletes objects by name without grace, and each only if it is the one of its UID.
async fn delete<K: Clone + Debug + DeserializeOwned>(
    cluster: &Cluster,
    what: &'static str,
    all: impl Iterator<Item = (Api<K>, String, Option<String>)>,
    gone_too: impl Fn(&str),
) -> Result<(), LeaveError> {
    let gone_too = &gone_too;
    let delete = |(api, name, uid): (Api<K>, String, Option<String>)| async move {
        let own = Preconditions {
            uid,
            resource_version: None,
        };
        let now = DeleteParams::default().grace_period(0).preconditions(own);
        gone(cluster.insist(what, || api.delete(&name, &now)).await)?;
        gone_too(&name);
        Ok(())
    };
    let deleted = stream::iter(all.map(Ok)).try_for_each_concurrent(AT_ONCE, delete);
    deleted.await.map_err(refused(what))
}

/// Whether a lease is that of one of these nodes.
fn is_of(lease: &ObjectMeta, made: &Made) -> bool {
    let mut owners = lease.owner_references.iter().flatten();
    owners.any(|owner| made.get(&owner.name) == Some(&owner.uid))
}

/// That something is not there any more, or another of its name, is what deleting is for.
pub(crate) fn gone<T>(deleted: kube::Result<T>) -> kube::Result<()> {
    match deleted {
        Err(kube::Error::Api(status)) if [404, 409].contains(&status.code) => Ok(()),
        other => other.map(drop),
    }
}
