//! Which requests a fault concerns, by resource.

use std::fmt;

use crate::nearest::nearest;

/// `*`, a resource, one of its subresources, or the first segment of a path that is no resource.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Resources(String);

/// The resources whose names are known, so that a slip is not a fault that never hits.
const KNOWN: &[&str] = &[
    "apiservices",
    "certificatesigningrequests",
    "clusterrolebindings",
    "clusterroles",
    "configmaps",
    "controllerrevisions",
    "cronjobs",
    "csidrivers",
    "csinodes",
    "csistoragecapacities",
    "customresourcedefinitions",
    "daemonsets",
    "deployments",
    "endpoints",
    "endpointslices",
    "events",
    "gmsacredentialspecs",
    "horizontalpodautoscalers",
    "ingressclasses",
    "ingresses",
    "jobs",
    "leases",
    "limitranges",
    "localsubjectaccessreviews",
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
    "mutatingwebhookconfigurations",
    "namespaces",
    "networkpolicies",
    "nodes",
    "persistentvolumeclaims",
    "persistentvolumes",
    "poddisruptionbudgets",
    "pods",
    "podtemplates",
    "priorityclasses",
    "replicasets",
    "replicationcontrollers",
    "resourcequotas",
    "rolebindings",
    "roles",
    "runtimeclasses",
    "secrets",
    "selfsubjectaccessreviews",
    "selfsubjectreviews",
    "selfsubjectrulesreviews",
    "serviceaccounts",
    "services",
    "statefulsets",
    "storageclasses",
    "subjectaccessreviews",
    "tokenreviews",
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
    "validatingwebhookconfigurations",
    "volumeattachments",
];

impl Resources {
    /// Reads what was written; else the known resource that looks most like it, if one is near.
    pub(super) fn read(text: &str) -> Result<Self, Option<&'static str>> {
        let resource = text.split('/').next().unwrap_or_default();
        let path = text.len() > 1 && text.starts_with('/') && !text[1..].contains('/');
        if text == "*" || path || KNOWN.contains(&resource) {
            return Ok(Self(text.to_owned()));
        }
        Err(nearest(resource, KNOWN.iter().copied()))
    }

    /// Whether a resource, written `pods` or `pods/exec`, is meant.
    pub(super) fn hold(&self, resource: &str) -> bool {
        match self.0.as_str() {
            "*" => !resource.starts_with('/'),
            only => only == resource,
        }
    }
}

impl Default for Resources {
    /// Pods.
    fn default() -> Self {
        Self("pods".to_owned())
    }
}

impl fmt::Display for Resources {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}
