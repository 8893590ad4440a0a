//! The topics of facts; a closed set.

use strum::{EnumString, IntoStaticStr, VariantNames};

use std::fmt;

/// What a query asks of the facts. A topic about nodes covers those of the point's pool, or all where the
/// case has no pool.
#[derive(Clone, Debug, EnumString, Eq, IntoStaticStr, PartialEq, VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum Topic {
    /// The nodes' well-known labels beside `status.nodeInfo`.
    Labels,
    /// The operating systems of the nodes with the label of the control plane.
    ControlPlane,
    /// How many nodes of each operating system are Ready and schedulable.
    UsableNodes,
    /// Windows builds beside the server's version.
    Builds,
    /// Container runtimes beside the kubelets' versions.
    Runtimes,
    /// The kubelets' versions beside the server's.
    Kubelets,
    Taints,
    /// Capacity beside what is allocatable.
    Resources,
    /// The condition `MemoryPressure` beside the kubelets' versions.
    MemoryPressure,
    /// Pods that run a node-problem-detector.
    ProblemDetectors,
    /// Images that the nodes list, and how long their pulls took; only images whose path holds one of these,
    /// such as `windows/servercore`.
    Images(Vec<String>),
    /// The time from the creation of a Node until it is Ready.
    Provisioning,
    /// The condition `Ready`.
    Readiness,
    /// The clocks of nodes beside the API server's.
    Clocks,
    /// Kernel versions with their patch revision.
    Kernels,
    /// Patch revisions beside the network plugin.
    Updates,
    /// CSI drivers that nodes register.
    CsiDrivers,
    /// All drivers of volumes: of CSI those that nodes register, of the others those that a StorageClass names.
    VolumeDrivers,
    /// The network plugin.
    Cni,
    /// Flannel's VXLAN.
    Vxlan,
    KubeProxy,
    /// Where the cluster's DNS runs.
    Dns,
    /// Families of the addresses of pods on Windows nodes.
    IpFamilies,
    /// Pods on Windows nodes that do not say their operating system.
    PodsWithoutOs,
    /// Pods on Windows nodes without requests, or with other limits than requests.
    PodsWithoutRequests,
}

impl Topic {
    pub const WORDS: &'static [&'static str] = Self::VARIANTS;

    /// The topic of this word; `images` has no names yet.
    pub fn parse(word: &str) -> Option<Self> {
        word.parse().ok()
    }

    /// Whether the run itself changes it, as its pods pull images; then only the facts of the start count.
    pub fn is_changed_by_a_run(&self) -> bool {
        matches!(self, Self::Images(_))
    }

    /// The topic's word.
    pub fn as_str(&self) -> &'static str {
        self.into()
    }

    /// The expectations that it allows besides `told`, as a suite spells them.
    pub fn expectations(&self) -> &'static [&'static str] {
        match self {
            Self::Labels => &["labels-agree"],
            Self::ControlPlane | Self::Dns => &["on"],
            Self::UsableNodes => &["at-least"],
            Self::Builds => &["supported"],
            Self::Runtimes => &["runtime"],
            Self::Kubelets => &["skew"],
            Self::Taints => &["tainted"],
            Self::Resources => &["reserved", "lowered"],
            Self::Images(_) => &["present", "runs-on-build"],
            Self::Readiness => &["ready"],
            Self::Updates => &["not-broken-by"],
            Self::Vxlan => &["vxlan"],
            Self::IpFamilies => &["family"],
            Self::CsiDrivers | Self::PodsWithoutOs | Self::PodsWithoutRequests => &["none"],
            Self::MemoryPressure
            | Self::ProblemDetectors
            | Self::Provisioning
            | Self::Clocks
            | Self::VolumeDrivers
            | Self::Kernels
            | Self::Cni
            | Self::KubeProxy => &[],
        }
    }

    /// The facts that it depends on, as the record spells their fields.
    pub fn facts(&self) -> &'static [&'static str] {
        match self {
            Self::Labels
            | Self::ControlPlane
            | Self::UsableNodes
            | Self::Runtimes
            | Self::Taints
            | Self::Resources
            | Self::MemoryPressure
            | Self::Images(_)
            | Self::Provisioning
            | Self::Clocks
            | Self::Kernels => &["nodes"],
            Self::Readiness => &["nodes", "silent-nodes"],
            Self::Builds | Self::Kubelets => &["nodes", "server"],
            Self::ProblemDetectors | Self::IpFamilies => &["nodes", "workloads"],
            Self::Dns => &["nodes", "dns"],
            Self::Updates => &["nodes", "cni"],
            Self::CsiDrivers => &["nodes", "csi-nodes"],
            Self::VolumeDrivers => &["nodes", "csi-nodes", "storage-classes"],
            Self::Cni | Self::Vxlan => &["cni"],
            Self::KubeProxy => &["kube-proxy"],
            Self::PodsWithoutOs | Self::PodsWithoutRequests => &["workloads"],
        }
    }
}

/// The topic, in words.
impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Labels => "the labels of nodes beside what their kubelets report",
            Self::ControlPlane => "what the control-plane nodes run",
            Self::UsableNodes => "how many nodes are Ready and schedulable",
            Self::Builds => "the builds of nodes beside the API server's version",
            Self::Runtimes => "the container runtimes of nodes",
            Self::Kubelets => "the kubelets' versions beside the API server's",
            Self::Taints => "the taints of nodes",
            Self::Resources => "capacity and allocatable of nodes",
            Self::MemoryPressure => "the condition MemoryPressure of nodes",
            Self::ProblemDetectors => "where a node-problem-detector runs",
            Self::Images(names) => {
                return write!(f, "images of {} that nodes list", names.join(", "));
            }
            Self::Provisioning => "how long nodes took to become Ready",
            Self::Readiness => "the condition Ready of nodes",
            Self::Clocks => "the clocks of nodes beside the API server's",
            Self::Kernels => "the kernel versions of nodes",
            Self::Updates => "the kernel versions of nodes beside the network plugin",
            Self::CsiDrivers => "the CSI drivers that nodes register",
            Self::VolumeDrivers => "the drivers of volumes",
            Self::Cni => "the network plugin",
            Self::Vxlan => "Flannel's VXLAN",
            Self::KubeProxy => "kube-proxy's modes",
            Self::Dns => "the endpoints of the cluster's DNS",
            Self::IpFamilies => "the addresses of pods on Windows nodes",
            Self::PodsWithoutOs => "pods on Windows nodes that do not say so",
            Self::PodsWithoutRequests => "requests of pods on Windows nodes",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_read_back() {
        for word in Topic::WORDS {
            assert_eq!(Topic::parse(word).map(|topic| topic.as_str()), Some(*word));
        }
        assert_eq!(Topic::parse("weather"), None);
    }

    #[test]
    fn only_images_are_changed_by_a_run() {
        let topics = Topic::WORDS.iter().filter_map(|word| Topic::parse(word));
        let changed: Vec<_> = topics.filter(Topic::is_changed_by_a_run).collect();
        let images = |topic: &Topic| matches!(topic, Topic::Images(_));
        assert!(
            !changed.is_empty() && changed.iter().all(images),
            "{changed:?}"
        );
    }

    #[test]
    fn each_topic_is_asked_for_in_words_of_its_own() {
        let topics = Topic::WORDS.iter().filter_map(|word| Topic::parse(word));
        let words: std::collections::BTreeSet<_> = topics.map(|topic| topic.to_string()).collect();
        assert_eq!(words.len(), Topic::WORDS.len());
        let images = Topic::Images(vec!["pause".to_owned(), "iis".to_owned()]);
        assert_eq!(images.to_string(), "images of pause, iis that nodes list");
    }
}
