//! `NetworkPolicies` as packets meet them.

use k8s_openapi::api::networking::v1::{NetworkPolicy, NetworkPolicyPeer, NetworkPolicyPort};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

/// A policy of ingress as packets meet it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Policy {
    pub(crate) selects: LabelSelector,
    /// `None` where it says nothing of ingress.
    pub(crate) ingress: Option<Vec<Rule>>,
}

/// What one rule lets pass.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rule {
    pub(crate) peers: Vec<NetworkPolicyPeer>,
    pub(crate) ports: Vec<NetworkPolicyPort>,
}

impl Policy {
    /// Reads a policy's object.
    pub(crate) fn by(policy: &NetworkPolicy) -> Self {
        let spec = policy.spec.clone().unwrap_or_default();
        let types = spec.policy_types.unwrap_or_default();
        let is_of_ingress = types.is_empty() || types.iter().any(|one| one == "Ingress");
        let rules = spec.ingress.unwrap_or_default().into_iter();
        let rules = rules.map(|rule| Rule {
            peers: rule.from.unwrap_or_default(),
            ports: rule.ports.unwrap_or_default(),
        });
        Self {
            selects: spec.pod_selector.unwrap_or_default(),
            ingress: is_of_ingress.then(|| rules.collect()),
        }
    }
}
