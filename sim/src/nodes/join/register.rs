//! Registers nodes, and decides which existing names they may take.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, stream};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kube::api::ListParams;
use kube::{Api, Client};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::leave::{Made, remove};
use super::{AT_ONCE, JoinError, LeaveError};
use crate::nodes::cluster::Cluster;
use crate::nodes::dns;
use crate::nodes::node::{self, LEASES, MANAGED};
use crate::wire::loopback::Loopback;

/// How long a kubelet on this machine may take to accept a connection.
const ACCEPTING: Duration = Duration::from_secs(1);

fn refused(node: &str, source: kube::Error) -> JoinError {
    JoinError::Register(node.to_owned(), source)
}

/// Checks that the names of all nodes are free, and removes the nodes that an earlier simulator left under
/// them.
pub(super) async fn claim(cluster: &Cluster, loopback: &Loopback) -> Result<(), JoinError> {
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    let listed = nodes.list_metadata(&ListParams::default()).await;
    let listed = listed.map_err(|source| refused("any", source))?;
    let mut left = Made::new();
    for object in listed {
        let name = object.metadata.name.unwrap_or_default();
        if !cluster.nodes.contains_key(&name) {
            continue;
        }
        let labels = object.metadata.labels.unwrap_or_default();
        if labels.get(MANAGED.0).map(String::as_str) != Some(MANAGED.1) {
            return Err(JoinError::Taken(name));
        }
        if let Some(ago) = alive(loopback, &cluster.client, &name).await {
            return Err(JoinError::Alive(name, ago));
        }
        left.insert(name, object.metadata.uid.unwrap_or_default());
    }
    let names: Vec<String> = left.keys().cloned().collect();
    let refused = |source| refused(&names.join(", "), source);
    // An earlier simulator was killed before it could remove them
    if let Err(LeaveError::Refused(_, source)) = remove(cluster, &left).await {
        return Err(refused(source));
    }
    // The endpoint of the DNS was on one of the removed nodes
    dns::remove(cluster, &names).await.map_err(refused)
}

/// Registers all nodes; once `halt` is cancelled, starts no further registration.
pub(super) async fn register(
    cluster: &Arc<Cluster>,
    halt: &CancellationToken,
) -> Result<(), JoinError> {
    // A failure of one must not drop the others: a dropped one's node might appear after the removal of all
    let registered: Vec<Result<(), JoinError>> = stream::iter(&cluster.nodes)
        .map(|(name, state)| async move {
            if halt.is_cancelled() {
                return Err(JoinError::Interrupted);
            }
            cluster.traces.left("node", name);
            let registered = node::register(cluster, state).await;
            if state.uid.get().is_none() {
                cluster.traces.gone("node", name);
            }
            registered.map_err(|source| refused(name, source))
        })
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    registered.into_iter().collect::<Result<(), _>>()?;
    node::keep(cluster);
    let mut nodes = cluster.nodes.iter();
    let Some((name, linux)) = nodes.find(|(_, node)| node.view.pool.build().is_none()) else {
        return Ok(());
    };
    let added = dns::add(cluster, name, linux.view.pod_network).await;
    added.map_err(|source| refused(name, source))
}

/// Whether a simulator keeps a node alive: its lease is valid, and its kubelet accepts connections. Returns
/// how many seconds ago the lease was renewed.
///
/// A killed simulator leaves leases that are valid for a while, but nothing listens then.
async fn alive(loopback: &Loopback, client: &Client, name: &str) -> Option<i64> {
    let leases: Api<Lease> = Api::namespaced(client.clone(), LEASES);
    let lease = leases.get_opt(name).await.ok()??.spec?;
    let ago = loopback.wall.time().as_second() - lease.renew_time?.0.as_second();
    if ago > i64::from(lease.lease_duration_seconds?) {
        return None;
    }
    let nodes: Api<Node> = Api::all(client.clone());
    let status = nodes.get_opt(name).await.ok()??.status?;
    let mut addresses = status.addresses?.into_iter();
    let address = addresses.find(|address| address.type_ == "InternalIP")?;
    let endpoint = status.daemon_endpoints?.kubelet_endpoint?;
    let port = u16::try_from(endpoint.port).ok()?;
    let address = address.address.parse::<IpAddr>().ok()?;
    let connecting = loopback.connect(SocketAddr::from((address, port)));
    let connected = timeout(ACCEPTING, connecting).await;
    matches!(connected, Ok(Ok(_))).then_some(ago.max(0))
}
