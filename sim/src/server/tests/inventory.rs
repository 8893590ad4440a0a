//! The server serves everything that a whole run, simulated nodes and kubectl request from a real server.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{APPLY, MERGE, STRATEGIC, Scene};
use crate::server::kinds::Kind;

/// The required fields of a new object of each kind.
const BODIES: &str = include_str!("bodies.yaml");
const REQUESTS: &str = include_str!("../recorded/requests.txt");

/// A request as a line of the inventory has it: method, path, media type and body.
fn request(line: &str) -> (&'static str, String, &'static str, String) {
    let [verb, api, what, query, ..] = line.split(' ').collect::<Vec<_>>()[..] else {
        // A bare path has no group
        panic!("{line}");
    };
    let (method, form) = match verb {
        "create" => ("POST", "application/json"),
        "update" => ("PUT", "application/json"),
        "patch" if query.contains("force=true") => ("PATCH", APPLY),
        "patch" if what.ends_with("/status") => ("PATCH", STRATEGIC),
        "patch" => ("PATCH", MERGE),
        "delete" => ("DELETE", "application/json"),
        _ => ("GET", ""),
    };
    if api == "-" {
        return (method, what.to_owned(), form, String::new());
    }
    let (plural, below) = what.split_once('/').unwrap_or((what, ""));
    let (group, _) = api.rsplit_once('/').unwrap_or(("", api));
    if group == "authorization.k8s.io" {
        let review = json!({"spec": {"resourceAttributes": {}}}).to_string();
        return (method, format!("/apis/{api}/{plural}"), form, review);
    }
    let kind = Kind::named(plural);
    assert_eq!(kind.api_version(), api, "{line}");
    let mut path = kind.path("default");
    let mut body = json!({"apiVersion": api, "kind": kind.name, "metadata": {"name": "x"}});
    if verb == "create" || form == APPLY || plural == "podtemplates" {
        let more: BTreeMap<String, Value> = serde_saphyr::from_str(BODIES).expect("bodies.yaml");
        json_patch::merge(&mut body, more.get(plural).unwrap_or(&json!({})));
    }
    if !matches!(verb, "create" | "list" | "watch") {
        path.push_str("/x");
    }
    if !below.is_empty() {
        path = format!("{path}/{below}");
    }
    let pairs = query.split('&').filter(|pair| *pair != "-");
    let pairs = pairs.map(|pair| match pair {
        "fieldSelector" => "fieldSelector=metadata.name%3Dx".to_owned(),
        "labelSelector" => "labelSelector=a%3Db".to_owned(),
        "timeoutSeconds" | "resourceVersion" => format!("{pair}=0"),
        pair if pair.contains('=') => pair.to_owned(),
        name => format!("{name}=1"),
    });
    let query = pairs.collect::<Vec<_>>().join("&");
    (method, format!("{path}?{query}"), form, body.to_string())
}

#[tokio::test]
async fn the_inventory_is_served() {
    let scene = Scene::new();
    let mut served = 0;
    for line in REQUESTS.lines().filter(|line| !line.starts_with('#')) {
        let (method, path, form, body) = request(line);
        let (code, answer) = scene.send(method, &path, form, body).await;
        let message = answer["message"].as_str().unwrap_or_default();
        // A real server does not know the group of Windows objects either
        let nowhere = message.contains("could not find the requested resource");
        let is_windows = path == "/apis/windows.k8s.io/v1";
        assert_eq!(nowhere, is_windows, "{line}: {answer}");
        let known = matches!(code, 200 | 201 | 400 | 404 | 409);
        assert!(known, "{line}: {code} {answer}");
        // Refused only for what the object lacks
        let excused = path.contains("/exec") || path.contains("/log");
        assert!(code != 400 || excused, "{line}: {answer}");
        served += 1;
    }
    assert!(served > 120, "{served} lines");
    assert_eq!(scene.server.unserved(), BTreeSet::new());
}

#[tokio::test]
async fn what_is_not_served_is_said_and_noted() {
    let scene = Scene::new();
    for path in [
        "/apis/certificates.k8s.io/v1/certificatesigningrequests",
        "/logs",
        "/api/v1/componentstatuses",
    ] {
        let (code, answer) = scene.get(path).await;
        assert_eq!(
            (code, &answer["reason"]),
            (501, &json!("NotImplemented")),
            "{path}"
        );
        assert!(scene.server.unserved().contains(&format!("GET {path}")));
    }
}
