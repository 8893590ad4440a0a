//! The table of every kind that we create. Clean-up iterates over it, and it provides the paths.

use serde_json::{Value as Json, json};
use winconform_core::method::{ApiRequest, Verb};

use crate::transport::encode;

/// A kind of object, as the API serves it.
#[derive(Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Kind {
    pub kind: &'static str,
    /// API group; empty for the core.
    pub group: &'static str,
    pub version: &'static str,
    /// The resource's name in paths.
    pub plural: &'static str,
    /// Whether its objects are in a namespace.
    pub scope: Scope,
}

/// Whether objects of a kind are in a namespace.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Scope {
    Cluster,
    Namespaced,
}

/// Namespaces of a run.
pub const NAMESPACES: Kind = of_cluster("", "Namespace", "namespaces");
/// Services of fixtures.
pub const SERVICES: Kind = kind("", "Service", "services");
/// Probers.
pub const PODS: Kind = kind("", "Pod", "pods");
/// Samples.
pub const DEPLOYMENTS: Kind = kind("apps", "Deployment", "deployments");
/// Workloads of other kinds.
pub const REPLICA_SETS: Kind = kind("apps", "ReplicaSet", "replicasets");
pub const STATEFUL_SETS: Kind = kind("apps", "StatefulSet", "statefulsets");
pub const DAEMON_SETS: Kind = kind("apps", "DaemonSet", "daemonsets");
pub const CRON_JOBS: Kind = kind("batch", "CronJob", "cronjobs");
pub const JOBS: Kind = kind("batch", "Job", "jobs");
pub const REPLICATION_CONTROLLERS: Kind =
    kind("", "ReplicationController", "replicationcontrollers");
/// The kinds whose controllers create pods, and create them again as long as they exist.
pub const WORKLOADS: [&Kind; 7] = [
    &DEPLOYMENTS,
    &REPLICA_SETS,
    &STATEFUL_SETS,
    &DAEMON_SETS,
    &CRON_JOBS,
    &JOBS,
    &REPLICATION_CONTROLLERS,
];
/// Priority classes that keep a run's pods from preempting any others.
pub const PRIORITY_CLASSES: Kind =
    of_cluster("scheduling.k8s.io", "PriorityClass", "priorityclasses");
/// Runtime classes that select nodes and tolerate taints for their pods.
pub const RUNTIME_CLASSES: Kind = of_cluster("node.k8s.io", "RuntimeClass", "runtimeclasses");
/// Policies that keep all other traffic from pods.
pub const NETWORK_POLICIES: Kind = kind("networking.k8s.io", "NetworkPolicy", "networkpolicies");
/// The namespace of all runs' Leases.
pub const LEASE_NAMESPACE: &str = "default";
/// A run's Lease.
pub const LEASES: Kind = kind("coordination.k8s.io", "Lease", "leases");

/// Secrets of fixtures, and copies of pull secrets. They are deleted with their namespaces, and no request lists
/// them: that would read every secret of the cluster.
pub const SECRETS: Kind = kind("", "Secret", "secrets");

/// ConfigMaps of fixtures, which are deleted with their namespaces, too.
pub const CONFIG_MAPS: Kind = kind("", "ConfigMap", "configmaps");

/// Quotas of fixtures, which are deleted with their namespaces, too.
pub const QUOTAS: Kind = kind("", "ResourceQuota", "resourcequotas");

/// Claims of volumes, which are deleted with their namespaces, too, and the volumes with their claims.
pub const CLAIMS: Kind = kind("", "PersistentVolumeClaim", "persistentvolumeclaims");

/// Snapshots of volumes, which are deleted with their namespaces, too. Not every cluster serves them.
pub const SNAPSHOTS: Kind = kind(
    "snapshot.storage.k8s.io",
    "VolumeSnapshot",
    "volumesnapshots",
);

/// Autoscalers of fixtures, which are deleted with their namespaces, too.
pub const AUTOSCALERS: Kind = Kind {
    version: "v2",
    ..kind(
        "autoscaling",
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
    )
};

/// Every kind that we create and list.
pub const ALL: [&Kind; 14] = [
    &DEPLOYMENTS,
    &REPLICA_SETS,
    &STATEFUL_SETS,
    &DAEMON_SETS,
    &CRON_JOBS,
    &JOBS,
    &REPLICATION_CONTROLLERS,
    &SERVICES,
    &PODS,
    &NETWORK_POLICIES,
    &NAMESPACES,
    &RUNTIME_CLASSES,
    &PRIORITY_CLASSES,
    &LEASES,
];

impl Kind {
    /// The kind of an object, if it is one of ours.
    pub fn find(object: &Json) -> Option<&'static Self> {
        ALL.into_iter()
            .chain([
                &SECRETS,
                &CONFIG_MAPS,
                &QUOTAS,
                &CLAIMS,
                &SNAPSHOTS,
                &AUTOSCALERS,
            ])
            .find(|kind| {
                object["kind"] == kind.kind && object["apiVersion"] == kind.api_version().as_str()
            })
    }

    /// Whether requests list and delete its objects, which do not only go with their namespaces.
    pub fn is_listed(&self) -> bool {
        ALL.contains(&self)
    }

    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// Whether its objects are pods, or create pods.
    pub fn makes_pods(&self) -> bool {
        *self == PODS || WORKLOADS.contains(&self)
    }

    /// The path of all objects with these labels, in every namespace; `selector` is not yet
    /// encoded.
    pub fn list_path(&self, selector: &str) -> String {
        let path = self.collection_path(None);
        format!("{path}?labelSelector={}", encode(selector))
    }

    /// The path at which objects are created; kinds without namespaces ignore `namespace`.
    pub fn collection_path(&self, namespace: Option<&str>) -> String {
        let (root, plural) = (self.root(), self.plural);
        match namespace.filter(|_| self.scope == Scope::Namespaced) {
            Some(namespace) => format!("{root}/namespaces/{}/{plural}", encode(namespace)),
            None => format!("{root}/{plural}"),
        }
    }

    pub fn object_path(&self, namespace: Option<&str>, name: &str) -> String {
        format!("{}/{}", self.collection_path(namespace), encode(name))
    }

    /// Deletes the object that meets `preconditions`, and no later one of the same name.
    pub fn deletion(
        &self,
        namespace: Option<&str>,
        name: &str,
        preconditions: &Json,
    ) -> ApiRequest {
        ApiRequest {
            verb: Verb::Delete,
            path: self.object_path(namespace, name),
            body: Some(json!({
                "apiVersion": "v1",
                "kind": "DeleteOptions",
                "preconditions": preconditions,
                // By default the pods of Jobs and ReplicationControllers stay behind
                "propagationPolicy": "Background",
            })),
        }
    }

    fn root(&self) -> String {
        let prefix = if self.group.is_empty() { "api" } else { "apis" };
        format!("/{prefix}/{}", self.api_version())
    }
}

/// A kind whose objects are in a namespace, in version v1.
const fn kind(group: &'static str, kind: &'static str, plural: &'static str) -> Kind {
    Kind {
        kind,
        group,
        version: "v1",
        plural,
        scope: Scope::Namespaced,
    }
}

/// A kind whose objects are in none.
const fn of_cluster(group: &'static str, name: &'static str, plural: &'static str) -> Kind {
    Kind {
        scope: Scope::Cluster,
        ..kind(group, name, plural)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_are_those_of_the_api() {
        assert_eq!(NAMESPACES.object_path(None, "a"), "/api/v1/namespaces/a");
        assert_eq!(
            PODS.object_path(Some("a"), "b/c"),
            "/api/v1/namespaces/a/pods/b%2Fc"
        );
        let lease = "/apis/coordination.k8s.io/v1/namespaces/default/leases/w";
        assert_eq!(LEASES.object_path(Some("default"), "w"), lease);
        assert_eq!(
            DEPLOYMENTS.list_path("a/b=c"),
            "/apis/apps/v1/deployments?labelSelector=a%2Fb%3Dc"
        );
    }

    #[test]
    fn an_object_is_of_a_kind_by_group_too() {
        let of =
            |version: &str, kind: &str| Kind::find(&json!({"apiVersion": version, "kind": kind}));
        for kind in ALL {
            assert_eq!(of(&kind.api_version(), kind.kind), Some(kind));
        }
        assert_eq!(of("extensions/v1", "Deployment"), None);
        assert_eq!(of("v1", "Secret"), Some(&SECRETS));
        assert_eq!(of("v1", "ConfigMap"), Some(&CONFIG_MAPS));
        assert_eq!(of("v1", "Node"), None);
        let snapshots = of("snapshot.storage.k8s.io/v1", "VolumeSnapshot");
        assert_eq!(snapshots, Some(&SNAPSHOTS));
    }
}
