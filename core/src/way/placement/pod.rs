//! The pods whose placing is looked at, and the fixtures they stand in.

use serde::{Deserialize, Serialize};

/// A fixture of pods that are there to be placed, one per Windows pool; closed. Its manifest is
/// `manifests/sched/<word without sched->.yaml`.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub enum SchedFixture {
    /// Pods that a selector alone leads to the pool.
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

impl SchedFixture {
    /// The fixture's word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Selected => "sched-selected",
            Self::Tolerant => "sched-tolerant",
            Self::Intolerant => "sched-intolerant",
            Self::RuntimeClass => "sched-runtime-class",
            Self::OsAlone => "sched-os-alone",
            Self::Unselected => "sched-unselected",
            Self::Builds => "sched-builds",
            Self::Mixed => "sched-mixed",
            Self::Requests => "sched-requests",
            Self::Preemption => "sched-preemption",
        }
    }

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

    /// Whether its pods are looked at for whether they start, not for their place alone.
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

/// A pod that is there to be placed; closed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PlacedPod {
    /// Selects `kubernetes.io/os: windows`; may go to the pool and to Linux.
    ByOs,
    /// Selects the pool's `node.kubernetes.io/windows-build`; may go anywhere.
    ByBuild,
    /// Selects Windows and tolerates the pool's taints.
    Tolerant,
    /// Selects Windows and tolerates nothing.
    Selecting,
    /// Selects and tolerates nothing; aimed at the pool by the names of its nodes.
    Plain,
    /// Its `RuntimeClass` selects and tolerates for it; may go to the pool and to Linux.
    ByRuntimeClass,
    /// Says `spec.os` windows; aimed at Linux.
    OsAlone,
    /// Has a Windows image; aimed at Linux.
    Unselected,
    /// Has an image that the pool's build runs; aimed at the pool.
    Fit,
    /// Has an image that the pool's build does not run; aimed at the pool.
    Unfit,
    /// Has a Linux and a Windows container; aimed at Linux.
    Mixed,
    /// Asks for next to nothing; aimed at the pool's first node.
    Small,
    /// Asks for all CPU of the node that the small one is on.
    AllCpu,
    /// Asks for all memory of that node.
    AllMemory,
}

impl PlacedPod {
    /// Every pod.
    pub const ALL: [Self; 14] = [
        Self::ByOs,
        Self::ByBuild,
        Self::Tolerant,
        Self::Selecting,
        Self::Plain,
        Self::ByRuntimeClass,
        Self::OsAlone,
        Self::Unselected,
        Self::Fit,
        Self::Unfit,
        Self::Mixed,
        Self::Small,
        Self::AllCpu,
        Self::AllMemory,
    ];

    /// The pod's name in its manifest.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ByOs => "by-os",
            Self::ByBuild => "by-build",
            Self::Tolerant => "tolerant",
            Self::Selecting => "selecting",
            Self::Plain => "plain",
            Self::ByRuntimeClass => "by-runtime-class",
            Self::OsAlone => "os-alone",
            Self::Unselected => "unselected",
            Self::Fit => "fit",
            Self::Unfit => "unfit",
            Self::Mixed => "mixed",
            Self::Small => "small",
            Self::AllCpu => "all-cpu",
            Self::AllMemory => "all-memory",
        }
    }

    /// The pod with this name.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|pod| pod.as_str() == word)
    }

    /// The fixture it stands in.
    pub fn fixture(self) -> SchedFixture {
        match self {
            Self::ByOs | Self::ByBuild => SchedFixture::Selected,
            Self::Tolerant => SchedFixture::Tolerant,
            Self::Selecting | Self::Plain => SchedFixture::Intolerant,
            Self::ByRuntimeClass => SchedFixture::RuntimeClass,
            Self::OsAlone => SchedFixture::OsAlone,
            Self::Unselected => SchedFixture::Unselected,
            Self::Fit | Self::Unfit => SchedFixture::Builds,
            Self::Mixed => SchedFixture::Mixed,
            Self::Small | Self::AllCpu | Self::AllMemory => SchedFixture::Requests,
        }
    }
}
