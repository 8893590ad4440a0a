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

use super::refusal::of_group;
use super::shape;

/// A kind of object.
#[derive(Debug)]
pub(super) struct Kind {
    /// Empty for the core group.
    pub(super) group: &'static str,
    pub(super) version: &'static str,
    pub(super) name: &'static str,
    /// Tells kinds apart: no two groups that are served share one.
    pub(super) plural: &'static str,
    pub(super) short: &'static [&'static str],
    pub(super) namespaced: bool,
    /// Whether `status` is written apart from the rest, and `generation` counts the rest.
    pub(super) status: bool,
    pub(super) subresources: &'static [&'static str],
    /// Whether it is in the category `all`.
    pub(super) all: bool,
    /// Reads a value as the kind's type.
    pub(super) read: fn(&Value) -> Result<(), serde_json::Error>,
    /// The same, and writes it again: without what the type does not have.
    pub(super) rewrite: fn(&Value) -> Result<Value, serde_json::Error>,
}

const fn kind<T>(short: &'static [&'static str], namespaced: bool) -> Kind
where
    T: Resource + Serialize + DeserializeOwned,
{
    Kind {
        group: T::GROUP,
        version: T::VERSION,
        name: T::KIND,
        plural: T::URL_PATH_SEGMENT,
        short,
        namespaced,
        status: false,
        subresources: &[],
        all: false,
        read: shape::read::<T>,
        rewrite: shape::rewrite::<T>,
    }
}

const fn local<T>(short: &'static [&'static str]) -> Kind
where
    T: Resource<Scope = NamespaceResourceScope> + Serialize + DeserializeOwned,
{
    kind::<T>(short, true)
}

const fn global<T>(short: &'static [&'static str]) -> Kind
where
    T: Resource<Scope = ClusterResourceScope> + Serialize + DeserializeOwned,
{
    kind::<T>(short, false)
}

impl Kind {
    const fn with_status(mut self, subresources: &'static [&'static str]) -> Self {
        self.status = true;
        self.subresources = subresources;
        self
    }

    const fn in_all(mut self) -> Self {
        self.all = true;
        self
    }

    /// `v1`, `apps/v1`.
    pub(super) fn api_version(&self) -> String {
        match self.group {
            "" => self.version.to_owned(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// As error messages name it: `pods`, `deployments.apps`.
    pub(super) fn resource(&self) -> String {
        of_group(self.plural, self.group)
    }

    /// Where the objects of a namespace are, or all of a kind that has none.
    pub(super) fn path(&self, namespace: &str) -> String {
        let (root, plural) = (self.root(), self.plural);
        match self.namespaced {
            true => format!("{root}/namespaces/{namespace}/{plural}"),
            false => format!("{root}/{plural}"),
        }
    }

    /// Where all of its group and version is: `/api/v1`, `/apis/apps/v1`.
    fn root(&self) -> String {
        let below = if self.group.is_empty() { "api" } else { "apis" };
        format!("/{below}/{}", self.api_version())
    }

    /// The one of this plural in this group, in the version that is served.
    pub(super) fn find(group: &str, version: &str, plural: &str) -> Option<&'static Self> {
        KINDS
            .iter()
            .find(|kind| kind.group == group && kind.version == version && kind.plural == plural)
    }

    /// The one that an object is of, or a reference.
    pub(super) fn of(object: &Value) -> Option<&'static Self> {
        let is_it = |kind: &&Self| {
            object["kind"] == kind.name && object["apiVersion"] == kind.api_version()
        };
        KINDS.iter().find(is_it)
    }

    /// The one of this plural.
    pub(super) fn named(plural: &str) -> &'static Self {
        let found = KINDS.iter().find(|kind| kind.plural == plural);
        found.expect("controllers name kinds of the table")
    }
}

const WORKLOAD: &[&str] = &["status", "scale"];
const STATUS: &[&str] = &["status"];
const POD: &[&str] = &[
    "status",
    "binding",
    "ephemeralcontainers",
    "resize",
    "log",
    "exec",
];

pub(super) const KINDS: &[Kind] = &[
    local::<core::v1::ConfigMap>(&["cm"]),
    local::<core::v1::Event>(&["ev"]),
    local::<core::v1::LimitRange>(&["limits"]),
    global::<core::v1::Namespace>(&["ns"]).with_status(STATUS),
    global::<core::v1::Node>(&["no"]).with_status(STATUS),
    global::<core::v1::PersistentVolume>(&["pv"]).with_status(STATUS),
    local::<core::v1::PersistentVolumeClaim>(&["pvc"]).with_status(STATUS),
    local::<core::v1::Pod>(&["po"]).with_status(POD).in_all(),
    local::<core::v1::PodTemplate>(&[]),
    local::<core::v1::ReplicationController>(&["rc"])
        .with_status(WORKLOAD)
        .in_all(),
    local::<core::v1::ResourceQuota>(&["quota"]).with_status(STATUS),
    local::<core::v1::Secret>(&[]),
    local::<core::v1::Service>(&["svc"])
        .with_status(STATUS)
        .in_all(),
    local::<core::v1::ServiceAccount>(&["sa"]),
    global::<admissionregistration::v1::MutatingAdmissionPolicy>(&[]),
    global::<admissionregistration::v1::MutatingAdmissionPolicyBinding>(&[]),
    global::<admissionregistration::v1::MutatingWebhookConfiguration>(&[]),
    global::<admissionregistration::v1::ValidatingAdmissionPolicy>(&[]),
    global::<admissionregistration::v1::ValidatingAdmissionPolicyBinding>(&[]),
    global::<admissionregistration::v1::ValidatingWebhookConfiguration>(&[]),
    global::<apiregistration::v1::APIService>(&[]).with_status(STATUS),
    local::<apps::v1::DaemonSet>(&["ds"])
        .with_status(STATUS)
        .in_all(),
    local::<apps::v1::Deployment>(&["deploy"])
        .with_status(WORKLOAD)
        .in_all(),
    local::<apps::v1::ReplicaSet>(&["rs"])
        .with_status(WORKLOAD)
        .in_all(),
    local::<apps::v1::StatefulSet>(&["sts"])
        .with_status(WORKLOAD)
        .in_all(),
    local::<autoscaling::v2::HorizontalPodAutoscaler>(&["hpa"])
        .with_status(STATUS)
        .in_all(),
    local::<batch::v1::CronJob>(&["cj"])
        .with_status(STATUS)
        .in_all(),
    local::<batch::v1::Job>(&[]).with_status(STATUS).in_all(),
    local::<coordination::v1::Lease>(&[]),
    local::<discovery::v1::EndpointSlice>(&[]),
    local::<networking::v1::NetworkPolicy>(&["netpol"]),
    global::<node::v1::RuntimeClass>(&[]),
    local::<policy::v1::PodDisruptionBudget>(&["pdb"]).with_status(STATUS),
    global::<rbac::v1::ClusterRole>(&[]),
    global::<rbac::v1::ClusterRoleBinding>(&[]),
    local::<rbac::v1::Role>(&[]),
    local::<rbac::v1::RoleBinding>(&[]),
    global::<scheduling::v1::PriorityClass>(&["pc"]),
    global::<storage::v1::CSIDriver>(&[]),
    global::<storage::v1::CSINode>(&[]),
    global::<storage::v1::StorageClass>(&["sc"]),
];

/// The groups of a real server of which nothing is served here (kubernetes 1.37.0,
/// `pkg/controlplane/instance.go`): what is asked of them is not implemented, of others not found.
pub(super) const UNSERVED: &[&str] = &[
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
