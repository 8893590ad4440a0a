//! `curl`, as far as a prober uses it: HTTP transfers one after the other, told by `-K -`.
//!
//! Texts and order follow curl's source at its tags from 7.55.1 to 8.14.1 (`src/tool_operate.c`,
//! `src/tool_writeout.c`, `lib/connect.c`, `lib/multi.c`); tests compare with the curl of the machine. What
//! is not known here is refused.

mod connect;
mod options;
mod transfer;
mod version;

use std::time::Duration;

use self::options::{Options, Written};
use self::transfer::Transfer;
pub(crate) use self::version::Build;
use super::Ran;
use super::forms::Call;
use super::ran::Mark;
use crate::program::web::net::Net;
use crate::topology::Os;

/// Runs `curl -q -K -`.
pub(super) fn run(build: &Build, call: &Call<'_>) -> Option<Ran> {
    let ["-q", "-K", "-"] = call.words()? else {
        return None;
    };
    perform(build, call.input, call.seat)
}

/// Performs all transfers, serially; the exit code is the last one's.
pub(super) fn perform(build: &Build, input: &[u8], net: &dyn Net) -> Option<Ran> {
    let options = Options::parse(input)?;
    let mut streams = Streams {
        os: build.os,
        ran: Ran::default(),
    };
    let mut code = 0;
    for url in &options.urls {
        let transfer = transfer::perform(net, build, &options, url)?;
        streams.until(streams.ran.took + transfer.total);
        streams.ran.stdout.extend(transfer.output.as_bytes());
        streams.report(&options, &transfer);
        code = transfer.code;
    }
    Some(streams.ran.ending(code))
}

/// A block of standard output, which is written when it is full or at the end: where an exec has no
/// terminal it is a pipe. What goes to standard error is written at once (POSIX, `stdin`).
const BLOCK: usize = 4096;

/// The two streams: Windows turns LF into CR LF on that of errors, and curl takes its output out of that
/// mode from the first body that it writes there (`src/tool_operate.c`, `CURL_SET_BINMODE(stdout)`).
struct Streams {
    os: Os,
    /// What was printed by now, and how long it took.
    ran: Ran,
}

impl Streams {
    /// Time goes on until so long after the beginning.
    fn until(&mut self, took: Duration) {
        let here = self.ran.here();
        let stdout = here.stdout / BLOCK * BLOCK;
        let before = self.ran.marks.last();
        if before.map_or((0, 0), |mark| (mark.stdout, mark.stderr)) != (stdout, here.stderr) {
            self.ran.marks.push(Mark { stdout, ..here });
        }
        self.ran.took = took;
    }

    /// What is said once a transfer is over.
    fn report(&mut self, options: &Options, transfer: &Transfer) {
        if transfer.code != 0 && options.show_error {
            let end = if self.os == Os::Windows { "\r\n" } else { "\n" };
            let line = format!("curl: ({}) {}{end}", transfer.code, transfer.error);
            self.ran.stderr.extend(line.into_bytes());
        }
        for part in &options.write_out {
            let text = match part {
                Written::Text(text) => text.clone(),
                Written::Status => format!("{:03}", transfer.status),
                Written::Url => transfer.url.clone(),
            };
            self.ran.stdout.extend(text.into_bytes());
        }
    }
}

#[cfg(test)]
mod tests;
