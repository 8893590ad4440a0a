//! What of a fixture, or of what surrounds it, is asked.

use strum::{IntoStaticStr, VariantArray};

use crate::config::{Outside, Target as OutsideTarget};
use crate::fixture::FixtureName;

/// By which of a fixture's addresses and names it is asked.
#[derive(Clone, Copy, Debug, Eq, IntoStaticStr, PartialEq, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Target {
    /// Each pod's own address.
    Pods,
    /// The same of the pods on the node that is observed from.
    PodsOnSameNode,
    /// The same of the pods on other nodes.
    PodsOnOtherNodes,
    /// The same, and the port that Windows' samples serve at, which nothing else is told of.
    #[strum(serialize = "port-80-on-other-nodes")]
    Port80OnOtherNodes,
    /// The Service's virtual address.
    ServiceIp,
    /// The same, where a pod behind it is on the node that is observed from.
    ServiceIpOnSameNode,
    /// The Service's virtual address, so often that each pod behind it answers.
    EveryPodBehindServiceIp,
    /// The Service's name alone.
    ShortName,
    /// Its name and namespace.
    NamespacedName,
    /// Its full name under the cluster's suffix.
    FullName,
    /// The Service's port of every node, or of a sample of many.
    NodePorts,
    /// The same of every node of the pool that is observed.
    NodePortsOfPool,
    /// The same of every node but the one that is observed from.
    NodePortsOfOtherNodes,
    /// The same of the node that is observed from.
    OwnNodePort,
    /// Each pod's own address but that of the one that observes, for whom the pod sees: the one that
    /// observes.
    SourceSeenByPods,
    /// The kubelet's port of every node, or of a sample of many, which is no fixture's.
    Nodes,
    /// What is to be reached outside the cluster by a name.
    OutsideNames,
    /// What is to be reached outside the cluster by an address.
    OutsideAddresses,
    /// The name of the Service without an address, which leads to the pods themselves.
    HeadlessName,
    /// A name of another Service that stands for the Service's full name.
    Alias,
    /// The address or name that a load balancer answers at for the fixture.
    LoadBalancer,
    /// Each pod's own address but that of the one that observes, with a request and an answer that no
    /// single packet holds.
    PodsWithLongPayload,
    /// The address of the pod that observes.
    Itself,
    /// The virtual address of the Service that has the pod that observes alone behind it.
    ItselfByService,
}

crate::text::words!(Target);

impl Target {
    /// The fixtures that have to stand beside the one that is observed.
    pub(crate) fn needs(self) -> &'static [FixtureName] {
        match self {
            // It tells the cluster's suffix
            Self::FullName | Self::HeadlessName => &[FixtureName::LINUX_POD_PROBER],
            Self::Alias => &[FixtureName::LINUX_POD_PROBER, FixtureName::ALIAS],
            Self::LoadBalancer => &[FixtureName::LOAD_BALANCER],
            Self::Pods
            | Self::PodsOnSameNode
            | Self::PodsOnOtherNodes
            | Self::Port80OnOtherNodes
            | Self::ServiceIp
            | Self::ServiceIpOnSameNode
            | Self::EveryPodBehindServiceIp
            | Self::ShortName
            | Self::NamespacedName
            | Self::NodePorts
            | Self::NodePortsOfPool
            | Self::NodePortsOfOtherNodes
            | Self::OwnNodePort
            | Self::SourceSeenByPods
            | Self::Nodes
            | Self::OutsideNames
            | Self::OutsideAddresses
            | Self::PodsWithLongPayload
            | Self::Itself
            | Self::ItselfByService => &[],
        }
    }

    /// Whether it is some fixture's.
    pub(crate) fn is_of_a_fixture(self) -> bool {
        !(matches!(self, Self::Nodes | Self::Itself | Self::ItselfByService) || self.is_outside())
    }

    /// Whether it is reached by some fixture's Service, under an address, a name or a node's port.
    pub(crate) fn is_of_a_service(self) -> bool {
        match self {
            Self::ServiceIp
            | Self::ServiceIpOnSameNode
            | Self::EveryPodBehindServiceIp
            | Self::ShortName
            | Self::NamespacedName
            | Self::FullName
            | Self::HeadlessName
            | Self::NodePorts
            | Self::NodePortsOfPool
            | Self::NodePortsOfOtherNodes
            | Self::OwnNodePort => true,
            Self::Pods
            | Self::PodsOnSameNode
            | Self::PodsOnOtherNodes
            | Self::Port80OnOtherNodes
            | Self::PodsWithLongPayload
            | Self::SourceSeenByPods
            | Self::Nodes
            | Self::Itself
            | Self::ItselfByService
            | Self::Alias
            | Self::LoadBalancer
            | Self::OutsideNames
            | Self::OutsideAddresses => false,
        }
    }

    /// Whether it has addresses of each of the cluster's families, as a load balancer and what lies
    /// outside have not; an alias is a name alone.
    pub(crate) fn has_families(self) -> bool {
        !(matches!(self, Self::Alias | Self::LoadBalancer) || self.is_outside())
    }

    /// Whether it lies outside the cluster.
    pub(crate) fn is_outside(self) -> bool {
        matches!(self, Self::OutsideNames | Self::OutsideAddresses)
    }

    /// What of it is set to be reached outside the cluster.
    pub(crate) fn set(self, outside: &Outside) -> &[OutsideTarget] {
        match self {
            Self::OutsideNames => &outside.names,
            Self::OutsideAddresses => &outside.addresses,
            _ => &[],
        }
    }
}
