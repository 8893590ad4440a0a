//! The builds of curl that the simulated images and hosts carry, and what differs between versions.
//!
//! Each boundary was found by comparing curl's tagged sources, the file named beside it.

use crate::topology::Os;

/// One build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Build {
    pub(super) os: Os,
    pub(super) version: (u32, u32, u32),
    pub(super) banner: &'static str,
}

impl Build {
    /// That of Alpine 3.22, in agnhost's Linux image.
    pub(crate) const ALPINE: Self = Self {
        os: Os::Linux,
        version: (8, 14, 1),
        banner: "curl 8.14.1 (x86_64-alpine-linux-musl) libcurl/8.14.1 OpenSSL/3.5.1 zlib/1.3.1 brotli/1.1.0 \
                 zstd/1.5.7 c-ares/1.34.5 libidn2/2.3.7 libpsl/0.21.5 nghttp2/1.65.0\n\
                 Release-Date: 2025-06-04\n\
                 Protocols: dict file ftp ftps gopher gophers http https imap imaps ipfs ipns mqtt pop3 pop3s rtsp \
                 smb smbs smtp smtps telnet tftp ws wss\n\
                 Features: alt-svc AsynchDNS brotli HSTS HTTP2 HTTPS-proxy IDN IPv6 Largefile libz NTLM PSL SSL \
                 threadsafe TLS-SRP UnixSockets zstd\n",
    };

    /// That of an updated Windows Server 2022 or 2025, in System32 of host, servercore and
    /// nanoserver alike.
    pub(crate) const SYSTEM32: Self = Self {
        os: Os::Windows,
        version: (8, 13, 0),
        banner: "curl 8.13.0 (Windows) libcurl/8.13.0 Schannel zlib/1.3.1 WinIDN\n\
                 Release-Date: 2025-04-02\n\
                 Protocols: dict file ftp ftps gopher gophers http https imap imaps ipfs ipns mqtt pop3 pop3s smb \
                 smbs smtp smtps telnet tftp ws wss\n\
                 Features: alt-svc AsynchDNS HSTS HTTPS-proxy IDN IPv6 Kerberos Largefile libz NTLM SPNEGO SSL SSPI \
                 threadsafe Unicode UnixSockets\n",
    };

    /// That in System32 of Windows Server 2019 as it was first shipped.
    pub(crate) const SYSTEM32_2019: Self = Self {
        os: Os::Windows,
        version: (7, 55, 1),
        banner: "curl 7.55.1 (Windows) libcurl/7.55.1 WinSSL\n\
                 Release-Date: [unreleased]\n\
                 Protocols: dict file ftp ftps http https imap imaps pop3 pop3s smtp smtps telnet tftp \n\
                 Features: AsynchDNS IPv6 Largefile SSPI Kerberos SPNEGO NTLM SSL \n",
    };

    /// That in `C:\curl\AMD64` of agnhost's Windows image.
    pub(crate) const AGNHOST_WINDOWS: Self = Self {
        os: Os::Windows,
        version: (7, 57, 0),
        banner: "curl 7.57.0 (x86_64-pc-win32) libcurl/7.57.0 OpenSSL/1.1.0g (WinSSL) zlib/1.2.11 WinIDN\n\
                 Release-Date: 2017-11-29\n\
                 Protocols: dict file ftp ftps gopher http https imap imaps ldap ldaps pop3 pop3s rtsp smb smbs smtp \
                 smtps telnet tftp\n\
                 Features: AsynchDNS IDN IPv6 Largefile SSPI Kerberos SPNEGO NTLM SSL libz HTTPS-proxy MultiSSL\n",
    };

    /// One that is not in the closed set.
    #[cfg(test)]
    pub(crate) fn of_the_machine(os: Os, version: (u32, u32, u32), banner: &'static str) -> Self {
        Self {
            os,
            version,
            banner,
        }
    }

    /// Whether it is of this version or newer.
    pub(crate) fn since(&self, major: u32, minor: u32) -> bool {
        (self.version.0, self.version.1) >= (major, minor)
    }

    /// Before 7.66 a part (`--next`) whose last transfer failed ends the run; within one part curl goes
    /// on (`src/tool_operate.c`, `while(!result && config->current)`).
    pub(super) fn ends_at_a_failed_part(&self) -> bool {
        !self.since(7, 66)
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

    /// What is said of a URL that is none (`lib/url.c`: since 8.2 with the reason).
    pub(super) fn bad_url(&self, why: &str) -> String {
        if self.since(8, 2) {
            format!("URL rejected: {why}")
        } else {
            "URL using bad/illegal format or missing URL".to_owned()
        }
    }

    /// What is said of another protocol (`lib/url.c`).
    pub(super) fn bad_protocol(&self, scheme: &str) -> String {
        if self.since(8, 6) {
            format!("Protocol \"{scheme}\" not supported")
        } else {
            format!("Protocol \"{scheme}\" not supported or disabled in libcurl")
        }
    }

    /// What is said where there is nothing to do (`src/tool_operate.c`).
    pub(super) fn no_url(&self) -> &'static str {
        if self.since(8, 0) {
            "curl: (2) no URL specified\n"
        } else {
            "curl: no URL specified!\n"
        }
    }

    /// Since 8.7 an unknown line of a config ends the run; before, it is warned about
    /// (`src/tool_parsecfg.c`).
    pub(crate) fn stops_at_unknown_lines(&self) -> bool {
        self.since(8, 7)
    }

    /// Whether it knows a variable of `-w`; the versions are those in which
    /// `src/tool_writeout.c` has it first.
    pub(super) fn knows_variable(&self, name: &str) -> bool {
        match name {
            "scheme" => self.since(7, 52),
            "method" => self.since(7, 72),
            "num_headers" => self.since(7, 73),
            "exitcode" | "errormsg" | "urlnum" | "url" | "onerror" => self.since(7, 75),
            "referer" => self.since(7, 76),
            "certs" | "num_certs" => self.since(7, 88),
            "header_json" => self.since(7, 83),
            "json" => self.since(7, 70),
            "stderr" | "stdout" => self.since(7, 63),
            "xfer_id" | "conn_id" => self.since(8, 2),
            "proxy_used" => self.since(8, 7),
            "num_retries" => self.since(8, 9),
            "time_posttransfer" => self.since(8, 10),
            _ => true,
        }
    }
}
