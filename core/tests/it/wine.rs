//! Programs of Windows under Wine, started as a container runtime of Windows starts them.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use winconform_core::method::{ExecReply, ExitStatus};

/// Names Wine's folder, which `ci/windows-programs/run` makes; `launch.exe` is beside it.
pub(crate) const PREFIX: &str = "WINCONFORM_TEST_WINEPREFIX";

pub(crate) fn prefix() -> PathBuf {
    let prefix = std::env::var_os(PREFIX);
    prefix.expect("Wine's folder is named").into()
}

/// One test at a time may use the system's programs, or put others in their place.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Puts a program among those of the system.
pub(crate) fn install(program: &Path, name: &str) {
    let path = system(name);
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    std::fs::copy(program, path).expect("it is installed");
}

/// Where the system's program of this name is.
pub(crate) fn system(name: &str) -> PathBuf {
    prefix().join("drive_c/windows/system32").join(name)
}

/// Names what tests need and says that they are not run, unless it is set.
pub(crate) fn is_set(variable: &str, test: &str) -> bool {
    let is_set = std::env::var_os(variable).is_some();
    if !is_set {
        // Past the test harness, which keeps what passing tests print
        writeln!(std::io::stderr(), "not run: {test}: {variable} is not set").expect("it is open");
    }
    is_set
}

/// The command that runs a program by a command line, which passes through `cmd /c` on the way into a `HostProcess`
/// container (hcsshim, `internal/jobcontainers`).
pub(crate) fn command(argv: &[String], in_host_process: bool) -> Command {
    let line: Vec<_> = argv.iter().map(|argument| escape(argument)).collect();
    let shell = if in_host_process { "cmd /c " } else { "" };
    let mut command = Command::new("wine");
    command.env("WINEPREFIX", prefix());
    command.arg(prefix().with_file_name("launch.exe"));
    command.env(
        "WINCONFORM_COMMAND_LINE",
        format!("{shell}{}", line.join(" ")),
    );
    command
}

/// What a command that reads this prints, and ends with.
pub(crate) fn reply(mut command: Command, input: Option<&str>) -> ExecReply {
    let pipes = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = pipes.spawn().expect("it starts");
    let mut stdin = child.stdin.take().expect("it is piped");
    // A program that does not read may be gone by now
    let _ = stdin.write_all(input.unwrap_or_default().as_bytes());
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    ExecReply {
        stdout: text(&output.stdout),
        stderr: text(&output.stderr),
        exit: ExitStatus::Code(output.status.code().expect("it ends by itself").into()),
    }
}

/// Quotes an argument as containerd's shim does (golang.org/x/sys, `windows.EscapeArg`).
fn escape(argument: &str) -> String {
    let quote = match argument.is_empty() || argument.contains([' ', '\t']) {
        true => "\"",
        false => "",
    };
    let (mut quoted, mut slashes) = (quote.to_owned(), 0);
    for character in argument.chars() {
        match character {
            '\\' => slashes += 1,
            '"' => quoted.push_str(&"\\".repeat(std::mem::take(&mut slashes) + 1)),
            _ => slashes = 0,
        }
        quoted.push(character);
    }
    match quote {
        "" => quoted,
        quote => quoted + &"\\".repeat(slashes) + quote,
    }
}

#[test]
fn arguments_are_quoted_as_the_runtime_does() {
    for (argument, quoted) in [
        ("-q", "-q"),
        ("", "\"\""),
        ("C:\\a\\b.exe", "C:\\a\\b.exe"),
        ("echo a& b", "\"echo a& b\""),
        ("a b\\", "\"a b\\\\\""),
        ("say \"x\"", "\"say \\\"x\\\"\""),
        ("a\"b", "a\\\"b"),
    ] {
        assert_eq!(escape(argument), quoted);
    }
}
