//! `NetworkPolicies` as packets meet them.

use k8s_openapi::api::networking::v1::{NetworkPolicy, NetworkPolicyPeer, NetworkPolicyPort};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

/// A policy as packets meet it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Policy {
    pub(crate) selects: LabelSelector,
    /// `None` where it says nothing of the direction.
    ingress: Option<Vec<Rule>>,
    egress: Option<Vec<Rule>>,
}

/// What one rule lets pass.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rule {
    pub(crate) peers: Vec<NetworkPolicyPeer>,
    pub(crate) ports: Vec<NetworkPolicyPort>,
}

/// Which way a rule looks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Ingress,
    Egress,
}

impl Policy {
    /// Reads a policy's object.
    pub(crate) fn by(policy: &NetworkPolicy) -> Self {
        let spec = policy.spec.clone().unwrap_or_default();
        let types = spec.policy_types.unwrap_or_default();
        let has = |kind: &str| types.iter().any(|each| each == kind);
        let ingress = spec
            .ingress
            .unwrap_or_default()
            .into_iter()
            .map(|rule| Rule {
                peers: rule.from.unwrap_or_default(),
                ports: rule.ports.unwrap_or_default(),
            });
        let some_egress = spec.egress.is_some();
        let egress = spec
            .egress
            .unwrap_or_default()
            .into_iter()
            .map(|rule| Rule {
                peers: rule.to.unwrap_or_default(),
                ports: rule.ports.unwrap_or_default(),
            });
        // The API server's default: Ingress always, Egress where there are such rules
        Self {
            selects: spec.pod_selector.unwrap_or_default(),
            ingress: (types.is_empty() || has("Ingress")).then(|| ingress.collect()),
            egress: (has("Egress") || types.is_empty() && some_egress).then(|| egress.collect()),
        }
    }

    /// Its rules in a direction; `None` where it says nothing of that.
    pub(crate) fn rules(&self, direction: Direction) -> Option<&[Rule]> {
        match direction {
            Direction::Ingress => self.ingress.as_deref(),
            Direction::Egress => self.egress.as_deref(),
        }
    }
}
