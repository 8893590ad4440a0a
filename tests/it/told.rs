//! What the binary tells beside its reports: systems of continuous integration, shells, and other runs.

use std::fs;
use std::process::{Command, Output};

use tempfile::TempDir;

const SYSTEMS: [&str; 6] = [
    "GITHUB_ACTIONS",
    "GITHUB_STEP_SUMMARY",
    "GITLAB_CI",
    "TF_BUILD",
    "PROW_JOB_ID",
    "ARTIFACTS",
];

/// Runs the tool in a folder with these variables, and none of whatever runs the tests.
fn tool(folder: &TempDir, variables: &[(&str, &str)], arguments: &[&str]) -> Output {
    let mut tool = Command::new(env!("CARGO_BIN_EXE_winconform"));
    for name in SYSTEMS {
        tool.env_remove(name);
    }
    tool.current_dir(folder.path())
        .envs(variables.iter().copied())
        .args(arguments)
        .output()
        .expect("the binary runs")
}

fn demo(folder: &TempDir, variables: &[(&str, &str)], arguments: &[&str]) -> Output {
    let demo = ["demo", "--topology", "hybrid", "--select", "area=net"];
    tool(folder, variables, &[&demo, arguments].concat())
}

fn files(folder: &TempDir, name: &str) -> Vec<String> {
    let entries = fs::read_dir(folder.path().join(name)).expect("a folder");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<_> = names
        .map(|name| name.into_string().expect("text"))
        .collect();
    names.sort();
    names
}

fn stderr(done: &Output) -> String {
    String::from_utf8_lossy(&done.stderr).into_owned()
}

fn stdout(done: &Output) -> String {
    String::from_utf8_lossy(&done.stdout).into_owned()
}

const EACH: [&str; 4] = ["metrics.prom", "record.jsonl", "report.html", "report.json"];

#[test]
fn each_system_gets_its_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let broken = ["--fault", "kube-proxy-dead=windows-2022"];
    let cause = "no Service IP answers in windows-2022";
    for (variables, more, words) in [
        (&[][..], &["junit.xml"][..], ""),
        (
            &[
                ("GITHUB_ACTIONS", "true"),
                ("GITHUB_STEP_SUMMARY", "sum.md"),
            ],
            &["junit.xml"],
            "::error title=winconform%3A kube-proxy::",
        ),
        (
            &[("TF_BUILD", "True")],
            &["junit.xml", "winconform-summary.md"],
            "##vso[task.logissue type=error]winconform: kube-proxy: ",
        ),
        (
            &[
                ("GITLAB_CI", "true"),
                ("CI_JOB_URL", "https://gitlab.example/1"),
                ("CI_PROJECT_DIR", "."),
            ],
            &["winconform-annotations.json", "junit.xml"],
            "",
        ),
        (
            &[("PROW_JOB_ID", "1"), ("ARTIFACTS", "elsewhere")],
            &["junit_winconform.xml", "metadata.json"],
            "",
        ),
    ] {
        let out = format!("{variables:?}");
        let done = demo(
            &folder,
            variables,
            &[&broken[..], &["--out", &out]].concat(),
        );
        assert_eq!(done.status.code(), Some(10), "{out}: {}", stderr(&done));
        let mut wanted = [&EACH, more].concat();
        wanted.sort_unstable();
        assert_eq!(files(&folder, &out), wanted, "{out}");
        let said = stderr(&done);
        let told = said.lines().find(|line| line.starts_with(words));
        assert!(
            told.is_some_and(|line| words.is_empty() || line.contains(cause)),
            "{out}: {said}"
        );
        let commands = said
            .lines()
            .filter(|line| line.starts_with("::") || line.contains("##"));
        assert_eq!(commands.count() > 0, !words.is_empty(), "{out}: {said}");
    }
    let summary = fs::read_to_string(folder.path().join("sum.md")).expect("a summary");
    assert!(summary.starts_with("### winconform: not conformant") && summary.contains(cause));
    // Without --out Prow's folder is the one of its artifacts, in which somebody else's file stays
    fs::create_dir(folder.path().join("elsewhere")).expect("made");
    fs::write(folder.path().join("elsewhere/metadata.json"), "{}").expect("written");
    let prow = [("PROW_JOB_ID", "1"), ("ARTIFACTS", "elsewhere")];
    assert_eq!(demo(&folder, &prow, &[]).status.code(), Some(0));
    assert!(files(&folder, "elsewhere").contains(&"junit_winconform.xml".to_owned()));
    let theirs = fs::read_to_string(folder.path().join("elsewhere/metadata.json"));
    assert_eq!(theirs.expect("it stays"), "{}");
    assert_eq!(
        demo(&folder, &prow, &["--ci", "none", "--out", "plain"])
            .status
            .code(),
        Some(0)
    );
    assert!(files(&folder, "plain").contains(&"junit.xml".to_owned()));
}

#[test]
fn the_night_with_a_fault_and_its_cause_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    for (night, fault) in [
        ("1", None),
        ("2", Some("dns-down=windows-2022")),
        ("3", None),
    ] {
        let fault: Vec<_> = fault.iter().flat_map(|fault| ["--fault", *fault]).collect();
        let out = format!("nights/{night}");
        demo(&folder, &[], &[&fault[..], &["--out", &out]].concat());
        for file in ["record.jsonl", "report.json"] {
            let path = folder.path().join(&out).join(file);
            let text = fs::read_to_string(&path).expect("it is there");
            fs::write(
                &path,
                text.replace("2026-01-01T", &format!("2026-01-0{night}T")),
            )
            .expect("written");
        }
    }
    let trend = stdout(&tool(&folder, &[], &["trend", "nights"]));
    let lines: Vec<_> = trend.lines().collect();
    assert!(
        lines
            .iter()
            .any(|line| line.starts_with("net.dns-service in windows-2022 ")
                && line.contains(" P F P ")
                && line.ends_with("first in run 2")),
        "{trend}"
    );
    assert!(
        lines
            .iter()
            .any(|line| line.contains("  2  2026-01-02T") && line.contains("; dns: ")),
        "{trend}"
    );
    let page = stdout(&tool(
        &folder,
        &[],
        &[
            "trend",
            "nights/3",
            "nights/2/report.json",
            "--format",
            "html",
        ],
    ));
    assert!(
        page.starts_with("<!DOCTYPE html>") && page.contains("net.dns-service in windows-2022")
    );
    // A run that is named twice is one, two that look alike are two
    let twice = [
        "trend",
        "nights/3",
        "nights/3/report.json",
        "nights/../nights/3/record.jsonl",
    ];
    let once = stdout(&tool(&folder, &[], &twice));
    assert!(once.starts_with("### winconform: 1 run\n"), "{once}");
    fs::create_dir_all(folder.path().join("copies/1")).expect("made");
    let [from, to] = ["nights/3", "copies/1"].map(|of| folder.path().join(of).join("record.jsonl"));
    fs::copy(from, to).expect("copied");
    let both = stdout(&tool(&folder, &[], &["trend", "nights/3", "copies/1"]));
    assert!(both.starts_with("### winconform: 2 runs\n"), "{both}");
    fs::create_dir(folder.path().join("copies/2")).expect("made");
    let lacking = tool(&folder, &[], &["trend", "copies"]);
    let left_out =
        "left out: error: `copies/2` has no run: neither a record.jsonl nor a report.json";
    assert!(stderr(&lacking).contains(left_out), "{}", stderr(&lacking));
    assert!(stdout(&lacking).starts_with("### winconform: 1 run\n"));
    let none = tool(&folder, &[], &["trend", "."]);
    assert_eq!(none.status.code(), Some(2));
    assert!(stderr(&none).contains("has no run"), "{}", stderr(&none));
    let again = tool(
        &folder,
        &[],
        &["run", "--rerun-failed", "nights/1/record.jsonl"],
    );
    assert_eq!(again.status.code(), Some(2));
    assert!(
        stderr(&again).contains("could not be told or was not tested"),
        "{}",
        stderr(&again)
    );
}

#[test]
fn reports_tell_what_changed_since_a_baseline() {
    let folder = tempfile::tempdir().expect("a folder");
    let broken = ["--fault", "dns-down=windows-2022", "--out", "2"];
    assert_eq!(demo(&folder, &[], &["--out", "1"]).status.code(), Some(0));
    let github = [
        ("GITHUB_ACTIONS", "true"),
        ("GITHUB_STEP_SUMMARY", "sum.md"),
    ];
    let done = demo(
        &folder,
        &github,
        &[&broken[..], &["--baseline", "1/report.json"]].concat(),
    );
    // The exit code is that of the run
    assert_eq!(done.status.code(), Some(10), "{}", stderr(&done));
    let text = |name: &str| fs::read_to_string(folder.path().join(name)).expect("it is there");
    let id = "net.dns-service";
    let new = |text: &str, told: &str| {
        let (_, since) = text
            .split_once("since rdemo, began 2026-01-01T00:00:")
            .expect(told);
        let (counts, rest) = since.split_once("new failure").expect(told);
        assert!(
            !counts.ends_with(" 0 ") && rest.contains(id),
            "{told}: {since}"
        );
    };
    for (told, report) in [
        ("text", stdout(&done)),
        ("page", text("2/report.html")),
        ("summary", text("sum.md")),
    ] {
        new(&report, told);
    }
    // Made again from the record it is the same report, and `diff` counts the same
    let again = ["report", "2/record.jsonl", "--baseline", "1"];
    assert_eq!(stdout(&tool(&folder, &[], &again)), stdout(&done));
    let diff = stdout(&tool(&folder, &[], &["diff", "1", "2"]));
    let counts = diff.lines().last().unwrap_or_default();
    assert!(text("2/report.html").contains(counts), "{counts}");
    let mended = demo(&folder, &[], &["--details", "--baseline", "2"]);
    let said = stdout(&mended);
    assert_eq!(mended.status.code(), Some(0));
    let (_, fixed) = said.split_once("\n  fixed\n").expect("a part of its own");
    assert!(fixed.contains(id), "{said}");
    assert!(!stdout(&demo(&folder, &[], &[])).contains("since rdemo"));
}

#[test]
fn diff_exits_by_its_gate() {
    let folder = tempfile::tempdir().expect("a folder");
    for (out, fault, code) in [
        ("well", None, 0),
        ("failed", Some("dns-down=windows-2022"), 10),
        ("untold", Some("memory-pressure=windows-2022"), 11),
    ] {
        let fault: Vec<_> = fault.iter().flat_map(|fault| ["--fault", *fault]).collect();
        let done = demo(&folder, &[], &[&fault[..], &["--out", out]].concat());
        assert_eq!(done.status.code(), Some(code), "{out}: {}", stderr(&done));
    }
    for (before, after, codes) in [
        ("well", "well", [0, 0, 0]),
        ("well", "failed", [10, 10, 10]),
        ("failed", "failed", [0, 10, 0]),
        ("failed", "well", [0, 0, 0]),
        ("well", "untold", [0, 0, 10]),
        ("untold", "well", [0, 0, 0]),
    ] {
        for (gate, code) in ["new-failures", "any-failure", "lost-coverage"]
            .into_iter()
            .zip(codes)
        {
            let done = tool(&folder, &[], &["diff", before, after, "--gate", gate]);
            let said = [stdout(&done), stderr(&done)].concat();
            assert_eq!(
                done.status.code(),
                Some(code),
                "{before} {after} {gate}: {said}"
            );
        }
        // That of new failures is the one if none is named
        let done = tool(&folder, &[], &["diff", before, after]);
        assert_eq!(done.status.code(), Some(codes[0]), "{before} {after}");
    }
}

/// Before the run looks for a cluster.
#[test]
fn a_baseline_that_is_none_is_refused_before_anything() {
    let folder = tempfile::tempdir().expect("a folder");
    let later = r#"{"schema": 99, "run": {"id": "r", "began": ""}, "exit": {"code": 0, "meaning": ""}, "checks": []}"#;
    for (name, content) in [
        ("later.json", later),
        ("torn.json", "{\n\"schema\""),
        ("no.jsonl", "{}\n"),
    ] {
        fs::write(folder.path().join(name), content).expect("written");
    }
    for (name, why) in [
        ("none", "failed to read `none`"),
        (
            "later.json",
            "its schema is 99, and this winconform knows 1",
        ),
        (
            "torn.json",
            "EOF while parsing an object at line 2 column 8",
        ),
        ("no.jsonl", "line 1 is not a record's"),
    ] {
        let run = [
            "run",
            "--kubeconfig",
            "nowhere",
            "--out",
            "out",
            "--baseline",
            name,
        ];
        let done = tool(&folder, &[], &run);
        let said = stderr(&done);
        assert_eq!(done.status.code(), Some(2), "{name}: {said}");
        assert!(said.contains(why), "{name}: {said}");
        assert!(!folder.path().join("out").exists(), "{name}");
    }
}

#[test]
fn shells_and_man_are_served() {
    let folder = tempfile::tempdir().expect("a folder");
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = stdout(&tool(&folder, &[], &["completions", shell]));
        assert!(script.contains("rerun-failed"), "{shell}");
    }
    assert_eq!(tool(&folder, &[], &["man", "pages"]).status.code(), Some(0));
    let page = fs::read_to_string(folder.path().join("pages/winconform-run.1"));
    assert!(page.expect("a page").contains("\\-\\-rerun\\-failed"));
}

#[test]
fn a_run_of_skipped_checks_says_why() {
    let folder = tempfile::tempdir().expect("a folder");
    let select = "pod.graceful-node-shutdown";
    let run = ["demo", "--topology", "hybrid", "--select", select];
    let done = tool(&folder, &[("COLUMNS", "200")], &run);
    let said = stdout(&done);
    let mut lines = said.lines();
    let skipped = lines.find(|line| line.starts_with("  skip ") && line.contains(select));
    assert!(
        skipped.is_some_and(|line| line.contains("not asked for: it has a node boot")),
        "{said}"
    );
}

#[test]
fn lists_keep_to_the_columns_that_there_are() {
    let folder = tempfile::tempdir().expect("a folder");
    let listed =
        |list: &str, columns| stdout(&tool(&folder, &[("COLUMNS", columns)], &["demo", list]));
    for list in ["--list-faults", "--list-topologies"] {
        for (columns, most) in [("60", 60), ("120", 120)] {
            let text = listed(list, columns);
            let widest = text.lines().max_by_key(|line| line.chars().count());
            let widest = widest.expect("lines");
            assert!(widest.chars().count() <= most, "{list} {columns}: {widest}");
        }
        let words = |columns| {
            let words: Vec<_> = listed(list, columns)
                .split_whitespace()
                .map(str::to_owned)
                .collect();
            words
        };
        assert_eq!(words("60"), words("200"));
    }
}

/// Lines that are drawn on a terminal while a run goes on are gone at its end, whatever its width.
#[test]
fn what_is_drawn_on_a_terminal_leaves_nothing_behind() {
    const ROWS: u16 = 500;
    for columns in [60, 200] {
        let binary = env!("CARGO_BIN_EXE_winconform");
        let run = format!("stty cols {columns} rows {ROWS}; '{binary}' demo --topology hybrid");
        let mut script = Command::new("script");
        script
            .args(["-qec", &run, "/dev/null"])
            .env("TERM", "xterm");
        let ran = script.env_remove("CI").output().expect("bsdutils is there");
        let drawn = String::from_utf8_lossy(&ran.stdout);
        assert!(drawn.contains(" elapsed"), "nothing is drawn: {drawn}");
        let mut screen = vt100::Parser::new(ROWS, columns, 0);
        screen.process(&ran.stdout);
        let left = screen.screen().contents();
        assert!(!left.contains(" elapsed"), "{columns}: {left}");
        assert!(left.contains("conformant (exit 0)"), "{columns}: {left}");
    }
}

/// A terminal that takes colours gets them; a pipe, one that cannot show them, and a user who wants none do not.
#[test]
fn colours_go_to_terminals_that_take_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let piped = demo(&folder, &[("TERM", "xterm")], &["--out", "run"]);
    assert_eq!(piped.status.code(), Some(0), "{}", stderr(&piped));
    let report = format!(
        "'{}' report run/record.jsonl",
        env!("CARGO_BIN_EXE_winconform")
    );
    let on_terminal = |variables: &[(&str, &str)]| {
        let mut script = Command::new("script");
        script
            .current_dir(folder.path())
            .args(["-qec", &report, "/dev/null"])
            .env_remove("NO_COLOR")
            .envs(variables.iter().copied());
        let shown = stdout(&script.output().expect("bsdutils is there"));
        assert!(shown.contains("conformant (exit 0)"), "{shown}");
        shown
    };
    assert!(on_terminal(&[("TERM", "xterm")]).contains('\u{1b}'));
    for shown in [
        on_terminal(&[("TERM", "dumb")]),
        on_terminal(&[("TERM", "xterm"), ("NO_COLOR", "1")]),
        stdout(&piped),
        stderr(&piped),
    ] {
        assert!(!shown.contains('\u{1b}'), "{shown}");
    }
}
