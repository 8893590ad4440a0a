//! The kinds that are served: one table, from which paths are read and discovery is told.

/// A kind of object.
#[derive(Debug, PartialEq, Eq)]
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
}

const fn kind(
    api: (&'static str, &'static str),
    kind: &'static str,
    plural: &'static str,
    short: &'static [&'static str],
) -> Kind {
    Kind {
        group: api.0,
        version: api.1,
        name: kind,
        plural,
        short,
        namespaced: true,
        status: false,
        subresources: &[],
        all: false,
    }
}

impl Kind {
    const fn of_cluster(mut self) -> Self {
        self.namespaced = false;
        self
    }

    const fn with_status(mut self, subresources: &'static [&'static str]) -> Self {
        self.status = true;
        self.subresources = subresources;
        self
    }

    const fn with(mut self, subresources: &'static [&'static str]) -> Self {
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
        match self.group {
            "" => self.plural.to_owned(),
            group => format!("{}.{group}", self.plural),
        }
    }

    /// Where the objects of a namespace are, or all of a kind that has none.
    pub(super) fn path(&self, namespace: &str) -> String {
        let root = match self.group {
            "" => "/api".to_owned(),
            group => format!("/apis/{group}"),
        };
        match self.namespaced {
            true => format!(
                "{root}/{}/namespaces/{namespace}/{}",
                self.version, self.plural
            ),
            false => format!("{root}/{}/{}", self.version, self.plural),
        }
    }

    /// The one of this plural in this group, in the version that is served.
    pub(super) fn find(group: &str, version: &str, plural: &str) -> Option<&'static Self> {
        KINDS
            .iter()
            .find(|kind| kind.group == group && kind.version == version && kind.plural == plural)
    }

    /// The one of this plural.
    pub(super) fn named(plural: &str) -> &'static Self {
        let found = KINDS.iter().find(|kind| kind.plural == plural);
        found.expect("controllers name kinds of the table")
    }
}

const CORE: (&str, &str) = ("", "v1");
const APPS: (&str, &str) = ("apps", "v1");
const BATCH: (&str, &str) = ("batch", "v1");
const NETWORKING: (&str, &str) = ("networking.k8s.io", "v1");
const STORAGE: (&str, &str) = ("storage.k8s.io", "v1");
const RBAC: (&str, &str) = ("rbac.authorization.k8s.io", "v1");
const ADMISSION: (&str, &str) = ("admissionregistration.k8s.io", "v1");

const WORKLOAD: &[&str] = &["status", "scale"];
const STATUS: &[&str] = &["status"];

pub(super) const KINDS: &[Kind] = &[
    kind(CORE, "ConfigMap", "configmaps", &["cm"]),
    kind(CORE, "Event", "events", &["ev"]),
    kind(CORE, "LimitRange", "limitranges", &["limits"]),
    kind(CORE, "Namespace", "namespaces", &["ns"])
        .of_cluster()
        .with_status(&["status", "finalize"]),
    kind(CORE, "Node", "nodes", &["no"])
        .of_cluster()
        .with_status(STATUS),
    kind(CORE, "PersistentVolume", "persistentvolumes", &["pv"])
        .of_cluster()
        .with_status(STATUS),
    kind(
        CORE,
        "PersistentVolumeClaim",
        "persistentvolumeclaims",
        &["pvc"],
    )
    .with_status(STATUS),
    kind(CORE, "Pod", "pods", &["po"])
        .with_status(&[
            "status",
            "binding",
            "ephemeralcontainers",
            "resize",
            "log",
            "exec",
        ])
        .in_all(),
    kind(CORE, "PodTemplate", "podtemplates", &[]),
    kind(
        CORE,
        "ReplicationController",
        "replicationcontrollers",
        &["rc"],
    )
    .with_status(WORKLOAD)
    .in_all(),
    kind(CORE, "ResourceQuota", "resourcequotas", &["quota"]).with_status(STATUS),
    kind(CORE, "Secret", "secrets", &[]),
    kind(CORE, "Service", "services", &["svc"])
        .with_status(STATUS)
        .in_all(),
    kind(CORE, "ServiceAccount", "serviceaccounts", &["sa"]).with(&["token"]),
    kind(
        ADMISSION,
        "MutatingAdmissionPolicy",
        "mutatingadmissionpolicies",
        &[],
    )
    .of_cluster(),
    kind(
        ADMISSION,
        "MutatingAdmissionPolicyBinding",
        "mutatingadmissionpolicybindings",
        &[],
    )
    .of_cluster(),
    kind(
        ADMISSION,
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
        &[],
    )
    .of_cluster(),
    kind(
        ADMISSION,
        "ValidatingAdmissionPolicy",
        "validatingadmissionpolicies",
        &[],
    )
    .of_cluster(),
    kind(
        ADMISSION,
        "ValidatingAdmissionPolicyBinding",
        "validatingadmissionpolicybindings",
        &[],
    )
    .of_cluster(),
    kind(
        ADMISSION,
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
        &[],
    )
    .of_cluster(),
    kind(
        ("apiregistration.k8s.io", "v1"),
        "APIService",
        "apiservices",
        &[],
    )
    .of_cluster()
    .with_status(STATUS),
    kind(APPS, "DaemonSet", "daemonsets", &["ds"])
        .with_status(STATUS)
        .in_all(),
    kind(APPS, "Deployment", "deployments", &["deploy"])
        .with_status(WORKLOAD)
        .in_all(),
    kind(APPS, "ReplicaSet", "replicasets", &["rs"])
        .with_status(WORKLOAD)
        .in_all(),
    kind(APPS, "StatefulSet", "statefulsets", &["sts"])
        .with_status(WORKLOAD)
        .in_all(),
    kind(
        ("autoscaling", "v2"),
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
        &["hpa"],
    )
    .with_status(STATUS)
    .in_all(),
    kind(BATCH, "CronJob", "cronjobs", &["cj"])
        .with_status(STATUS)
        .in_all(),
    kind(BATCH, "Job", "jobs", &[]).with_status(STATUS).in_all(),
    kind(("coordination.k8s.io", "v1"), "Lease", "leases", &[]),
    kind(
        ("discovery.k8s.io", "v1"),
        "EndpointSlice",
        "endpointslices",
        &[],
    ),
    kind(NETWORKING, "NetworkPolicy", "networkpolicies", &["netpol"]),
    kind(("node.k8s.io", "v1"), "RuntimeClass", "runtimeclasses", &[]).of_cluster(),
    kind(
        ("policy", "v1"),
        "PodDisruptionBudget",
        "poddisruptionbudgets",
        &["pdb"],
    )
    .with_status(STATUS),
    kind(RBAC, "ClusterRole", "clusterroles", &[]).of_cluster(),
    kind(RBAC, "ClusterRoleBinding", "clusterrolebindings", &[]).of_cluster(),
    kind(RBAC, "Role", "roles", &[]),
    kind(RBAC, "RoleBinding", "rolebindings", &[]),
    kind(
        ("scheduling.k8s.io", "v1"),
        "PriorityClass",
        "priorityclasses",
        &["pc"],
    )
    .of_cluster(),
    kind(STORAGE, "CSIDriver", "csidrivers", &[]).of_cluster(),
    kind(STORAGE, "CSINode", "csinodes", &[]).of_cluster(),
    kind(STORAGE, "StorageClass", "storageclasses", &["sc"]).of_cluster(),
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
        assert_eq!(
            deployments.path("a"),
            "/apis/apps/v1/namespaces/a/deployments"
        );
        assert_eq!(deployments.resource(), "deployments.apps");
        let nodes = Kind::named("nodes");
        assert_eq!(
            (nodes.path(""), nodes.api_version()),
            ("/api/v1/nodes".into(), "v1".into())
        );
        assert_eq!(Kind::find("apps", "v1", "pods"), None);
    }
}
