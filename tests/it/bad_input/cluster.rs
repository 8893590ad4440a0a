//! A scripted server that answers like an API server, within limits.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::process::Command;
use std::sync::{Arc, Mutex, mpsc};

use ordered_watch as watch;
use serde_json::{Value as Json, json};

use super::kubeconfig;
use super::server::{Answer, Asked, Server, status};
use super::tool::{Said, Tool, check};

/// The kinds that a run creates, each with the end of its list's path.
const KINDS: [(&str, &str); 14] = [
    ("/namespaces", "Namespace"),
    ("/pods", "Pod"),
    ("/services", "Service"),
    ("/deployments", "Deployment"),
    ("/replicasets", "ReplicaSet"),
    ("/statefulsets", "StatefulSet"),
    ("/daemonsets", "DaemonSet"),
    ("/cronjobs", "CronJob"),
    ("/jobs", "Job"),
    ("/replicationcontrollers", "ReplicationController"),
    ("/leases", "Lease"),
    ("/priorityclasses", "PriorityClass"),
    ("/runtimeclasses", "RuntimeClass"),
    ("/networkpolicies", "NetworkPolicy"),
];

/// The objects of a cluster by path.
#[derive(Clone, Default)]
struct Objects(Arc<Mutex<BTreeMap<String, Json>>>);

impl Objects {
    /// Answers a request as an API server without admission and controllers.
    fn answer(&self, sent: &Asked) -> Answer {
        let mut objects = self.0.lock().expect("no script panics");
        let version = objects.len() + 1;
        let stored = |mut object: Json| {
            object["metadata"]["uid"] = json!("9e1b");
            object["metadata"]["resourceVersion"] = json!(version.to_string());
            object
        };
        match sent.method.as_str() {
            "POST" | "PATCH" | "PUT" => {
                let name = sent.body["metadata"]["name"].as_str().unwrap_or_default();
                let path = match sent.method.as_str() {
                    "POST" => format!("{}/{name}", sent.path),
                    _ => sent.path.clone(),
                };
                let object = stored(sent.body.clone());
                objects.insert(path, object.clone());
                Answer::Json(if sent.method == "POST" { 201 } else { 200 }, object)
            }
            "DELETE" => match objects.remove(&sent.path) {
                Some(object) => found(object),
                None => status(404, "not found"),
            },
            _ if sent.query.contains("watch=") => Answer::Open,
            _ if sent.path.ends_with("/serviceaccounts/default") => {
                found(json!({"kind": "ServiceAccount"}))
            }
            _ => match KINDS.iter().find(|(plural, _)| sent.path.ends_with(plural)) {
                Some((_, kind)) => {
                    let items = objects.values().filter(|object| object["kind"] == *kind);
                    let items: Vec<_> = items.collect();
                    found(json!({
                        "kind": format!("{kind}List"), "apiVersion": "v1",
                        "metadata": {"resourceVersion": "1"}, "items": items,
                    }))
                }
                None => match objects.get(&sent.path) {
                    Some(object) => found(object.clone()),
                    None => status(404, "not found"),
                },
            },
        }
    }

    fn left(&self) -> Vec<String> {
        let objects = self.0.lock().expect("no script panics");
        objects.keys().cloned().collect()
    }
}

fn found(object: Json) -> Answer {
    Answer::Json(200, object)
}

fn node(name: &str, os: &str, kernel: &str) -> Json {
    json!({
        "metadata": {"name": name, "labels": {"node.kubernetes.io/windows-build": kernel}},
        "spec": {"taints": [{"key": name, "value": kernel, "effect": "NoSchedule"}]},
        "status": {
            "nodeInfo": {"operatingSystem": os, "kernelVersion": kernel},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    })
}

fn nodes(items: &[Json]) -> Answer {
    found(json!({"kind": "NodeList", "apiVersion": "v1", "metadata": {}, "items": items}))
}

fn hybrid() -> Answer {
    nodes(&[
        node("a", "linux", "6.1.0"),
        node("b", "windows", "10.0.20348.2700"),
    ])
}

/// A cluster whose requests `script` may answer first.
fn cluster(script: impl Fn(&Asked) -> Option<Answer> + Send + Sync + 'static) -> (Server, Objects) {
    let objects = Objects::default();
    let stored = objects.clone();
    let server = Server::http(move |request| {
        script(request).unwrap_or_else(|| match request.path.as_str() {
            "/version" => found(json!({"gitVersion": "v1.36.0"})),
            "/api/v1/namespaces/kube-system" => {
                found(json!({"kind": "Namespace", "metadata": {"uid": "1-2-3"}}))
            }
            "/api/v1/nodes" => hybrid(),
            _ => stored.answer(request),
        })
    });
    (server, objects)
}

fn tool(server: &Server) -> Tool {
    let tool = Tool::new();
    let address = format!("http://{}", server.address);
    tool.write("config", kubeconfig::kubeconfig(&address, ""));
    tool
}

/// The output of `plan` when the server answers the list of nodes with `answer`.
fn plan(answer: impl Fn() -> Answer + Send + Sync + 'static) -> Said {
    let (server, _) = cluster(move |request| (request.path == "/api/v1/nodes").then(&answer));
    let tool = tool(&server);
    // The tool repeats a failed request for six times as long
    tool.write("brisk.yaml", "durations: {api-answer: 1s}\n");
    tool.run(&["plan", "--kubeconfig", "config", "--config", "brisk.yaml"])
}

#[test]
fn hostile_nodes_are_planned_for_without_harm() {
    let said = plan(|| {
        let huge = "9".repeat(1 << 20);
        nodes(&[
            node("lin\u{1b}[31m", "linux", "\u{202e}\0"),
            node(
                "win\u{1b}]0;owned\u{7}",
                "windows",
                "10.0.20348.2700\u{1b}[2J",
            ),
            node("\u{202e}niw", "windows", &huge),
            node("", "windows", "10.0.99999.1 \0"),
            node("sun", "\u{1b}[31msolaris", "5.11"),
            json!({"metadata": null, "status": []}),
            json!(null),
        ])
    });
    check("plan-hostile-nodes", &said.all());
}

#[test]
fn a_list_of_nodes_that_cannot_be_had_leaves_its_checks_broken() {
    let refused = plan(|| status(403, "nodes is \u{1b}[31mforbidden"));
    check("plan-nodes-403", &refused.all());
    let of_pods = plan(|| found(json!({"kind": "PodList", "metadata": {}})));
    check("plan-nodes-wrong-kind", &of_pods.all());
    check("plan-no-nodes", &plan(|| nodes(&[])).all());
}

#[test]
fn lists_of_nodes_that_break_off() {
    let html = std::thread::spawn(|| plan(|| Answer::Text(500, "<html>\u{1b}[31moops</html>")));
    let cut = plan(|| Answer::Text(200, r#"{"kind": "NodeList", "items": [{"#));
    check("plan-nodes-cut", &cut.all());
    let html = html.join().expect("it did not panic");
    check("plan-nodes-500", &html.all());
}

/// A cluster that never answers the list of nodes; the receiver gets a message when a client requests it.
fn without_an_answer() -> (Server, Objects, mpsc::Receiver<()>, watch::Sender<bool>) {
    let (never, until) = watch::channel(false);
    let (send, asked_for) = mpsc::channel();
    let (server, objects) = cluster(move |request| {
        (request.path == "/api/v1/nodes").then(|| {
            let _ = send.send(());
            Answer::After(until.clone(), Box::new(hybrid()))
        })
    });
    (server, objects, asked_for, never)
}

#[test]
fn a_signal_ends_a_run_that_still_asks_what_there_is() {
    let (server, objects, asked_for, _never) = without_an_answer();
    let tool = tool(&server);
    let arguments = ["run", "--kubeconfig", "config", "--out", "out"];
    let child = tool.command(&arguments).spawn().expect("the tool starts");
    asked_for.recv().expect("the nodes are asked for");
    let signalled = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .expect("kill starts");
    assert!(signalled.success());
    let said = Said::from(child.wait_with_output().expect("it ends"));
    said.assert_harmless();
    let words = "the run was interrupted by a signal";
    assert!(said.stdout.contains(words), "{}", said.stdout);
    assert!(tool.path("out/report.json").exists());
    assert_eq!((said.code, objects.left()), (Some(130), Vec::new()));
}

#[test]
fn a_deadline_ends_a_run_that_still_asks_what_there_is() {
    let (server, objects, _asked_for, _never) = without_an_answer();
    let said = tool(&server).run(&["run", "--kubeconfig", "config", "--deadline", "1s"]);
    said.assert_harmless();
    let words = "the run's deadline, 1s, came before its end";
    assert!(said.stdout.contains(words), "{}", said.stdout);
    assert_eq!((said.code, objects.left()), (Some(11), Vec::new()));
}

#[test]
fn a_run_that_may_make_no_lease_is_refused() {
    let (server, objects) = cluster(|request| {
        let creates = request.method == "POST" && request.path.ends_with("/leases");
        let why = "leases.coordination.k8s.io is \u{1b}[31mforbidden: User \"me\"";
        creates.then(|| status(403, why))
    });
    let said = tool(&server).run(&["run", "--kubeconfig", "config"]);
    check("run-lease-403", &said.all());
    // As for any other missing permission, before the run or in it
    assert_eq!((said.code, objects.left()), (Some(11), Vec::new()));
}

#[test]
fn a_cleanup_that_may_not_look_for_leases_could_not_tell() {
    let (server, objects) = cluster(|request| {
        let listed = request.method == "GET" && request.path.ends_with("/leases");
        listed.then(|| status(403, "leases.coordination.k8s.io is forbidden"))
    });
    let said = tool(&server).run(&["cleanup", "--kubeconfig", "config"]);
    let words = "was refused with 403";
    assert!(said.stderr.contains(words), "{}", said.stderr);
    assert_eq!((said.code, objects.left()), (Some(11), Vec::new()));
}

#[test]
fn a_cleanup_of_nothing_counts_nothing_of_its_own() {
    let (server, objects) = cluster(|_| None);
    let said = tool(&server).run(&["cleanup", "--kubeconfig", "config"]);
    let output = (said.stdout.as_str(), said.stderr.as_str(), said.code);
    assert_eq!(output, ("0 objects removed, 0 left\n", "", Some(0)));
    assert_eq!(objects.left(), Vec::<String>::new());
}

#[test]
fn a_run_beside_another_is_refused() {
    let asked_for = Mutex::new(0);
    let (server, objects) = cluster(move |request| {
        if !request.path.contains("/leases") {
            return None;
        }
        if request.method == "POST" {
            return Some(status(409, "it is there"));
        }
        let mut version = asked_for.lock().expect("no script panics");
        *version += 1;
        Some(found(json!({
            "kind": "Lease",
            "metadata": {
                "name": "winconform", "uid": "1", "resourceVersion": version.to_string(),
                "labels": {"app.kubernetes.io/managed-by": "winconform"},
            },
            "spec": {"holderIdentity": "ci-7\u{1b}[31m/42/rabcdefg", "leaseDurationSeconds": 12},
        })))
    });
    let said = tool(&server).run(&["run", "--kubeconfig", "config"]);
    check("run-lease-held", &said.all());
    assert_eq!((said.code, objects.left()), (Some(20), Vec::new()));
}

#[test]
fn a_record_that_is_a_symbolic_link_is_refused() {
    let (server, objects) = cluster(|_| None);
    let tool = tool(&server);
    std::fs::create_dir(tool.path("out")).expect("a folder");
    symlink("/dev/full", tool.path("out/record.jsonl")).expect("a link");
    let said = tool.run(&["run", "--kubeconfig", "config", "--out", "out"]);
    check("run-record-link", &said.all());
    assert_eq!((said.code, objects.left()), (Some(2), Vec::new()));
}

/// The record is a pipe whose reader closes when the run announces the first namespace; the server answers
/// for the namespace only after that, so that the run has more to write.
#[test]
fn a_record_that_takes_no_more_ends_the_run_and_leaves_nothing() {
    let (gone, until) = watch::channel(false);
    let objects = Objects::default();
    let stored = objects.clone();
    let (server, _) = cluster(move |request| {
        let first = request.method == "PATCH" && request.path.contains("/namespaces/");
        let stored = match request.path.as_str() {
            "/version" | "/api/v1/namespaces/kube-system" | "/api/v1/nodes" => return None,
            _ => stored.answer(request),
        };
        Some(if first {
            Answer::After(until.clone(), Box::new(stored))
        } else {
            stored
        })
    });
    let tool = tool(&server);
    std::fs::create_dir(tool.path("out")).expect("a folder");
    let record = tool.path("out/record.jsonl");
    let mkfifo = Command::new("mkfifo").arg(&record).status();
    assert!(mkfifo.expect("mkfifo starts").success());
    let arguments = ["run", "--kubeconfig", "config", "--out", "out"];
    let child = tool.command(&arguments).spawn().expect("the tool starts");
    let mut lines = BufReader::new(File::open(record).expect("opened")).lines();
    let announced = |line: &str| line.contains("intent") && line.contains("Namespace");
    assert!(
        lines.any(|line| announced(&line.expect("UTF-8"))),
        "no namespace was announced"
    );
    assert!(!objects.left().is_empty(), "the Lease stands");
    drop(lines);
    gone.send_replace(true);

    let said = Said::from(child.wait_with_output().expect("it ends"));
    said.assert_harmless();
    let text = &said.stderr;
    let (_, error) = text.rsplit_once("error: ").unwrap_or_default();
    check("run-record-breaks", error);
    assert_eq!((said.code, objects.left()), (Some(1), Vec::new()), "{text}");
}

/// An annotation that may not be read protects nothing, and a warning says so.
#[test]
fn a_cluster_that_may_not_be_asked_whether_it_is_protected_is_warned_of() {
    let (server, objects) = cluster(|request| {
        let is_asked = request.path == "/api/v1/namespaces/kube-system";
        is_asked.then(|| status(403, "namespaces is forbidden"))
    });
    let tool = tool(&server);
    let select = ["--select", "env.all-nodes-healthy"];
    let said = tool.run(&[&["run", "--kubeconfig", "config"], &select[..]].concat());
    let lines = said.stderr.lines();
    let warnings: Vec<_> = lines.filter(|line| line.contains("warning: ")).collect();
    let words = "could not be read, and so it protects nothing: status 403";
    let is_told = warnings.len() == 1 && warnings[0].contains(words);
    assert!(is_told, "not one warning:\n{}", said.all());
    // The run continues nevertheless
    let goes_on = said.stdout.contains("env.all-nodes-healthy");
    assert!(goes_on, "{}", said.all());
    assert_eq!(objects.left(), [""; 0]);
}
