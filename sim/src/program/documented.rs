//! The table of docs/simulated-programs.md against the programs that there are.

use std::collections::BTreeSet;

use super::tests::{place, run};
use super::{NOT_SIMULATED, Refusal, Started};
use crate::image::{Family, resolve};
use crate::topology::{Build, Os, Pool};

const PAGE: &str = include_str!("../../../docs/simulated-programs.md");

/// The first cell of every row, and the last.
fn rows() -> Vec<(&'static str, &'static str)> {
    let cells = |line: &'static str| {
        let mut cells = line.strip_prefix("| ")?.trim_end_matches('|').split(" | ");
        Some((cells.next()?.trim(), cells.last()?.trim()))
    };
    let rows = PAGE.lines().filter_map(cells);
    rows.filter(|(program, _)| program.starts_with('`'))
        .collect()
}

fn documented() -> BTreeSet<&'static str> {
    let simulated = |(_, confirmed): &(_, &str)| *confirmed != "not simulated";
    let names = rows()
        .into_iter()
        .filter(simulated)
        .flat_map(|(programs, _)| programs.split(", "));
    names.map(|name| name.trim_matches('`')).collect()
}

/// Whether any image of a system runs something of that name.
fn runs(os: Os, args: &[&str]) -> bool {
    let families = [
        Family::Agnhost,
        Family::Servercore,
        Family::Iis,
        Family::Busybox,
        Family::Pause,
    ];
    families.into_iter().any(|family| {
        let started = run(&place(os, family), args);
        match started {
            Started::Ended(ran) => ran.code != NOT_SIMULATED,
            Started::Refused(Refusal::Missing(_)) => false,
            _ => true,
        }
    })
}

#[test]
fn the_images_are_those_that_nodes_pull() {
    let section = PAGE.split("## The images\n").nth(1).expect("it is there");
    let section = section.split("\n## ").next().unwrap_or_default();
    let cells = section.lines().filter_map(|line| line.split(" | ").nth(1));
    let listed: BTreeSet<&str> = cells
        .flat_map(|cell| cell.split(", "))
        .filter_map(|name| name.strip_prefix('`')?.strip_suffix('`'))
        .collect();
    let pulled = |name: &str| {
        let image = format!("registry.example/{name}:ltsc2022");
        let pools = [Pool::Linux, Pool::Windows(Build::Ws2022)];
        let found = pools
            .into_iter()
            .find_map(|pool| resolve(&image, pool).ok());
        found.map(|image| image.family)
    };
    let families: BTreeSet<Family> = listed.iter().filter_map(|name| pulled(name)).collect();
    assert_eq!(listed.len(), 7, "{listed:?}");
    assert_eq!(families.len(), 7, "{families:?}");
    assert_eq!(pulled("nginx"), None);
}

/// Every name that the code could answer to.
const NAMES: &[&str] = &[
    "[",
    "agnhost",
    "ash",
    "bash",
    "cat",
    "cmd",
    "curl",
    "date",
    "dig",
    "echo",
    "env",
    "false",
    "find",
    "findstr",
    "grep",
    "head",
    "hostname",
    "id",
    "ip",
    "ipconfig",
    "ls",
    "mkdir",
    "more",
    "nc",
    "netstat",
    "netsh",
    "nslookup",
    "pause",
    "ping",
    "powershell",
    "printenv",
    "printf",
    "ps",
    "pwd",
    "pwsh",
    "rm",
    "route",
    "sc",
    "seq",
    "ServiceMonitor",
    "sh",
    "sleep",
    "systeminfo",
    "tail",
    "tasklist",
    "test",
    "timeout",
    "touch",
    "true",
    "uname",
    "wc",
    "wget",
    "which",
    "where",
    "whoami",
];

/// Those that are other names of documented ones.
const ALIASES: &[&str] = &["[", "ash", "bash", "find", "agnhost"];

#[test]
fn every_program_has_a_row() {
    let documented = documented();
    for name in NAMES {
        let arguments: &[&str] = match *name {
            "sh" | "ash" | "bash" => &[name, "-c", "true"],
            "ping" => &[name, "-c", "1", "-n", "1", "127.0.0.1"],
            "ip" => &[name, "addr"],
            "nslookup" | "printf" | "which" | "where" | "find" | "findstr" | "grep" | "mkdir"
            | "rm" | "touch" => &[name, "a"],
            "cmd" => &[name, "/c", "hostname"],
            "powershell" => &[name, "Start-Sleep 1"],
            "seq" | "sleep" => &[name, "1"],
            "head" | "tail" => &[name, "-n1"],
            "wc" => &[name, "-l"],
            _ => &[name],
        };
        let there = runs(Os::Linux, arguments) || runs(Os::Windows, arguments);
        let row = documented.contains(name) || ALIASES.contains(name);
        let refused = !there && *name != "agnhost";
        assert!(row != refused, "`{name}`: runs {there}, has a row {row}");
    }
    for command in [
        "connect",
        "netexec",
        "pause",
        "serve-hostname",
        "test-webserver",
        "dns-suffix",
        "dns-server-list",
        "etc-hosts",
    ] {
        assert!(runs(Os::Linux, &["agnhost", command]), "agnhost {command}");
        assert!(
            documented.contains(format!("agnhost {command}").as_str()),
            "agnhost {command}"
        );
    }
}

#[test]
fn every_row_says_what_confirms_it() {
    let rows = rows();
    assert!(rows.len() > 40, "{}", rows.len());
    for (program, confirmed) in rows {
        let first = confirmed.split([',', ' ']).next().unwrap_or_default();
        let known = [
            "differential",
            "transcript",
            "source",
            "documentation",
            "not",
        ];
        assert!(known.contains(&first), "{program}: `{confirmed}`");
    }
}

/// The programs out of whose match arms NAMES is made: an arm that is not there is news.
#[test]
fn the_names_are_those_of_the_code() {
    let sources = [
        include_str!("shell.rs"),
        include_str!("shell/applets.rs"),
        include_str!("windows.rs"),
        include_str!("mod.rs"),
    ];
    for source in sources {
        let applets = source.lines().filter(|line| {
            line.starts_with("        \"") && (line.contains("=> ") || line.contains(" if "))
        });
        for line in applets {
            let arm = line.split("=>").next().unwrap_or_default();
            for name in arm.split('"').skip(1).step_by(2) {
                let known = NAMES.iter().any(|known| known.eq_ignore_ascii_case(name));
                let built_in = [
                    ":",
                    "exit",
                    "cd",
                    "command",
                    "export",
                    "trap",
                    "break",
                    "continue",
                    "wait",
                    "unset",
                    "exec",
                    "busybox",
                    "sort",
                    "c:\\\\curl\\\\amd64",
                    "servicemonitor",
                ];
                assert!(
                    known || built_in.contains(&name),
                    "`{name}` is in no list of programs"
                );
            }
        }
    }
}
