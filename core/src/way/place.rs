//! Where one looks from and what stands there to be looked at.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::trouble::{Trouble, TroubleKind};
use crate::facts::{PoolName, WindowsBuild};

/// A kind of place to look from.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SourceKind {
    /// A pod on a Linux node.
    LinuxPod,
    /// A pod on a Windows node.
    WindowsPod,
    /// A Windows node itself, through a `HostProcess` pod.
    WindowsNode,
}

impl SourceKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::LinuxPod, Self::WindowsPod, Self::WindowsNode];

    /// The kind's word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::LinuxPod => "linux-pod",
            Self::WindowsPod => "windows-pod",
            Self::WindowsNode => "windows-node",
        }
    }

    /// The kind with this word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }

    /// The prober that is such a place.
    pub fn prober(self) -> FixtureName {
        match self {
            Self::LinuxPod => FixtureName::LinuxPodProber,
            Self::WindowsPod => FixtureName::WindowsPodProber,
            Self::WindowsNode => FixtureName::WindowsNodeProber,
        }
    }
}

/// A place to look from.
#[derive(Clone, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct VantageKey {
    /// What kind of place.
    pub kind: SourceKind,
    /// The pool it is in.
    pub pool: PoolName,
}

impl VantageKey {
    /// The fixture that is this vantage.
    pub fn prober(&self) -> FixtureKey {
        FixtureKey {
            name: self.kind.prober(),
            pool: Some(self.pool.clone()),
        }
    }
}

impl fmt::Display for VantageKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {}", self.kind.as_str(), self.pool)
    }
}

/// Something that must stand before a check; closed.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FixtureName {
    /// The run's namespaces with their service accounts; every other fixture needs it.
    Namespaces,
    /// The win-webserver Deployment and Service.
    WinWebserver,
    /// Pods that no scheduler binds, for what is asked of pods that are there.
    UnboundPods,
    /// A prober in a pod on Linux.
    LinuxPodProber,
    /// A prober in a pod on Windows.
    WindowsPodProber,
    /// A prober that is a Windows node.
    WindowsNodeProber,
}

impl FixtureName {
    /// Every fixture.
    pub const ALL: [Self; 6] = [
        Self::Namespaces,
        Self::WinWebserver,
        Self::UnboundPods,
        Self::LinuxPodProber,
        Self::WindowsPodProber,
        Self::WindowsNodeProber,
    ];

    /// The fixture's word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Namespaces => "namespaces",
            Self::WinWebserver => "win-webserver",
            Self::UnboundPods => "unbound-pods",
            Self::LinuxPodProber => "linux-pod-prober",
            Self::WindowsPodProber => "windows-pod-prober",
            Self::WindowsNodeProber => "windows-node-prober",
        }
    }

    /// The fixture with this word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|name| name.as_str() == word)
    }

    /// Whether there is one per pool.
    pub fn per_pool(self) -> bool {
        !matches!(self, Self::Namespaces | Self::UnboundPods)
    }
}

/// One fixture of a run.
#[derive(Clone, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct FixtureKey {
    /// Which.
    pub name: FixtureName,
    /// Where, for those that stand once per pool.
    pub pool: Option<PoolName>,
}

impl fmt::Display for FixtureKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name.as_str())?;
        match &self.pool {
            Some(pool) => write!(f, " in {pool}"),
            None => Ok(()),
        }
    }
}

/// What must have happened to a fixture before a look.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Need {
    /// It stands.
    Stands,
    /// It stands or has failed: the look is at that very question.
    Settled,
}

/// A fixture that stands.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct StandingFixture {
    /// The Service's virtual address and port, where it has one.
    pub service: Option<(IpAddr, u16)>,
}

/// What stands of a run, for binding targets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Standing {
    /// The run's id.
    pub run: String,
    /// The namespace of samples and pod probers, at `PodSecurity` level baseline.
    pub namespace: String,
    /// The namespace of `HostProcess` probers and dry runs, at level privileged.
    pub host_namespace: String,
    /// The fixtures that stand.
    pub fixtures: BTreeMap<FixtureKey, StandingFixture>,
}

/// Where a look is bound to: what stands, and the check's pool.
#[derive(Clone, Copy, Debug)]
pub struct Bound<'a> {
    /// What stands.
    pub standing: &'a Standing,
    /// The pool of the check's point.
    pub pool: Option<&'a PoolName>,
    /// That pool's build.
    pub build: Option<WindowsBuild>,
    /// The image the pool's sample should run.
    pub image: Option<&'a str>,
}

impl Bound<'_> {
    /// A fixture at the check's pool.
    pub fn fixture(&self, name: FixtureName) -> Result<&StandingFixture, Trouble> {
        let key = FixtureKey {
            name,
            pool: self.pool.filter(|_| name.per_pool()).cloned(),
        };
        self.standing.fixtures.get(&key).ok_or_else(|| {
            Trouble::new(TroubleKind::FixtureFailed, format!("{key} does not stand"))
        })
    }
}
