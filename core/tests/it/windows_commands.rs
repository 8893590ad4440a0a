//! The commands for Windows containers, in a process container and in a `HostProcess` one: those whose programs
//! Wine has do what they are for, and the arguments of the others arrive.

use std::collections::BTreeSet;
use std::path::Path;

use winconform_core::command::{Command, FilePath, Token, VariableName};
use winconform_core::facts::Os;
use winconform_core::method::{ExecReply, ExitStatus};

use crate::wine;

/// Runs a command, with two variables in its environment.
fn ran(command: &Command, in_host_process: bool) -> (i64, String, String) {
    let request = command.on(Os::Windows).expect("Windows has it");
    let mut process = wine::command(request.argv(), in_host_process);
    process.env("W_A", "one & two").env("P_b", "%PATH%");
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

#[test]
fn commands_of_windows_do_what_they_are_for() {
    if !wine::is_set(wine::PREFIX, "commands_of_windows_do_what_they_are_for") {
        return;
    }
    let _alone = wine::alone();
    let token = || Token::parse("5eed").expect("a token");
    let file = || FilePath::parse(Os::Windows, "C:\\shared\\note.txt").expect("a path");
    std::fs::create_dir_all(wine::prefix().join("drive_c/shared")).expect("a folder");
    let variable = |name| VariableName::parse(name).expect("a name");
    let variables = ["W_A", "P_b"].map(variable);
    let written = Command::WriteFile {
        path: file(),
        line: token(),
    };
    // What each ends with, and what it prints: the order matters
    let cases = [
        (Command::DeleteFile(file()), Some(0), ""),
        (Command::Exists(file()), Some(1), ""),
        (written, Some(0), "5eed"),
        (Command::Exists(file()), Some(0), ""),
        (Command::ReadFile(file()), Some(0), "5eed"),
        (Command::Streams(token()), Some(7), "5eed"),
        (
            Command::Environment(variables.into()),
            Some(0),
            "W_A=one & two\nP_b=%PATH%",
        ),
        // Whatever they say
        (Command::WhoAmI, Some(0), ""),
        // Wine's findstr finds nothing, and ends with 0
        (Command::HasAddress(variable("W_A")), None, ""),
        (Command::Processes, None, ""),
    ];
    let mut wrong = Vec::new();
    for in_host_process in [false, true] {
        for (command, code, out) in &cases {
            let (ended, stdout, stderr) = ran(command, in_host_process);
            let printed = stdout.replace("\r\n", "\n");
            let says = out.is_empty() || printed.trim() == *out;
            let is_split = !matches!(command, Command::Streams(_)) || stderr.trim() == "E-5eed";
            if code.is_some_and(|code| code != ended) || !says || !is_split {
                wrong.push(format!("{command:?}: {ended}, {stdout:?}, {stderr:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Every command as it is rendered, which a unit test keeps.
const FORMS: &str = include_str!("../../src/command/forms.txt");

/// What is sent to Windows: the program with its arguments, and what it reads.
fn forms_of_windows() -> Vec<(Vec<String>, Option<String>)> {
    let of_windows = FORMS.lines().filter_map(|line| {
        let (_, form) = line.split_once(" windows [")?;
        let (argv, input) = match form.split_once("] < ") {
            Some((argv, input)) => (argv, Some(input)),
            None => (form.strip_suffix(']')?, None),
        };
        let argv = serde_json::from_str(&format!("[{argv}]")).expect("a list");
        let input = input.map(|input| serde_json::from_str(input).expect("a text"));
        Some((argv, input))
    });
    of_windows.collect()
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
    // What its scripts do, other tests look at
    let forms: Vec<_> = forms_of_windows()
        .into_iter()
        .map(|(argv, input)| (stood_in_for(&argv[0]), argv, input))
        .filter(|(path, ..)| path != "cmd.exe")
        .collect();
    let paths: BTreeSet<_> = forms.iter().map(|(path, ..)| path).collect();
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
    let mut wrong = Vec::new();
    for (path, argv, input) in &forms {
        let name = path.rsplit('/').next().expect("a name");
        for in_host_process in [false, true] {
            let mut process = wine::command(argv, in_host_process);
            // Else Wine starts its own
            process.env("WINEDLLOVERRIDES", format!("mscoree,mshtml=;{name}=n"));
            let reply = wine::reply(process, input.as_deref());
            let lines = argv[1..]
                .iter()
                .flat_map(|argument| [argument.as_str(), "\n"]);
            let sent: String = lines.collect();
            if reply.stdout != sent + input.as_deref().unwrap_or_default() {
                wrong.push(format!("{argv:?}, {in_host_process}: {reply:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for name in ["certutil.exe", "fsutil.exe", "icacls.exe", "net.exe"] {
        assert!(paths.contains(&name.to_owned()), "{paths:?}");
    }
}
