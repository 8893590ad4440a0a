//! Nodes as the API shows them.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::build::WindowsBuild;
use super::cluster::Os;

/// One node as the API shows it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct NodeFact {
    pub name: String,
    /// Its operating system, from `status.nodeInfo.operatingSystem`.
    pub os: Os,
    /// Its build, from `status.nodeInfo.kernelVersion`; never from the label, which is checked.
    pub build: Option<WindowsBuild>,
    /// Whether it is Ready and schedulable.
    pub usable: bool,
    /// What of the configuration excludes it from the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excluded: Option<String>,
    /// Why a run spares it where others are there, such as `spot, by its label karpenter.sh/capacity-type=spot`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spared: Option<String>,
    /// Its `NoSchedule` and `NoExecute` taints, as in the API.
    pub taints: Vec<serde_json::Value>,
    /// Details that placement does not depend on.
    #[serde(default)]
    pub details: NodeDetails,
}

/// A node behind which no kubelet of a machine runs pods. It is in no pool, and no claim is about it.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct VirtualNodeFact {
    pub name: String,
    /// Its operating system, if it says.
    pub os: Option<Os>,
    /// By what it is known, such as `kwok, by its label type=kwok`.
    pub by: String,
    /// Its labels that the configuration names.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
}

/// What a node says of itself beyond what placement needs.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct NodeDetails {
    /// Its labels of the domains `kubernetes.io` and `k8s.io`, and the labels that identify its provider or that
    /// the configuration names.
    pub labels: BTreeMap<String, String>,
    /// `status.nodeInfo.architecture`.
    pub arch: String,
    /// `status.nodeInfo.kernelVersion`, whole: on Windows with the patch revision.
    pub kernel: String,
    /// `status.nodeInfo.osImage`.
    pub os_image: String,
    /// `status.nodeInfo.containerRuntimeVersion`, such as `containerd://1.7.20`.
    pub runtime: String,
    /// `status.nodeInfo.kubeletVersion`.
    pub kubelet: String,
    /// `status.nodeInfo.bootID`, which each boot changes; empty if the node does not say.
    pub boot_id: String,
    /// The first 64 taints, `PreferNoSchedule` too: key, value and effect as in the API.
    pub all_taints: Vec<serde_json::Value>,
    /// `spec.unschedulable`.
    pub unschedulable: bool,
    pub control_plane: bool,
    /// `status.capacity`, quantities as written.
    pub capacity: BTreeMap<String, String>,
    /// `status.allocatable`, quantities as written.
    pub allocatable: BTreeMap<String, String>,
    pub conditions: Vec<ConditionFact>,
    /// By how many seconds its clock was ahead of the API server's when its kubelet last said that it is Ready,
    /// negative if behind; `None` if the API server does not say when that arrived, in `metadata.managedFields`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_ahead: Option<i64>,
    pub created: Option<Timestamp>,
    /// `spec.podCIDRs`.
    pub pod_cidrs: Vec<String>,
    /// `status.addresses`, as type and address.
    pub addresses: Vec<(String, String)>,
    /// `status.daemonEndpoints.kubeletEndpoint.Port`.
    pub kubelet_port: Option<u16>,
    /// The names of the handlers of its container runtime, `status.runtimeHandlers`; `None` if it does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handlers: Option<BTreeSet<String>>,
    /// The images it reports, one name of each, on Windows nodes alone; the kubelet caps the list at 50 by
    /// default.
    pub images: Vec<String>,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ConditionFact {
    /// Such as `Ready`.
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    pub since: Option<Timestamp>,
    /// Its reason, and behind it the message of a node that is not Ready.
    pub reason: String,
}

impl NodeFact {
    /// Why it takes no pods: `win-a is cordoned`.
    pub fn unusable_for(&self) -> String {
        if let Some(by) = &self.excluded {
            return format!("{} is excluded by the configuration (`{by}`)", self.name);
        }
        let ready = self.details.condition("Ready");
        let why = match ready.map(|ready| ready.status.as_str()) {
            Some("True") if self.details.unschedulable => "is cordoned".to_owned(),
            Some("True") => {
                let keys = self.taints.iter().filter_map(|taint| taint["key"].as_str());
                let keys: Vec<_> = keys.filter(|key| *key != "os").collect();
                format!("takes no pods, by its taints {}", keys.join(" and "))
            }
            Some(_) | None => "is not Ready".to_owned(),
        };
        format!("{} {why}", self.name)
    }
}

impl NodeDetails {
    pub fn condition(&self, kind: &str) -> Option<&ConditionFact> {
        self.conditions.iter().find(|c| c.kind == kind)
    }
}
