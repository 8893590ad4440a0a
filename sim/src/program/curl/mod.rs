//! `curl`, as far as a prober uses it: HTTP transfers one after the other, `-K -`, `--next`, `-w`, `-o`, `-d`, `-I`, `-L`.
//!
//! Texts and order follow curl's source at its tags from 7.55.1 to 8.14.1 (`src/tool_operate.c`,
//! `src/tool_parsecfg.c`, `src/tool_writeout.c`, `src/tool_progress.c`, `lib/connect.c`,
//! `lib/multi.c`); tests compare with the curl of the machine. No TLS, proxies, uploads or globs:
//! options that lead there are refused with a line that says so.

mod connect;
mod options;
mod transfer;
mod version;
mod writeout;

use std::collections::BTreeMap;
use std::time::Duration;

use self::options::{Global, Invocation, Mode, Operation};
use self::transfer::{Kept, Transfer};
pub(crate) use self::version::Build;
use super::net::Net;
use super::ran::Mark;
use super::script::is_null;
use super::{NOT_SIMULATED, Ran, Refusal};
use crate::topology::Os;

/// Runs `curl ARGS`.
pub(super) fn run(build: &Build, args: &[String], input: &[u8], net: &dyn Net) -> Ran {
    let mut streams = Streams::of(build.os);
    let code = match Invocation::parse(build, args, input) {
        Err(usage) if usage.code == NOT_SIMULATED => {
            return Ran::complains(usage.text, usage.code);
        }
        Err(usage) => {
            streams.complain(&usage.text);
            usage.code
        }
        Ok(Invocation {
            mode: Mode::Version,
            ..
        }) => {
            streams.print(build.banner);
            0
        }
        Ok(invocation) => {
            for warning in &invocation.warnings {
                streams.complain(warning);
            }
            let run = Run {
                net,
                build,
                global: invocation.global,
            };
            run.operate(&invocation.operations, &mut streams)
        }
    };
    for (file, bytes) in &streams.saved {
        if !is_null(file, build.os) && net.save(file, bytes).is_err() {
            return Refusal::instead_of(&format!("curl -o {file} where it cannot be written"));
        }
    }
    streams.ran.ending(code)
}

/// A block of standard output, which is written when it is full or at the end: where an exec has no
/// terminal it is a pipe. What goes to standard error is written at once (POSIX, `stdin`).
const BLOCK: usize = 4096;

/// The two streams with their modes: Windows turns LF into CR LF on a stream in text mode, and curl
/// takes its output out of that mode from the first body that it writes there
/// (`src/tool_operate.c`, `CURL_SET_BINMODE(stdout)`).
struct Streams {
    os: Os,
    binary: bool,
    /// What was printed by now, and how long it took.
    ran: Ran,
    /// What goes to the files of `-o`.
    saved: BTreeMap<String, Vec<u8>>,
}

impl Streams {
    fn of(os: Os) -> Self {
        Self {
            os,
            binary: false,
            ran: Ran::default(),
            saved: BTreeMap::new(),
        }
    }

    /// Time goes on until so long after the beginning.
    fn until(&mut self, took: Duration) {
        let Ran { stdout, stderr, .. } = &self.ran;
        let (stdout, stderr) = (stdout.len() / BLOCK * BLOCK, stderr.len());
        let before = self.ran.marks.last();
        if before.map_or((0, 0), |mark| (mark.stdout, mark.stderr)) != (stdout, stderr) {
            self.ran.marks.push(Mark {
                stdout,
                stderr,
                took: self.ran.took,
                slept: Duration::ZERO,
            });
        }
        self.ran.took = took;
    }

    fn print(&mut self, text: &str) {
        let text = if self.binary {
            text.to_owned()
        } else {
            self.in_text_mode(text)
        };
        self.ran.stdout.extend(text.into_bytes());
    }

    fn complain(&mut self, text: &str) {
        let text = self.in_text_mode(text);
        self.ran.stderr.extend(text.into_bytes());
    }

    fn in_text_mode(&self, text: &str) -> String {
        match self.os {
            Os::Linux => text.to_owned(),
            Os::Windows => text.replace('\n', "\r\n"),
        }
    }
}

/// One run with what holds for all of it.
struct Run<'a> {
    net: &'a dyn Net,
    build: &'a Build,
    global: Global,
}

/// A URL with the part that it stands in.
struct Planned<'a> {
    operation: &'a Operation,
    url: &'a str,
    output: Option<&'a str>,
}

impl Planned<'_> {
    fn to_stdout(&self) -> bool {
        self.output.is_none_or(|name| name == "-")
    }
}

impl Run<'_> {
    fn operate(&self, operations: &[Operation], streams: &mut Streams) -> u32 {
        if operations.iter().any(|operation| operation.urls.is_empty()) {
            streams.complain(self.build.no_url());
            streams.complain("curl: try 'curl --help' or 'curl --manual' for more information\n");
            return 2;
        }
        let planned: Vec<Planned<'_>> = operations
            .iter()
            .flat_map(|operation| {
                let outputs = operation.outputs.iter().map(|name| Some(name.as_str()));
                let urls = operation
                    .urls
                    .iter()
                    .zip(outputs.chain(std::iter::repeat(None)));
                urls.map(move |(url, output)| Planned {
                    operation,
                    url,
                    output,
                })
            })
            .collect();
        self.one_by_one(&planned, streams)
    }

    /// Serially; the exit code is the last one's.
    fn one_by_one(&self, all: &[Planned<'_>], streams: &mut Streams) -> u32 {
        let (mut code, mut kept) = (0, Kept::default());
        for (number, planned) in all.iter().enumerate() {
            let is_next = number > 0 && !std::ptr::eq(all[number - 1].operation, planned.operation);
            if is_next && code != 0 && self.build.ends_at_a_failed_part() {
                return code;
            }
            // Windows' output leaves the text mode when the transfer is set up
            streams.binary |= planned.to_stdout();
            let transfer = self.perform(planned, number, &mut kept);
            streams.until(streams.ran.took + transfer.total);
            if !self.global.silent && !self.global.no_meter {
                streams.complain(METER);
            }
            if let Some(file) = planned.output.filter(|_| !transfer.output.is_empty()) {
                streams.saved.remove(file);
            }
            Self::write(planned, transfer.output.as_bytes(), streams);
            self.report(planned, &transfer, streams);
            code = transfer.code;
        }
        code
    }

    fn perform(&self, planned: &Planned<'_>, number: usize, kept: &mut Kept) -> Transfer {
        let Planned { operation, url, .. } = planned;
        transfer::perform(self.net, self.build, operation, url, number, kept)
    }

    /// A piece of a body to where it goes.
    fn write(planned: &Planned<'_>, piece: &[u8], streams: &mut Streams) {
        match planned.output.filter(|_| !planned.to_stdout()) {
            None => streams.ran.stdout.extend(piece),
            Some(_) if piece.is_empty() => {}
            Some(file) => streams
                .saved
                .entry(file.to_owned())
                .or_default()
                .extend(piece),
        }
    }

    /// What is said once a transfer is over.
    fn report(&self, planned: &Planned<'_>, transfer: &Transfer, streams: &mut Streams) {
        // src/tool_operate.c, `post_per_transfer`: a file without a body is made all the same
        if let Some(file) = planned
            .output
            .filter(|_| transfer.code == 0 && !planned.to_stdout())
        {
            streams.saved.entry(file.to_owned()).or_default();
        }
        let quiet = self.global.silent && !self.global.show_error;
        if transfer.code != 0 && !quiet {
            streams.complain(&format!("curl: ({}) {}\n", transfer.code, transfer.error));
        }
        if let Some(format) = &planned.operation.write_out {
            let named = planned.output.filter(|name| *name != "-");
            let file = named.filter(|_| transfer.code == 0).unwrap_or_default();
            for (to_stderr, text) in writeout::expand(format, transfer, file, self.build) {
                if to_stderr {
                    streams.complain(&text);
                } else {
                    streams.print(&text);
                }
            }
        }
    }
}

/// lib/progress.c: the heading, and one line that stands for however many there are.
const METER: &str = "  % Total    % Received % Xferd  Average Speed   Time    Time     Time  Current\n                 \
                     \u{20}               Dload  Upload   Total   Spent    Left  Speed\n\
                     \r  0     0    0     0    0     0      0      0 --:--:-- --:--:-- --:--:--     0\n";

#[cfg(test)]
mod tests;
