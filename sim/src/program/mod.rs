//! The programs that containers and exec run: a closed set, each a pure function.
//!
//! A program takes its arguments, its input and a snapshot of the world. It returns its output with the time
//! of each piece, an exit code and its duration; or, for a program that goes on, its first output and what it
//! serves. Other code waits, streams and restarts. Each program's module comment names the source of its
//! texts. A program that is not here is refused by name, never imitated.

mod curl;
#[cfg(test)]
mod differential;
mod file;
mod forms;
mod go;
pub(crate) mod kubernetes;
mod ping;
mod ran;
mod seat;
pub(crate) mod shell;
#[cfg(test)]
mod transcripts;
mod turns;
pub(crate) mod web;
pub(crate) mod windows;

pub(crate) use ran::{Piece, Ran};
pub(crate) use turns::Turns;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use crate::network::Origin;
use crate::nodes::files::Files;
use crate::nodes::image::{self, Family};
use crate::topology::{Build, Os, Pool};
use crate::world::{Page, World};
pub(crate) use seat::Seat;

/// The user of Windows who may do everything in a container.
pub(crate) const ADMINISTRATOR: &str = "ContainerAdministrator";

/// Where a program runs.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a property of its own"
)]
pub(crate) struct Place {
    pub(crate) os: Os,
    pub(crate) family: Family,
    /// Whether the image has programs of 2021, as `image::is_of_2021` decides.
    pub(crate) of_2021: bool,
    /// Whether the container is a `HostProcess` container, which uses the host's files and starts through
    /// `cmd /c`.
    pub(crate) host_process: bool,
    pub(crate) origin: Origin,
    pub(crate) hostname: String,
    /// The container's environment variables, resolved.
    pub(crate) env: Arc<BTreeMap<String, String>>,
    pub(crate) files: Files,
    /// The working directory of the container's process; empty for the root.
    pub(crate) directory: String,
    /// The user that `runAsUserName` sets, if any.
    pub(crate) user: Option<String>,
    /// The command lines of the containers whose processes it sees: its own, or all of the pod.
    pub(crate) lines: Vec<String>,
    /// Whether it sees the processes of its node.
    pub(crate) sees_host: bool,
    /// Whether its curl is missing.
    pub(crate) lacks_curl: bool,
    /// The domain of its credential spec, if it has one.
    pub(crate) domain: Option<String>,
    /// Whether its network is one of its own, without an adapter.
    pub(crate) apart: bool,
    pub(crate) limits: Limits,
    /// Has its node boot, where it is a `HostProcess` container.
    pub(crate) reboots: Option<Arc<Notify>>,
    /// The beginnings of the paths of its node's named pipes that it finds: those that it mounts.
    pub(crate) pipes: Vec<String>,
}

/// What a container gets at most, in thousandths of a processor and of a byte; `None` where it has no limit.
#[derive(Clone, Debug, Default)]
pub(crate) struct Limits {
    pub(crate) cpu: Option<i128>,
    pub(crate) memory: Option<i128>,
    /// A program that is refused memory notifies it, where its container ends of that.
    pub(crate) kills: Option<Arc<Notify>>,
}

impl Place {
    /// Creates a place that only the image and the network determine.
    pub(crate) fn new(os: Os, family: Family, origin: Origin, hostname: impl Into<String>) -> Self {
        Self {
            os,
            family,
            of_2021: false,
            host_process: false,
            origin,
            hostname: hostname.into(),
            env: Arc::default(),
            files: Files::new(os, Vec::new()),
            directory: String::new(),
            user: None,
            lines: Vec::new(),
            sees_host: false,
            lacks_curl: false,
            domain: None,
            apart: false,
            limits: Limits::default(),
            reboots: None,
            pipes: Vec::new(),
        }
    }
}

/// What a program can read of the cluster.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) world: &'a World,
    /// Gives each connection its turn.
    pub(crate) turns: &'a Turns,
}

/// When the system itself gives up connecting: Windows sends three SYNs in 21 s, Linux seven in 127 s
/// (tcp(7), `tcp_syn_retries`).
fn system_limit(os: Os) -> Duration {
    Duration::from_secs(match os {
        Os::Windows => 21,
        Os::Linux => 127,
    })
}

/// The outcome of starting a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Started {
    /// It listens once it has warmed up, and runs until it is stopped.
    Serves {
        listening: BTreeMap<u16, Page>,
        listening_udp: BTreeMap<u16, Page>,
        warm_up: Duration,
        prints: String,
    },
    /// It runs until it is stopped.
    Stays { prints: String },
    /// It has run to its end.
    Ended(Ran),
    /// The runtime cannot start it.
    Refused(Refusal),
}

/// Why the runtime cannot start a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The container has no such file.
    Missing(String),
    /// The host compute service does not answer (kubernetes issue 117086).
    RpcUnavailable,
}

/// The exit code for what a real container runs and this simulator does not. No program or shell of either
/// system returns it, so it cannot pass for a real answer.
pub(crate) const NOT_SIMULATED: u32 = 222;

impl Refusal {
    /// The result for a program that this simulator lacks: it ends at once with a message.
    fn not_simulated(what: &str) -> Started {
        Started::Ended(Self::instead_of(what))
    }

    fn instead_of(what: &str) -> Ran {
        let text = format!("hybrid-sim does not simulate `{what}`\n");
        Ran::complains(text, NOT_SIMULATED)
    }

    /// The runtime's error text: runc's on Linux, hcsshim's on Windows (containerd issues with texts of the
    /// form `hcs::System::CreateProcess ID: …`).
    pub(crate) fn text(&self, os: Os, container_id: &str) -> String {
        match (self, os) {
            (Self::Missing(file), Os::Linux) if file.contains('/') => {
                format!("exec: \"{file}\": stat {file}: no such file or directory: unknown")
            }
            (Self::Missing(file), Os::Linux) => {
                format!("exec: \"{file}\": executable file not found in $PATH: unknown")
            }
            (Self::Missing(_), Os::Windows) => format!(
                "hcs::System::CreateProcess {container_id}: \
                 The system cannot find the file specified.: unknown"
            ),
            (Self::RpcUnavailable, _) => format!(
                "hcs::System::CreateProcess {container_id}: The RPC server is unavailable.: unknown"
            ),
        }
    }
}

/// Runs an image of the cluster's components: it stays, while `network` and `names` simulate its effects.
fn component(argv: &[String]) -> Started {
    let file = argv.first().map_or("", String::as_str);
    match file.rsplit('/').next().unwrap_or_default() {
        "component" | "kube-proxy" | "flanneld" => Started::stays(),
        _ => Refusal::not_simulated(&argv.join(" ")),
    }
}

/// The exit code of a process that Ctrl-C ends: 0xC000013A, `STATUS_CONTROL_C_EXIT`.
pub(crate) const CONTROL_C: u32 = 0xC000_013A;

/// Runs a program in a container, as the runtime does.
pub(crate) fn start(place: &Place, argv: &[String], input: &[u8], view: &View<'_>) -> Started {
    if place.family == Family::Component {
        return component(argv);
    }
    match forms::run(&Seat::new(place, view), argv, input) {
        // hcsshim, internal/jobcontainers/jobcontainer.go: a job container runs its command line through `cmd
        // /c`
        Started::Refused(Refusal::Missing(file)) if place.host_process => {
            Started::Ended(shell::not_found(Os::Windows, &file))
        }
        started => started,
    }
}

/// Whether the simulator runs a command line with this input in a container of an image. Only the exit code
/// tells a refusal from a failure.
pub fn simulates(image: &ImageOn<'_>, argv: &[&str], input: &str) -> bool {
    let pool = match image.windows {
        true => Pool::Windows(Build::Ws2022),
        false => Pool::Linux,
    };
    let Ok(resolved) = image::resolve(image.reference, pool) else {
        return false;
    };
    let argv: Vec<String> = argv.iter().map(|arg| (*arg).to_owned()).collect();
    let (world, turns) = (World::default(), Turns::default());
    let place = Place {
        of_2021: resolved.is_of_2021(),
        host_process: image.host_process,
        ..Place::new(pool.os(), resolved.family, Origin::Outside, "")
    };
    let view = View {
        world: &world,
        turns: &turns,
    };
    match forms::run(&Seat::new(&place, &view), &argv, input.as_bytes()) {
        Started::Ended(ran) => ran.code != NOT_SIMULATED,
        Started::Refused(_) => false,
        Started::Serves { .. } | Started::Stays { .. } => true,
    }
}

/// An image and the kind of container that runs it.
#[derive(Clone, Copy, Debug)]
pub struct ImageOn<'a> {
    /// Its reference in the pod's spec.
    pub reference: &'a str,
    /// Whether its node runs Windows; otherwise Linux.
    pub windows: bool,
    /// Whether its container is a `HostProcess` container.
    pub host_process: bool,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::world::Key;

    pub(crate) fn place(os: Os, family: Family) -> Place {
        let origin = Origin::Pod(Key::new("test", "prober"));
        Place::new(os, family, origin, "prober")
    }

    pub(crate) fn argv(args: &[&str]) -> Vec<String> {
        args.iter().map(|arg| (*arg).to_owned()).collect()
    }

    /// An empty world.
    #[derive(Default)]
    pub(crate) struct Empty {
        world: World,
        turns: Turns,
    }

    impl Empty {
        pub(crate) fn view(&self) -> View<'_> {
            View {
                world: &self.world,
                turns: &self.turns,
            }
        }
    }

    pub(crate) fn run(place: &Place, args: &[&str]) -> Started {
        start(place, &argv(args), b"", &Empty::default().view())
    }

    #[test]
    fn exit_codes_and_output() {
        let linux = place(Os::Linux, Family::Agnhost);
        assert_eq!(
            run(&linux, &["sh", "-c", "exit 7"]),
            Started::Ended(Ran::code(7))
        );
        assert_eq!(
            run(&linux, &["echo", "a", "b"]),
            Started::Ended(Ran::prints("a b\n"))
        );
        let windows = place(Os::Windows, Family::Servercore);
        assert_eq!(
            run(&windows, &["cmd", "/c", "exit", "7"]),
            Started::Ended(Ran::code(7))
        );
        assert_eq!(
            run(&windows, &["cmd.exe", "/c", "echo hi"]),
            Started::Ended(Ran::prints("hi\r\n"))
        );
    }

    #[test]
    fn missing_programs_are_told_as_the_runtime_tells_them() {
        let text = |started, os| match started {
            Started::Refused(refusal) => refusal.text(os, "05f"),
            other => panic!("{other:?}"),
        };
        assert_eq!(
            text(
                run(&place(Os::Linux, Family::Agnhost), &["nonesuch"]),
                Os::Linux
            ),
            "exec: \"nonesuch\": executable file not found in $PATH: unknown"
        );
        assert_eq!(
            text(
                run(&place(Os::Windows, Family::Servercore), &["nonesuch.exe"]),
                Os::Windows
            ),
            "hcs::System::CreateProcess 05f: The system cannot find the file specified.: unknown"
        );
        assert!(matches!(
            run(&place(Os::Linux, Family::Agnhost), &[]),
            Started::Refused(_)
        ));
    }
}
