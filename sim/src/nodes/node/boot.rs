//! Rebooting nodes: a node is silent for a minute, then comes back with another boot ID.

use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use k8s_openapi::api::core::v1::Event;
use kube::Api;
use kube::api::PostParams;
use serde_json::json;

use crate::fault::{FaultKind, FaultSet};
use crate::nodes::cluster::{Cluster, NodeState};
use crate::pods::reporting::events;

const BOOTING: Duration = Duration::from_mins(1);
/// The kubelet's `shutdownGracePeriod`.
const STOPPING: Duration = Duration::from_secs(20);

/// Reboots a node once each time that the fault `node-reboots` begins there, and when a program there asks for it.
pub(super) async fn follow(cluster: &Cluster) {
    let mut faults = cluster.faults.changes();
    let mut before = FaultSet::default();
    let mut booting = FuturesUnordered::new();
    loop {
        let now = faults.borrow_and_update().clone();
        for node in cluster.nodes.values() {
            let reboots = |faults| node.suffers(FaultKind::NodeReboots, faults);
            if reboots(&now) && !reboots(&before) && node.power.borrow().up {
                booting.push(boot(cluster, node));
            }
        }
        before = now;
        let mut asked: FuturesUnordered<_> = cluster
            .nodes
            .values()
            .map(async |node| {
                node.reboots.notified().await;
                node
            })
            .collect();
        tokio::select! {
            biased;
            // The sender lives in the cluster
            _ = faults.changed() => {}
            Some(()) = booting.next() => {}
            Some(node) = asked.next() => booting.push(boot(cluster, node)),
        }
    }
}

async fn boot(cluster: &Cluster, node: &NodeState) {
    if node.suffers(FaultKind::ShutdownEndsPods, &cluster.world().faults) {
        node.power.send_modify(|power| power.stops = true);
        if let Err(error) = super::report(cluster, node).await {
            tracing::warn!(node = node.name, %error, "status is not taken");
        }
        cluster.clock.pass(STOPPING).await;
    }
    node.power.send_modify(|power| {
        power.up = false;
        power.stops = false;
    });
    cluster.clock.pass(BOOTING).await;
    node.power.send_modify(|power| {
        power.up = true;
        power.boots += 1;
    });
    cluster.change(|world| world.nodes.boots(&node.name));
    if let Err(error) = super::report(cluster, node).await {
        tracing::warn!(node = node.name, %error, "status is not taken");
    }
    tell(cluster, node).await;
}

/// The boot ID of a node after its number of boots.
pub(super) fn id(node: &NodeState) -> String {
    format!("{}-boot-{}", node.name, node.power.borrow().boots)
}

/// Sends the event of a new boot ID (`pkg/kubelet/nodestatus/setters.go`).
async fn tell(cluster: &Cluster, node: &NodeState) {
    let (subject, id) = (&node.name, id(node));
    let name = format!("{subject}.{:x}", node.wall.time().as_nanosecond());
    let about = json!({"kind": "Node", "name": subject, "uid": subject});
    let message = format!("Node {subject} has been rebooted, boot id: {id}");
    let event = ("Warning", "Rebooted", &*message);
    let event = events::first(cluster, node, &name, &about, event);
    let events: Api<Event> = Api::namespaced(cluster.client.clone(), "default");
    if let Err(error) = events.create(&PostParams::default(), &event).await {
        tracing::debug!(%error, "event is lost");
    }
}
