//! Events of pods, with the kubelet's reasons and messages. Sending is best effort: a lost event stays lost.
//!
//! A repeated event increments the count of the existing one, as in client-go's correlator.

use std::collections::VecDeque;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Event;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::book::Role;
use crate::base::lock::locked;
use crate::fault::FaultKind;
use crate::nodes::cluster::{Cluster, NodeState};
use crate::nodes::node::read;
use crate::pods::course::run::PodRun;

/// What distinguishes events: the container's field path, the reason and the message.
type Words = (String, String, String);

/// The latest events, each with its name and its count; the newest is the last.
pub(crate) type Told = VecDeque<(Words, (String, i32))>;

/// How many events of a pod are remembered. client-go remembers 4096 for all pods of a node
/// (`tools/record/events_cache.go`, `maxLruCacheEntries`), and sends a forgotten event as a new one, too.
const MOST_TOLD: usize = 64;

/// Sends a `Normal` event about the pod.
pub(crate) fn normal(cluster: &Cluster, run: &Arc<PodRun>, reason: &str, message: String) {
    tell(cluster, run, None, "Normal", reason, message);
}

/// Sends a `Warning` event about the pod.
pub(crate) fn warning(cluster: &Cluster, run: &Arc<PodRun>, reason: &str, message: String) {
    tell(cluster, run, None, "Warning", reason, message);
}

/// Sends an event about the pod, or about one of its containers.
pub(crate) fn tell(
    cluster: &Cluster,
    run: &Arc<PodRun>,
    container: Option<(Role, &str)>,
    kind: &'static str,
    reason: &str,
    message: String,
) {
    let faults = cluster.faults.current();
    if run.node.suffers(FaultKind::NodeVanishes, &faults) {
        return;
    }
    let path = container
        .map(|(role, name)| format!("spec.{}{{{name}}}", role.field()))
        .unwrap_or_default();
    let now = run.node.wall.time();
    let key = (path.clone(), reason.to_owned(), message.clone());
    let (name, count) = {
        // As the kubelet names events: the pod's name, a dot, the time in hexadecimal digits
        let fresh = || format!("{}.{:x}", run.key.name, now.as_nanosecond());
        counted(&mut locked(&run.told), key, fresh)
    };
    let events: Api<Event> = Api::namespaced(cluster.client.clone(), &run.key.namespace);
    let path = (!path.is_empty()).then_some(path);
    let about = json!({"apiVersion": "v1", "fieldPath": path, "kind": "Pod", "name": run.key.name,
        "namespace": run.key.namespace, "uid": run.uid});
    let event = first(cluster, &run.node, &name, &about, (kind, reason, &message));
    let sent = cluster.event_in_turn(async move {
        if count == 1 {
            return events.create(&PostParams::default(), &event).await;
        }
        let at = event.last_timestamp;
        let again = json!({"count": count, "lastTimestamp": at, "message": message});
        let params = PatchParams::default();
        events.patch(&name, &params, &Patch::Merge(again)).await
    });
    cluster.spawn(async move {
        if let Err(error) = sent.await {
            tracing::debug!(%error, "event is lost");
        }
    });
}

/// Builds a new event of a node's kubelet, from severity, reason and message. Events about objects
/// without a namespace are in `default`.
pub(crate) fn first(
    cluster: &Cluster,
    node: &NodeState,
    name: &str,
    about: &Value,
    (kind, reason, message): (&str, &str, &str),
) -> Event {
    let now = node.time(&cluster.faults.current());
    let namespace = about["namespace"].as_str().unwrap_or("default");
    read(json!({
        "metadata": {"name": name, "namespace": namespace},
        "involvedObject": about, "type": kind, "reason": reason, "message": message, "count": 1,
        "firstTimestamp": now, "lastTimestamp": now, "reportingComponent": "kubelet",
        "reportingInstance": node.name, "source": {"component": "kubelet", "host": node.name},
    }))
}

/// Counts an event. Returns its name and how often it has been sent, this time included.
fn counted(sent: &mut Told, words: Words, fresh: impl FnOnce() -> String) -> (String, i32) {
    let at = sent.iter().position(|(known, _)| *known == words);
    let (words, (name, count)) = at
        .and_then(|at| sent.remove(at))
        .unwrap_or_else(|| (words, (fresh(), 0)));
    let known = (name, count + 1);
    sent.push_back((words, known.clone()));
    if sent.len() > MOST_TOLD {
        sent.pop_front();
    }
    known
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_again_is_counted_unless_it_is_long_ago() {
        let mut told = Told::default();
        let mut tell = |message: usize| {
            let words = (String::new(), "Failed".to_owned(), message.to_string());
            counted(&mut told, words, || format!("p.{message}"))
        };
        assert_eq!(tell(0), ("p.0".to_owned(), 1));
        for message in 1..=MOST_TOLD {
            assert_eq!(tell(message).1, 1);
        }
        assert_eq!(tell(1), ("p.1".to_owned(), 2));
        assert_eq!(tell(0).1, 1, "it has been forgotten");
        assert_eq!(tell(1).1, 3, "it was told lately");
        assert_eq!(told.len(), MOST_TOLD);
    }
}
