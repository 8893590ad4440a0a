//! What the simulated cluster is made of: nodes, their operating systems and builds.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// The nodes that a simulator joins to a cluster.
///
/// The cluster network is one: a /24 of pod addresses per node, Windows nodes in mode `l2bridge`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// The nodes, in the order of their pod networks.
    pub nodes: Vec<NodeSpec>,
}

impl Topology {
    /// One Linux node and one of Windows Server 2022.
    pub fn hybrid() -> Self {
        Self {
            nodes: vec![
                NodeSpec {
                    name: "linux-a".to_owned(),
                    pool: Pool::Linux,
                },
                NodeSpec {
                    name: "windows-2022-a".to_owned(),
                    pool: Pool::Windows(Build::Ws2022),
                },
            ],
        }
    }
}

/// One node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSpec {
    /// The node's name, a DNS label.
    pub name: String,
    /// Its operating system and build.
    pub pool: Pool,
}

/// The operating systems of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Os {
    /// Linux.
    Linux,
    /// Windows Server.
    Windows,
}

impl Os {
    /// The name of the label `kubernetes.io/os` and of `spec.os.name`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Linux => "linux",
            Self::Windows => "windows",
        }
    }
}

/// The builds of Windows Server that run containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Build {
    /// Windows Server 2019.
    Ws2019,
    /// Windows Server 2022.
    Ws2022,
    /// Windows Server 2025.
    Ws2025,
}

impl Build {
    /// All of them, oldest first.
    pub const ALL: [Self; 3] = [Self::Ws2019, Self::Ws2022, Self::Ws2025];

    /// The build number.
    pub fn number(self) -> u32 {
        match self {
            Self::Ws2019 => 17763,
            Self::Ws2022 => 20348,
            Self::Ws2025 => 26100,
        }
    }

    /// The year of the product.
    pub fn year(self) -> u16 {
        match self {
            Self::Ws2019 => 2019,
            Self::Ws2022 => 2022,
            Self::Ws2025 => 2025,
        }
    }

    /// The value of the label `node.kubernetes.io/windows-build`.
    pub fn label(self) -> String {
        format!("10.0.{}", self.number())
    }

    /// The kernel version a node of this build reports: build and patch revision.
    pub fn kernel_version(self) -> &'static str {
        match self {
            Self::Ws2019 => "10.0.17763.6414",
            Self::Ws2022 => "10.0.20348.2700",
            Self::Ws2025 => "10.0.26100.1742",
        }
    }
}

/// The nodes of one operating system and one build, which faults are aimed at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pool {
    /// The Linux nodes.
    Linux,
    /// The Windows nodes of one build.
    Windows(Build),
}

impl Pool {
    /// The pool's operating system.
    pub fn os(self) -> Os {
        match self {
            Self::Linux => Os::Linux,
            Self::Windows(_) => Os::Windows,
        }
    }

    /// The pool's Windows build.
    pub fn build(self) -> Option<Build> {
        match self {
            Self::Linux => None,
            Self::Windows(build) => Some(build),
        }
    }
}

impl fmt::Display for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Linux => f.write_str("linux"),
            Self::Windows(build) => write!(f, "windows-{}", build.year()),
        }
    }
}

impl FromStr for Pool {
    type Err = UnknownPool;

    fn from_str(text: &str) -> Result<Self, UnknownPool> {
        [Self::Linux]
            .into_iter()
            .chain(Build::ALL.map(Self::Windows))
            .find(|pool| pool.to_string() == text)
            .ok_or_else(|| UnknownPool(text.to_owned()))
    }
}

/// A text that names no pool.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no pool is called `{0}`; there are linux, windows-2019, windows-2022 and windows-2025")]
pub struct UnknownPool(String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pools_read_as_they_print() {
        for pool in [
            Pool::Linux,
            Pool::Windows(Build::Ws2019),
            Pool::Windows(Build::Ws2025),
        ] {
            assert_eq!(pool.to_string().parse(), Ok(pool));
        }
        assert_eq!(
            "windows".parse::<Pool>(),
            Err(UnknownPool("windows".to_owned()))
        );
    }
}
