//! The tool does not fail because the reader of a stream is gone.

use std::io::pipe;
use std::process::{Command, Stdio};

use super::tool::Tool;

/// A stream without a reader.
fn unread() -> Stdio {
    let (reader, writer) = pipe().expect("a pipe");
    drop(reader);
    Stdio::from(writer)
}

fn code(command: &mut Command) -> Option<i32> {
    command.output().expect("the tool starts").status.code()
}

#[test]
fn nobody_reads_standard_output() {
    let tool = Tool::new();
    for arguments in [
        ["list"].as_slice(),
        &["--help"],
        &["--version"],
        &["config", "example"],
        &["explain", "net.service-ip-from-pod"],
    ] {
        let output = tool.command(arguments).stdout(unread()).output();
        let output = output.expect("the tool starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            (said.as_ref(), output.status.code()),
            ("", Some(0)),
            "{arguments:?}"
        );
    }
}

#[test]
fn nobody_reads_standard_error() {
    let tool = Tool::new();
    for (arguments, expected) in [
        (["list"].as_slice(), 0),
        (&["--help"], 0),
        (&["list", "--suites", "nowhere"], 2),
        (&["plan", "--kubeconfig", "nowhere"], 2),
        (&["no-such-command"], 2),
    ] {
        assert_eq!(
            code(tool.command(arguments).stderr(unread())),
            Some(expected),
            "{arguments:?}"
        );
        let both = code(tool.command(arguments).stdout(unread()).stderr(unread()));
        assert_eq!(both, Some(expected), "{arguments:?}");
    }
}
