//! The build of a Windows host.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::document::{Decoder, Node};

/// A Windows build as in the label `node.kubernetes.io/windows-build`: `10.0.20348`.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct WindowsBuild {
    major: u16,
    minor: u16,
    build: u32,
}

impl WindowsBuild {
    /// Windows Server 2019 (1809).
    pub const SERVER_2019: Self = Self::server(17763);
    pub const SERVER_2022: Self = Self::server(20348);
    pub const SERVER_2025: Self = Self::server(26100);

    const fn server(build: u32) -> Self {
        let (major, minor) = (10, 0);
        Self {
            major,
            minor,
            build,
        }
    }

    /// Another build whose images run on this build under process isolation; without another, this build
    /// (Microsoft's `version-compatibility.md`, January 2025: Server 2025 runs that of 2022).
    #[must_use]
    pub fn fitting(self) -> Self {
        match self {
            Self::SERVER_2025 => Self::SERVER_2022,
            build => build,
        }
    }

    /// Reads `MAJOR.MINOR.BUILD` with nothing after it: a label's value.
    pub fn parse_label(text: &str) -> Option<Self> {
        let mut parts = text.split('.');
        let build = Self::from_parts(&mut parts)?;
        parts.next().is_none().then_some(build)
    }

    /// Reads `MAJOR.MINOR.BUILD` with the patch revision and words that may follow it:
    /// `status.nodeInfo.kernelVersion`, such as `10.0.20348.2700`.
    pub fn parse_kernel(text: &str) -> Option<Self> {
        let version = text.split_whitespace().next()?;
        Self::from_parts(&mut version.split('.'))
    }

    fn from_parts<'t>(parts: &mut impl Iterator<Item = &'t str>) -> Option<Self> {
        // `parse` alone would take a plus sign
        let mut number = || {
            parts
                .next()
                .filter(|p| p.bytes().all(|b| b.is_ascii_digit()))
        };
        let major = number()?.parse().ok()?;
        let minor = number()?.parse().ok()?;
        let build = number()?.parse().ok()?;
        Some(Self {
            major,
            minor,
            build,
        })
    }

    /// The pool name of this build: `windows-2022`, or by number when it has no product name.
    pub fn pool(self) -> String {
        match self {
            Self::SERVER_2019 => "windows-2019".to_owned(),
            Self::SERVER_2022 => "windows-2022".to_owned(),
            Self::SERVER_2025 => "windows-2025".to_owned(),
            other => format!("windows-{}", other.build),
        }
    }
}

/// Reads a build as it is written in the node label.
pub(crate) fn read_build(decoder: &mut Decoder<'_>, node: &Node) -> Option<WindowsBuild> {
    let hint = Some("as in the node label: 10.0.20348");
    let is_not = ("is not a Windows build", hint);
    decoder.parsed(node, "a build", is_not, WindowsBuild::parse_label)
}

impl fmt::Display for WindowsBuild {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.build)
    }
}

impl From<WindowsBuild> for String {
    fn from(build: WindowsBuild) -> Self {
        build.to_string()
    }
}

impl TryFrom<String> for WindowsBuild {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse_label(&text).ok_or_else(|| format!("`{text}` is not a Windows build"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_and_kernel_versions_are_read_apart() {
        let b = Some(WindowsBuild::SERVER_2022);
        assert_eq!(WindowsBuild::parse_label("10.0.20348"), b);
        assert_eq!(WindowsBuild::parse_kernel("10.0.20348.2700"), b);
        for bad in [
            "",
            "10.0",
            "10.0.20348.2700",
            "10.0.x",
            "10.0.+1",
            " 10.0.20348",
        ] {
            assert_eq!(WindowsBuild::parse_label(bad), None, "{bad}");
        }
        assert_eq!(WindowsBuild::parse_kernel("6.1.0-18-amd64"), None);
    }
}
