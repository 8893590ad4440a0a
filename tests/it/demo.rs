//! The binary's `winconform demo`: whole runs in memory, and a served cluster.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

pub(crate) fn tool(arguments: &[&str]) -> Output {
    let mut tool = Command::new(env!("CARGO_BIN_EXE_winconform"));
    tool.args(arguments).output().expect("the binary runs")
}

fn demo(arguments: &[&str]) -> Output {
    tool(&[&["demo"], arguments].concat())
}

/// The standard output of a process that must end with this exit code.
#[track_caller]
fn said(done: &Output, code: i32) -> String {
    let (said, stderr) = (text(&done.stdout), text(&done.stderr));
    assert_eq!(done.status.code(), Some(code), "{said}{stderr}");
    said
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_healthy_cluster_is_conformant_and_said_to_be_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    let path = out.to_str().expect("a path in UTF-8");
    let done = demo(&["--topology", "hybrid", "--out", path]);
    let (said, stderr) = (said(&done, 0), text(&done.stderr));
    let words: Vec<_> = said.split_whitespace().collect();
    let words = words.join(" ");
    assert!(words.ends_with(" — conformant (exit 0)"), "{said}");
    assert!(words.contains(" (0 flaky) in "), "{said}");
    assert!(said.contains("nothing left"), "{said}");
    let end = stderr.lines().last().unwrap_or_default();
    let begins = "Simulated: a control plane of Kubernetes 1.";
    assert!(end.starts_with(begins), "{stderr}");
    assert!(end.contains(", 2 nodes and "), "{end}");
    for report in ["junit.xml", "report.json", "record.jsonl"] {
        let written = fs::read_to_string(out.join(report)).expect("it is written");
        assert!(written.contains("a simulation, no cluster"), "{report}");
        assert!(!written.contains("***"), "{report} has lost words");
    }
}

/// Pods without a readiness probe are Ready before they listen; and a single node has no other to ask.
#[test]
fn node_ports_are_neither_flaky_nor_asked_of_nobody() {
    for topology in ["windows-only", "single-windows"] {
        let ports = ["net.nodeport-external", "*node-port-from-windows*"];
        let select: Vec<_> = ports.iter().flat_map(|id| ["--select", id]).collect();
        let done = demo(&[&["--topology", topology][..], &select].concat());
        let report = said(&done, 0);
        assert!(report.contains("(0 flaky)"), "{report}");
    }
}

#[test]
fn a_demo_repeats_its_checks() {
    let select = [
        "--topology",
        "hybrid",
        "--select",
        "net.dns-service",
        "--repeat",
        "3",
    ];
    let report = said(&demo(&[&select[..], &["--format", "json"]].concat()), 0);
    assert!(report.contains("\"pass\": 3"), "{report}");
}

#[test]
fn a_fault_of_one_node_is_told_in_words_that_can_be_searched() {
    let start = ["--topology", "hybrid", "--fault"];
    let of =
        |fault: &str, more: &[&str]| text(&demo(&[&start, &[fault][..], more].concat()).stdout);
    let report = of("servercore-crashes", &["--details", "--select", "sample.*"]);
    assert!(report.contains("-1073741502 (0xC0000142"), "{report}");
    let report = of("memory-pressure=windows", &["--select", "pod.*"]);
    assert!(
        report.contains("node.kubernetes.io/memory-pressure"),
        "{report}"
    );
    let report = of(
        "outbound-ping-answers",
        &["--details", "--select", "net.outbound-icmp"],
    );
    let report: Vec<_> = report.split_whitespace().collect();
    let report = report.join(" ");
    assert!(report.contains("explain net.outbound-icmp"), "{report}");
    // What went wrong stands at the end of what containerd says
    let report = of("pause-image-wrong", &["--details", "--select", "sample.*"]);
    let words: Vec<_> = report.split_whitespace().collect();
    assert!(
        words
            .join(" ")
            .contains("does not match the host operating system"),
        "{report}"
    );
}

#[test]
fn a_configuration_holds_for_a_demo_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("config.yaml");
    let text = "select: [net.nodeport-external, net.metadata]\nprofile: strict\n\
                outside: {metadata: true}\n";
    fs::write(&file, text).expect("it is written");
    let config = file.to_str().expect("UTF-8");
    let report = said(&demo(&["--details", "--config", config]), 0);
    assert!(
        report.contains("informational      net.metadata"),
        "{report}"
    );
    // The client outside still reaches the simulated nodes
    let reached = "pass               net.nodeport-external[pool=windows-2022,source=outside]";
    assert!(report.contains(reached), "{report}");
}

#[test]
fn a_fault_that_makes_nothing_fail_is_said_to() {
    let unseen = "Nothing counts against the cluster for what was broken (clock-wrong).";
    let select = ["--topology", "hybrid", "--select", "sample.nanoserver"];
    for (fault, expected) in [
        (&["--fault", "clock-wrong"][..], true),
        (&[], false),
        (&["--fault", "pull-fails=windows"], false),
    ] {
        let stderr = text(&demo(&[&select[..], fault].concat()).stderr);
        let said = stderr.lines().any(|line| line == unseen);
        assert_eq!(said, expected, "{fault:?}: {stderr}");
    }
}

#[test]
fn a_fault_that_begins_after_the_end_is_said_to() {
    let late = "Nothing was broken by clock-wrong@2h: the run had ended by then.";
    let select = ["--topology", "hybrid", "--select", "sample.nanoserver"];
    for (fault, expected) in [("clock-wrong@2h", true), ("clock-wrong@1ms", false)] {
        let said = text(&demo(&[&select[..], &["--fault", fault]].concat()).stderr);
        assert_eq!(said.lines().any(|line| line == late), expected, "{said}");
        // What was not broken could not be seen
        let unseen = said.contains("Nothing counts against the cluster for what was broken");
        assert_eq!(unseen, !expected, "{said}");
    }
    // This run takes no time
    let select = ["--topology", "hybrid", "--select", "env.node-labels"];
    let both = ["--fault", "clock-wrong@2h", "--fault", "clock-wrong=linux"];
    let said = text(&demo(&[&select[..], &both].concat()).stderr);
    let unseen = "Nothing counts against the cluster for what was broken (clock-wrong=linux).";
    for line in [late, unseen] {
        assert!(said.lines().any(|said| said == line), "{said}");
    }
}

#[test]
fn nodes_are_as_many_as_are_wanted() {
    let select = ["--select", "env.node-labels"];
    let done = demo(&[&["--topology", "hybrid", "--nodes", "9"][..], &select].concat());
    let (said, stderr) = (said(&done, 0), text(&done.stderr));
    let pools = said.lines().find(|line| line.starts_with("pools"));
    let pools = pools.unwrap_or_default();
    let counts = "linux 5 nodes, windows-2022 4 nodes";
    assert!(pools.ends_with(counts), "{said}");
    assert!(stderr.contains(", 9 nodes and 1 second, in"), "{stderr}");
    let one = ["--topology", "single-windows", "--nodes", "1"];
    let done = demo(&[&one[..], &select].concat());
    assert!(text(&done.stderr).contains(", 1 node and "), "{done:?}");
}

#[test]
fn how_many_windows_nodes_are_observed_from_themselves_is_said_where_it_is_not_all() {
    let words = |nodes: &str| {
        let ids = ["net.node-to-service-ip*", "net.service-ip-from-pod*"];
        let select: Vec<_> = ids.iter().flat_map(|id| ["--select", id]).collect();
        let of = ["--topology", "hybrid", "--nodes", nodes];
        let said = said(&demo(&[&of[..], &select].concat()), 0);
        let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("observed from linux "), "{said}");
        words
    };
    let (few, many) = (words("4"), words("8"));
    assert!(few.contains("windows-2022 2 of 2 nodes"), "{few}");
    assert!(!few.contains("themselves"), "{few}");
    // The nodes with a pod of the Service
    let expected = "windows-2022 4 of 4 nodes, windows-2022 themselves 2 of 4 nodes (windows-2022-a, windows-2022-b)";
    assert!(many.contains(expected), "{many}");
}

#[test]
fn a_load_balancer_is_observed_where_there_is_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("nodes.yaml");
    let nodes = "load-balancer: true\nnodes: [{name: l, pool: linux, count: 2}, {name: w, pool: windows-2022}]\n";
    fs::write(&file, nodes).expect("written");
    let topology = file.to_str().expect("a path in UTF-8");
    let select = [
        "--topology",
        topology,
        "--select",
        "sample.iis-loadbalancer",
        // Its answers from outside show that the observer's side works
        "--select",
        "net.nodeport-external",
    ];
    for (fault, code) in [(&[][..], 0), (&["--fault", "load-balancer-dead"], 10)] {
        said(&demo(&[&select[..], fault].concat()), code);
    }
}

/// The seconds of simulated time that a report says the run took.
fn took(said: &str) -> f64 {
    let (_, end) = said.rsplit_once(") in ").expect("the end of a report");
    let seconds = end.split(' ').next().expect("a number");
    seconds.parse().expect("seconds")
}

#[test]
fn at_the_pace_of_real_time_a_run_takes_what_it_says() {
    let begun = Instant::now();
    // It takes more than a second, and no image
    let arguments = ["--topology", "hybrid", "--select", "pod.os-mismatch"];
    said(&demo(&arguments), 0);
    let (fast, begun) = (begun.elapsed(), Instant::now());
    let done = demo(&[&arguments[..], &["--pace", "real"]].concat());
    let real = begun.elapsed();
    let report = said(&done, 0);
    // The report rounds to a tenth of a second.
    let least = Duration::from_secs_f64(took(&report) - 0.05);
    assert!(
        least > Duration::from_secs(1) && least <= real,
        "{real:?}: {report}"
    );
    assert!(fast < real, "{fast:?}, {real:?}");
}

#[test]
fn a_run_at_either_pace_can_be_interrupted() {
    for pace in ["real", "fast"] {
        interrupt(pace);
    }
}

/// Interrupts a run once it has a plan, and checks that it writes its reports.
fn interrupt(pace: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut child = Command::new(env!("CARGO_BIN_EXE_winconform"))
        .args(["demo", "--topology", "hybrid", "--pace", pace, "--out"])
        .arg(folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let progress = BufReader::new(child.stderr.take().expect("piped"));
    for line in progress.lines() {
        if line.expect("it is text").contains("planned") {
            signal(&child, "INT");
        }
    }
    let done = child.wait_with_output().expect("it ends");
    let said = text(&done.stdout);
    assert_eq!(done.status.code(), Some(130), "{said}");
    assert!(folder.path().join("junit.xml").exists());
}

fn signal(child: &Child, name: &str) {
    let pid = child.id().to_string();
    let sent = Command::new("kill").args(["-s", name, &pid]).status();
    assert!(sent.expect("kill starts").success());
}

/// A served cluster, which ends when this is dropped.
struct Served {
    child: Child,
    _said: BufReader<ChildStdout>,
    kubeconfig: PathBuf,
}

impl Served {
    fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_winconform"))
            .args(["demo", "--serve", "--topology", "hybrid"])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let mut said = BufReader::new(child.stdout.take().expect("piped"));
        let (mut line, mut output) = (String::new(), String::new());
        // Two commands, and a line after them
        while !line.contains("http_proxy=") {
            line.clear();
            let read = said.read_line(&mut line).expect("it is text");
            assert!(read > 0, "it ended after: {output}");
            output.push_str(&line);
        }
        let command = |begins: &str| {
            let mut lines = output.lines().map(str::trim);
            let rest = lines.find_map(|line| line.strip_prefix(begins));
            rest.unwrap_or_else(|| panic!("no `{begins}` in: {output}"))
        };
        let kubeconfig = PathBuf::from(command("winconform run --kubeconfig "));
        let shown = format!("{} get nodes -o wide", kubeconfig.display());
        assert_eq!(command("kubectl --kubeconfig "), shown);
        Self {
            child,
            _said: said,
            kubeconfig,
        }
    }

    /// The output of a run against it, which must end with this exit code.
    fn run(&self, select: &str, code: i32) -> String {
        let of = ["--kubeconfig", self.kubeconfig.to_str().expect("UTF-8")];
        let run = ["run", "--select", select];
        said(&tool(&[&run[..], &of].concat()), code)
    }

    fn address(&self) -> String {
        let text = fs::read_to_string(&self.kubeconfig).expect("it is written");
        let (_, server) = text.split_once("server: https://").expect("an address");
        server.lines().next().expect("it ends").to_owned()
    }

    /// Ends it with a signal, checks that it leaves nothing, and returns the exit code.
    fn ends(mut self, name: &str) -> Option<i32> {
        let address = self.address();
        assert!(TcpStream::connect(&address).is_ok(), "it is served");
        signal(&self.child, name);
        let code = self.child.wait().expect("it ends").code();
        let file = &self.kubeconfig;
        assert!(!file.exists(), "{} is left", file.display());
        assert!(TcpStream::connect(&address).is_err(), "{address} listens");
        code
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}

#[test]
fn a_served_cluster_is_run_against_and_leaves_nothing() {
    let served = Served::start(&["--nodes", "3"]);
    let mode = |path: &Path| {
        let metadata = fs::metadata(path).expect("it is there");
        metadata.permissions().mode() & 0o777
    };
    let folder = served.kubeconfig.parent().expect("a folder").to_owned();
    assert_eq!((mode(&served.kubeconfig), mode(&folder)), (0o600, 0o700));
    let said = served.run("sched.node-selector", 0);
    let pools = "linux 2 nodes, windows-2022 1 node";
    assert!(said.contains(pools), "{said}");
    assert_eq!(served.ends("TERM"), Some(0));
    assert!(!folder.exists(), "{} is left", folder.display());
}

#[test]
fn a_kubeconfig_that_somebody_else_wrote_stays() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("kubeconfig");
    let mut served = Served::start(&["--kubeconfig", path.to_str().expect("UTF-8")]);
    fs::write(&path, "mine").expect("it is written");
    signal(&served.child, "TERM");
    assert_eq!(served.child.wait().expect("it ends").code(), Some(0));
    assert_eq!(fs::read_to_string(&path).expect("it stays"), "mine");
}

#[test]
fn a_served_cluster_is_broken_as_it_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let mine = folder.path().join("mine");
    let fault = ["--fault", "node-labels-missing=windows-2022"];
    let file = ["--kubeconfig", mine.to_str().expect("UTF-8")];
    let served = Served::start(&[&fault[..], &file].concat());
    assert_eq!(served.kubeconfig, mine);
    served.run("env.node-labels", 10);
    assert_eq!(served.ends("INT"), Some(0));
}

/// A signal before the nodes have joined ends it, too.
#[test]
fn a_signal_that_comes_early_leaves_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("kubeconfig");
    let mut child = Command::new(env!("CARGO_BIN_EXE_winconform"))
        .args(["demo", "--serve", "--nodes", "500", "--kubeconfig"])
        .arg(&path)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .expect("the binary starts");
    let files = || fs::read_dir(folder.path()).expect("a folder").count();
    // It listens for signals before it creates a file
    let begun = Instant::now();
    while files() == 0 && begun.elapsed() < Duration::from_mins(1) {
        std::thread::yield_now();
    }
    assert!(!path.exists(), "it is there before it is whole");
    signal(&child, "TERM");
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    assert_eq!(files(), 0);
}

/// Follows the book's steps to add a claim, exactly as written.
#[test]
fn a_claim_is_added_in_the_four_steps_of_the_book() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("docs/writing-checks.md")).expect("it is there");
    let (_, steps) = page
        .split_once("## Add a claim in four steps")
        .expect("the section");
    let (steps, _) = steps.split_once("\n## ").expect("a section after it");
    let fenced = |language: &str| -> Vec<&str> {
        let parts = steps.split("```").skip(1).step_by(2);
        parts
            .filter_map(|part| part.strip_prefix(language)?.strip_prefix('\n'))
            .collect()
    };
    let folder = tempfile::tempdir().expect("a folder");
    let copied = Command::new("cp")
        .arg("-r")
        .args([root.join("suites"), folder.path().join("suites")])
        .status();
    assert!(copied.expect("cp starts").success());
    let shell = |command: &str| {
        let tool = env!("CARGO_BIN_EXE_winconform");
        let command = command.replace("winconform ", &format!("{tool} "));
        let mut shell = Command::new("sh");
        shell
            .args(["-e", "-c", &command])
            .current_dir(folder.path());
        shell.output().expect("a shell")
    };
    let [copy, holds, fails] = fenced("sh")[..] else {
        panic!("three commands: {steps}")
    };
    assert!(shell(copy).status.success());
    let [claim, case] = fenced("yaml")[..] else {
        panic!("two files: {steps}")
    };
    let claims = folder.path().join("mine/claims.yaml");
    let before = fs::read_to_string(&claims).expect("copied");
    fs::write(&claims, before + claim).expect("written");
    fs::write(folder.path().join("mine/net/mine.yaml"), case).expect("written");

    for (command, code, verdict) in [(holds, 0, "pass "), (fails, 10, "fail ")] {
        let said = said(&shell(command), code);
        let mut lines = said.lines().map(str::trim_start);
        assert!(lines.any(|line| line.starts_with(verdict)), "{said}");
    }
}

#[test]
fn what_is_not_tested_somewhere_says_where_and_a_report_exits_as_its_run_did() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().to_str().expect("a path in UTF-8");
    let fault = "memory-pressure=windows-2022";
    let select = "net.service-ip-from-pod";
    let done = demo(&["--fault", fault, "--select", select, "--out", out]);
    let output = said(&done, 11);
    let unwrapped = output.split_whitespace().collect::<Vec<_>>().join(" ");
    let begin = "1 claim not tested on windows-2022 (the cluster has no usable windows-2022 node: ";
    assert!(unwrapped.contains(begin), "{output}");
    let report = tool(&["report", &format!("{out}/record.jsonl")]);
    assert_eq!(said(&report, 11), output);
}

#[test]
fn a_record_with_other_names_has_the_same_verdicts() {
    let folder = tempfile::tempdir().expect("a folder");
    let [plain, other] = ["plain", "other"].map(|name| folder.path().join(name));
    let [plain, other] = [&plain, &other].map(|path| path.to_str().expect("a path in UTF-8"));
    let areas = ["--select", "area=env", "--select", "net.pod-to-node*"];
    let fault = ["--topology", "hybrid", "--fault", "dns-down"];
    demo(&[&areas[..], &fault, &["--out", plain]].concat());
    let record = format!("{plain}/record.jsonl");
    let done = tool(&["report", &record, "--anonymize", "--out", plain]);
    assert!(text(&done.stderr).contains("name another folder"));
    let before = tool(&["report", &record, "--format", "json"]);
    let after = tool(&["report", &record, "--anonymize", "--out", other]);
    assert_eq!(before.status.code(), after.status.code());
    for file in ["record.jsonl", "report.json", "junit.xml"] {
        let written = fs::read_to_string(format!("{other}/{file}")).expect("it is written");
        assert!(written.contains("a simulation, no cluster"), "{file}");
        for name in ["windows-2022-a", "\"linux-a\"", "10.128."] {
            assert!(!written.contains(name), "{name} in {file}");
        }
    }
    let verdicts = |report: &str| {
        let report: serde_json::Value = serde_json::from_str(report).expect("JSON");
        let checks = report["checks"].as_array().expect("checks").iter();
        let each = checks.map(|check| (check["id"].clone(), check["verdict"].clone()));
        each.collect::<Vec<_>>()
    };
    let written = fs::read_to_string(format!("{other}/report.json")).expect("it is written");
    assert_eq!(verdicts(&text(&before.stdout)), verdicts(&written));
    let refused = tool(&["report", &record, "--out", other]);
    assert!(text(&refused.stderr).contains("the record of another run"));
    let kept = fs::read_to_string(format!("{other}/report.json")).expect("it stays");
    assert_eq!(kept, written);
}

#[test]
fn a_record_that_is_in_no_file_is_not_pointed_to() {
    let select = ["--topology", "hybrid", "--select", "sample.nanoserver"];
    let fault = ["--fault", "pull-fails=windows", "--details"];
    let done = demo(&[&select[..], &fault].concat());
    let said = text(&done.stdout);
    assert!(said.contains("fixtures that failed"), "{said}");
    assert!(!said.contains("record.jsonl"), "{said}");
    assert!(said.contains("--out DIR"), "{said}");
}

#[test]
fn on_a_full_disk_the_code_that_is_told_is_that_of_the_process() {
    let folder = tempfile::tempdir().expect("a folder");
    // Writing beyond the limit fails as it does on a full disk
    let full = "trap '' XFSZ; ulimit -f 128; exec \"$@\"";
    let done = Command::new("sh")
        .args(["-c", full, "sh", env!("CARGO_BIN_EXE_winconform"), "demo"])
        .args(["--topology", "hybrid", "--out"])
        .arg(folder.path())
        .output()
        .expect("the binary runs");
    let (said, stderr) = (text(&done.stdout), text(&done.stderr));
    assert_eq!(done.status.code(), Some(1), "{stderr}");
    let words: Vec<_> = said.split_whitespace().collect();
    assert!(words.ends_with(&["(exit", "1)"]), "{said}");
}
