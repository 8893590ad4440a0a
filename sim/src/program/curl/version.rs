//! The builds of curl on the simulated images and hosts, and the differences between versions.
//!
//! Each boundary comes from comparing curl's tagged sources, in the file named beside it.

use crate::topology::Os;

/// A build of curl.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Build {
    pub(super) os: Os,
    pub(super) version: (u32, u32, u32),
    /// Whether it resolves names with c-ares instead of the system.
    pub(super) cares: bool,
}

impl Build {
    /// Alpine 3.22's, in agnhost's Linux image.
    pub(crate) const ALPINE: Self = Self {
        os: Os::Linux,
        version: (8, 14, 1),
        cares: true,
    };

    /// That of an updated Windows Server 2022 or 2025, in System32 of host, servercore and nanoserver alike.
    pub(crate) const SYSTEM32: Self = Self {
        os: Os::Windows,
        version: (8, 13, 0),
        cares: false,
    };

    /// That in System32 of Windows Server 2019 as first shipped.
    pub(crate) const SYSTEM32_2019: Self = Self {
        os: Os::Windows,
        version: (7, 55, 1),
        cares: false,
    };

    /// That in `C:\curl\AMD64` of agnhost's Windows image.
    pub(crate) const AGNHOST_WINDOWS: Self = Self {
        os: Os::Windows,
        version: (7, 57, 0),
        cares: false,
    };

    /// Whether its version is this one or newer.
    pub(crate) fn since(&self, major: u32, minor: u32) -> bool {
        (self.version.0, self.version.1) >= (major, minor)
    }

    /// The beginning of what `--version` prints; libraries, dates and features follow (`src/tool_help.c`).
    pub(crate) fn banner(&self) -> String {
        let (major, minor, patch) = self.version;
        let (of, end) = match self.os {
            Os::Linux => ("x86_64-alpine-linux-musl", "\n"),
            Os::Windows => ("Windows", "\r\n"),
        };
        let version = format!("{major}.{minor}.{patch}");
        format!("curl {version} ({of}) libcurl/{version}{end}")
    }

    /// The code for the system's time-out: since 7.67 it is 28, before that 7 as for other failed connections
    /// (`lib/connect.c`, `ETIMEDOUT`).
    pub(super) fn system_time_out(&self) -> u32 {
        if self.since(7, 67) { 28 } else { 7 }
    }

    /// The error for a connection that fails; `system` is the system's text for it.
    ///
    /// `lib/connect.c`: since 7.78 it has the time, since 7.86 curl's own words (curl 6267244161), which lost their
    /// apostrophe in 8.9.
    pub(super) fn unreachable(&self, host: &str, port: u16, millis: u128, system: &str) -> String {
        let why = match () {
            () if !self.since(7, 86) => system,
            () if !self.since(8, 9) => "Couldn't connect to server",
            () => "Could not connect to server",
        };
        if self.since(7, 78) {
            format!("Failed to connect to {host} port {port} after {millis} ms: {why}")
        } else {
            format!("Failed to connect to {host} port {port}: {why}")
        }
    }

    /// The error when curl's own limit ends the connecting; `by_connect_timeout` tells which of the two
    /// limits.
    ///
    /// From 7.78 to 8.10 `multi_runsingle` (`lib/multi.c`) checks only `--max-time` before it goes on
    /// connecting, so the connection's own filter is the first to notice the end of `--connect-timeout`.
    pub(super) fn timed_out(
        &self,
        host: &str,
        port: u16,
        millis: u128,
        by_connect_timeout: bool,
    ) -> String {
        if by_connect_timeout && self.since(7, 78) && !self.since(8, 11) {
            return match self.since(7, 88) {
                // lib/strerror.c, `CURLE_OPERATION_TIMEDOUT`
                true => format!(
                    "Failed to connect to {host} port {port} after {millis} ms: Timeout was reached"
                ),
                // lib/connect.c, `Curl_is_connected`
                false => format!("Connection timeout after {millis} ms"),
            };
        }
        format!("Connection timed out after {millis} milliseconds")
    }
}
