//! Events of pods, with the reasons and words of the kubelet. Best effort: a lost one is lost.

use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::Api;
use kube::api::PostParams;

use super::run::PodRun;
use crate::clock;
use crate::cluster::Cluster;

/// Tells something ordinary.
pub(crate) fn normal(cluster: &Cluster, run: &PodRun, reason: &str, message: String) {
    tell(cluster, run, "Normal", reason, message);
}

/// Tells trouble.
pub(crate) fn warning(cluster: &Cluster, run: &PodRun, reason: &str, message: String) {
    tell(cluster, run, "Warning", reason, message);
}

fn tell(cluster: &Cluster, run: &PodRun, kind: &str, reason: &str, message: String) {
    let now = jiff::Timestamp::now();
    let event = Event {
        metadata: ObjectMeta {
            // The kubelet's names: the pod's, a dot, the time in hexadecimal digits
            name: Some(format!("{}.{:x}", run.key.name, now.as_nanosecond())),
            namespace: Some(run.key.namespace.clone()),
            ..ObjectMeta::default()
        },
        involved_object: ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Pod".to_owned()),
            name: Some(run.key.name.clone()),
            namespace: Some(run.key.namespace.clone()),
            uid: Some(run.uid.clone()),
            ..ObjectReference::default()
        },
        type_: Some(kind.to_owned()),
        reason: Some(reason.to_owned()),
        message: Some(message),
        count: Some(1),
        first_timestamp: Some(Time(clock::now())),
        last_timestamp: Some(Time(clock::now())),
        source: Some(EventSource {
            component: Some("kubelet".to_owned()),
            host: Some(run.node.name.clone()),
        }),
        reporting_component: Some("kubelet".to_owned()),
        reporting_instance: Some(run.node.name.clone()),
        ..Event::default()
    };
    let events: Api<Event> = Api::namespaced(cluster.client.clone(), &run.key.namespace);
    cluster.spawn(async move {
        if let Err(error) = events.create(&PostParams::default(), &event).await {
            tracing::debug!(%error, "event is lost");
        }
    });
}
