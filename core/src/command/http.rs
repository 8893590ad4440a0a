//! One session of curl for many targets, as the tool sends it.
//!
//! A configuration on standard input (`-K -`) holds everything: none of it passes through a shell, not even
//! `cmd /c` of a `HostProcess` exec, and no URL limit applies.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use super::{Token, line};
use crate::facts::Os;

/// A curl that images or systems have.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Curl {
    /// The curl of a Linux image, by its search path.
    Linux,
    /// The curl of Windows itself.
    System,
    /// The curl of agnhost for Windows (kubernetes, `test/images/busybox/Dockerfile_windows`).
    Agnhost,
    /// The curl of a Windows image, by its search path.
    Windows,
}

/// HTTP GETs by one curl.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HttpSession {
    pub curl: Curl,
    /// Its targets, one after the other.
    pub gets: Vec<HttpGet>,
    /// Separates the answers; the servers must not be able to predict it.
    pub token: Token,
    /// How long a connection may take.
    pub connect: Duration,
    /// How long one target may take.
    pub total: Duration,
}

/// Where an HTTP GET goes to.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Host {
    Address(IpAddr),
    /// A name, which the vantage point resolves.
    Name(String),
}

/// One HTTP GET inside the cluster.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HttpGet {
    pub host: Host,
    /// The target's port.
    pub port: u16,
    /// Absolute path.
    pub path: String,
}

impl Curl {
    /// The curl of a system, whatever images bring besides.
    pub fn of(os: Os) -> Self {
        match os {
            Os::Linux => Self::Linux,
            Os::Windows => Self::System,
        }
    }

    /// The path or name of the program; `None` on the other system.
    pub(super) fn on(self, os: Os) -> Option<&'static str> {
        (self.os() == os).then_some(match self {
            Self::Linux => "curl",
            Self::System => "C:\\Windows\\System32\\curl.exe",
            Self::Agnhost => "C:\\curl\\AMD64\\curl.exe",
            Self::Windows => "curl.exe",
        })
    }

    pub(super) fn version(self, os: Os) -> Option<Vec<String>> {
        Some(line([self.on(os)?, "-q", "--version"]))
    }

    pub fn os(self) -> Os {
        match self {
            Self::Linux => Os::Linux,
            Self::System | Self::Agnhost | Self::Windows => Os::Windows,
        }
    }
}

impl fmt::Display for Curl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.on(self.os()).unwrap_or_default())
    }
}

impl HttpSession {
    /// `-q` comes first: curl reads no configuration of the image. `None` where the system has no such curl.
    pub(super) fn argv(&self, os: Os) -> Option<Vec<String>> {
        Some(line([self.curl.on(os)?, "-q", "-K", "-"]))
    }

    /// Transfers run one after the other, each with a marker after it; bodies and `--parallel` exclude each
    /// other. All are one operation of curl: before 7.66 the first operation that fails ends the session
    /// (`next`), and Windows Server 2019 shipped with 7.55.
    pub(super) fn config(&self) -> String {
        // The write-out applies to each URL; curl reports each variable that it does not know on standard error,
        // `exitcode` before 7.75 and `stderr` before 7.63. A reused connection leads to the same pod again, so each
        // request asks the server to close it
        let mut config = format!(
            "silent\nshow-error\ngloboff\nnoproxy = \"*\"\nheader = \"Connection: close\"\n\
             connect-timeout = {}\nmax-time = {}\n\
             write-out = \"\\n@@{} %{{http_code}} %{{exitcode}} %{{url_effective}}\\n%{{stderr}}\"\n",
            self.connect.as_secs().max(1),
            self.total.as_secs().max(1),
            self.token,
        );
        for get in &self.gets {
            config.push_str(&format!("url = \"{}\"\n", quoted(&get.url())));
        }
        config
    }
}

/// Escapes a text for double quotes in a configuration of curl.
fn quoted(text: &str) -> String {
    let escaped = |c: char| match c {
        '\\' | '"' => vec!['\\', c],
        '\n' => vec!['\\', 'n'],
        '\r' => vec!['\\', 'r'],
        c => vec![c],
    };
    text.chars().flat_map(escaped).collect()
}

impl Host {
    /// Reads an address or a name; `None` for any other text, which must not get into what curl reads.
    pub fn parse(text: &str) -> Option<Self> {
        let of_names = |c: char| c.is_ascii_alphanumeric() || "-.".contains(c);
        match text.parse() {
            Ok(address) => Some(Self::Address(address)),
            Err(_) => ((1..=253).contains(&text.len()) && text.chars().all(of_names))
                .then(|| Self::Name(text.to_owned())),
        }
    }
}

impl fmt::Display for Host {
    /// As in a URL: IPv6 addresses in brackets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(IpAddr::V4(address)) => write!(f, "{address}"),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
            Self::Name(name) => f.write_str(name),
        }
    }
}

impl HttpGet {
    pub fn url(&self) -> String {
        format!("http://{}:{}{}", self.host, self.port, self.path)
    }

    /// Ends before Windows gives up connecting, after 21 s.
    pub(super) fn argv(&self, os: Os) -> Option<Vec<String>> {
        let (curl, url) = (Curl::of(os).on(os)?, self.url());
        let words = [curl, "-q", "-sS", "--noproxy", "*", "-m", "20", &url];
        Some(line(words))
    }
}
