//! Events of pods, with the reasons and words of the kubelet. Best effort: a lost one is lost.
//!
//! What is told again counts up the event that is there, as client-go's correlator does.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;

use super::book::Role;
use super::run::PodRun;
use crate::cluster::{Cluster, in_turn, locked};
use crate::fault::FaultKind;

/// What tells one event from another: the container's field path, the reason and the words.
pub(crate) type Told = (String, String, String);

/// Tells something ordinary.
pub(crate) fn normal(cluster: &Cluster, run: &Arc<PodRun>, reason: &str, message: String) {
    tell(cluster, run, None, "Normal", reason, message);
}

/// Tells trouble.
pub(crate) fn warning(cluster: &Cluster, run: &Arc<PodRun>, reason: &str, message: String) {
    tell(cluster, run, None, "Warning", reason, message);
}

/// Tells something of the pod, or of one container of it.
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
    let now = Timestamp::now();
    let key = (path.clone(), reason.to_owned(), message.clone());
    let (name, count) = {
        let mut told = locked(&run.told);
        // The kubelet's names: the pod's, a dot, the time in hexadecimal digits
        let fresh = || (format!("{}.{:x}", run.key.name, now.as_nanosecond()), 0);
        let known = told.entry(key).or_insert_with(fresh);
        known.1 += 1;
        known.clone()
    };
    let at = Time(run.now(cluster));
    let events: Api<Event> = Api::namespaced(cluster.client.clone(), &run.key.namespace);
    if count > 1 {
        let again = Patch::Merge(json!({"count": count, "lastTimestamp": at, "message": message}));
        cluster.spawn(async move {
            let counted = events.patch(&name, &PatchParams::default(), &again).await;
            if let Err(error) = counted {
                tracing::debug!(%error, "event is not counted");
            }
        });
        return;
    }
    let event = Event {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: Some(run.key.namespace.clone()),
            ..ObjectMeta::default()
        },
        involved_object: ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Pod".to_owned()),
            name: Some(run.key.name.clone()),
            namespace: Some(run.key.namespace.clone()),
            uid: Some(run.uid.clone()),
            field_path: (!path.is_empty()).then_some(path),
            ..ObjectReference::default()
        },
        type_: Some(kind.to_owned()),
        reason: Some(reason.to_owned()),
        message: Some(message),
        count: Some(1),
        first_timestamp: Some(at.clone()),
        last_timestamp: Some(at),
        source: Some(EventSource {
            component: Some("kubelet".to_owned()),
            host: Some(run.node.name.clone()),
        }),
        reporting_component: Some("kubelet".to_owned()),
        reporting_instance: Some(run.node.name.clone()),
        ..Event::default()
    };
    cluster.spawn(async move {
        if let Err(error) = in_turn(events.create(&PostParams::default(), &event)).await {
            tracing::debug!(%error, "event is lost");
        }
    });
}
