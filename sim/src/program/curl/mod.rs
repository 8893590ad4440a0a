//! `curl`, as far as a prober uses it: HTTP transfers one after the other, configured by `-K -`.
//!
//! Texts and order follow curl's source at its tags from 7.55.1 to 8.14.1 (`src/tool_operate.c`,
//! `src/tool_writeout.c`, `lib/connect.c`, `lib/multi.c`); tests compare them with the machine's curl.
//! Arguments that are not listed here are refused.

mod connect;
mod options;
mod transfer;
mod version;

use self::options::{Options, Written};
use self::transfer::Transfer;
pub(crate) use self::version::Build;
use super::Ran;
use super::forms::Call;
use crate::base::log::Stream;
use crate::fault::FaultKind;
use crate::program::web::net::Net;
use crate::topology::Os;

/// Runs `curl -q -K -`, `curl -q -sS --noproxy * -m SECONDS URL`, on Windows the same with `-k` and `-o NUL` for
/// TLS, or `curl -q --version`.
pub(super) fn run(build: &Build, call: &Call<'_>) -> Option<Ran> {
    if let Some(["-q", "--version"]) = call.words() {
        return Some(Ran::prints(build.banner()));
    }
    if let Some(["-q", "-sS", "--noproxy", "*", "-m", seconds, url]) = call.words() {
        return transfers(build, &Options::of_one(seconds, url)?, call.seat);
    }
    if let Some(
        [
            "-q",
            "-sS",
            "-k",
            "--noproxy",
            "*",
            "-m",
            seconds,
            "-o",
            "NUL",
            url,
        ],
    ) = call.words()
        && build.os == Os::Windows
    {
        let mut options = Options::of_one(seconds, url)?;
        options.blind = true;
        return transfers(build, &options, call.seat);
    }
    let ["-q", "-K", "-"] = call.words()? else {
        return None;
    };
    if call.seat.suffers(FaultKind::CurlPrintsAnew) {
        return Some(Ran::prints(
            "curl: this is no transfer that anybody knows\r\n",
        ));
    }
    perform(build, call.input, call.seat)
}

/// Performs all transfers of a configuration.
pub(super) fn perform(build: &Build, input: &[u8], net: &dyn Net) -> Option<Ran> {
    transfers(build, &Options::parse(input)?, net)
}

/// Performs all transfers one after the other; the exit code is that of the last.
fn transfers(build: &Build, options: &Options, net: &dyn Net) -> Option<Ran> {
    let mut streams = Streams {
        os: build.os,
        ran: Ran::default(),
        out: Vec::new(),
        errors: Vec::new(),
    };
    for url in &options.urls {
        let transfer = transfer::perform(net, build, options, url)?;
        streams.write(streams.out.len() / BLOCK * BLOCK);
        streams.ran.took += transfer.total;
        streams.out.extend(transfer.output.as_bytes());
        streams.report(build, options, &transfer);
        streams.ran.code = transfer.code;
    }
    streams.write(streams.out.len());
    Some(streams.ran)
}

/// A block of standard output: curl writes it when it is full or at the end, since an exec without a terminal
/// gives it a pipe. It writes standard error at once (POSIX, `stdin`).
const BLOCK: usize = 4096;

/// The two streams. Windows turns LF into CR LF on standard error; curl switches standard output to binary at
/// the first body that it writes there (`src/tool_operate.c`, `CURL_SET_BINMODE(stdout)`).
struct Streams {
    os: Os,
    ran: Ran,
    /// The output that is not yet written.
    out: Vec<u8>,
    errors: Vec<u8>,
}

impl Streams {
    /// Writes this many bytes of standard output, and all errors.
    fn write(&mut self, out: usize) {
        let rest = self.out.split_off(out);
        let out = std::mem::replace(&mut self.out, rest);
        self.ran.print(Stream::Out, out);
        let errors = std::mem::take(&mut self.errors);
        self.ran.print(Stream::Error, errors);
    }

    /// Reports the end of a transfer: before 7.66 with its message last (`src/tool_operate.c`).
    fn report(&mut self, build: &Build, options: &Options, transfer: &Transfer) {
        let message = (transfer.code != 0 && options.show_error)
            .then(|| format!("curl: ({}) {}", transfer.code, transfer.error));
        let (first, last) = match build.since(7, 66) {
            true => (message, None),
            false => (None, message),
        };
        self.complain(first);
        for part in &options.write_out {
            let unknown = match part {
                Written::ExitCode if !build.since(7, 75) => Some("exitcode"),
                Written::Stderr if !build.since(7, 63) => Some("stderr"),
                _ => None,
            };
            let text = match part {
                Written::Text(text) => text.clone(),
                Written::Status => format!("{:03}", transfer.status),
                Written::Url => transfer.url.clone(),
                Written::ExitCode if unknown.is_none() => transfer.code.to_string(),
                Written::ExitCode | Written::Stderr => String::new(),
            };
            let complaint = |name| format!("curl: unknown --write-out variable: '{name}'");
            self.complain(unknown.map(complaint));
            self.out.extend(text.into_bytes());
        }
        self.complain(last);
    }

    fn complain(&mut self, line: Option<String>) {
        let end = if self.os == Os::Windows { "\r\n" } else { "\n" };
        self.errors
            .extend(line.into_iter().flat_map(|line| (line + end).into_bytes()));
    }
}

#[cfg(test)]
mod tests;
