//! What an embedded API server has and does beside the nodes.

use serde_json::Value;

use super::TaintSpec;
use crate::base::field_path::FieldPath;

/// What an embedded API server has and does beside the nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApiSpec {
    /// Its Kubernetes version with a vendor's suffix, such as `1.36.4-gke.1`; empty for upstream's newest.
    pub version: String,
    /// API groups that it serves beside Kubernetes' own, without any object of theirs.
    pub groups: Vec<String>,
    /// Objects to create at the start, in this order. In their texts `VERSION` stands for the server's
    /// version.
    pub objects: Vec<Value>,
    /// What webhooks do to new pods, in this order.
    pub effects: Vec<Effect>,
}

impl ApiSpec {
    /// The version as upstream numbers it, and the vendor's suffix.
    pub fn release(&self) -> (&str, &str) {
        let end = self.version.find(['-', '+']).unwrap_or(self.version.len());
        self.version.split_at(end)
    }
}

/// What an admission webhook does to a new pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The first container of a pod that has its own address, and whose node selector names Windows, gets
    /// one of this resource while a `ConfigMap` has a true value by a key (amazon-vpc-resource-controller-k8s,
    /// `webhooks/core/pod_webhook.go`, `HandleWindowsPod`).
    Resource {
        /// The resource's name.
        name: String,
        /// Namespace and name of the `ConfigMap`.
        config_map: (String, String),
        /// The key.
        key: String,
    },
    /// A pod whose node selector names Windows tolerates this taint (Google, "Deploying a Windows Server
    /// application").
    Toleration(TaintSpec),
    /// A pod outside `kube-system` gets another container.
    Sidecar {
        /// The container's name.
        name: String,
        /// Its image.
        image: String,
    },
    /// A pod outside `kube-system` loses this field, as where a webhook that was built before the field was sends
    /// back the whole pod.
    Drops(FieldPath),
    /// A pod that uses its node's network, and does not declare Windows as its operating system, is refused
    /// unless a binding gives its account, or that of the client that creates it, this `ClusterRole`
    /// (openshift/apiserver-library-go, `pkg/securitycontextconstraints/sccadmission/admission.go`).
    HostDenied {
        /// The `ClusterRole`.
        unless: String,
        /// Namespace and name of the account by which all clients act; controllers act by none that is bound.
        client: (String, String),
        /// The reason in the refusal.
        says: String,
    },
    /// A container that names the one credential spec of a gMSA gets its contents; a pod that names another is
    /// refused (kubernetes-sigs/windows-gmsa, `admission-webhook/webhook.go` and `kube_client.go`).
    CredentialSpecs {
        /// The name of the webhook.
        webhook: String,
        /// The name of the credential spec.
        name: String,
        /// The domain of its account.
        domain: String,
    },
}
