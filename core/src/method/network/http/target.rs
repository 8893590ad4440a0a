//! The targets of queries: addresses and names of a fixture, or of what surrounds it.

use serde_json::Value;
use strum::{IntoStaticStr, VariantArray};

use crate::config::{Outside, Target as OutsideTarget};
use crate::fixture::FixtureName;

/// The kind of address or name by which a query reaches a fixture.
#[derive(Clone, Copy, Debug, Eq, IntoStaticStr, PartialEq, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Target {
    /// Each pod's own address.
    Pods,
    /// The same for pods on the node of the vantage point.
    PodsOnSameNode,
    /// The same for pods on other nodes.
    PodsOnOtherNodes,
    /// The same, and once more at port 80, where Windows' samples serve; only port 80 is under test.
    #[strum(serialize = "port-80-on-other-nodes")]
    Port80OnOtherNodes,
    /// Each pod's own address, at the port to which the Service leads.
    PodsBehindService,
    /// The Service's virtual address.
    ServiceIp,
    /// The same, where all pods behind it are on the node of the vantage point.
    ServiceIpOnSameNode,
    /// The same at each port of the Service.
    EveryServicePort,
    /// The virtual address of its other Service.
    OtherServiceIp,
    /// The Service's virtual address, often enough that each pod behind it answers.
    EveryPodBehindServiceIp,
    /// The Service's virtual address, often enough to see whether one pod alone answers.
    OnePodBehindServiceIp,
    /// The Service's name alone.
    ShortName,
    /// Its name and namespace.
    NamespacedName,
    /// Its full name under the cluster's suffix.
    FullName,
    /// The Service's port on every Linux node, and on every Windows node with a pod of the Service; on a sample
    /// of many.
    NodePorts,
    /// The same on Windows nodes with other pods of the run.
    NodePortsWithoutBackend,
    /// The same on every node of the observed pool.
    NodePortsOfPool,
    /// The same on every node except the vantage point's.
    NodePortsOfOtherNodes,
    /// The same on the node of the vantage point, where a pod of the Service is on it.
    OwnNodePort,
    /// Each pod's own address except the prober's, to see the source address that the pod sees, which should
    /// be the prober's.
    SourceSeenByPods,
    /// The kubelet's port on every node, or on a sample of many; it belongs to no fixture.
    Nodes,
    /// The same on every node except the vantage point's.
    OtherNodes,
    /// The same on the node of the vantage point.
    OwnNode,
    /// The targets outside the cluster that have a name.
    OutsideNames,
    /// The targets outside the cluster that have an address.
    OutsideAddresses,
    /// The address at which clouds serve a machine's metadata.
    Metadata,
    /// The name of the Service without an address, which leads to the pods themselves.
    HeadlessName,
    /// The name of another Service that is an alias of the Service's full name.
    Alias,
    /// The address or name at which a load balancer answers for the fixture.
    LoadBalancer,
    /// Each pod's own address except the prober's, with a request and an answer that are too long for one
    /// packet.
    PodsWithLongPayload,
    /// The prober's own address.
    Itself,
    /// The virtual address of the Service whose only pod is the prober.
    ItselfByService,
}

crate::text::words!(Target);

impl Target {
    /// The fixtures that must be ready beside the observed one.
    pub(crate) fn needs(self) -> &'static [FixtureName] {
        match self {
            // The prober reports the cluster's DNS suffix
            Self::FullName | Self::HeadlessName => &[FixtureName::LINUX_POD_PROBER],
            Self::Alias => &[FixtureName::LINUX_POD_PROBER, FixtureName::ALIAS],
            Self::LoadBalancer => &[FixtureName::LOAD_BALANCER],
            _ => &[],
        }
    }

    /// Whether it belongs to a fixture.
    pub(crate) fn is_of_a_fixture(self) -> bool {
        match self {
            Self::Nodes
            | Self::OtherNodes
            | Self::OwnNode
            | Self::Metadata
            | Self::Itself
            | Self::ItselfByService => false,
            other => !other.is_outside(),
        }
    }

    /// Whether it leads to a fixture's Service, by an address, a name or a node's port.
    pub(crate) fn is_of_a_service(self) -> bool {
        match self {
            Self::ServiceIp
            | Self::ServiceIpOnSameNode
            | Self::EveryServicePort
            | Self::OtherServiceIp
            | Self::EveryPodBehindServiceIp
            | Self::OnePodBehindServiceIp
            | Self::ShortName
            | Self::NamespacedName
            | Self::FullName
            | Self::HeadlessName
            | Self::NodePorts
            | Self::NodePortsWithoutBackend
            | Self::NodePortsOfPool
            | Self::NodePortsOfOtherNodes
            | Self::OwnNodePort => true,
            Self::Pods
            | Self::PodsOnSameNode
            | Self::PodsOnOtherNodes
            | Self::Port80OnOtherNodes
            | Self::PodsBehindService
            | Self::PodsWithLongPayload
            | Self::SourceSeenByPods
            | Self::Nodes
            | Self::OtherNodes
            | Self::OwnNode
            | Self::Itself
            | Self::ItselfByService
            | Self::Alias
            | Self::LoadBalancer
            | Self::Metadata
            | Self::OutsideNames
            | Self::OutsideAddresses => false,
        }
    }

    /// Whether a fixture has the Service that it takes, if it takes one.
    pub(crate) fn is_served_by(self, name: FixtureName) -> bool {
        let is_headless = |spec: &Value| spec["clusterIP"] == "None";
        match self {
            Self::OtherServiceIp => name.services(|spec| !is_headless(spec)) > 1,
            Self::LoadBalancer => FixtureName::LOAD_BALANCER.leads_to() == Some(name),
            Self::Alias => name == FixtureName::WIN_WEBSERVER,
            Self::HeadlessName => name.services(is_headless) > 0,
            Self::NodePorts
            | Self::NodePortsWithoutBackend
            | Self::NodePortsOfPool
            | Self::NodePortsOfOtherNodes
            | Self::OwnNodePort => name.services(|spec| spec["type"] == "NodePort") > 0,
            _ if self.is_of_a_service() || self == Self::PodsBehindService => {
                name.services(|spec| !is_headless(spec)) > 0
            }
            _ => true,
        }
    }

    /// Whether it has addresses of each of the cluster's families. A load balancer and targets outside have
    /// not, and an alias has only a name.
    pub(crate) fn has_families(self) -> bool {
        !(matches!(self, Self::Alias | Self::LoadBalancer | Self::Metadata) || self.is_outside())
    }

    /// Whether it lies outside the cluster.
    pub(crate) fn is_outside(self) -> bool {
        matches!(self, Self::OutsideNames | Self::OutsideAddresses)
    }

    /// The targets outside the cluster that the configuration sets for it.
    pub(crate) fn set(self, outside: &Outside) -> &[OutsideTarget] {
        match self {
            Self::OutsideNames => &outside.names,
            Self::OutsideAddresses => &outside.addresses,
            _ => &[],
        }
    }
}
