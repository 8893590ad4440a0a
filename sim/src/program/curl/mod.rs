//! `curl`, as far as a prober uses it: GETs one after the other, `-K -`, `--next`, `-w`.
//!
//! Texts and order follow curl's source at 8.13.0 (`src/tool_operate.c`, `src/tool_parsecfg.c`,
//! `src/tool_writeout.c`, `lib/connect.c`, `lib/multi.c`); the texts of 7.57 follow calico issue
//! 5522. No TLS, proxies, parallel transfers, uploads or globs; `--parallel` and other methods than
//! GET are refused with a line that says so.

mod options;
mod transfer;
mod writeout;

use std::time::Duration;

use self::options::{Invocation, Mode, Operation};
use self::transfer::Transfer;
use super::{Place, Ran, View};
use crate::topology::Os;

/// The builds of curl that the simulated images and hosts carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Build {
    /// That of Alpine 3.22, in agnhost's Linux image.
    Alpine,
    /// That of an updated Windows Server, in System32 of host, servercore and nanoserver alike.
    System32,
    /// That in `C:\curl\AMD64` of agnhost's Windows image.
    AgnhostWindows,
}

impl Build {
    fn os(self) -> Os {
        match self {
            Self::Alpine => Os::Linux,
            Self::System32 | Self::AgnhostWindows => Os::Windows,
        }
    }

    /// Major and minor version, which decide the texts.
    fn version(self) -> (u32, u32) {
        match self {
            Self::Alpine => (8, 14),
            Self::System32 => (8, 13),
            Self::AgnhostWindows => (7, 57),
        }
    }

    fn banner(self) -> &'static str {
        match self {
            Self::Alpine => {
                "curl 8.14.1 (x86_64-alpine-linux-musl) libcurl/8.14.1 OpenSSL/3.5.1 zlib/1.3.1 brotli/1.1.0 \
                 zstd/1.5.7 c-ares/1.34.5 libidn2/2.3.7 libpsl/0.21.5 nghttp2/1.65.0\n\
                 Release-Date: 2025-06-04\n\
                 Protocols: dict file ftp ftps gopher gophers http https imap imaps ipfs ipns mqtt pop3 pop3s rtsp \
                 smb smbs smtp smtps telnet tftp ws wss\n\
                 Features: alt-svc AsynchDNS brotli HSTS HTTP2 HTTPS-proxy IDN IPv6 Largefile libz NTLM PSL SSL \
                 threadsafe TLS-SRP UnixSockets zstd\n"
            }
            Self::System32 => {
                "curl 8.13.0 (Windows) libcurl/8.13.0 Schannel zlib/1.3.1 WinIDN\n\
                 Release-Date: 2025-04-02\n\
                 Protocols: dict file ftp ftps gopher gophers http https imap imaps ipfs ipns mqtt pop3 pop3s smb \
                 smbs smtp smtps telnet tftp ws wss\n\
                 Features: alt-svc AsynchDNS HSTS HTTPS-proxy IDN IPv6 Kerberos Largefile libz NTLM SPNEGO SSL SSPI \
                 threadsafe Unicode UnixSockets\n"
            }
            Self::AgnhostWindows => {
                "curl 7.57.0 (x86_64-pc-win32) libcurl/7.57.0 OpenSSL/1.1.0g (WinSSL) zlib/1.2.11 WinIDN\n\
                 Release-Date: 2017-11-29\n\
                 Protocols: dict file ftp ftps gopher http https imap imaps ldap ldaps pop3 pop3s rtsp smb smbs smtp \
                 smtps telnet tftp\n\
                 Features: AsynchDNS IDN IPv6 Largefile SSPI Kerberos SPNEGO NTLM SSL libz HTTPS-proxy MultiSSL\n"
            }
        }
    }
}

/// Runs `curl ARGS`.
pub(super) fn run(
    place: &Place,
    build: Build,
    args: &[String],
    input: &[u8],
    view: &View<'_>,
) -> Ran {
    let mut streams = Streams {
        os: build.os(),
        ..Streams::default()
    };
    let code = match Invocation::parse(args, input) {
        Err(usage) => {
            streams.complain(&usage.text);
            usage.code
        }
        Ok(Invocation {
            mode: Mode::Version,
            ..
        }) => {
            streams.print(build.banner());
            0
        }
        Ok(Invocation {
            mode: Mode::Transfer,
            silent,
            show_error,
            operations,
        }) => {
            let context = Context {
                place,
                build,
                view,
                quiet: silent && !show_error,
                silent,
            };
            context.operate(&operations, &mut streams)
        }
    };
    Ran {
        stdout: streams.stdout,
        stderr: streams.stderr,
        code,
        took: streams.took,
        slept: Duration::ZERO,
    }
}

/// The two streams with their modes: Windows turns LF into CR LF on a stream in text mode, and curl
/// takes its output out of that mode from the first body that it writes there
/// (`src/tool_operate.c`, `CURL_SET_BINMODE(stdout)`).
struct Streams {
    os: Os,
    binary: bool,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    took: Duration,
}

impl Default for Streams {
    fn default() -> Self {
        Self {
            os: Os::Linux,
            binary: false,
            stdout: Vec::new(),
            stderr: Vec::new(),
            took: Duration::ZERO,
        }
    }
}

impl Streams {
    fn print(&mut self, text: &str) {
        let text = if self.binary {
            text.to_owned()
        } else {
            self.in_text_mode(text)
        };
        self.stdout.extend(text.into_bytes());
    }

    fn complain(&mut self, text: &str) {
        let text = self.in_text_mode(text);
        self.stderr.extend(text.into_bytes());
    }

    fn in_text_mode(&self, text: &str) -> String {
        match self.os {
            Os::Linux => text.to_owned(),
            Os::Windows => text.replace('\n', "\r\n"),
        }
    }
}

struct Context<'a> {
    place: &'a Place,
    build: Build,
    view: &'a View<'a>,
    quiet: bool,
    silent: bool,
}

impl Context<'_> {
    /// All transfers, serially; the exit code is the last one's.
    fn operate(&self, operations: &[Operation], streams: &mut Streams) -> u32 {
        let mut code = 0;
        let mut number = 0;
        for operation in operations {
            if operation.urls.is_empty() {
                streams.complain("curl: (2) no URL specified\n");
                streams
                    .complain("curl: try 'curl --help' or 'curl --manual' for more information\n");
                return 2;
            }
            for (at, url) in operation.urls.iter().enumerate() {
                let output = operation.outputs.get(at).map(String::as_str);
                let to_stdout = output.is_none_or(|name| name == "-");
                streams.binary |= to_stdout;
                let transfer = transfer::perform(self, operation, url, number);
                number += 1;
                streams.took += transfer.total;
                self.report(operation, &transfer, to_stdout, streams);
                code = transfer.code;
            }
        }
        code
    }

    fn report(
        &self,
        operation: &Operation,
        transfer: &Transfer,
        to_stdout: bool,
        streams: &mut Streams,
    ) {
        if !self.silent && !to_stdout {
            streams.complain(
                "  % Total    % Received % Xferd  Average Speed   Time    Time     Time  Current\n                 \
                 \u{20}               Dload  Upload   Total   Spent    Left  Speed\n",
            );
        }
        if to_stdout {
            streams.stdout.extend(transfer.body.as_bytes());
        }
        if transfer.code != 0 && !self.quiet {
            streams.complain(&format!("curl: ({}) {}\n", transfer.code, transfer.error));
        }
        if let Some(format) = &operation.write_out {
            let written = writeout::expand(format, transfer, self.build);
            streams.print(&written.stdout);
            streams.complain(&written.stderr);
        }
    }
}

#[cfg(test)]
mod tests;
