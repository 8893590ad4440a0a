//! Tables, as `kubectl get` prints them.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::base::fields::Fields;
use crate::server::ask::Ask;
use crate::server::controllers::pods::{condition, is_going};
use crate::server::objects::metadata_of;
use crate::server::storage::state::State;
use crate::server::storage::store::Object;

/// What a cell shows.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Cell {
    Text(String),
    Wide(String),
    Count(String),
    Age(String),
    ReadyContainers,
    Phase,
    Restarts,
    ReadyPods,
    ExternalAddress,
    Ports,
    About,
    InternalAddress,
    Readiness,
    Roles,
}

/// The columns of a kind, each by its name.
type Columns = Vec<BTreeMap<String, Cell>>;

static COLUMNS: LazyLock<BTreeMap<String, Columns>> = LazyLock::new(|| {
    serde_saphyr::from_str(include_str!("table.yaml")).expect("table.yaml is whole")
});

pub(crate) fn render(state: &State, ask: &Ask, objects: &[Object]) -> Value {
    let (version, now) = (state.store.version(), state.wall.now());
    let known = COLUMNS.get(ask.kind.plural);
    let columns = || known.unwrap_or(&COLUMNS["others"]).iter().flatten();
    let definitions = columns().map(|(name, cell)| {
        let format = if *name == "Name" { "name" } else { "" };
        let wide = matches!(cell, Cell::Wide(_) | Cell::InternalAddress);
        json!({"name": name, "type": "string", "format": format, "description": "", "priority": i32::from(wide)})
    });
    let rows = objects.iter().map(|object| {
        let cells: Vec<String> = columns()
            .map(|(_, cell)| cell.render(object, now))
            .collect();
        json!({"cells": cells, "object": metadata_of(object)})
    });
    json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": version.to_string()},
        "columnDefinitions": definitions.collect::<Vec<_>>(), "rows": rows.collect::<Vec<_>>(),
    })
}

impl Cell {
    fn render(&self, object: &Value, now: Timestamp) -> String {
        let (meta, spec, status) = (&object["metadata"], &object["spec"], &object["status"]);
        let at = |path: &str| object.pointer(path).unwrap_or(&Value::Null);
        match self {
            Self::Text(path) | Self::Wide(path) => match at(path).text() {
                "" => "<none>".to_owned(),
                text => text.trim().to_owned(),
            },
            Self::Count(path) => at(path).number().to_string(),
            Self::Age(path) => age(at(path).text(), now),
            Self::ReadyContainers => {
                let each = status["containerStatuses"].items();
                let ready = each.filter(|one| one["ready"] == true);
                format!("{}/{}", ready.count(), spec["containers"].items().len())
            }
            Self::Phase => phase(object),
            Self::Restarts => {
                let each = status["containerStatuses"].items();
                let sum: i64 = each.map(|one| one["restartCount"].number()).sum();
                sum.to_string()
            }
            Self::ReadyPods => {
                let (ready, wanted) = (&status["readyReplicas"], &spec["replicas"]);
                format!("{}/{}", ready.number(), wanted.number())
            }
            Self::ExternalAddress => match status["loadBalancer"]["ingress"][0]["ip"].text() {
                _ if spec["type"] != "LoadBalancer" => "<none>".to_owned(),
                "" => "<pending>".to_owned(),
                address => address.to_owned(),
            },
            Self::Ports => or_none(spec["ports"].items().map(|port| {
                let node = port["nodePort"].as_u64();
                let node = node.map(|node| format!(":{node}")).unwrap_or_default();
                format!("{}{node}/{}", port["port"], port["protocol"].text())
            })),
            Self::About => {
                let about = &object["involvedObject"];
                let kind = about["kind"].text().to_lowercase();
                format!("{kind}/{}", about["name"].text())
            }
            Self::InternalAddress => {
                let mut addresses = status["addresses"].items();
                let ip = addresses.find(|one| one["type"] == "InternalIP");
                or_none(ip.into_iter().map(|ip| ip["address"].text().to_owned()))
            }
            Self::Readiness => {
                let word = match condition(object, "Ready").map(|ready| &ready["status"]) {
                    Some(ready) if ready == "True" => "Ready",
                    Some(_) => "NotReady",
                    None => "Unknown",
                };
                match spec["unschedulable"] == true {
                    true => format!("{word},SchedulingDisabled"),
                    false => word.to_owned(),
                }
            }
            Self::Roles => {
                let labels = meta["labels"].fields();
                let roles = labels.filter_map(|(name, _)| name.strip_prefix(ROLE));
                or_none(roles.map(str::to_owned))
            }
        }
    }
}

/// The prefix of the label that names a node's role.
const ROLE: &str = "node-role.kubernetes.io/";

fn or_none(texts: impl Iterator<Item = String>) -> String {
    match texts.collect::<Vec<_>>().join(",") {
        text if text.is_empty() => "<none>".to_owned(),
        text => text,
    }
}

/// The pod's status as kubectl shows it: the reason of a container, else the phase.
fn phase(pod: &Value) -> String {
    let status = &pod["status"];
    if is_going(pod) {
        return "Terminating".to_owned();
    }
    let mut reasons = status["containerStatuses"].items().filter_map(|container| {
        let state = &container["state"];
        let (waiting, ended) = (&state["waiting"], &state["terminated"]);
        match (waiting["reason"].text(), ended["reason"].text()) {
            ("", "") if ended.is_object() => Some(format!("ExitCode:{}", ended["exitCode"])),
            ("", "") => None,
            ("", reason) | (reason, _) => Some(reason.to_owned()),
        }
    });
    let raw = match status["reason"].text() {
        "" => &status["phase"],
        _ => &status["reason"],
    };
    reasons.next_back().unwrap_or_else(|| raw.text().to_owned())
}

/// The age of something in its largest unit; kubectl sometimes shows two units.
fn age(since: &str, now: Timestamp) -> String {
    let Ok(since) = since.parse::<Timestamp>() else {
        return "<unknown>".to_owned();
    };
    match now.duration_since(since).as_secs().max(0) {
        seconds @ 0..120 => format!("{seconds}s"),
        seconds @ 120..10_800 => format!("{}m", seconds / 60),
        seconds @ 10_800..172_800 => format!("{}h", seconds / 3600),
        seconds => format!("{}d", seconds / 86_400),
    }
}
