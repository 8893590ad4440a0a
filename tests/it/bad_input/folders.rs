//! Invalid arguments and folders: the tool starts nothing.

use std::fs;

use super::kubeconfig;
use super::tool::{Tool, check};

/// A tool with a kubeconfig, which it uses after it checks the arguments: nothing listens there.
fn tool() -> Tool {
    let tool = Tool::new();
    tool.write("config", kubeconfig::kubeconfig("http://127.0.0.1:1", ""));
    tool
}

#[test]
fn a_folder_for_reports_that_cannot_be_written() {
    let tool = tool();
    tool.write("file", "kept");
    tool.write("earlier/report.json/notes.txt", "kept");
    for (name, out) in [
        ("report-a-folder", "earlier"),
        ("a-file", "file"),
        ("below-a-file", "file/below"),
        ("proc", "/proc/winconform"),
        ("hostile", "file/\u{1b}[31m"),
        ("empty", ""),
    ] {
        let said = tool.run(&["run", "--kubeconfig", "config", "--out", out]);
        check(&format!("out-{name}"), &said.errors());
        assert_eq!(said.code, Some(2), "{name}");
    }
    assert_eq!(fs::read(tool.path("file")).expect("still there"), b"kept");
}

#[test]
fn reports_of_an_earlier_run_do_not_pass_for_those_of_one_that_came_to_nothing() {
    let tool = tool();
    for (name, text) in [
        ("junit.xml", "<testsuites name=\"winconform\">"),
        ("report.json", "{\"observed-from\": []}"),
        ("record.jsonl", "earlier"),
        ("notes.txt", "earlier"),
        // Somebody else's
        ("report.html", "earlier"),
    ] {
        tool.write(&format!("out/{name}"), text);
    }
    let run = || tool.run(&["run", "--kubeconfig", "config", "--out", "out"]);
    let said = run();
    assert_eq!(said.code, Some(21));
    check("out-unreachable", &said.errors());
    let there = |name: &str| tool.path(&format!("out/{name}")).exists();
    assert!(!there("junit.xml") && !there("report.json"));
    let record = fs::read(tool.path("out/record.jsonl")).expect("still there");
    assert!(record == b"earlier" && there("notes.txt") && there("report.html"));
    assert!(!run().stderr.contains("earlier run"));
}

#[test]
fn arguments_that_are_none() {
    let tool = tool();
    let long = "x".repeat(64);
    for (name, arguments) in [
        ("nothing", [].as_slice()),
        ("command", &["rnu"]),
        ("flag", &["run", "--contxt", "lab"]),
        ("hostile", &["run", "--\u{1b}[31m\u{202e}"]),
        ("id-upper-case", &["run", "--id", "Nightly"]),
        ("id-empty", &["run", "--id", ""]),
        ("id-ends-in-dash", &["run", "--id", "a-"]),
        ("id-too-long", &["run", "--id", &long]),
        ("id-hostile", &["run", "--id", "\u{1b}]0;owned\u{7}"]),
        ("format", &["list", "--format", "yaml"]),
        ("speed", &["simulate", "--join", "config", "--speed", "NaN"]),
        (
            "fault",
            &["simulate", "--join", "config", "--fault", "\u{1b}[31m"],
        ),
        (
            "fault-of-the-way",
            &["simulate", "--join", "config", "--fault", "gone"],
        ),
        ("claim", &["explain", "net.service-ip-from-pot"]),
        ("claim-hostile", &["explain", "\u{1b}[31m\u{202e}"]),
        ("claim-area", &["explain", "net"]),
        ("no-record", &["report"]),
        ("record-device", &["report", "/dev/zero"]),
    ] {
        let said = tool.run(arguments);
        assert_eq!(said.code, Some(2), "{name}: {}", said.stderr);
        check(&format!("arguments-{name}"), &said.errors());
    }
}

#[test]
fn output_that_is_lost_is_an_error() {
    for arguments in [["list"].as_slice(), &["config", "example"], &["--help"]] {
        let full = fs::File::options().write(true).open("/dev/full");
        let lost = std::process::Command::new(env!("CARGO_BIN_EXE_winconform"))
            .args(arguments)
            .stdout(full.expect("every Linux has it"))
            .output()
            .expect("the binary runs");
        assert_eq!(lost.status.code(), Some(1), "{arguments:?}");
        let said = String::from_utf8_lossy(&lost.stderr);
        assert!(said.contains("takes no more: No space left"), "{said}");
    }
}
