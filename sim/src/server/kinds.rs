//! The served kinds: one table, from which the server reads paths and answers discovery.

use k8s_openapi::api::{
    admissionregistration, apps, autoscaling, batch, coordination, core, discovery, networking,
    node, policy, rbac, scheduling, storage,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration;
use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope, Resource};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::server::checks::refusal::of_group;
use crate::server::checks::shape;

/// A kind of object.
#[derive(Debug)]
pub(crate) struct Kind {
    /// Empty for the core group.
    pub(crate) group: &'static str,
    pub(crate) version: &'static str,
    pub(crate) name: &'static str,
    /// Identifies the kind: no two served groups share a plural.
    pub(crate) plural: &'static str,
    /// Empty if there is none.
    pub(crate) short: &'static str,
    pub(crate) namespaced: bool,
    pub(crate) subresources: &'static [&'static str],
    /// Whether the kind is in the category `all`, which `kubectl get all` shows.
    pub(crate) in_all: bool,
    /// Reads a value as the kind's type.
    pub(crate) read: fn(&Value) -> Result<(), serde_json::Error>,
    /// Reads a value and writes it again, without the fields that the type does not have.
    pub(crate) rewrite: fn(&Value) -> Result<Value, serde_json::Error>,
}

/// The scope of a kind's objects.
trait Scope {
    const NAMESPACED: bool;
}

impl Scope for NamespaceResourceScope {
    const NAMESPACED: bool = true;
}

impl Scope for ClusterResourceScope {
    const NAMESPACED: bool = false;
}

const fn kind<T>(short: &'static str, subresources: &'static [&'static str]) -> Kind
where
    T: Resource<Scope: Scope> + Serialize + DeserializeOwned,
{
    Kind {
        group: T::GROUP,
        version: T::VERSION,
        name: T::KIND,
        plural: T::URL_PATH_SEGMENT,
        short,
        namespaced: T::Scope::NAMESPACED,
        subresources,
        in_all: false,
        read: shape::read::<T>,
        rewrite: shape::rewrite::<T>,
    }
}

/// An object of a kind that is not Kubernetes' own, whose definition leaves the fields open.
#[derive(Deserialize, Serialize)]
struct Custom {
    #[serde(default)]
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Map<String, Value>,
    #[serde(default)]
    status: Map<String, Value>,
    #[serde(flatten)]
    others: Map<String, Value>,
}

/// A kind of snapshots (kubernetes-csi/external-snapshotter, `client/apis/volumesnapshot/v1/types.go`).
const fn of_snapshots(
    name: &'static str,
    plural: &'static str,
    short: &'static str,
    subresources: &'static [&'static str],
) -> Kind {
    Kind {
        group: "snapshot.storage.k8s.io",
        version: "v1",
        name,
        plural,
        short,
        namespaced: !subresources.is_empty(),
        subresources,
        in_all: false,
        read: shape::read::<Custom>,
        rewrite: shape::rewrite::<Custom>,
    }
}

impl Kind {
    /// Returns the kind, in the category `all`.
    const fn in_all(mut self) -> Self {
        self.in_all = true;
        self
    }

    /// Whether `status` is written separately, and `generation` counts the changes of the rest.
    pub(crate) fn has_status(&self) -> bool {
        self.subresources.contains(&"status")
    }

    /// Such as `v1` or `apps/v1`.
    pub(crate) fn api_version(&self) -> String {
        match self.group {
            "" => self.version.to_owned(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// The name in error messages: `pods`, `deployments.apps`.
    pub(crate) fn resource(&self) -> String {
        of_group(self.plural, self.group)
    }

    /// The path of the objects in a namespace, or of all objects of a kind without namespaces.
    pub(crate) fn path(&self, namespace: &str) -> String {
        let (root, plural) = (root(self.group, self.version), self.plural);
        match self.namespaced {
            true => format!("/{root}/namespaces/{namespace}/{plural}"),
            false => format!("/{root}/{plural}"),
        }
    }

    /// Returns the kind with this group, version and plural, if it is served.
    pub(crate) fn find(group: &str, version: &str, plural: &str) -> Option<&'static Self> {
        KINDS
            .iter()
            .find(|kind| kind.group == group && kind.version == version && kind.plural == plural)
    }

    /// Returns the kind of an object, or of the object to which a reference refers.
    pub(crate) fn for_object(object: &Value) -> Option<&'static Self> {
        let is_it = |kind: &&Self| {
            object["kind"] == kind.name && object["apiVersion"] == kind.api_version()
        };
        KINDS.iter().find(is_it)
    }

    /// Returns the kind with this plural.
    pub(crate) fn named(plural: &str) -> &'static Self {
        let kind = KINDS.iter().find(|kind| kind.plural == plural);
        kind.expect("controllers name kinds of the table")
    }
}

/// The path of a group and version: `api/v1`, `apis/apps/v1`.
pub(crate) fn root(group: &str, version: &str) -> String {
    match group {
        "" => format!("api/{version}"),
        group => format!("apis/{group}/{version}"),
    }
}

const NONE: &[&str] = &[];
const STATUS: &[&str] = &["status"];
const WORKLOAD: &[&str] = &["status", "scale"];
const POD: &[&str] = &[
    "status",
    "binding",
    "ephemeralcontainers",
    "resize",
    "log",
    "exec",
];

pub(crate) const KINDS: &[Kind] = &[
    kind::<core::v1::ConfigMap>("cm", NONE),
    kind::<core::v1::Event>("ev", NONE),
    kind::<core::v1::LimitRange>("limits", NONE),
    kind::<core::v1::Namespace>("ns", STATUS),
    kind::<core::v1::Node>("no", STATUS),
    kind::<core::v1::PersistentVolume>("pv", STATUS),
    kind::<core::v1::PersistentVolumeClaim>("pvc", STATUS),
    kind::<core::v1::Pod>("po", POD).in_all(),
    kind::<core::v1::PodTemplate>("", NONE),
    kind::<core::v1::ReplicationController>("rc", WORKLOAD).in_all(),
    kind::<core::v1::ResourceQuota>("quota", STATUS),
    kind::<core::v1::Secret>("", NONE),
    kind::<core::v1::Service>("svc", STATUS).in_all(),
    kind::<core::v1::ServiceAccount>("sa", NONE),
    kind::<admissionregistration::v1::MutatingAdmissionPolicy>("", NONE),
    kind::<admissionregistration::v1::MutatingAdmissionPolicyBinding>("", NONE),
    kind::<admissionregistration::v1::MutatingWebhookConfiguration>("", NONE),
    kind::<admissionregistration::v1::ValidatingAdmissionPolicy>("", NONE),
    kind::<admissionregistration::v1::ValidatingAdmissionPolicyBinding>("", NONE),
    kind::<admissionregistration::v1::ValidatingWebhookConfiguration>("", NONE),
    kind::<apiregistration::v1::APIService>("", STATUS),
    kind::<apps::v1::DaemonSet>("ds", STATUS).in_all(),
    kind::<apps::v1::Deployment>("deploy", WORKLOAD).in_all(),
    kind::<apps::v1::ReplicaSet>("rs", WORKLOAD).in_all(),
    kind::<apps::v1::StatefulSet>("sts", WORKLOAD).in_all(),
    kind::<autoscaling::v2::HorizontalPodAutoscaler>("hpa", STATUS).in_all(),
    kind::<batch::v1::CronJob>("cj", STATUS).in_all(),
    kind::<batch::v1::Job>("", STATUS).in_all(),
    kind::<coordination::v1::Lease>("", NONE),
    kind::<discovery::v1::EndpointSlice>("", NONE),
    kind::<networking::v1::NetworkPolicy>("netpol", NONE),
    kind::<node::v1::RuntimeClass>("", NONE),
    kind::<policy::v1::PodDisruptionBudget>("pdb", STATUS),
    kind::<rbac::v1::ClusterRole>("", NONE),
    kind::<rbac::v1::ClusterRoleBinding>("", NONE),
    kind::<rbac::v1::Role>("", NONE),
    kind::<rbac::v1::RoleBinding>("", NONE),
    kind::<scheduling::v1::PriorityClass>("pc", NONE),
    of_snapshots("VolumeSnapshot", "volumesnapshots", "vs", STATUS),
    of_snapshots(
        "VolumeSnapshotClass",
        "volumesnapshotclasses",
        "vsclass",
        NONE,
    ),
    kind::<storage::v1::CSIDriver>("", NONE),
    kind::<storage::v1::CSINode>("", NONE),
    kind::<storage::v1::StorageClass>("sc", NONE),
];

/// The groups of a real server that this one does not serve (kubernetes 1.37.0,
/// `pkg/controlplane/instance.go`): a request for them is not implemented, for others not found.
pub(crate) const UNSERVED: &[&str] = &[
    "authentication.k8s.io",
    "certificates.k8s.io",
    "events.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "internal.apiserver.k8s.io",
    "resource.k8s.io",
    "apiextensions.k8s.io",
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_plural_names_one_kind() {
        let plurals: BTreeSet<&str> = KINDS.iter().map(|kind| kind.plural).collect();
        assert_eq!(plurals.len(), KINDS.len());
    }

    #[test]
    fn paths_and_resources_are_kubernetes() {
        let deployments = Kind::named("deployments");
        let path = "/apis/apps/v1/namespaces/a/deployments";
        assert_eq!(deployments.path("a"), path);
        assert_eq!(deployments.resource(), "deployments.apps");
        let nodes = Kind::named("nodes");
        assert_eq!(nodes.path(""), "/api/v1/nodes");
        assert_eq!(nodes.api_version(), "v1");
        assert!(Kind::find("apps", "v1", "pods").is_none());
    }
}
