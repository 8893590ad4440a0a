//! Keeps nodes alive: sends their leases and heartbeats, and shows the effects of faults. One queue serves
//! all nodes in turn, spread evenly over a period, a few requests at a time.

use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, stream};
use jiff::SignedDuration;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use tokio::time::{Instant, timeout};

use super::{LEASES, binder, boot, carried, mark, report, status, taints};
use crate::base::clock;
use crate::fault::{FaultKind, FaultSet};
use crate::nodes::cluster::{Cluster, NodeState};
use crate::pods::spec::refer::words;

/// kubelet: a quarter of `nodeLeaseDurationSeconds`; the simulator's speed does not change it.
const RENEWAL: Duration = Duration::from_secs(10);

/// kubelet, `nodeStatusReportFrequency`.
const HEARTBEAT: Duration = Duration::from_mins(5);

/// How many requests of one kind are under way at once.
const WORKERS: usize = 8;

/// Keeps all nodes alive until the simulator stops.
pub(crate) fn keep(cluster: &Arc<Cluster>) {
    let shared = Arc::clone(cluster);
    cluster.spawn(async move {
        in_turn(&shared, RENEWAL, |node| renew(&shared, node)).await;
    });
    let shared = Arc::clone(cluster);
    cluster.spawn(async move {
        in_turn(&shared, HEARTBEAT, |node| beat(&shared, node)).await;
    });
    let shared = Arc::clone(cluster);
    cluster.spawn(async move { follow(&shared).await });
    let shared = Arc::clone(cluster);
    cluster.spawn(async move { boot::follow(&shared).await });
    let shared = Arc::clone(cluster);
    cluster.spawn(async move { binder::follow(&shared).await });
}

async fn beat(cluster: &Cluster, node: &NodeState) {
    if !silent(cluster, node)
        && let Err(error) = report(cluster, node).await
    {
        untaken(cluster, node, "heartbeat", error).await;
    }
}

/// Whether the API server must get nothing from a node.
fn silent(cluster: &Cluster, node: &NodeState) -> bool {
    let vanished = node.suffers(FaultKind::NodeVanishes, &cluster.faults.current());
    vanished || !node.power.borrow().up || node.deleted.get().is_some()
}

/// Warns that the API server refuses a request of a node. Gives a deleted node up, since a kubelet registers
/// its node only when it starts.
async fn untaken(cluster: &Cluster, node: &NodeState, what: &str, error: kube::Error) {
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    let known = |now: &Node| now.metadata.uid.as_ref() == node.uid.get();
    let missing = matches!(&error, kube::Error::Api(status) if status.code == 404);
    if missing
        && matches!(nodes.get_opt(&node.name).await, Ok(now) if !now.as_ref().is_some_and(known))
    {
        if node.deleted.set(()).is_ok() {
            let name = &node.name;
            tracing::warn!(
                "node {name} was deleted; it joins again when the simulator is restarted"
            );
        }
        return;
    }
    tracing::warn!(node = node.name, why = words(error), "{what} is not taken");
}

/// Runs a duty for each node once in each period, for ever. A duty that takes longer than a period is
/// dropped: its node's next turn is then due.
async fn in_turn<'a, F: Future<Output = ()>>(
    cluster: &'a Cluster,
    period: Duration,
    duty: impl Fn(&'a NodeState) -> F,
) {
    let many = u32::try_from(cluster.nodes.len().max(1)).unwrap_or(u32::MAX);
    let step = period / many;
    let nodes = cluster.nodes.values().cycle();
    let turns = stream::unfold((nodes, Instant::now()), |(mut nodes, last)| async move {
        // If duties take too long, turns come late, and no rush makes up for them
        let due = (last + step).max(Instant::now());
        clock::elapse(due.saturating_duration_since(Instant::now())).await;
        Some((nodes.next()?, (nodes, due)))
    });
    turns
        .for_each_concurrent(WORKERS, |node| {
            let doing = timeout(period, duty(node));
            async move {
                if doing.await.is_err() {
                    // A user of the joined nodes notices a silent API server anyway
                    tracing::debug!(node = node.name, "a node's turn took too long");
                }
            }
        })
        .await;
}

pub(crate) async fn renew(cluster: &Cluster, node: &NodeState) {
    if silent(cluster, node) {
        return;
    }
    let leases: Api<Lease> = Api::namespaced(cluster.client.clone(), LEASES);
    let wrong = node.suffers(FaultKind::ClockWrong, &cluster.faults.current());
    let now = node.wall.time() + SignedDuration::from_hours(i64::from(wrong));
    let patch = Patch::Merge(json!({"spec": {"renewTime": MicroTime(now)}}));
    let params = PatchParams::default();
    let renewed = cluster.insist("lease", || leases.patch(&node.name, &params, &patch));
    if let Err(error) = renewed.await {
        untaken(cluster, node, "lease", error).await;
    }
}

/// Applies the faults to labels, taints and status whenever the faults change.
async fn follow(cluster: &Cluster) {
    let mut changes = cluster.faults.changes();
    let mut before = changes.borrow_and_update().clone();
    for node in cluster.nodes.values() {
        node.shown.send_replace(Some(before.clone()));
    }
    while changes.changed().await.is_ok() {
        let now = changes.borrow_and_update().clone();
        stream::iter(cluster.nodes.values())
            .for_each_concurrent(WORKERS, |node| show(cluster, node, &before, &now))
            .await;
        before = now;
    }
}

async fn show(cluster: &Cluster, node: &NodeState, before: &FaultSet, now: &FaultSet) {
    let vanished = |faults| node.suffers(FaultKind::NodeVanishes, faults);
    if vanished(now) || node.deleted.get().is_some() {
        // The node cannot report anything
        node.shown.send_replace(Some(now.clone()));
        return;
    }
    if vanished(before) {
        // Renew the lease at once, so that the controllers need not evict its pods
        renew(cluster, node).await;
    }
    let labels = carried(node, now);
    let (taints_now, taints_before) = (taints(node, now), taints(node, before));
    let marked = labels != carried(node, before) || taints_now != taints_before;
    if marked
        && let Err(error) = mark(cluster, &node.name, &labels, &taints_before, taints_now).await
    {
        untaken(cluster, node, "what is said of labels and taints", error).await;
    }
    // This overwrites what the controllers wrote about a vanished node
    if (vanished(before) || status::differs(node, before, now))
        && let Err(error) = report(cluster, node).await
    {
        untaken(cluster, node, "status", error).await;
    }
    node.shown.send_replace(Some(now.clone()));
}
