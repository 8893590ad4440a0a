//! The command lines that containers know: one row for each program of each operating system.

use self::Run::{Ends, Starts};
use super::seat::Seat;
use super::{Place, Ran, Refusal, Started, curl, file, ping, shell};
use crate::fault::FaultKind;
use crate::nodes::image::Family;
use crate::program::kubernetes::agnhost;
use crate::program::windows::{host, ipconfig, powershell, system};
use crate::topology::Os::{self, Linux, Windows};
use crate::topology::{Build, Pool};

/// A command line with its input and the place where it runs.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) seat: &'a Seat<'a>,
    pub(crate) args: &'a [String],
    pub(crate) input: &'a [u8],
}

impl<'a> Call<'a> {
    pub(crate) fn place(&self) -> &'a Place {
        self.seat.place
    }

    /// The arguments, if there are exactly `N` of them.
    pub(crate) fn words<const N: usize>(&self) -> Option<[&'a str; N]> {
        let args: &[String; N] = self.args.try_into().ok()?;
        Some(args.each_ref().map(String::as_str))
    }
}

/// Whether an image has a program.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Has {
    Yes,
    No,
    /// It is not known.
    Unknown,
}

/// An operating system, a program (without `.exe`, and without a searched folder), which places have it, and
/// its function, which returns `None` for arguments that are not simulated.
type Form = (Os, &'static str, fn(&Place) -> Has, Run);

/// A program that may go on running, or one that always ends.
#[derive(Clone, Copy)]
enum Run {
    Starts(fn(&Call<'_>) -> Option<Started>),
    Ends(fn(&Call<'_>) -> Option<Ran>),
}

const FORMS: &[Form] = &[
    (Linux, "agnhost", agnhosts, Starts(agnhost::run)),
    // Alpine 3.22, the base of agnhost's image
    (
        Linux,
        "curl",
        agnhosts,
        Ends(|call| curl::run(&curl::Build::ALPINE, call)),
    ),
    (Linux, "pause", pauses, Starts(system::pause)),
    (Linux, "sh", busyboxes, Starts(shell::linux)),
    (
        Linux,
        "ping",
        busyboxes,
        Ends(|call| ping::linux(call.args, call.seat)),
    ),
    (Linux, "true", busyboxes, Ends(|_| Some(Ran::default()))),
    (Linux, "false", busyboxes, Ends(|_| Some(Ran::code(1)))),
    (Linux, "sleep", busyboxes, Ends(system::sleep)),
    (
        Linux,
        "echo",
        busyboxes,
        Ends(|call| Some(system::echo(call))),
    ),
    (Linux, "hostname", busyboxes, Ends(system::hostname)),
    (Linux, "id", busyboxes, Ends(system::id)),
    (Linux, "cat", busyboxes, Ends(file::read)),
    (Linux, "rm", busyboxes, Ends(file::delete)),
    (Linux, "test", busyboxes, Ends(file::exists)),
    (Linux, "stat", busyboxes, Ends(file::access)),
    // A program that no image has
    (Linux, "nonesuch", nobody, Ends(|_| None)),
    (Windows, "agnhost", agnhosts, Starts(agnhost::run)),
    (Windows, "pause", pauses, Starts(system::pause)),
    (
        Windows,
        "servicemonitor",
        iis,
        Starts(|_| Some(system::iis())),
    ),
    // Dockerfile_windows of agnhost: the image has its own curl there, while PATH contains C:\curl
    (
        Windows,
        "c:\\curl\\amd64\\curl",
        agnhosts_curl,
        Ends(|call| curl::run(&curl::Build::AGNHOST_WINDOWS, call)),
    ),
    (
        Windows,
        "curl",
        |place| has(!place.lacks_curl),
        Ends(|call| curl::run(system_curl(call.seat), call)),
    ),
    (Windows, "cmd", everybody, Starts(shell::windows)),
    (Windows, "powershell", whole, Starts(powershell::run)),
    (
        Windows,
        "ping",
        everybody,
        Starts(|call| ping::windows(call.args, call.seat, call.seat.language())),
    ),
    (Windows, "hostname", everybody, Ends(system::hostname)),
    (Windows, "ipconfig", everybody, Ends(ipconfig::run)),
    (Windows, "findstr", everybody, Ends(system::filter)),
    (Windows, "whoami", perhaps, Ends(system::who_am_i)),
    (Windows, "tasklist", perhaps, Ends(system::processes)),
    (Windows, "net", perhaps, Ends(system::user)),
    (Windows, "nltest", perhaps, Ends(system::domain)),
    (Windows, "sc", perhaps, Ends(host::service)),
    (Windows, "netsh", perhaps, Ends(host::ports)),
    (Windows, "shutdown", hosts, Ends(host::shutdown)),
    // AKS' and RKE2's nodes have it (kubernetes issues 110849 and 135802)
    (Windows, "hnsdiag", hosts, Ends(host::load_balancers)),
    (Windows, "icacls", perhaps, Ends(file::access)),
    (Windows, "fsutil", perhaps, Ends(file::space)),
    (Windows, "nonesuch", nobody, Ends(|_| None)),
];

fn has(there: bool) -> Has {
    match there {
        true => Has::Yes,
        false => Has::No,
    }
}

fn everybody(_: &Place) -> Has {
    Has::Yes
}

fn nobody(_: &Place) -> Has {
    Has::No
}

fn agnhosts(place: &Place) -> Has {
    has(place.family == Family::Agnhost && !place.host_process)
}

fn agnhosts_curl(place: &Place) -> Has {
    match agnhosts(place) {
        Has::Yes => has(!place.lacks_curl),
        lacks => lacks,
    }
}

fn pauses(place: &Place) -> Has {
    has(place.family == Family::Pause)
}

fn iis(place: &Place) -> Has {
    has(place.family == Family::Iis)
}

/// agnhost's image is based on Alpine (test/images/agnhost/Dockerfile), whose programs are busybox's.
fn busyboxes(place: &Place) -> Has {
    has(place.family != Family::Pause)
}

pub(crate) fn is_whole(place: &Place) -> bool {
    matches!(place.family, Family::Servercore | Family::Iis) || place.host_process
}

fn hosts(place: &Place) -> Has {
    has(place.host_process)
}

fn whole(place: &Place) -> Has {
    has(is_whole(place))
}

/// A full Windows has them in System32, Nano Server possibly.
fn perhaps(place: &Place) -> Has {
    match is_whole(place) {
        true => Has::Yes,
        false => Has::Unknown,
    }
}

/// Windows Server 2019 shipped with 7.55; an update of April 2023 (17763.4252) brought curl 8, as later
/// updates did to its successors. Images of 2021 have 7.55 too; a `HostProcess` container uses its host's.
fn system_curl(seat: &Seat<'_>) -> &'static curl::Build {
    if seat.place.of_2021 && !seat.place.host_process {
        return &curl::Build::SYSTEM32_2019;
    }
    let first_shipped =
        |pool: Pool, revision| pool == Pool::Windows(Build::Ws2019) && revision < 4252;
    match seat.node() {
        Some(node) if first_shipped(node.pool, node.revision) => &curl::Build::SYSTEM32_2019,
        _ => &curl::Build::SYSTEM32,
    }
}

const SYSTEM32: &str = "c:\\windows\\system32\\";

/// The name of a program in the table.
fn name(os: Os, file: &str) -> String {
    if os == Linux {
        return file.rsplit('/').next().unwrap_or_default().to_owned();
    }
    let path = file.replace('/', "\\").to_ascii_lowercase();
    let path = path.strip_suffix(".exe").unwrap_or(&path);
    let (folder, name) = path.rsplit_once('\\').unwrap_or(("", path));
    let is_searched = matches!(folder, "" | "c:") || format!("{folder}\\").starts_with(SYSTEM32);
    match is_searched {
        true => name.to_owned(),
        false => path.to_owned(),
    }
}

/// A program of a `HostProcess` container, whose path may be relative to the working directory (hcsshim,
/// `internal/jobcontainers/path.go`).
fn found(seat: &Seat<'_>, file: &str) -> Option<String> {
    let is_relative = file.contains(['/', '\\']) && !file.contains(':') && !file.starts_with('/');
    match seat.place.host_process && is_relative {
        true if seat.suffers(FaultKind::RelativeCommandsLost) => None,
        true => Some(format!(
            "{}\\{file}",
            seat.place.directory.trim_end_matches('\\')
        )),
        false => Some(file.to_owned()),
    }
}

/// Runs a command line, if its program is in the table.
pub(crate) fn run(seat: &Seat<'_>, words: &[String], input: &[u8]) -> Started {
    let Some((file, args)) = words.split_first() else {
        return Started::Refused(Refusal::Missing(String::new()));
    };
    let Some(file) = &found(seat, file) else {
        return Started::Refused(Refusal::Missing(file.to_owned()));
    };
    let named = |(os, program, ..): &&Form| *program == name(*os, file);
    let mut forms = FORMS.iter().filter(named);
    let form = forms.find(|(os, ..)| *os == seat.place.os);
    let missing = || Started::Refused(Refusal::Missing(file.to_owned()));
    let Some((.., has, run)) = form else {
        return match seat.place.family {
            // This image has one program only
            Family::Pause if seat.place.os == Linux => missing(),
            // The program is one of the other operating system
            _ if FORMS.iter().any(|form| named(&form)) => missing(),
            _ => Refusal::not_simulated(&words.join(" ")),
        };
    };
    match has(seat.place) {
        Has::No => missing(),
        Has::Unknown => Refusal::not_simulated(&words.join(" ")),
        Has::Yes => {
            let call = Call { seat, args, input };
            let started = match run {
                Starts(run) => run(&call),
                Ends(run) => run(&call).map(Started::Ended),
            };
            started.unwrap_or_else(|| Refusal::not_simulated(&words.join(" ")))
        }
    }
}
