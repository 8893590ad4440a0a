//! Removes what belongs to nodes that leave.

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

/// Why objects of the nodes may be left behind.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LeaveError {
    /// The API server refused to delete objects.
    #[error("failed to delete {0} of the simulated nodes")]
    Refused(&'static str, #[source] kube::Error),
    /// The API server did not answer in time.
    #[error("failed to delete the simulated nodes within a minute")]
    TimedOut,
}

/// The UIDs of nodes by name; another simulator may have created a node of the same name since.
pub(super) type Made = BTreeMap<String, String>;

/// The nodes that this simulator has created.
pub(super) async fn made(cluster: &Cluster) -> Result<Made, LeaveError> {
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    let requests = stream::iter(cluster.nodes.values()).map(|node| {
        let nodes = &nodes;
        async move {
            if let Some(uid) = node.uid.get() {
                return Ok(Some((node.name.clone(), uid.clone())));
            }
            // The API server may have created it without our getting the answer
            let object = cluster.insist("node", || nodes.get_opt(&node.name)).await?;
            let object = object.filter(|object| node::is_own(object, node));
            Ok(object.and_then(|object| Some((node.name.clone(), object.metadata.uid?))))
        }
    });
    let known: kube::Result<Vec<_>> = requests.buffer_unordered(AT_ONCE).try_collect().await;
    let known = known.map_err(refused("nodes"))?;
    Ok(known.into_iter().flatten().collect())
}

pub(super) fn refused(what: &'static str) -> impl Fn(kube::Error) -> LeaveError + Copy {
    move |source| LeaveError::Refused(what, source)
}

/// Removes nodes with their leases and pods, and nothing that belongs to other nodes of the same names.
pub(super) async fn remove(cluster: &Cluster, uids: &Made) -> Result<(), LeaveError> {
    let Cluster { client, traces, .. } = cluster;
    if uids.is_empty() {
        return Ok(());
    }
    let nodes: Api<Node> = Api::all(client.clone());
    let named = uids.iter();
    let named = named.map(|(name, uid)| (nodes.clone(), name.clone(), Some(uid.clone())));
    delete(cluster, "nodes", named, |name| traces.gone("node", name)).await?;
    // The garbage collector would delete them in time, if there is one
    let params = ListParams::default();
    let leases: Api<Lease> = Api::namespaced(client.clone(), LEASES);
    let listed = cluster.insist("leases", || leases.list_metadata(&params));
    let listed = listed.await.map_err(refused("leases"))?.items.into_iter();
    let metas = listed.map(|lease| lease.metadata);
    let owned = metas.filter(|lease| is_of(lease, uids));
    let owned = owned.map(|lease| (leases.clone(), lease.name.unwrap_or_default(), lease.uid));
    delete(cluster, "leases", owned, |_| {}).await?;
    // The nodes are gone, so the scheduler places no more pods; twice, for those it placed meanwhile
    let bound = ListParams::default().fields("spec.nodeName!=");
    let pods: Api<Pod> = Api::all(client.clone());
    for _ in 0..2 {
        let listed = cluster.insist("pods", || pods.list(&bound)).await;
        let listed = listed.map_err(refused("pods"))?.items.into_iter();
        let ours = listed.filter(|pod| {
            let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
            node.is_some_and(|node| uids.contains_key(node))
        });
        let ours = ours.map(|pod| {
            let pods = Api::<Pod>::namespaced(client.clone(), &pod.namespace().unwrap_or_default());
            (pods, pod.name_any(), pod.metadata.uid)
        });
        delete(cluster, "pods", ours, |_| {}).await?;
    }
    Ok(())
}

/// Deletes objects by name without grace, each only if it has the given UID.
async fn delete<K: Clone + Debug + DeserializeOwned>(
    cluster: &Cluster,
    what: &'static str,
    objects: impl Iterator<Item = (Api<K>, String, Option<String>)>,
    gone_too: impl Fn(&str),
) -> Result<(), LeaveError> {
    let gone_too = &gone_too;
    let delete = |(api, name, uid): (Api<K>, String, Option<String>)| async move {
        let guard = Preconditions {
            uid,
            resource_version: None,
        };
        let now = DeleteParams::default().grace_period(0).preconditions(guard);
        gone(cluster.insist(what, || api.delete(&name, &now)).await)?;
        gone_too(&name);
        Ok(())
    };
    let deleted = stream::iter(objects.map(Ok)).try_for_each_concurrent(AT_ONCE, delete);
    deleted.await.map_err(refused(what))
}

/// Whether a lease belongs to one of these nodes.
fn is_of(lease: &ObjectMeta, uids: &Made) -> bool {
    let mut owners = lease.owner_references.iter().flatten();
    owners.any(|owner| uids.get(&owner.name) == Some(&owner.uid))
}

/// The result of a deletion: that the object is gone, or replaced by another of its name, counts as success.
pub(crate) fn gone<T>(deleted: kube::Result<T>) -> kube::Result<()> {
    match deleted {
        Err(kube::Error::Api(status)) if [404, 409].contains(&status.code) => Ok(()),
        other => other.map(drop),
    }
}
