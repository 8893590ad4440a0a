//! Vantage points: the places to observe from.

use std::fmt;

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

use crate::facts::{NodeOrdinal, Os, PoolName};
use crate::fixture::{FixtureKey, FixtureName};

/// A kind of place to observe from.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
#[derive(IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum SourceKind {
    /// A pod on a Linux node.
    LinuxPod,
    /// A pod on a Windows node.
    WindowsPod,
    /// A Linux node itself, through a pod on its network.
    LinuxNode,
    /// A Windows node itself, through a `HostProcess` pod.
    WindowsNode,
    /// Outside the cluster: the machine that observes.
    Outside,
}

crate::text::words!(SourceKind);

impl SourceKind {
    /// Whether it is a pod with its own address.
    pub fn is_pod(self) -> bool {
        matches!(self, Self::LinuxPod | Self::WindowsPod)
    }

    /// The system whose shell runs what one program alone cannot do there: pods have one; the command of a
    /// `HostProcess` exec already passes through another shell.
    pub fn shell(self) -> Option<Os> {
        match self {
            Self::LinuxPod | Self::LinuxNode => Some(Os::Linux),
            Self::WindowsPod => Some(Os::Windows),
            Self::WindowsNode | Self::Outside => None,
        }
    }

    /// The pool of such a place, where `windows` is the check's Windows pool; `None` outside.
    pub fn pool(self, windows: Option<&PoolName>) -> Option<PoolName> {
        match (self, windows) {
            (Self::Outside, _) => None,
            (Self::WindowsPod | Self::WindowsNode, Some(pool)) => Some(pool.clone()),
            (Self::LinuxPod | Self::LinuxNode | Self::WindowsPod | Self::WindowsNode, _) => {
                Some(PoolName::linux())
            }
        }
    }

    /// The prober at such a place; `None` outside.
    pub fn prober(self) -> Option<FixtureName> {
        match self {
            Self::LinuxPod => Some(FixtureName::LINUX_POD_PROBER),
            Self::WindowsPod => Some(FixtureName::WINDOWS_POD_PROBER),
            Self::LinuxNode => Some(FixtureName::LINUX_NODE_PROBER),
            Self::WindowsNode => Some(FixtureName::WINDOWS_NODE_PROBER),
            Self::Outside => None,
        }
    }

    /// Whether such a place has a prober on each node that is a vantage point.
    pub fn has_prober_per_node(self) -> bool {
        self.prober_on_node().is_some()
    }

    /// The prober at such a place on one node, where each node is a vantage point.
    fn prober_on_node(self) -> Option<FixtureName> {
        match self {
            Self::LinuxPod => Some(FixtureName::EACH_LINUX_POD),
            Self::WindowsPod => Some(FixtureName::RING),
            Self::LinuxNode => Some(FixtureName::EACH_LINUX_NODE),
            Self::WindowsNode => Some(FixtureName::EACH_WINDOWS_NODE),
            Self::Outside => None,
        }
    }
}

/// A vantage point.
#[derive(Clone, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct VantageKey {
    pub kind: SourceKind,
    /// Its pool; `None` outside.
    pub pool: Option<PoolName>,
    /// Its node in that pool, where each node is a vantage point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeOrdinal>,
}

impl VantageKey {
    /// The prober at this vantage point; `None` outside.
    pub fn prober(&self) -> Option<FixtureKey> {
        let name = match self.node {
            Some(_) => self.kind.prober_on_node(),
            None => self.kind.prober(),
        };
        Some(FixtureKey {
            name: name?,
            pool: self.pool.clone(),
            node: self.node,
        })
    }
}

impl fmt::Display for VantageKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.pool {
            Some(pool) => write!(f, "{} in {pool}", self.kind.as_str()),
            None => f.write_str(self.kind.as_str()),
        }?;
        match self.node {
            Some(node) => write!(f, ", node {node}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_with_addresses_of_their_own_are_told_from_those_on_the_nodes() {
        let pods = SourceKind::ALL.iter().copied().filter(|kind| kind.is_pod());
        assert!(pods.eq([SourceKind::LinuxPod, SourceKind::WindowsPod]));
        assert!(!SourceKind::Outside.has_prober_per_node());
    }
}
