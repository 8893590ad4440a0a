//! Topologies with mistakes: the tool reports each with its place, all at once, before any node joins.

use super::tool::{Tool, check};

#[track_caller]
fn refused(name: &str, text: impl AsRef<[u8]>) {
    let tool = Tool::new();
    tool.write("nodes.yaml", text);
    given(name, &tool, "nodes.yaml");
}

#[track_caller]
fn given(name: &str, tool: &Tool, topology: &str) {
    let said = tool.run(&["simulate", "--join", "nowhere", "--topology", topology]);
    assert_eq!(said.code, Some(2), "{name}: {}", said.stderr);
    check(&format!("topology-{name}"), &said.errors());
}

#[test]
fn names_that_are_none() {
    let tool = Tool::new();
    given("unknown-name", &tool, "three-build");
    given("hostile-name", &tool, "\u{1b}[31mhybrid");
    std::fs::create_dir(tool.path("folder")).expect("a folder");
    given("a-folder", &tool, "folder");
}

#[test]
fn files_that_are_no_topology() {
    refused("empty", "# nothing\n");
    refused("a-list", "- name: win\n");
    refused("syntax-error", "nodes: [win\n");
    refused("not-utf8", [0xFF, 0xFE]);
}

#[test]
fn every_mistake_of_a_file() {
    refused(
        "unknown-keys",
        "node: []\nnetwork: {mod: overlay}\nnodes:\n- {name: a, pool: linux, cpu: 4, label: {}}\n\
         - {name: b, pool: windows-2022, taints: [{key: os, values: windows, effect: NoSchedule}]}\n",
    );
    refused(
        "missing-keys",
        "nodes:\n- {}\n- {name: a}\n- {pool: linux}\n",
    );
    refused("no-nodes", "nodes: []\n");
    refused("no-list-of-nodes", "outside: true\n");
    refused(
        "wrong-types",
        "outside: perhaps\nnetwork: overlay\nnodes:\n- linux\n- {name: 7, pool: true, count: two, \
         cpus: 1.5, memory: 16, labels: [a], taints: os, handlers: runc, network: {dsr: 1}}\n",
    );
    refused(
        "unknown-pool",
        "nodes:\n- {name: a, pool: windows-2023}\n- {name: b, pool: linus}\n",
    );
    refused(
        "unknown-words",
        "nodes:\n- name: a\n  pool: linux\n  network: {mode: overlai}\n  \
         taints: [{key: os, effect: NoSchedul}]\n",
    );
    refused(
        "same-names",
        "nodes:\n- {name: a, pool: linux}\n- {name: win, pool: windows-2022, count: 3}\n\
         - {name: a, pool: windows-2019}\n- {name: win-b, pool: windows-2019}\n",
    );
    refused(
        "too-many",
        "nodes:\n- {name: a, pool: linux, count: 1500}\n- {name: b, pool: linux, count: 501}\n",
    );
    refused(
        "out-of-bounds",
        "nodes:\n- {name: a, pool: linux, count: 0, cpus: 0, memory: 2Gi}\n\
         - {name: b, pool: linux, count: 2001, cpus: 257, memory: 99999Gi}\n\
         - {name: c, pool: linux, memory: 16GB}\n",
    );
    refused(
        "names-and-labels",
        "nodes:\n- {name: Win_1, pool: linux}\n- {name: '-', pool: linux}\n- name: c\n  pool: linux\n  \
         labels: {kubernetes.io/hostname: x, 'a b': c, d: 'e f', g: true, /h: i}\n  \
         taints: [{key: 'o s', value: '-', effect: NoExecute}]\n",
    );
    refused(
        "dropped-fields",
        "nodes:\n- {name: a, pool: linux}\nwebhooks:\n- drops: spec.afinity\n- drops: spec.containers.args\n\
         - drops: metadata.labels\n- drops: 'spec.containers[*].args'\n",
    );
    let long = "a".repeat(64);
    refused(
        "handlers-and-labels",
        format!(
            "nodes:\n- name: a\n  pool: windows-2022\n  handlers: [Runhcs, '', -a, {long}, 7, a b, ok, ok]\n  \
             labels: {{kubernetes.io/os: linux, node.kubernetes.io/windows-build: '1', {long}: a, \
             Example.com/a: b, example..com/a: b, a/b/c: d, v: {long}, w: '', x: -y}}\n  \
             taints: [{{key: os, effect: NoSchedule}}, {{key: os, value: b, effect: NoSchedule}}]\n\
             - {{name: b, pool: linux, handlers: [{{a: b}}, null]}}\n"
        ),
    );
    refused(
        "hostile",
        "\"\\e[31mnodes\": []\nnodes: [{name: \"\\e]0;owned\\a\", pool: \"\\u202e\"}]\n",
    );
}

#[test]
fn prefixes_that_are_none() {
    let tool = Tool::new();
    for (name, prefix) in [
        ("upper", "A-"),
        ("dash", "-a"),
        ("long", "abcdefghijklmnopq"),
    ] {
        let prefix = format!("--prefix={prefix}");
        let said = tool.run(&["simulate", "--join", "nowhere", &prefix]);
        assert_eq!(said.code, Some(2), "{name}: {}", said.stderr);
        check(&format!("topology-prefix-{name}"), &said.errors());
    }
}
