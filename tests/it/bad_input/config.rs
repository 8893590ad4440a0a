//! Config files with mistakes, and selections of unknown names.

use std::fs;

use serde_json::json;
use winconform_core::facts::Os;
use winconform_core::fixture::FixtureName;

use super::kubeconfig;
use super::server::{Answer, Server, status};
use super::suites::folder;
use super::tool::{Said, Tool, check};

#[track_caller]
fn refused(name: &str, text: impl AsRef<[u8]>) {
    let tool = Tool::new();
    tool.write("config.yaml", text);
    let said = tool.run(&["config", "check", "config.yaml"]);
    assert_eq!(said.code, Some(2), "{name}: {}", said.stderr);
    check(&format!("config-{name}"), &said.errors());
}

#[test]
fn files_that_are_no_configuration() {
    refused("empty", "");
    refused("comments", "# profile: strict\n");
    refused("a-list", "- profile: strict\n");
    refused("syntax-error", "profile: [strict\n");
    refused(
        "duplicate-key",
        "profile: strict\nlimits: {attempts: 1}\nprofile: default\n",
    );
    refused("two-documents", "profile: strict\n---\nprofile: default\n");
    refused("not-utf8", [0xFF, 0xFE, 0x00, 0x80]);
    refused("too-large", vec![b'#'; (1 << 20) + 1]);
    refused(
        "hostile",
        "\"pro\\e[31mfile\\u202e\": 1\nprofile: \"\\e]0;owned\\a\"\n",
    );
    refused("huge-word", format!("profile: {}\n", "x".repeat(1 << 19)));
}

#[test]
fn no_file() {
    let tool = Tool::new();
    let said = || tool.run(&["config", "check", "config.yaml"]).errors();
    check("config-missing", &said());
    fs::create_dir(tool.path("config.yaml")).expect("a folder");
    check("config-a-folder", &said());
}

#[test]
fn a_file_named_like_a_secret_keeps_the_places_of_its_mistakes() {
    let tool = Tool::new();
    tool.write(
        "token.yaml",
        "profile: strikt\nnodes: {exclude: [Payments]}\n",
    );
    let said = tool.run(&["config", "check", "token.yaml"]);
    check("config-named-like-a-secret", &said.errors());
}

#[test]
fn every_mistake_of_a_setting() {
    refused("unknown-profile", "profile: strikt\n");
    refused(
        "unknown-keys",
        "profiles: strict\nlimits: {atempts: 1}\nduration: {fixture: 1m}\n",
    );
    refused(
        "wrong-types",
        "profile: true\nimages: none\ndurations: [20m]\nlimits: {attempts: two}\nselect: area=net\n\
         waivers: {check: net.*}\n",
    );
    refused(
        "durations",
        "durations:\n  fixture: 20\n  converge: 20 parsecs\n  tear-down: 0s\n  api-answer: 2h\n  \
         http-connect: 2s\n  unscheduled: -5m\n",
    );
    refused("connect-takes-all", "durations: {http-connect: 8s}\n");
    refused(
        "limits",
        "limits: {api-in-flight: 0, attempts: 11, hold-rounds: 2.5}\n",
    );
    refused(
        "images",
        "images:\n  mirror: https://registry.example.com/mirror\n  agnhost: registry.example.com/agnhost\n  \
         host-process: \"a b:1\"\n  server-core: registry.example.com/servercore:ltsc2022\n  \
         server-core-tags: {windows-2022: ltsc2022, 10.0.25398: \"a b\", 10.0.26100: 1}\n",
    );
    refused(
        "passwords",
        "outside:\n  proxy: http://bob:hunter2@192.0.2.1:3128\n  http://bob:hunter2@a.example: 1\n  \
         names: [{url: \"bob:hun/ter2@a.example\", says: a}]\nimages:\n  mirror: bob:hunter2@a.example/b\n  \
         agnhost: https://bob:hunter2@a.example/b:1\n  host-process: a.example/b:1@bob:hunter2\n  \
         iis-tags: {10.0.17763: \"bob:hunter2@b\"}\n  pull-secrets: [\"bob:hunter2@a.example/b\"]\n",
    );
    refused(
        "pull-secrets",
        "images:\n  pull-policy: ifNotPresent\n  pull-secrets:\n  - regcred\n  - registry/regcred\n  \
         - registry/regcred\n  - Registry/regcred\n  - registry/reg_cred\n  - 5\n  \
         agnhost-builds: [10.0.20348, windows-2022]\nprotected: production\n",
    );
    refused("air-gapped-and-public", "profile: air-gapped\n");
    refused(
        "air-gapped-and-half-public",
        "profile: air-gapped\nimages: {agnhost: \"registry.example.com/agnhost:2.66.1\"}\n",
    );
}

#[test]
fn every_mistake_of_a_waiver() {
    refused(
        "waiver-without-all",
        "waivers:\n  - check: net.service-ip-from-pod\n",
    );
    refused(
        "waivers",
        "waivers:\n\
         - {check: '*', reason: all, owner: me, expires: 2099-01-01}\n\
         - {check: '*.*', reason: all, owner: me, expires: 2099-01-01}\n\
         - {check: 'net.{a,b}', reason: x, owner: me, expires: 2099-01-01}\n\
         - {check: net.service-ip-form-pod, reason: x, owner: me, expires: 2099-01-01}\n\
         - {check: net.node-to-service-ip, reason: '', owner: 5, expires: 2099-01-01}\n\
         - {check: net.service-ip-from-pod, reason: x, owner: me, expires: 01/02/2099}\n\
         - {check: net.service-ip-from-pod, reason: x, owner: me, expires: 2099-02-30}\n\
         - {check: reject.hostPID, reason: x, owner: me, expires: 2099-01-01}\n\
         - {check: reject.hostPID, reason: y, owner: me, expires: 2099-01-01}\n\
         - {check: 'net.dns-service/each-node[*node=win-a]', reason: x, owner: me, expires: 2099-01-01}\n\
         - {check: 'net.*/rings', reason: x, owner: me, expires: 2099-01-01}\n",
    );
}

#[test]
fn a_selection_in_a_file_is_told_with_its_place() {
    refused(
        "select",
        "profile: strikt\nselect:\n  - net.service-ip-form-pod\n  - area=nett\n  - \"!type=rejections\"\n  \
         - pod=windows-2022\n  - 5\n  - source=linux\n",
    );
}

/// The file is valid: the report of a run with it says the same.
#[test]
fn an_expired_waiver_is_told() {
    let tool = Tool::new();
    tool.write(
        "config.yaml",
        "waivers:\n- {check: reject.hostPID, reason: x, owner: me, expires: 2001-01-01}\n",
    );
    let said = tool.run(&["config", "check", "config.yaml"]);
    assert_eq!(said.code, Some(0));
    check("config-expired-waiver", &said.all());
}

#[test]
fn what_is_printed_is_valid() {
    let tool = Tool::new();
    for arguments in [["config", "example"], ["config", "schema"]] {
        let said = tool.run(&arguments);
        assert_eq!((said.stderr.as_str(), said.code), ("", Some(0)));
        // JSON is YAML, but a schema is no configuration
        tool.write("config.yaml", said.stdout);
        let checked = tool.run(&["config", "check", "config.yaml"]);
        assert_eq!(
            checked.code,
            Some(if arguments[1] == "example" { 0 } else { 2 })
        );
    }
}

#[test]
fn selections_of_what_is_not_there() {
    let tool = Tool::new();
    for (name, terms) in [
        ("unknown-id", &["net.service-ip-form-pod"][..]),
        ("unknown-area", &["area=nett"]),
        ("area-alone", &["net"]),
        ("unknown-kind", &["type=rejections"]),
        ("unknown-axis", &["pod=windows-2022"]),
        ("unknown-source", &["source=linux"]),
        ("no-pattern", &["net.[pool"]),
        ("empty", &[""]),
        ("hostile", &["\u{1b}[31m", "area=\u{202e}net"]),
        ("several", &["area=nett", "!type=x", "net.*"]),
    ] {
        let mut arguments = vec!["list"];
        for term in terms {
            arguments.extend(["--select", term]);
        }
        let said = tool.run(&arguments);
        assert_eq!(said.code, Some(2), "{name}: {}", said.stderr);
        check(&format!("select-{name}"), &said.errors());
    }
}

/// Plans against a server with one Windows pool that refuses all facts but its version and nodes.
fn planned(arguments: &[&str]) -> Said {
    let server = Server::http(|request| match request.path.as_str() {
        "/version" => Answer::Json(200, json!({"gitVersion": "v1.37.0"})),
        "/api/v1/nodes" => Answer::Json(
            200,
            json!({"kind": "NodeList", "apiVersion": "v1", "metadata": {}, "items": [{
                "metadata": {"name": "b", "labels": {"node.kubernetes.io/windows-build": "10.0.20348"}},
                "status": {
                    "nodeInfo": {"operatingSystem": "windows", "kernelVersion": "10.0.20348.1"},
                    "conditions": [{"type": "Ready", "status": "True"}],
                },
            }]}),
        ),
        _ => status(403, "forbidden"),
    });
    let tool = Tool::new();
    tool.write(
        "kubeconfig",
        kubeconfig::kubeconfig(&format!("http://{}", server.address), ""),
    );
    tool.write("config.yaml", "select: ['net.*']\n");
    tool.lay(&folder("sound"), "suites");
    tool.run(&[&["plan", "--kubeconfig", "kubeconfig"], arguments].concat())
}

#[test]
fn pools_are_those_of_the_cluster() {
    let said = planned(&["--select", "pool=windows-2019", "--select", "area=net"]);
    check("select-unknown-pool", &said.errors());
    assert_eq!(said.code, Some(12), "{}", said.stderr);
    let said = planned(&["--select", "net.*[pool=windows-2019*"]);
    check("select-unknown-check", &said.errors());
    assert_eq!(said.code, Some(12), "{}", said.stderr);
    // A pool could be called so
    let said = planned(&["--select", "*zzz*"]);
    assert_eq!(said.code, Some(12), "{}", said.stderr);
    assert!(
        said.stderr
            .contains("no check of this cluster is called `*zzz*`"),
        "{}",
        said.stderr
    );
}

#[test]
fn a_claim_without_checks_is_told() {
    let said = planned(&["--suites", "suites", "--select", "env.build-label"]);
    assert_eq!(said.code, Some(12), "{}", said.stderr);
    let words = "nothing is selected: env.build-label has no checks yet; there is net (";
    assert!(said.stderr.starts_with(words), "{}", said.stderr);
}

#[test]
fn a_run_without_pods_of_system_is_as_documented() {
    let page = include_str!("../../../docs/running.md");
    let (_, listed) = page
        .split_once("A run without them leaves out:")
        .expect("the list");
    let listed = listed.split("```").nth(1).expect("its lines");
    let words = listed.split('\'').filter(|word| word.starts_with('!'));
    let arguments: Vec<_> = words.flat_map(|word| ["--select", word]).collect();
    let said = planned(&arguments);
    let (_, fixtures) = said
        .stdout
        .split_once("\nfixtures\n")
        .expect("the list of fixtures");
    let on_node = FixtureName::all().filter(|name| name.os() == Os::Windows && name.is_on_node());
    for name in on_node {
        assert!(
            !fixtures.contains(&format!("  {} ", name.as_str())),
            "{}:\n{}",
            name.as_str(),
            said.stdout
        );
    }
}

#[test]
fn a_profile_without_public_images_counts_where_something_is_pulled() {
    let tool = Tool::new();
    let said = |select: &str| {
        tool.write(
            "config.yaml",
            format!("profile: air-gapped\nselect: [{select}]\n"),
        );
        tool.run(&["config", "check", "config.yaml"])
    };
    for nothing in [
        "area=env, \"!env.node-services\"",
        "area=env, \"!env.node-services\", area=reject",
        "\"!area=net\", \"!area=sample\", \"!area=sched\", \"!area=pod\", \"!area=limit\", \"!area=storage\", \"!area=identity\", \"!area=workload\", \"!env.node-services\"",
    ] {
        let said = said(nothing);
        assert_eq!(said.code, Some(0), "{nothing}: {}", said.stderr);
    }
    for something in [
        "env.node-services",
        "area=sample",
        "net.service-ip-from-pod",
        "\"!area=net\"",
    ] {
        let said = said(something);
        assert_eq!(said.code, Some(2), "{something}");
        assert!(said.stderr.contains("public registry"), "{}", said.stderr);
    }
}

/// The selection of the arguments replaces that of the file.
#[test]
fn a_plan_for_programs_says_what_was_selected() {
    let json = |arguments: &[&str]| -> serde_json::Value {
        let said = planned(&[&["--format", "json"], arguments].concat());
        assert_eq!((said.stderr.as_str(), said.code), ("", Some(0)));
        serde_json::from_str(&said.stdout).expect("JSON")
    };
    let areas = |plan: &serde_json::Value| -> std::collections::BTreeSet<String> {
        let checks = plan["checks"].as_array().expect("a list").iter();
        let claims = checks.map(|check| check["claim"].as_str().expect("text").to_owned());
        claims
            .map(|claim| claim.split('.').next().unwrap_or_default().to_owned())
            .collect()
    };
    let by_file = json(&["--config", "config.yaml"]);
    assert_eq!(by_file["selection"], json!(["net.*"]));
    assert_eq!(areas(&by_file), ["net".to_owned()].into());
    let by_argument = json(&["--config", "config.yaml", "--select", "area=reject"]);
    assert_eq!(by_argument["selection"], json!(["area=reject"]));
    assert_eq!(areas(&by_argument), ["reject".to_owned()].into());
    assert!(
        by_argument["left-out"]["net"].as_u64() > Some(0),
        "{by_argument}"
    );
}

#[test]
fn a_report_is_printed_in_the_form_asked_for() {
    let tool = Tool::new();
    let started = json!({"seq": 0, "at": "2026-01-02T03:04:05Z", "event": {"run-started": {
        "schema": 1, "version": "0", "run": "r", "context": "c", "suites": "d",
    }}});
    tool.write("record.jsonl", format!("{started}\n"));
    let said = |format| tool.run(&["report", "record.jsonl", "--format", format]);
    let json: serde_json::Value = serde_json::from_str(&said("json").stdout).expect("JSON");
    assert_eq!(json["run"]["profile"], "default");
    assert!(said("junit").stdout.starts_with("<?xml"));
    assert!(
        said("text")
            .stdout
            .starts_with("could not tell (exit 11): the run was killed\n")
    );
    let details = tool.run(&["report", "record.jsonl", "--details"]);
    assert!(details.stdout.contains("\nwinconform 0\n"));
    check("arguments-report-format", &said("html").errors());
    for deadline in ["20", "0s", "-1m", "2562047788015215h"] {
        let said = tool.run(&["run", &format!("--deadline={deadline}")]);
        check(&format!("arguments-deadline{deadline}"), &said.errors());
    }
    check(
        "arguments-repeat0",
        &tool.run(&["run", "--repeat=0"]).errors(),
    );
    let both = tool.run(&["run", "--repeat=2", "--soak=1h"]);
    check("arguments-repeat-and-soak", &both.errors());
}
