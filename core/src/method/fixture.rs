//! What has to stand to be observed: the names of fixtures, and where each stands.

use std::fmt;

use serde::{Deserialize, Serialize};
use strum::{EnumIter, IntoEnumIterator, IntoStaticStr, VariantArray};

use crate::config::Image;
use crate::facts::{NodeOrdinal, PoolName};

/// Something that must stand before a check; closed.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
#[derive(EnumIter, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum FixtureName {
    /// The run's namespaces with their service accounts; every other fixture needs it.
    Namespaces,
    /// The win-webserver Deployment and Service.
    WinWebserver,
    /// The IIS Deployment and Service, with the RuntimeClass its pods go by.
    Iis,
    /// A Deployment that takes long to serve, with the probes of a .NET application.
    SlowStarter,
    /// A Deployment on Nano Server.
    NanoServer,
    /// A container of the win-webserver's image on each node of a pool that is observed from.
    NodeSample,
    /// A server in a pod on Linux.
    LinuxServer,
    /// Pods that no scheduler binds, for what is asked of pods that are there.
    UnboundPods,
    LinuxPodProber,
    WindowsPodProber,
    LinuxNodeProber,
    WindowsNodeProber,
    /// A prober in a pod on one node of a Windows pool; there is one on each that is observed from.
    Ring,
    /// A prober in a pod on one Linux node; there is one on each that is observed from.
    EachLinuxPod,
    /// A prober that is one Linux node, of each that is observed from.
    EachLinuxNode,
    /// A prober that is one node of a Windows pool, of each that is observed from.
    EachWindowsNode,
    /// A Service that stands for the name of win-webserver's.
    Alias,
    /// A Service of type LoadBalancer in front of IIS' pods.
    LoadBalancer,
    /// A Deployment whose pods were scaled, replaced and deleted, and its Service.
    Churn,
    /// A server on Windows that a policy lets nobody reach.
    PolicyDenied,
    /// A server on Windows that a policy lets probers alone reach.
    PolicyAllowed,
    /// Pods that are there to be placed.
    #[serde(untagged)]
    #[strum(transparent)]
    Sched(SchedFixture),
}

impl FixtureName {
    /// The fixture's word.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Each of them.
    pub fn all() -> impl Iterator<Item = Self> {
        let own = Self::iter().filter(|name| !matches!(name, Self::Sched(_)));
        own.chain(SchedFixture::ALL.iter().copied().map(Self::Sched))
    }

    pub fn parse(word: &str) -> Option<Self> {
        Self::all().find(|name| name.as_str() == word)
    }

    /// The fixtures whose Services are made in the second family of a cluster, too.
    pub const IN_SECOND_FAMILY: [Self; 3] =
        [Self::WinWebserver, Self::Churn, Self::WindowsPodProber];

    /// Whether its Services are made in the second family of a cluster, too.
    pub fn is_in_second_family(self) -> bool {
        Self::IN_SECOND_FAMILY.contains(&self)
    }

    /// Whether it is a prober in a Windows pod.
    pub(crate) fn is_pod_prober(self) -> bool {
        matches!(self, Self::WindowsPodProber | Self::Ring)
    }

    /// Whether its pods are on the network of their nodes.
    pub fn is_on_node(self) -> bool {
        matches!(
            self,
            Self::LinuxNodeProber
                | Self::WindowsNodeProber
                | Self::EachLinuxNode
                | Self::EachWindowsNode
        )
    }

    /// Whether it has a pod on each node of its pool that is observed from.
    pub fn is_on_each_node(self) -> bool {
        self == Self::NodeSample
    }

    /// Whether there is one per Windows pool.
    pub fn per_pool(self) -> bool {
        self.spec().0 == FixtureScope::PerPool
    }

    /// The fixture of this name that an assertion about a Windows pool is about.
    pub fn in_pool(self, pool: Option<&PoolName>) -> FixtureKey {
        let pool = match self.spec().0 {
            FixtureScope::PerPool => pool.cloned(),
            FixtureScope::OnLinux => Some(PoolName::linux()),
            FixtureScope::ClusterWide => None,
        };
        FixtureKey {
            name: self,
            pool,
            node: None,
        }
    }

    /// What its pods run; nothing where it has none that do.
    pub fn image(self) -> Option<Image> {
        self.spec().1
    }

    /// Where it stands and what its pods run.
    fn spec(self) -> (FixtureScope, Option<Image>) {
        match self {
            Self::Namespaces | Self::UnboundPods => (FixtureScope::ClusterWide, None),
            Self::Alias | Self::LoadBalancer => (FixtureScope::PerPool, None),
            Self::LinuxServer
            | Self::LinuxPodProber
            | Self::LinuxNodeProber
            | Self::EachLinuxPod
            | Self::EachLinuxNode => (FixtureScope::OnLinux, Some(Image::AgnhostLinux)),
            Self::WinWebserver | Self::SlowStarter | Self::NodeSample => {
                (FixtureScope::PerPool, Some(Image::ServerCore))
            }
            Self::Iis => (FixtureScope::PerPool, Some(Image::Iis)),
            Self::NanoServer => (FixtureScope::PerPool, Some(Image::NanoServer)),
            Self::WindowsNodeProber | Self::EachWindowsNode => {
                (FixtureScope::PerPool, Some(Image::HostProcess))
            }
            Self::WindowsPodProber | Self::Ring => {
                (FixtureScope::PerPool, Some(Image::WindowsProber))
            }
            Self::Sched(own) if own.starts() => (FixtureScope::PerPool, Some(Image::ServerCore)),
            Self::Churn | Self::PolicyDenied | Self::PolicyAllowed | Self::Sched(_) => {
                (FixtureScope::PerPool, Some(Image::AgnhostWindows))
            }
        }
    }
}

/// Where a fixture is ready.
#[derive(Eq, PartialEq)]
enum FixtureScope {
    PerPool,
    OnLinux,
    /// In no pool.
    ClusterWide,
}

#[derive(Clone, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct FixtureKey {
    pub name: FixtureName,
    /// Where, for those that stand once per pool.
    pub pool: Option<PoolName>,
    /// On which of its nodes, for those that stand once per node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeOrdinal>,
}

impl fmt::Display for FixtureKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name.as_str())?;
        match &self.pool {
            Some(pool) => write!(f, " in {pool}"),
            None => Ok(()),
        }?;
        match self.node {
            Some(node) => write!(f, ", node {node}"),
            None => Ok(()),
        }
    }
}

impl FixtureKey {
    /// The fixture of its name on a node of its pool, for those of which there is one.
    #[must_use]
    pub fn on(self, node: Option<NodeOrdinal>) -> Self {
        let node = node.filter(|_| self.name == FixtureName::Ring);
        Self { node, ..self }
    }

    /// The name of the Deployment and of the Service of a sample: [`as_str`](FixtureName::as_str)
    /// with the pool.
    pub fn object_name(&self) -> String {
        match &self.pool {
            Some(pool) => format!("{}-{pool}", self.name.as_str()),
            None => self.name.as_str().to_owned(),
        }
    }
}

/// What must have happened to a fixture before an assertion.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Need {
    /// It stands.
    Ready,
    /// It stands or has failed: which of them is what the assertion asks.
    Settled,
}

/// A fixture of pods that are there to be placed, one per Windows pool; closed. Its manifest is
/// `manifests/sched/<word without sched->.yaml`.
#[derive(
    Clone,
    Copy,
    Debug,
    Deserialize,
    Eq,
    Hash,
    Ord,
    PartialEq,
    PartialOrd,
    Serialize,
    Default,
    IntoStaticStr,
    VariantArray,
)]
#[strum(prefix = "sched-", serialize_all = "kebab-case")]
pub enum SchedFixture {
    /// Pods that a selector alone leads to the pool; what a walk over the names of fixtures begins with.
    #[default]
    #[serde(rename = "sched-selected")]
    Selected,
    /// A pod that selects Windows and tolerates the pool's taints.
    #[serde(rename = "sched-tolerant")]
    Tolerant,
    /// Pods that tolerate nothing, aimed at the pool.
    #[serde(rename = "sched-intolerant")]
    Intolerant,
    /// A pod that says nothing but its `RuntimeClass`.
    #[serde(rename = "sched-runtime-class")]
    RuntimeClass,
    /// A pod that says its operating system and selects nothing.
    #[serde(rename = "sched-os-alone")]
    OsAlone,
    /// A pod with a Windows image that selects nothing.
    #[serde(rename = "sched-unselected")]
    Unselected,
    /// Pods with an image that the pool's build runs, and with one that it does not.
    #[serde(rename = "sched-builds")]
    Builds,
    /// A pod with a container of each operating system.
    #[serde(rename = "sched-mixed")]
    Mixed,
    /// A small pod, and pods that ask for all of the node it is on.
    #[serde(rename = "sched-requests")]
    Requests,
    /// A pod, and one that preempts it.
    #[serde(rename = "sched-preemption")]
    Preemption,
}

crate::text::words!(SchedFixture);

impl SchedFixture {
    /// Whether one of its pods may land on Linux, so that there has to be a Linux node.
    pub fn needs_linux(self) -> bool {
        match self {
            Self::Selected
            | Self::RuntimeClass
            | Self::OsAlone
            | Self::Unselected
            | Self::Mixed => true,
            Self::Tolerant
            | Self::Intolerant
            | Self::Builds
            | Self::Requests
            | Self::Preemption => false,
        }
    }

    /// Whether its pods are observed for whether they start, not for their place alone.
    pub fn starts(self) -> bool {
        match self {
            Self::Unselected | Self::Builds | Self::Mixed => true,
            Self::Selected
            | Self::Tolerant
            | Self::Intolerant
            | Self::RuntimeClass
            | Self::OsAlone
            | Self::Requests
            | Self::Preemption => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_read_as_it_is_said() {
        for name in FixtureName::all() {
            assert_eq!(FixtureName::parse(name.as_str()), Some(name));
        }
        assert_eq!(FixtureName::parse("none"), None);
        assert_eq!(SchedFixture::Mixed.as_str(), "sched-mixed");
        let image = FixtureName::Sched(SchedFixture::Requests).spec().1;
        assert_eq!(image, Some(Image::AgnhostWindows));
    }

    #[test]
    fn the_ring_alone_is_on_a_node() {
        for name in FixtureName::all() {
            let key = name.in_pool(None).on(Some(2));
            let node = (name == FixtureName::Ring).then_some(2);
            assert_eq!((key.name, key.node), (name, node));
            assert_eq!(key.on(None), name.in_pool(None));
        }
    }
}
