//! Control planes that simulated nodes cannot join, and one that stops answering while they leave.

use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use super::kubeconfig::kubeconfig;
use super::server::{Answer, Asked, Server, status};
use super::tool::{Said, Tool, check};

/// The most time until an expected request.
const DEADLINE: Duration = Duration::from_secs(30);

fn version(minor: &str) -> Answer {
    let version = json!({
        "major": "1", "minor": minor, "gitVersion": format!("v1.{minor}.2"), "gitCommit": "",
        "gitTreeState": "", "buildDate": "", "goVersion": "", "compiler": "", "platform": "",
    });
    Answer::Json(200, version)
}

#[track_caller]
fn refused(name: &str, kubeconfig: Option<&str>) {
    let tool = Tool::new();
    if let Some(text) = kubeconfig {
        tool.write("config", text);
    }
    let said = tool.run(&["simulate", "--join", "config"]);
    check(&format!("simulate-{name}"), &said.errors());
}

#[test]
fn hints_name_the_option_that_there_is() {
    refused("no-kubeconfig", None);
    let one = kubeconfig("https://127.0.0.1:1", "");
    refused(
        "several-contexts",
        Some(&format!(
            "{one}- name: other\n  context: {{cluster: one, user: me}}\n"
        )),
    );
}

#[test]
fn a_control_plane_that_is_too_old() {
    let server = Server::http(|request| match request.path.as_str() {
        "/version" => version("32"),
        _ => status(500, "nothing else is to be asked"),
    });
    refused(
        "too-old",
        Some(&kubeconfig(&format!("http://{}", server.address), "")),
    );
}

/// Accepts nodes, and never answers their deletion.
fn clinging(request: &Asked) -> Answer {
    let missing = || {
        let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure",
            "reason": "NotFound", "message": "not found", "code": 404});
        Answer::Json(404, status)
    };
    match (request.method.as_str(), request.path.as_str()) {
        (_, "/version") => version("37"),
        ("DELETE", _) => Answer::Open,
        ("GET", _) if request.query.contains("watch=") => Answer::Open,
        // The cluster has a DNS of its own
        ("GET", path) if path.ends_with("/kube-dns") => Answer::Json(200, json!({"metadata": {}})),
        ("GET", path) if path.contains("/apiregistration") => missing(),
        ("GET", _) => Answer::Json(
            200,
            json!({"kind": "List", "apiVersion": "v1", "metadata": {}, "items": []}),
        ),
        ("POST", path) if path.ends_with("/pods") => status(403, "no pods here"),
        _ => {
            let mut body = request.body.clone();
            body["metadata"]["uid"] = Value::from("u");
            Answer::Json(200, body)
        }
    }
}

fn interrupt(child: &Child) {
    let sent = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(sent.expect("kill starts").success());
}

fn until(requests: &Receiver<String>, wanted: &str) {
    while requests.recv_timeout(DEADLINE).expect(wanted) != wanted {}
}

#[test]
fn a_second_signal_does_not_wait_and_says_what_is_left() {
    let (tells, requests) = channel();
    let tells = Mutex::new(tells);
    let server = Server::http(move |request| {
        let path = request.path.rsplit('/').next().unwrap_or_default();
        let sender = tells.lock().unwrap_or_else(PoisonError::into_inner);
        // At the end the receiver is gone
        let _ = sender.send(format!("{} {path}", request.method));
        clinging(request)
    });
    let tool = Tool::new();
    tool.write(
        "it's config",
        kubeconfig(&format!("http://{}", server.address), ""),
    );
    let arguments = ["simulate", "--join", "it's config", "--prefix", "x-"];
    let child = tool.command(&arguments).spawn().expect("the tool starts");
    // The tool creates this pod after all nodes joined, to find out whether the server reaches kubelets
    until(&requests, "POST pods");
    interrupt(&child);
    until(&requests, "DELETE x-linux-a");
    interrupt(&child);
    let said = Said::from(child.wait_with_output().expect("it ends"));
    said.assert_harmless();
    assert!(
        said.stdout.starts_with("joined 2 simulated nodes: "),
        "{}",
        said.stdout
    );
    check(
        "simulate-cut",
        &format!("{}exit {:?}\n", said.stderr, said.code),
    );
}
