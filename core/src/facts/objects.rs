//! Objects of the cluster that claims depend on.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct RuntimeClassFact {
    pub name: String,
    pub handler: String,
    /// `scheduling.nodeSelector`.
    pub node_selector: BTreeMap<String, String>,
    /// `scheduling.tolerations`, as in the API.
    pub tolerations: Vec<serde_json::Value>,
    /// `overhead.podFixed`: quantities by resource.
    #[serde(default)]
    pub overhead: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct StorageClassFact {
    pub name: String,
    pub provisioner: String,
    pub default: bool,
    /// Whether its volumes stay when their claims go (`reclaimPolicy: Retain`).
    #[serde(default)]
    pub retains: bool,
    /// The file system of its volumes, if it names one (`csi.storage.k8s.io/fstype`).
    #[serde(default)]
    pub file_system: Option<String>,
    /// Its parameters that say whether several nodes of Windows can mount its volumes, by their names in lower case.
    #[serde(default)]
    pub sharing: BTreeMap<String, String>,
    /// Whether its volumes may be made larger (`allowVolumeExpansion`).
    #[serde(default)]
    pub expands: bool,
}

/// A class of snapshots of volumes.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct SnapshotClassFact {
    pub name: String,
    pub driver: String,
    /// Whether its snapshots stay when their objects go (`deletionPolicy: Retain`).
    #[serde(default)]
    pub retains: bool,
}

/// The drivers that make shares of SMB for nodes of Windows (kubernetes-csi/csi-driver-smb and
/// kubernetes-sigs/azurefile-csi-driver, `README.md`).
pub(crate) const SHARING: [&str; 2] = ["file.csi.azure.com", SMB];
const SMB: &str = "smb.csi.k8s.io";

/// With this parameter csi-driver-smb makes a folder for each volume, and removes it with the volume
/// (`pkg/smb/controllerserver.go`).
const SECRET: &str = "csi.storage.k8s.io/provisioner-secret-name";

impl StorageClassFact {
    /// The parameters, in lower case, that [`Self::sharing`] has.
    pub const SHARING: [&str; 5] = ["protocol", "fstype", "subdir", "ondelete", SECRET];

    /// The class for snapshots of its volumes: of those of its driver whose snapshots go with their objects, the first
    /// by name.
    pub fn snapshot_class<'c>(
        &self,
        classes: &'c [SnapshotClassFact],
    ) -> Option<&'c SnapshotClassFact> {
        let own = classes
            .iter()
            .filter(|class| class.driver == self.provisioner && !class.retains);
        own.min_by_key(|class| &class.name)
    }

    /// Whether each of its volumes is a share of SMB, or a folder there, which goes with its claim.
    pub(crate) fn makes_shares(&self) -> bool {
        let has = |name: &str| self.sharing.get(name).map(String::as_str);
        let goes = has("ondelete").is_none_or(|how| how == "delete") && !self.retains;
        let is_own = self.provisioner != SMB || has(SECRET).is_some() && has("subdir").is_none();
        // NFS no node of Windows mounts, and a disk on a share has a file system
        let is_plain = has("protocol").is_none_or(|protocol| protocol == "smb")
            && has("fstype").is_none_or(|kind| ["", "smb", "cifs"].contains(&kind));
        SHARING.contains(&&*self.provisioner) && goes && is_own && is_plain
    }
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct CsiNodeFact {
    pub node: String,
    pub drivers: Vec<String>,
}

/// Something that sees pods at admission, and may change or refuse them.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct WebhookFact {
    /// The kind of object that says so, such as `MutatingWebhookConfiguration` or
    /// `MutatingAdmissionPolicy`.
    pub kind: String,
    /// That object's name.
    pub configuration: String,
    /// The webhook's name in it; empty for policies.
    pub name: String,
    pub mutates: bool,
    /// Which of the resources that create pods it matches, such as `pods` or `deployments`.
    pub resources: Vec<String>,
    pub failure_policy: String,
    /// Whether a dry run reaches it: `sideEffects` is `None` or `NoneOnDryRun`.
    pub dry_run: bool,
}

#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct LoadBalancerFact {
    /// Services of type LoadBalancer that have an address.
    pub with_address: u64,
    /// Services of type LoadBalancer that wait for one.
    pub pending: u64,
    /// Load balancers recognised by their own objects, such as `metallb`.
    pub products: Vec<String>,
    /// What could not be read, and why: if there is anything, there may be more products.
    #[serde(default)]
    pub unread: Vec<String>,
}

/// Signs of gMSA support.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct GmsaFact {
    /// Whether `GMSACredentialSpec` is served.
    pub crd: bool,
    /// Names of webhook configurations that are gMSA's.
    pub webhooks: Vec<String>,
    /// Whether one of them sees the pods of whatever namespace a run makes.
    #[serde(default)]
    pub everywhere: bool,
}

/// The running workloads, as far as claims are about them.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct WorkloadsFact {
    /// Unfinished pods on all nodes, without the pods of this tool's runs.
    pub pods: u64,
    /// Of those, pods on Windows nodes.
    pub windows_pods: u64,
    /// Pods on Windows nodes that set neither `spec.os.name` nor an OS selector, or only one, as
    /// `namespace/name`; at most [`SHOWN`](Self::SHOWN).
    pub without_os: Vec<String>,
    pub without_os_count: u64,
    /// Pods on Windows nodes with a container without requests, or with requests that differ from
    /// its limits, as `namespace/name`; at most [`SHOWN`](Self::SHOWN).
    pub without_requests: Vec<String>,
    pub without_requests_count: u64,
    /// Families of the addresses that pods on Windows nodes have, as `ipv4`, `ipv6` or `ipv4,ipv6`, with how
    /// many pods have them; pods on the host's network do not count.
    pub windows_families: BTreeMap<String, u64>,
    /// By node, what those pods take of it: how many they are, and what they request of `cpu`, `memory`
    /// and [`ADDRESS`](Self::ADDRESS), as quantities.
    #[serde(default)]
    pub taken: BTreeMap<String, BTreeMap<String, String>>,
    /// One pod of a node-problem-detector for each Windows node that has one, with the node's name.
    pub problem_detectors: Vec<(String, String)>,
}

impl WorkloadsFact {
    /// How many names each list keeps.
    pub const SHOWN: usize = 20;
    /// The resource of the addresses for pods on Windows nodes of EKS (amazon-vpc-resource-controller-k8s,
    /// pkg/config/type.go).
    pub const ADDRESS: &str = "vpc.amazonaws.com/PrivateIPv4Address";
}
