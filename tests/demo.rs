//! `winconform demo`, as the binary: whole runs in memory.

use std::process::{Command, Output};

fn demo(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_winconform"))
        .arg("demo")
        .args(arguments)
        .output()
        .expect("the binary runs")
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
    let (said, told) = (text(&done.stdout), text(&done.stderr));
    assert_eq!(done.status.code(), Some(0), "{said}{told}");
    let last = said.lines().last().unwrap_or_default();
    assert!(last.ends_with("conformant (exit 0)"), "{said}");
    assert!(last.contains("(0 flaky)"), "{last}");
    assert!(said.contains("nothing left"), "{said}");
    let end = told.lines().last().unwrap_or_default();
    assert!(
        end.starts_with("Simulated: a control plane of Kubernetes 1."),
        "{told}"
    );
    assert!(end.contains(", 2 nodes and "), "{end}");
    for report in ["junit.xml", "report.json", "record.jsonl"] {
        let written = std::fs::read_to_string(out.join(report)).expect("it is written");
        assert!(written.contains("a simulation, no cluster"), "{report}");
    }
}

#[test]
fn a_fault_is_found() {
    let fault = "kube-proxy-dead=windows-2022";
    let done = demo(&["--topology", "hybrid", "--fault", fault]);
    let said = text(&done.stdout);
    assert_eq!(done.status.code(), Some(10), "{said}");
    let fails: Vec<_> = said
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("fail "))
        .map(str::trim)
        .collect();
    assert!(
        fails
            .iter()
            .any(|check| check.starts_with("net.nodeport-from-node[")),
        "{said}"
    );
    assert!(
        fails.iter().all(|check| check.starts_with("net.")),
        "{fails:?}"
    );
}

/// One Linux node and one of Windows Server 2022, with addresses of both families.
const DUAL: &str = "ip-families: [IPv4, IPv6]
nodes:
  - {name: linux-a, pool: linux}
  - {name: windows-2022-a, pool: windows-2022}
";

#[test]
fn of_two_families_the_broken_one_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("dual.yaml");
    std::fs::write(&file, DUAL).expect("it is written");
    let topology = file.to_str().expect("a path in UTF-8");
    let told = |said: &str, verdict: &str| -> Vec<String> {
        let lines = said.lines().filter_map(|line| {
            let check = line.trim_start().strip_prefix(verdict)?.trim();
            check.starts_with("net.").then(|| check.to_owned())
        });
        lines.collect()
    };
    let second = |checks: &[String]| {
        checks
            .iter()
            .filter(|id| id.contains("family=ipv6"))
            .count()
    };
    let healthy = demo(&["--topology", topology]);
    let said = text(&healthy.stdout);
    assert_eq!(healthy.status.code(), Some(0), "{said}");
    let passed = told(&said, "pass ");
    assert!(second(&passed) > 20, "{passed:?}");
    assert_eq!(second(&told(&said, "known-limitation ")), 2, "{said}");
    let broken = demo(&[
        "--topology",
        topology,
        "--fault",
        "ipv6-proxy-dead=windows-2022",
    ]);
    let said = text(&broken.stdout);
    assert_eq!(broken.status.code(), Some(10), "{said}");
    let failed = told(&said, "fail ");
    assert!(failed.len() > 5, "{said}");
    assert_eq!(second(&failed), failed.len(), "{failed:?}");
}

#[test]
fn what_is_not_known_is_told_before_anything_begins() {
    for (arguments, word) in [
        (["--fault", "kube-proxy-ded"], "kube-proxy-dead"),
        (["--fault", "kube-proxy-dead=windows-2016"], "windows-2016"),
        (["--topology", "three-build"], "three-builds"),
        (["--kubernetes-version", "1.2"], "1.37.0"),
    ] {
        let refused = demo(&arguments);
        let told = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{told}");
        assert!(told.contains(word), "{arguments:?}: {told}");
        assert_eq!(text(&refused.stdout), "");
    }
}
