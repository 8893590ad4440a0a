//! The builds of curl that the simulated images and hosts carry, and what differs between versions.
//!
//! Each boundary was found by comparing curl's tagged sources, the file named beside it.

use crate::topology::Os;

/// One build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Build {
    pub(super) os: Os,
    pub(super) version: (u32, u32, u32),
    /// Whether c-ares looks up its names, not the system.
    pub(super) cares: bool,
}

impl Build {
    /// That of Alpine 3.22, in agnhost's Linux image.
    pub(crate) const ALPINE: Self = Self {
        os: Os::Linux,
        version: (8, 14, 1),
        cares: true,
    };

    /// That of an updated Windows Server 2022 or 2025, in System32 of host, servercore and
    /// nanoserver alike.
    pub(crate) const SYSTEM32: Self = Self {
        os: Os::Windows,
        version: (8, 13, 0),
        cares: false,
    };

    /// That in System32 of Windows Server 2019 as it was first shipped.
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

    /// Whether it is of this version or newer.
    pub(crate) fn since(&self, major: u32, minor: u32) -> bool {
        (self.version.0, self.version.1) >= (major, minor)
    }

    /// Since 7.67 a time-out of the system is 28, not a failed connection like others (7)
    /// (`lib/connect.c`, `ETIMEDOUT`).
    pub(super) fn system_time_out(&self) -> u32 {
        if self.since(7, 67) { 28 } else { 7 }
    }

    /// What is said where no connection came about; `system` is the system's text for it.
    ///
    /// `lib/connect.c`: since 7.78 with the time, since 7.81 with curl's own words, which lost their
    /// apostrophe in 8.9.
    pub(super) fn unreachable(&self, host: &str, port: u16, millis: u128, system: &str) -> String {
        let why = match () {
            () if !self.since(7, 81) => system,
            () if !self.since(8, 9) => "Couldn't connect to server",
            () => "Could not connect to server",
        };
        if self.since(7, 78) {
            format!("Failed to connect to {host} port {port} after {millis} ms: {why}")
        } else {
            format!("Failed to connect to {host} port {port}: {why}")
        }
    }

    /// What is said where curl's own limit ended the connecting; `by_connect_timeout` says which of
    /// the two limits.
    ///
    /// From 7.78 to 8.10 `multi_runsingle` (`lib/multi.c`) looks at `--max-time` alone before it goes
    /// on connecting, so the connection's own filter is first to see the end of `--connect-timeout`.
    pub(super) fn timed_out(
        &self,
        host: &str,
        port: u16,
        millis: u128,
        by_connect_timeout: bool,
    ) -> String {
        if by_connect_timeout && self.since(7, 78) && !self.since(8, 11) {
            let why = match (self.since(7, 88), self.os) {
                // lib/strerror.c, `CURLE_OPERATION_TIMEDOUT`
                (true, _) => "Timeout was reached",
                (false, Os::Linux) => "Connection timed out",
                (false, Os::Windows) => "Timed out",
            };
            if self.since(7, 88) {
                return format!("Failed to connect to {host} port {port} after {millis} ms: {why}");
            }
            return self.unreachable(host, port, millis, why);
        }
        format!("Connection timed out after {millis} milliseconds")
    }
}
