//! What containers run and what exec runs: a closed set of programs as pure functions.
//!
//! A program gets its arguments, its input and a snapshot of the world; it gives what it prints and
//! when, an exit code and how long it would have taken, or the first of this and how to go on.
//! Waiting, streaming and restarting are others' business.
//! Each program's head says what its texts were taken from. What is not here is refused by name,
//! never imitated.

mod agnhost;
mod cmd;
mod connect;
mod curl;
#[cfg(test)]
mod differential;
#[cfg(test)]
mod documented;
mod go;
pub(crate) mod http;
mod input;
mod ipconfig;
pub(crate) mod kubelet;
mod net;
mod netexec;
mod nslookup;
pub(crate) mod outside;
mod ping;
mod powershell;
mod ran;
mod script;
mod seat;
pub(crate) mod serve;
mod shell;
mod system;
#[cfg(test)]
mod table;
#[cfg(test)]
mod transcripts;
mod turns;
mod windows;

pub(crate) use input::Input;
pub(crate) use ran::{End, Followed, Piece, Ran, Rest};
pub(crate) use turns::Turns;
pub(crate) use windows::CONTROL_C;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::files::Files;
use crate::image::Family;
use crate::network::Origin;
use crate::topology::Os;
use crate::world::Page;
use crate::world::World;
use seat::Seat;

/// Where a program runs.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) os: Os,
    pub(crate) family: Family,
    /// Whether the image has the programs of 2021, by `image::is_of_2021`.
    pub(crate) of_2021: bool,
    /// Whether the container is a `HostProcess` container: on the host's file system, through `cmd
    /// /c`.
    pub(crate) host_process: bool,
    pub(crate) origin: Origin,
    pub(crate) hostname: String,
    /// The variables of the container, resolved.
    pub(crate) env: Arc<BTreeMap<String, String>>,
    pub(crate) files: Files,
    /// Where the container's process starts; empty for the root.
    pub(crate) directory: String,
    /// Whom the container runs as, where its `runAsUserName` says so.
    pub(crate) user: Option<String>,
}

/// What a program sees of the cluster.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) world: &'a World,
    /// Gives each connection a turn of its own.
    pub(crate) turns: &'a Turns,
    /// The time of a clock that goes right.
    pub(crate) now: Timestamp,
}

/// How deep commands may stand in each other. Each takes its part of a thread's stack, and no suite
/// nests more than a few.
const DEEPEST: u32 = 32;

/// How many requests one program may make in all, by way of servers that ask others too: each of
/// several nested `/dial` multiplies them.
const MOST_ASKED: u32 = 10_000;

/// How many commands and turns of loops one program may run before it gives its thread back, those of
/// its substitutions and of the servers that it asks included.
const MOST_STEPS: u32 = 100_000;

/// What a program has done of what it may do at once.
#[derive(Debug, Default)]
struct Spent {
    asked: Cell<u32>,
    steps: Cell<u32>,
}

/// A view, and how deep the program that has it stands in others.
#[derive(Clone, Copy)]
struct Sight<'a> {
    world: &'a World,
    turns: &'a Turns,
    now: Timestamp,
    depth: u32,
    spent: &'a Spent,
}

impl<'a> Sight<'a> {
    fn new(view: &View<'a>, spent: &'a Spent) -> Self {
        Self {
            world: view.world,
            turns: view.turns,
            now: view.now,
            depth: 0,
            spent,
        }
    }

    /// Takes down a request; `None` where there were too many.
    fn asks(self) -> Option<()> {
        let before = self.spent.asked.get();
        self.spent.asked.set(before.saturating_add(1));
        (before < MOST_ASKED).then_some(())
    }

    /// Takes down a step of a script; `None` where there were too many.
    fn steps(self) -> Option<()> {
        let before = self.spent.steps.get();
        self.spent.steps.set(before.saturating_add(1));
        (before < MOST_STEPS).then_some(())
    }

    /// That of a command in this one.
    fn deeper(self) -> Result<Self, Ran> {
        if self.depth >= DEEPEST {
            return Err(Refusal::instead_of("commands nested so deep"));
        }
        Ok(Self {
            depth: self.depth + 1,
            ..self
        })
    }

    /// That of a command some time after the beginning.
    fn later(self, passed: Duration) -> Self {
        Self {
            now: self.now.checked_add(passed).unwrap_or(self.now),
            ..self
        }
    }
}

/// After this the system itself gives up connecting: Windows sends three SYNs in 21 s, Linux seven in
/// 127 s (tcp(7), `tcp_syn_retries`).
fn system_limit(os: Os) -> Duration {
    Duration::from_secs(match os {
        Os::Windows => 21,
        Os::Linux => 127,
    })
}

/// What became of the attempt to run a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Started {
    /// It listens, some time after it has started, and runs until it is ended.
    Serves {
        listening: BTreeMap<u16, Page>,
        listening_udp: BTreeMap<u16, Page>,
        warm_up: Duration,
        prints: String,
    },
    /// It runs until it is ended.
    Stays { prints: String },
    /// It has done something, and does more: sooner or later it ends, serves or stays.
    GoesOn { ran: Ran, rest: Rest },
    /// It has come to its end.
    Ended(Ran),
    /// There is no such program.
    Refused(Refusal),
}

/// Why a program could not be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The container has no such file.
    Missing(String),
    /// The host compute service does not answer: kubernetes issue 117086.
    RpcUnavailable,
}

/// Exit code of what the real container would run and this simulator does not: none that a program
/// or a shell of either system gives, so that nobody takes it for an answer.
pub(crate) const NOT_SIMULATED: u32 = 222;

impl Refusal {
    /// What the real container would have and this simulator does not: it ends at once and says so.
    fn not_simulated(what: &str) -> Started {
        Started::Ended(Self::instead_of(what))
    }

    fn instead_of(what: &str) -> Ran {
        let text = format!("hybrid-sim does not simulate `{what}`\n");
        Ran::complains(text, NOT_SIMULATED)
    }

    /// What the runtime says of it: runc's text on Linux, hcsshim's on Windows (containerd issue
    /// texts of the form `hcs::System::CreateProcess ID: …`).
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

/// Runs a program in a container, as the runtime does.
pub(crate) fn start(place: &Place, argv: &[String], input: &Input, view: &View<'_>) -> Started {
    if place.family == Family::Component {
        return component(argv);
    }
    let spent = Spent::default();
    let view = &Sight::new(view, &spent);
    let seat = Seat { place, view: *view };
    let place = &Place {
        files: place.files.over(system::files(&seat)),
        ..place.clone()
    };
    if place.host_process {
        // hcsshim, internal/jobcontainers/jobcontainer.go: the command line of a job container runs
        // through `cmd /c`
        return cmd::run(place, &windows::command_line(argv), input, view);
    }
    launch(place, argv, input, view)
}

/// What an image of the cluster's own runs: it stays, and what it does is done by `network` and `names`.
fn component(argv: &[String]) -> Started {
    let file = argv.first().map_or("", String::as_str);
    match file.rsplit('/').next().unwrap_or_default() {
        "component" | "kube-proxy" | "flanneld" => Started::stays(),
        _ => Refusal::not_simulated(&argv.join(" ")),
    }
}

/// Runs a program as a shell on that system does.
fn launch(place: &Place, argv: &[String], input: &Input, view: &Sight<'_>) -> Started {
    let Some(file) = argv.first() else {
        return Started::Refused(Refusal::Missing(String::new()));
    };
    match place.os {
        Os::Linux => linux(place, file, argv, input, view),
        Os::Windows => windows::launch(place, file, argv, input, view),
    }
}

fn linux(place: &Place, file: &str, argv: &[String], input: &Input, view: &Sight<'_>) -> Started {
    let view = &match view.deeper() {
        Ok(view) => view,
        Err(refused) => return Started::Ended(refused),
    };
    let name = file.rsplit('/').next().unwrap_or_default();
    let rest = argv.get(1..).unwrap_or_default();
    let agnhost = place.family == Family::Agnhost;
    let seat = Seat { place, view: *view };
    match name {
        "agnhost" if agnhost => agnhost::run(place, rest, &seat),
        "curl" if agnhost => {
            let input = input.bytes();
            Started::Ended(curl::run(&curl::Build::ALPINE, rest, input, &seat))
        }
        "pause" if place.family == Family::Pause => Started::stays(),
        _ if place.family == Family::Pause => Started::Refused(Refusal::Missing(file.to_owned())),
        "sh" | "ash" | "bash" if name != "bash" || agnhost => match rest {
            [flag, script, named @ ..] if flag == "-c" => {
                shell::with(place, script, named, input, view)
            }
            _ => Refusal::not_simulated(&argv.join(" ")),
        },
        _ => shell::applet(place, name, rest, input, view)
            .unwrap_or_else(|| Started::Refused(Refusal::Missing(file.to_owned()))),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::world::Key;

    pub(crate) fn place(os: Os, family: Family) -> Place {
        Place {
            os,
            family,
            of_2021: false,
            host_process: false,
            origin: Origin::Pod(Key::new("test", "prober")),
            hostname: "prober".to_owned(),
            env: Arc::default(),
            files: Files::new(os),
            directory: String::new(),
            user: None,
        }
    }

    pub(crate) fn argv(args: &[&str]) -> Vec<String> {
        args.iter().map(|arg| (*arg).to_owned()).collect()
    }

    /// 2026-01-01T00:00:00Z
    pub(crate) const NOW: Timestamp = Timestamp::constant(1_767_225_600, 0);

    /// A world with nothing in it.
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
                now: NOW,
            }
        }
    }

    pub(crate) fn run(place: &Place, args: &[&str]) -> Started {
        start(
            place,
            &argv(args),
            &Input::default(),
            &Empty::default().view(),
        )
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
            text(run(&place(Os::Linux, Family::Agnhost), &["foo"]), Os::Linux),
            "exec: \"foo\": executable file not found in $PATH: unknown"
        );
        assert_eq!(
            text(
                run(&place(Os::Windows, Family::Servercore), &["foo.exe"]),
                Os::Windows
            ),
            "hcs::System::CreateProcess 05f: The system cannot find the file specified.: unknown"
        );
        assert!(matches!(
            run(&place(Os::Linux, Family::Agnhost), &[]),
            Started::Refused(_)
        ));
    }

    #[test]
    fn what_is_nested_too_deep_is_refused() {
        let nested = |once: &str, levels| {
            let line = once.repeat(levels) + "echo hi";
            run(&place(Os::Windows, Family::Agnhost), &["cmd", "/c", &line])
        };
        let too_deep = Refusal::not_simulated("commands nested so deep");
        for once in [
            "cmd /c ",
            "if not exist x ",
            "cmd /c if not exist x cmd /c ",
        ] {
            let few = nested(once, 8);
            assert_eq!(few, Started::Ended(Ran::prints("hi\r\n")), "{once}");
            assert_eq!(nested(once, 200), too_deep, "{once}");
        }
        // What `sh -c` runs is one word, and a variable may stand for itself
        let mut linux = place(Os::Linux, Family::Agnhost);
        linux.env = Arc::new([("A".to_owned(), "sh -c \"$A\"".to_owned())].into());
        assert_eq!(run(&linux, &["sh", "-c", "sh -c \"$A\""]), too_deep);
    }
}
