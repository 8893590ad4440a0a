//! The kinds that are served: one table, from which paths are read and discovery is told.

use k8s_openapi::api::{
    admissionregistration, apps, autoscaling, batch, coordination, core, discovery, networking,
    node, policy, rbac, scheduling, storage,
};
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration;
use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::server::checks::refusal::of_group;
use crate::server::checks::shape;

/// A kind of object.
#[derive(Debug)]
pub(crate) struct Kind {
    /// Empty for the core group.
    pub(crate) group: &'static str,
    pub(crate) version: &'static str,
    pub(crate) name: &'static str,
    /// Tells kinds apart: no two groups that are served share one.
    pub(crate) plural: &'static str,
    /// Empty where there is none.
    pub(crate) short: &'static str,
    pub(crate) namespaced: bool,
    pub(crate) subresources: &'static [&'static str],
    /// Whether it is of the category `all`, which `kubectl get all` shows.
    pub(crate) in_all: bool,
    /// Reads a value as the kind's type.
    pub(crate) read: fn(&Value) -> Result<(), serde_json::Error>,
    /// The same, and writes it again: without what the type does not have.
    pub(crate) rewrite: fn(&Value) -> Result<Value, serde_json::Error>,
}

/// Where the objects of a kind are.
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

impl Kind {
    /// The same, of the category `all`.
    const fn in_all(mut self) -> Self {
        self.in_all = true;
        self
    }

    /// Whether `status` is written apart from the rest, and `generation` counts the rest.
    pub(crate) fn has_status(&self) -> bool {
        self.subresources.contains(&"status")
    }

    /// `v1`, `apps/v1`.
    pub(crate) fn api_version(&self) -> String {
        match self.group {
            "" => self.version.to_owned(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// As error messages name it: `pods`, `deployments.apps`.
    pub(crate) fn resource(&self) -> String {
        of_group(self.plural, self.group)
    }

    /// Where the objects of a namespace are, or all of a kind that has none.
    pub(crate) fn path(&self, namespace: &str) -> String {
        let (root, plural) = (root(self.group, self.version), self.plural);
        match self.namespaced {
            true => format!("/{root}/namespaces/{namespace}/{plural}"),
            false => format!("/{root}/{plural}"),
        }
    }

    /// The one of this plural in this group, in the version that is served.
    pub(crate) fn find(group: &str, version: &str, plural: &str) -> Option<&'static Self> {
        KINDS
            .iter()
            .find(|kind| kind.group == group && kind.version == version && kind.plural == plural)
    }

    /// The one that an object is of, or a reference.
    pub(crate) fn for_object(object: &Value) -> Option<&'static Self> {
        let is_it = |kind: &&Self| {
            object["kind"] == kind.name && object["apiVersion"] == kind.api_version()
        };
        KINDS.iter().find(is_it)
    }

    /// The one of this plural.
    pub(crate) fn named(plural: &str) -> &'static Self {
        let found = KINDS.iter().find(|kind| kind.plural == plural);
        found.expect("controllers name kinds of the table")
    }
}

/// Where all of a group and version is: `api/v1`, `apis/apps/v1`.
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
    kind::<storage::v1::CSIDriver>("", NONE),
    kind::<storage::v1::CSINode>("", NONE),
    kind::<storage::v1::StorageClass>("sc", NONE),
];

/// The groups of a real server of which nothing is served here (kubernetes 1.37.0,
/// `pkg/controlplane/instance.go`): what is asked of them is not implemented, of others not found.
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
