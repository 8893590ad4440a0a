//! The pods whose placement is observed, and their fixtures.

use strum::{IntoStaticStr, VariantArray};

use crate::fixture::FixtureName;

/// A pod whose placement is observed; a closed set.
#[derive(Clone, Copy, Debug, Eq, IntoStaticStr, PartialEq, VariantArray)]
#[strum(serialize_all = "kebab-case")]
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
    /// Asks for almost nothing; aimed at the pool's first node.
    Small,
    /// Asks for all CPU of the small pod's node.
    AllCpu,
    /// Asks for all memory of that node.
    AllMemory,
    /// Asks for a huge page; aimed at the pool.
    HugePages,
}

crate::text::words!(PlacedPod);

impl PlacedPod {
    pub fn fixture(self) -> FixtureName {
        match self {
            Self::ByOs | Self::ByBuild => FixtureName::SCHED_SELECTED,
            Self::Tolerant => FixtureName::SCHED_TOLERANT,
            Self::Selecting | Self::Plain => FixtureName::SCHED_INTOLERANT,
            Self::ByRuntimeClass => FixtureName::SCHED_RUNTIME_CLASS,
            Self::OsAlone => FixtureName::SCHED_OS_ALONE,
            Self::Unselected => FixtureName::SCHED_UNSELECTED,
            Self::Fit | Self::Unfit => FixtureName::SCHED_BUILDS,
            Self::Mixed => FixtureName::SCHED_MIXED,
            Self::Small | Self::AllCpu | Self::AllMemory | Self::HugePages => {
                FixtureName::SCHED_REQUESTS
            }
        }
    }
}
