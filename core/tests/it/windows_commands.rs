//! The commands for Windows containers, in a process container and in a `HostProcess` one: those whose programs
//! Wine has do what they are for, and the arguments of the others arrive.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};

use winconform_core::command::{Command, FilePath, Token, VariableName};
use winconform_core::facts::Os;
use winconform_core::method::{ExecReply, ExitStatus};

use crate::tally::Tally;
use crate::wine;

/// A file in place of one on a share.
const ON_SHARE: &str = "C:\\shared\\wc-1.txt";

/// Runs a command, with these variables in its environment.
fn ran(command: &Command, in_host_process: bool) -> (i64, String, String) {
    let request = command.on(Os::Windows).expect("Windows has it");
    let mut process = wine::command(request.argv(), in_host_process);
    process.env("W_A", "one & two").env("P_b", "%PATH%");
    // No machine's address (RFC 5737)
    process.env("W_IP", "192.0.2.1");
    process.env("wc_file", ON_SHARE);
    process.env("CONTAINER_SANDBOX_MOUNT_POINT", "C:");
    let ExecReply {
        stdout,
        stderr,
        exit,
    } = wine::reply(process, request.stdin());
    let ExitStatus::Code(code) = exit else {
        panic!("{command:?}: {exit:?}");
    };
    (code, stdout, stderr)
}

/// A server of the pipes that commands look for, which ends when this is dropped.
fn pipes() -> Child {
    let mut process = std::process::Command::new("wine");
    process.env("WINEPREFIX", wine::prefix());
    process.arg(wine::prefix().with_file_name("pipes.exe"));
    let process = process.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut pipes = process.spawn().expect("it starts");
    let stdout = pipes.stdout.take().expect("it is piped");
    let mut said = String::new();
    let read = BufReader::new(stdout).read_line(&mut said);
    read.expect("it says that they are there");
    assert_eq!(said.trim(), "ready");
    pipes
}

/// What each command does, what it ends with, and what it prints: the order matters.
fn cases() -> Vec<(&'static str, Command, i64, &'static str)> {
    let token = || Token::parse("5eed").expect("a token");
    let path = |text| FilePath::parse(Os::Windows, text).expect("a path");
    let file = || path("C:\\shared\\note.txt");
    let variable = |name| VariableName::parse(name).expect("a name");
    let variables = ["W_A", "P_b"].map(variable);
    let written = Command::WriteFile {
        path: file(),
        line: token(),
    };
    vec![
        ("deletes", Command::DeleteFile(file()), 0, ""),
        ("sees no file", Command::Exists(file()), 1, ""),
        ("writes", written, 0, "5eed"),
        ("sees a file", Command::Exists(file()), 0, ""),
        ("reads", Command::ReadFile(file()), 0, "5eed"),
        (
            "reads below its mount point",
            Command::ReadFile(path("%CONTAINER_SANDBOX_MOUNT_POINT%\\shared\\note.txt")),
            0,
            "5eed",
        ),
        (
            "writes to a share",
            Command::WriteToShare(token()),
            0,
            "5eed",
        ),
        (
            "leaves nothing there",
            Command::Exists(path(ON_SHARE)),
            1,
            "",
        ),
        ("keeps streams apart", Command::Streams(token()), 7, "5eed"),
        (
            "prints variables",
            Command::Environment(variables.into()),
            0,
            "W_A=one & two\nP_b=%PATH%",
        ),
        ("says who it is", Command::WhoAmI, 0, ANY),
        (
            "finds no address",
            Command::HasAddress(variable("W_IP")),
            1,
            "",
        ),
        ("lists processes", Command::Processes, 0, ANY),
        ("lists links", Command::Links(path("C:\\shared")), 0, ANY),
        (
            "looks for no API server without its address",
            Command::ReachApiServer,
            64,
            "",
        ),
        ("reads a pipe", Command::ReadPipe, 0, "wc_pipe=winconform"),
        (
            "lists pipes",
            Command::CsiProxyPipes,
            0,
            "@@ pipes\ncsi-proxy-volume-v1",
        ),
    ]
}

#[test]
fn commands_of_windows_do_what_they_are_for() {
    if !wine::is_set(wine::PREFIX, "commands_of_windows_do_what_they_are_for") {
        return;
    }
    let _alone = wine::alone();
    std::fs::create_dir_all(wine::prefix().join("drive_c/shared")).expect("a folder");
    let mut pipes = pipes();
    let mut tally = Tally::new("what commands of the tool do in cmd, and what they are for");
    for in_host_process in [false, true] {
        for (behaviour, command, code, out) in &cases() {
            let (ended, stdout, stderr) = ran(command, in_host_process);
            let printed = stdout.replace("\r\n", "\n");
            let says = match *out {
                ANY => !printed.trim().is_empty(),
                out => printed.trim() == out,
            };
            let is_split = !matches!(command, Command::Streams(_)) || stderr.trim() == "E-5eed";
            let is_right = *code == ended && says && is_split;
            let difference =
                (!is_right).then(|| format!("ends with {ended}, prints {stdout:?} and {stderr:?}"));
            tally.note("cmd of Wine", behaviour, difference);
        }
    }
    pipes.wait().expect("it ends with its input");
    tally.end();
}

/// Something is printed.
const ANY: &str = "?";

/// Every command as it is rendered, which a unit test keeps.
const FORMS: &str = include_str!("../../src/command/forms.txt");

/// What is sent to Windows: the command, the program with its arguments, and what it reads.
fn forms_of_windows() -> Vec<(&'static str, Vec<String>, Option<String>)> {
    let of_windows = FORMS.lines().filter_map(|line| {
        let (command, form) = line.split_once(" windows [")?;
        let (argv, input) = match form.split_once("] < ") {
            Some((argv, input)) => (argv, Some(input)),
            None => (form.strip_suffix(']')?, None),
        };
        let argv = serde_json::from_str(&format!("[{argv}]")).expect("a list");
        let input = input.map(|input| serde_json::from_str(input).expect("a text"));
        Some((command, argv, input))
    });
    of_windows.collect()
}

#[test]
fn each_form_of_windows_is_run() {
    let word = |command: &Command| {
        let text = format!("{command:?}");
        let end = text.find(|c: char| !c.is_alphanumeric());
        text[..end.unwrap_or(text.len())].to_owned()
    };
    let cases = cases();
    let mut run: BTreeSet<_> = cases.iter().map(|(_, command, ..)| word(command)).collect();
    // By `pings.rs`
    run.insert("Pings".to_owned());
    let forms = forms_of_windows();
    let scripts = forms.iter().filter(|(_, argv, _)| calls(argv).is_none());
    let scripts: BTreeSet<_> = scripts.map(|(command, ..)| (*command).to_owned()).collect();
    assert!(scripts.contains("CsiProxyPipes"), "{scripts:?}");
    let left: Vec<_> = scripts.difference(&run).collect();
    assert!(left.is_empty(), "{left:?} are neither cases nor calls");
}

/// Where the system looks for a program: the file in its folder, below which PowerShell is.
fn stood_in_for(program: &str) -> String {
    let below = program.strip_prefix("C:\\Windows\\System32\\");
    let path = below.or_else(|| program.rsplit('\\').next());
    path.expect("a name").replace('\\', "/")
}

/// A program of the system in whose place another is, until this ends.
struct Replaced(String);

impl Replaced {
    fn by(program: &Path, name: &str) -> Self {
        let (path, kept) = (wine::system(name), wine::system(&format!("{name}.kept")));
        // An earlier test may have been killed
        if path.exists() && !kept.exists() {
            std::fs::rename(&path, kept).expect("it is kept");
        }
        wine::install(program, name);
        Self(name.to_owned())
    }
}

impl Drop for Replaced {
    fn drop(&mut self) {
        let (path, kept) = (wine::system(&self.0), self.0.clone() + ".kept");
        let _ = std::fs::remove_file(&path);
        let _ = std::fs::rename(wine::system(&kept), path);
    }
}

/// `arguments.exe` stands for each program, since Wine lacks some, and has little of others: it prints its
/// arguments and what it reads.
#[test]
fn arguments_and_input_arrive_as_they_were_sent() {
    if !wine::is_set(wine::PREFIX, "arguments_and_input_arrive_as_they_were_sent") {
        return;
    }
    let _alone = wine::alone();
    let stand_in = wine::prefix().with_file_name("arguments.exe");
    std::fs::create_dir_all(wine::prefix().join("drive_c/curl/AMD64")).expect("a folder");
    let forms: Vec<_> = forms_of_windows()
        .into_iter()
        .filter_map(|(_, argv, input)| {
            let calls = calls(&argv)?;
            Some((calls, argv, input))
        })
        .collect();
    let paths = forms.iter().flat_map(|(calls, ..)| calls);
    let paths = paths.filter_map(Call::program);
    let paths: BTreeSet<_> = paths.collect();
    // All before the first runs: now and then Wine finds no program that was put there just after another was taken away
    let _replaced: Vec<_> = paths
        .iter()
        .map(|path| Replaced::by(&stand_in, path))
        .collect();
    std::fs::copy(
        &stand_in,
        wine::prefix().join("drive_c/curl/AMD64/curl.exe"),
    )
    .expect("it is installed");
    let mut tally = Tally::new("arguments and input as a program gets them, and as they are sent");
    for (calls, argv, input) in &forms {
        let names = calls.iter().filter_map(Call::program);
        let names: BTreeSet<_> = names.filter_map(|path| path.rsplit('/').next()).collect();
        let name = names.into_iter().collect::<Vec<_>>();
        let name = name.join(",");
        for in_host_process in [false, true] {
            let mut process = wine::command(argv, in_host_process);
            // Else Wine starts its own
            process.env("WINEDLLOVERRIDES", format!("mscoree,mshtml=;{name}=n"));
            let reply = wine::reply(process, input.as_deref());
            let sent: String = calls.iter().flat_map(Call::lines).collect();
            let arrive =
                reply.stdout.replace("\r\n", "\n") == sent + input.as_deref().unwrap_or_default();
            let behaviour = match in_host_process {
                false => "in a process container",
                true => "in a HostProcess one",
            };
            let difference = (!arrive).then(|| format!("{argv:?}: {reply:?}"));
            tally.note(&format!("stand-in for {name}"), behaviour, difference);
        }
    }
    tally.end();
    for name in [
        "fsutil.exe",
        "hnsdiag.exe",
        "icacls.exe",
        "net.exe",
        "netsh.exe",
        "sc.exe",
    ] {
        assert!(paths.contains(&name.to_owned()), "{paths:?}");
    }
}

/// What a command has a system do.
enum Call {
    /// cmd prints a line.
    Echo(String),
    /// The program at a path below the system's folder gets these arguments.
    Program(String, Vec<String>),
}

impl Call {
    /// The path of the program, if it is one.
    fn program(&self) -> Option<&String> {
        match self {
            Self::Echo(_) => None,
            Self::Program(path, _) => Some(path),
        }
    }

    /// What is printed where `arguments.exe` is in place of programs.
    fn lines(&self) -> Vec<String> {
        let arguments = match self {
            Self::Echo(line) => std::slice::from_ref(line),
            Self::Program(_, arguments) => arguments,
        };
        arguments.iter().map(|line| format!("{line}\n")).collect()
    }
}

/// The calls of a command, one after the other; `None` if it is a script for cmd that does more, or that calls no
/// program: it is among the cases, or a ping.
fn calls(argv: &[String]) -> Option<Vec<Call>> {
    let program = stood_in_for(&argv[0]);
    if program != "cmd.exe" {
        return Some(vec![Call::Program(program, argv[1..].to_vec())]);
    }
    let script = argv
        .last()
        .filter(|script| !script.contains(['|', '<', '>', '(']))?;
    let parts = script
        .split("& ")
        .filter(|part| !part.starts_with("del /q "));
    let calls = parts.map(|part| match part.split_once(' ')? {
        ("echo", line) => Some(Call::Echo(line.to_owned())),
        (program, arguments) if program.starts_with("C:\\Windows\\") => {
            let arguments = arguments.split(' ').map(str::to_owned);
            Some(Call::Program(stood_in_for(program), arguments.collect()))
        }
        _ => None,
    });
    let calls: Option<Vec<_>> = calls.collect();
    calls.filter(|calls| calls.iter().any(|call| call.program().is_some()))
}
