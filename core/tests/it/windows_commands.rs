//! The commands for Windows containers whose programs Wine has: each does what it is for, in a
//! process container and in a `HostProcess` one.

use std::io::Write;

use winconform_core::command::{Command, FilePath, Token, VariableName};
use winconform_core::facts::Os;
use winconform_core::method::{ExecReply, ExitStatus};

use crate::wine;

/// Runs a command, with two variables in its environment.
fn ran(command: &Command, in_host_process: bool) -> (i64, String, String) {
    let request = command.on(Os::Windows).expect("Windows has it");
    let mut process = wine::command(&request, in_host_process);
    process.env("W_A", "one & two").env("P_b", "%PATH%");
    let ExecReply {
        stdout,
        stderr,
        exit,
    } = wine::reply(process, &request);
    let ExitStatus::Code(code) = exit else {
        panic!("{command:?}: {exit:?}");
    };
    (code, stdout, stderr)
}

#[test]
fn commands_of_windows_do_what_they_are_for() {
    if std::env::var_os(wine::PREFIX).is_none() {
        let name = "commands_of_windows_do_what_they_are_for";
        writeln!(
            std::io::stderr(),
            "not run: {name}: {} is not set",
            wine::PREFIX
        )
        .expect("it is open");
        return;
    }
    let token = || Token::parse("5eed").expect("a token");
    let file = || FilePath::parse(Os::Windows, "C:\\shared\\note.txt").expect("a path");
    std::fs::create_dir_all(wine::prefix().join("drive_c/shared")).expect("a folder");
    let variables = ["W_A", "P_b"].map(|name| VariableName::parse(name).expect("a name"));
    let written = Command::WriteFile {
        path: file(),
        line: token(),
    };
    // What each ends with, and what it prints: the order matters
    let cases = [
        (Command::DeleteFile(file()), Some(0), ""),
        (Command::Exists(file()), Some(1), ""),
        (written, Some(0), ""),
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
        (Command::HostName, Some(0), ""),
        (Command::Addresses, Some(0), ""),
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
