//! Checks the manifests as written: a server accepts them, PowerShell can parse their scripts, and the
//! simulator runs their commands and all commands that the tool sends.
//!
//! kubectl asks the control plane in `WINCONFORM_TEST_KUBECONFIG` whether it accepts the manifests; without
//! it, that test prints that it did not run.

use std::path::{Path, PathBuf};
use std::process::Command;

use hybrid_sim::{ImageOn, simulates};
use serde_json::{Value as Json, json};
use tree_sitter::{Node, Parser};
use winconform_core::config::{Image, Images};
use winconform_core::facts::WindowsBuild;
use winconform_core::method::Quantity;

use super::{control_plane, not_run};

/// The path of every manifest.
fn manifests() -> Vec<PathBuf> {
    let mut paths = Vec::new();
    collect(&folder(), &mut paths);
    paths.sort();
    assert!(paths.len() > 5, "{paths:?}");
    paths
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests")
}

fn collect(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            collect(&path, into);
        } else {
            into.push(path);
        }
    }
}

fn objects(manifest: &Path) -> Vec<Json> {
    let text = std::fs::read_to_string(manifest).expect("text");
    serde_saphyr::from_multiple(&text).expect("YAML")
}

/// The pod spec in an object.
fn pods_of(object: &Json) -> &Json {
    match object["kind"].as_str() {
        Some("Pod") => &object["spec"],
        _ => &object["spec"]["template"]["spec"],
    }
}

/// The operating systems that an object's pods may run on, Windows as `true`.
fn systems(object: &Json) -> Vec<bool> {
    let spec = pods_of(object);
    let said = [
        &spec["os"]["name"],
        &spec["nodeSelector"]["kubernetes.io/os"],
    ];
    match said.into_iter().find_map(Json::as_str) {
        Some(os) => vec![os == "windows"],
        None => vec![false, true],
    }
}

fn words(list: &Json) -> Vec<String> {
    let list = list.as_array().into_iter().flatten();
    list.filter_map(|word| Some(word.as_str()?.to_owned()))
        .collect()
}

/// A command line with the container that runs it.
struct Line<'a> {
    words: Vec<String>,
    container: &'a Json,
}

/// The command lines of an object's containers, as the containers get them: the kubelet turns `$$` into `$`,
/// except in hooks.
fn command_lines(object: &Json) -> Vec<Line<'_>> {
    let spec = pods_of(object);
    let kinds = ["containers", "initContainers", "ephemeralContainers"];
    let containers = kinds
        .iter()
        .filter_map(|kind| spec[kind].as_array())
        .flatten();
    let mut lines = Vec::new();
    for container in containers {
        let mut entry = [words(&container["command"]), words(&container["args"])].concat();
        if container["command"].is_null() && !entry.is_empty() {
            // kubernetes, test/images/agnhost/Dockerfile, and its Dockerfile_windows
            let image = container["image"].as_str().unwrap_or_default();
            assert!(
                image.contains("agnhost"),
                "{image} has an entry point of its own"
            );
            entry.insert(0, "/agnhost".to_owned());
        }
        let probes = ["startupProbe", "readinessProbe", "livenessProbe"];
        let probes = probes.map(|probe| words(&container[probe]["exec"]["command"]));
        let expanded = std::iter::once(entry).chain(probes).map(|line| {
            let words = line.iter().map(|word| word.replace("$$", "$"));
            words.collect()
        });
        let hooks = ["postStart", "preStop"].map(|hook| &container["lifecycle"][hook]);
        let hooks = hooks.map(|hook| words(&hook["exec"]["command"]));
        let commands = expanded.chain(hooks).filter(|words| !words.is_empty());
        lines.extend(commands.map(|words| Line { words, container }));
    }
    lines
}

/// Whether a container of an object is a `HostProcess` container.
fn is_host_process(object: &Json, container: &Json) -> bool {
    let of = |spec: &Json| spec["securityContext"]["windowsOptions"]["hostProcess"] == true;
    of(pods_of(object)) || of(container)
}

/// The scripts that an object hands to PowerShell.
fn scripts(object: &Json) -> Vec<String> {
    let lines = command_lines(object).into_iter().map(|line| line.words);
    let runs = |line: &Vec<String>| line[0].ends_with("powershell.exe");
    let script = |line: Vec<String>| {
        let is_flag = |word: &String| word.eq_ignore_ascii_case("-command");
        let at = line
            .iter()
            .position(is_flag)
            .expect("a script after -Command");
        line[at + 1..].join(" ")
    };
    lines.filter(runs).map(script).collect()
}

/// The first syntax error of a script by PowerShell's grammar.
fn fault(script: &str) -> Option<String> {
    let mut parser = Parser::new();
    let grammar = tree_sitter_powershell::LANGUAGE.into();
    parser
        .set_language(&grammar)
        .expect("a grammar of this library's version");
    let tree = parser.parse(script, None).expect("a tree");
    let mut nodes = vec![tree.root_node()];
    while let Some(node) = nodes.pop() {
        if node.is_error() || node.is_missing() {
            return Some(described(node, script));
        }
        let mut cursor = node.walk();
        nodes.extend(node.children(&mut cursor));
    }
    None
}

fn described(node: Node<'_>, script: &str) -> String {
    let (row, text) = (node.start_position().row + 1, &script[node.byte_range()]);
    format!("line {row}: {} `{text}`", node.kind())
}

/// docs/running.md says so. The scheduler would overfill a node with pods that request less than they take. Those of the
/// area `sched` are there to be placed, and some are bound nowhere.
#[test]
fn a_windows_pod_requests_at_least_90_mib() {
    let apart = ["sched", "prepull", "unbound-pods.yaml"].map(|name| folder().join(name));
    let starts = |path: &PathBuf| !apart.iter().any(|folder| path.starts_with(folder));
    for path in manifests().into_iter().filter(starts) {
        for object in objects(&path) {
            let spec = pods_of(&object);
            let containers = spec["containers"].as_array().into_iter().flatten();
            let mut on_node = containers.clone().map(|one| is_host_process(&object, one));
            if spec.is_null() || systems(&object) != [true] || on_node.any(|it| it) {
                continue;
            }
            let requests = containers.map(|one| one["resources"]["requests"]["memory"].as_str());
            let amounts = requests.map(|amount| Quantity::parse(amount?));
            let sum = amounts.map(|amount| amount.expect("an amount"));
            let sum = sum.fold(Quantity::ZERO, Quantity::plus);
            let least = Quantity::parse("90Mi").expect("an amount");
            assert!(sum >= least, "{}: {sum}", path.display());
        }
    }
}

#[test]
fn powershell_can_read_every_script() {
    let mut read = Vec::new();
    for manifest in manifests() {
        let name = manifest
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        for script in objects(&manifest).iter().flat_map(scripts) {
            assert_eq!(fault(&script), None, "{name}:\n{script}");
            read.push(name.clone());
        }
    }
    let expected = [
        "leaving-core.yaml",
        "node-sample.yaml",
        "node-side.yaml",
        "windows-node.yaml",
        "each-windows-node.yaml",
        "shared-processes.yaml",
        "slow-starter.yaml",
        "win-webserver.yaml",
    ];
    read.sort();
    let mut expected = expected.map(str::to_owned);
    expected.sort();
    assert_eq!(read, expected);
}

#[test]
fn every_command_line_of_a_manifest_is_simulated() {
    let server_core =
        Images::default().for_role(Image::ServerCore, Some(WindowsBuild::SERVER_2022));
    let server_core = server_core.expect("an image");
    let mut seen = 0;
    for manifest in manifests() {
        for object in objects(&manifest) {
            for Line { words, container } in command_lines(&object) {
                let mut words = words;
                // What is relative to the working directory of a HostProcess container is found there
                if let (Some(directory), false) =
                    (container["workingDir"].as_str(), words[0].contains(':'))
                {
                    words[0] = format!("{}\\{}", directory.trim_end_matches('\\'), words[0]);
                }
                let words: Vec<_> = words.iter().map(String::as_str).collect();
                let named = container["image"].as_str().expect("an image");
                let reference = match named.strip_prefix("winconform/servercore") {
                    // The nodes decide which tag it has
                    Some(_) => &server_core,
                    None => named,
                };
                let mut systems = systems(&object).into_iter();
                let runs = systems.any(|windows| {
                    let image = ImageOn {
                        reference,
                        windows,
                        host_process: is_host_process(&object, container),
                    };
                    simulates(&image, &words, "")
                });
                assert!(runs, "{}: {words:?}", manifest.display());
                seen += 1;
            }
        }
    }
    assert!(seen > 20, "{seen} command lines");
}

/// The images in which the tool runs commands.
const SENT_INTO: [Image; 4] = [
    Image::AgnhostLinux,
    Image::WindowsProber,
    Image::HostProcess,
    Image::ServerCore,
];

/// Whether the simulator runs a command in one of these images.
fn is_simulated(windows: bool, words: &[&str], input: &str) -> bool {
    let images = Images::default();
    SENT_INTO.into_iter().any(|role| {
        let reference = images.for_role(role, Some(WindowsBuild::SERVER_2022));
        let image = ImageOn {
            reference: &reference.expect("an image"),
            windows,
            host_process: role == Image::HostProcess,
        };
        simulates(&image, words, input)
    })
}

#[test]
fn every_command_that_is_sent_is_simulated() {
    let forms = include_str!("../../core/src/command/forms.txt").lines();
    let forms: Vec<_> = forms.filter(|line| !line.starts_with('#')).collect();
    assert!(forms.len() > 40, "{forms:?}");
    for form in forms {
        let (_, rest) = form.split_once(' ').expect(form);
        let (os, rest) = rest.split_once(' ').expect(form);
        let (argv, input) = match rest.split_once(" < ") {
            Some((argv, input)) => (argv, serde_json::from_str(input).expect(form)),
            None => (rest, String::new()),
        };
        let argv: Vec<String> = serde_json::from_str(argv).expect(form);
        let words: Vec<_> = argv.iter().map(String::as_str).collect();
        assert!(is_simulated(os == "windows", &words, &input), "{form}");
    }
}

#[test]
fn what_is_not_in_the_list_is_not_simulated() {
    for windows in [false, true] {
        for words in [["wget", "a"], ["cmd.exe", "/c"], ["sh", "-c"]] {
            assert!(!is_simulated(windows, &words, ""), "{words:?}");
        }
    }
    // The tool gives `-K -` a configuration
    assert!(!is_simulated(false, &["curl", "-q", "-K", "-"], ""));
}

#[test]
fn every_agnhost_is_of_the_release_that_the_image_table_names() {
    let agnhost = Images::default().for_role(Image::AgnhostLinux, None);
    let agnhost = agnhost.expect("an image");
    let items: Vec<_> = manifests().iter().flat_map(|path| objects(path)).collect();
    let text = json!(items).to_string();
    let words = text.split('"').filter(|word| word.contains("agnhost:"));
    let others: Vec<_> = words.filter(|word| *word != agnhost).collect();
    assert!(text.contains(&agnhost) && others.is_empty(), "{others:?}");
}

#[test]
fn a_real_server_accepts_every_manifest() {
    let test = "a_real_server_accepts_every_manifest";
    let Some(kubeconfig) = control_plane(test) else {
        return;
    };
    let kubectl = Command::new("kubectl")
        .args(["version", "--client"])
        .output();
    if kubectl.is_err() {
        return not_run(test, "kubectl is not installed");
    }
    let kubectl = |arguments: &[&str]| {
        let mut command = Command::new("kubectl");
        let output = command
            .env("KUBECONFIG", &kubeconfig)
            .args(arguments)
            .output();
        let output = output.expect("kubectl runs");
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        (output.status.success(), said)
    };
    // The other objects refer to these: a dry run creates nothing for the next object
    let temporary = tempfile::tempdir().expect("a folder");
    let items: Vec<_> = manifests().iter().flat_map(|path| objects(path)).collect();
    let items = items
        .into_iter()
        .filter(|object| object["kind"] == "RuntimeClass");
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items.collect::<Vec<_>>()});
    let classes = temporary.path().join("classes.json");
    std::fs::write(&classes, list.to_string()).expect("written");
    let classes = classes.to_str().expect("text");
    let namespaces = folder().join("namespaces.yaml");
    let namespaces = namespaces.to_str().expect("text");
    // A server-side apply, as in the tool; the namespace may exist already
    let apply = |more: &[&str]| {
        let apply = [
            "apply",
            "--server-side",
            "--force-conflicts",
            "--validate=strict",
        ];
        kubectl(&[&apply[..], more].concat())
    };
    let mut said: Vec<_> = [namespaces, classes]
        .map(|file| apply(&["-f", file]))
        .into();
    for namespace in ["winconform", "winconform-host"] {
        let wait = [
            "wait",
            "--for=create",
            "--timeout=60s",
            "serviceaccount/default",
            "-n",
            namespace,
        ];
        said.push(kubectl(&wait));
    }
    for manifest in manifests() {
        let mut items = objects(&manifest);
        // Kubernetes itself does not serve it
        items.retain(|object| object["kind"] != "VolumeSnapshot");
        let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
        let name = manifest.file_name().expect("a name");
        let file = temporary.path().join(name).with_extension("json");
        std::fs::write(&file, list.to_string()).expect("written");
        let file = file.to_str().expect("text");
        said.push(apply(&["--dry-run=server", "-f", file]));
    }
    let unknown = [
        "create",
        "--dry-run=server",
        "--validate=strict",
        "-f",
        namespaces,
    ];
    let again = kubectl(&unknown);
    let gone = [namespaces, classes].map(|file| kubectl(&["delete", "--timeout=60s", "-f", file]));
    for (accepted, said) in said {
        assert!(accepted, "{said}");
        // A warning announces a later refusal
        assert!(!said.contains("Warning"), "{said}");
    }
    assert!(
        !again.0 && again.1.contains("AlreadyExists"),
        "the server was asked: {again:?}"
    );
    assert!(gone.iter().all(|(gone, _)| *gone), "{gone:?}");
}
