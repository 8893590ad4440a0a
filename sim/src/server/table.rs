//! Tables, as `kubectl get` prints them: the columns of the kinds that people look at, name and age
//! of all others (kubernetes 1.37.0, `pkg/printers/internalversion/printers.go`).

use jiff::Timestamp;
use serde_json::{Value, json};

use super::ask::Ask;
use super::objects::metadata_of;
use super::store::Object;
use crate::clock;

/// Where the text of a cell is from.
enum Cell {
    /// What is at a place, `<none>` where nothing is.
    Text(&'static str),
    /// A number at a place, 0 where none is.
    Count(&'static str),
    Made(fn(&Value) -> String),
}

use Cell::{Count, Made, Text};

/// A column: its name, whether it is shown in wide tables alone, and its cells.
type Column = (&'static str, bool, Cell);

const NAME: Column = ("Name", false, Text("/metadata/name"));
const AGE: Column = (
    "Age",
    false,
    Made(|object| age(&object["metadata"]["creationTimestamp"])),
);

fn columns(plural: &str) -> &'static [Column] {
    match plural {
        "pods" => &[
            NAME,
            ("Ready", false, Made(ready_containers)),
            ("Status", false, Made(phase)),
            ("Restarts", false, Made(restarts)),
            AGE,
            ("IP", true, Text("/status/podIP")),
            ("Node", true, Text("/spec/nodeName")),
            ("Nominated Node", true, Text("/status/nominatedNodeName")),
            ("Readiness Gates", true, Text("")),
        ],
        "nodes" => &[
            NAME,
            ("Status", false, Made(readiness)),
            ("Roles", false, Made(roles)),
            AGE,
            ("Version", false, Text("/status/nodeInfo/kubeletVersion")),
            ("Internal-IP", true, Made(internal_address)),
            ("External-IP", true, Text("")),
            ("OS-Image", true, Text("/status/nodeInfo/osImage")),
            (
                "Kernel-Version",
                true,
                Text("/status/nodeInfo/kernelVersion"),
            ),
            (
                "Container-Runtime",
                true,
                Text("/status/nodeInfo/containerRuntimeVersion"),
            ),
        ],
        "namespaces" => &[NAME, ("Status", false, Text("/status/phase")), AGE],
        "services" => &[
            NAME,
            ("Type", false, Text("/spec/type")),
            ("Cluster-IP", false, Text("/spec/clusterIP")),
            ("External-IP", false, Made(external_address)),
            ("Port(s)", false, Made(ports)),
            AGE,
        ],
        "deployments" => &[
            NAME,
            ("Ready", false, Made(ready_pods)),
            ("Up-to-date", false, Count("/status/updatedReplicas")),
            ("Available", false, Count("/status/availableReplicas")),
            AGE,
        ],
        "replicasets" => &[
            NAME,
            ("Desired", false, Count("/spec/replicas")),
            ("Current", false, Count("/status/replicas")),
            ("Ready", false, Count("/status/readyReplicas")),
            AGE,
        ],
        "statefulsets" => &[NAME, ("Ready", false, Made(ready_pods)), AGE],
        "daemonsets" => &[
            NAME,
            ("Desired", false, Count("/status/desiredNumberScheduled")),
            ("Current", false, Count("/status/currentNumberScheduled")),
            ("Ready", false, Count("/status/numberReady")),
            ("Up-to-date", false, Count("/status/updatedNumberScheduled")),
            ("Available", false, Count("/status/numberAvailable")),
            AGE,
        ],
        "events" => &[
            (
                "Last Seen",
                false,
                Made(|event| age(&event["lastTimestamp"])),
            ),
            ("Type", false, Text("/type")),
            ("Reason", false, Text("/reason")),
            ("Object", false, Made(about)),
            ("Message", false, Text("/message")),
        ],
        _ => &[NAME, AGE],
    }
}

pub(super) fn of(ask: &Ask, objects: &[Object], version: u64) -> Value {
    let columns = columns(ask.kind.plural);
    let definitions: Vec<Value> = columns
        .iter()
        .map(|(name, wide, _)| {
            let format = if *name == "Name" { "name" } else { "" };
            json!({"name": name, "type": "string", "format": format, "description": "", "priority": i32::from(*wide)})
        })
        .collect();
    let rows: Vec<Value> = objects
        .iter()
        .map(|object| {
            let cells: Vec<String> = columns.iter().map(|(.., cell)| cell.of(object)).collect();
            json!({"cells": cells, "object": metadata_of(object)})
        })
        .collect();
    json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": version.to_string()},
        "columnDefinitions": definitions, "rows": rows,
    })
}

impl Cell {
    fn of(&self, object: &Value) -> String {
        match self {
            Text(at) => {
                let text = object.pointer(at).and_then(Value::as_str);
                text.unwrap_or("<none>").trim().to_owned()
            }
            Count(at) => {
                let number = object.pointer(at).and_then(Value::as_i64);
                number.unwrap_or(0).to_string()
            }
            Made(make) => make(object),
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn or_none(texts: impl Iterator<Item = String>) -> String {
    let all = texts.collect::<Vec<_>>().join(",");
    match all.is_empty() {
        true => "<none>".to_owned(),
        false => all,
    }
}

fn ready_containers(pod: &Value) -> String {
    let ready = items(&pod["status"]["containerStatuses"]).filter(|one| one["ready"] == true);
    let all = items(&pod["spec"]["containers"]).count();
    format!("{}/{all}", ready.count())
}

fn restarts(pod: &Value) -> String {
    let each = items(&pod["status"]["containerStatuses"]);
    let restarts = each.filter_map(|one| one["restartCount"].as_i64());
    restarts.sum::<i64>().to_string()
}

fn ready_pods(workload: &Value) -> String {
    let of = |value: &Value| value.as_i64().unwrap_or(0);
    let ready = of(&workload["status"]["readyReplicas"]);
    format!("{ready}/{}", of(&workload["spec"]["replicas"]))
}

fn external_address(service: &Value) -> String {
    match service["spec"]["type"].as_str() {
        Some("LoadBalancer") => match &service["status"]["loadBalancer"]["ingress"][0]["ip"] {
            Value::Null => "<pending>".to_owned(),
            address => text(address),
        },
        _ => "<none>".to_owned(),
    }
}

fn ports(service: &Value) -> String {
    or_none(items(&service["spec"]["ports"]).map(|port| {
        let node = port["nodePort"].as_u64();
        let node = node.map(|node| format!(":{node}")).unwrap_or_default();
        format!("{}{node}/{}", port["port"], text(&port["protocol"]))
    }))
}

fn about(event: &Value) -> String {
    let object = &event["involvedObject"];
    format!(
        "{}/{}",
        text(&object["kind"]).to_lowercase(),
        text(&object["name"])
    )
}

fn internal_address(node: &Value) -> String {
    let own = items(&node["status"]["addresses"]).filter(|one| one["type"] == "InternalIP");
    or_none(own.take(1).map(|address| text(&address["address"])))
}

fn readiness(node: &Value) -> String {
    let ready = items(&node["status"]["conditions"]).find(|one| one["type"] == "Ready");
    let ready = ready.map(|ready| text(&ready["status"]));
    let told = match ready.as_deref() {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    match node["spec"]["unschedulable"] == true {
        true => format!("{told},SchedulingDisabled"),
        false => told.to_owned(),
    }
}

fn roles(node: &Value) -> String {
    let labels = node["metadata"]["labels"].as_object();
    let roles = labels.into_iter().flatten();
    let roles = roles.filter_map(|(name, _)| name.strip_prefix("node-role.kubernetes.io/"));
    or_none(roles.map(str::to_owned))
}

/// What people take for a pod's status: the reason of a container, else the phase.
fn phase(pod: &Value) -> String {
    let status = &pod["status"];
    let mut told = text(&status["phase"]);
    let own = text(&status["reason"]);
    if !own.is_empty() {
        told = own;
    }
    for container in items(&status["containerStatuses"]) {
        let state = &container["state"];
        let waiting = text(&state["waiting"]["reason"]);
        let ended = &state["terminated"];
        if !waiting.is_empty() {
            told = waiting;
        } else if ended.is_object() {
            let reason = text(&ended["reason"]);
            told = if reason.is_empty() {
                format!("ExitCode:{}", ended["exitCode"])
            } else {
                reason
            };
        }
    }
    match pod["metadata"]["deletionTimestamp"].is_string() {
        true => "Terminating".to_owned(),
        false => told,
    }
}

/// How long ago something was, in its largest unit; kubectl has two in part.
fn age(since: &Value) -> String {
    let since = since
        .as_str()
        .and_then(|since| since.parse::<Timestamp>().ok());
    let Some(since) = since else {
        return "<unknown>".to_owned();
    };
    match clock::now().duration_since(since).as_secs().max(0) {
        seconds @ 0..120 => format!("{seconds}s"),
        seconds @ 120..10_800 => format!("{}m", seconds / 60),
        seconds @ 10_800..172_800 => format!("{}h", seconds / 3600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pods_status_is_that_of_its_containers() {
        let mut pod = json!({"status": {"phase": "Pending", "containerStatuses": [{"state": {"waiting": {"reason": "ErrImagePull"}}}]}});
        assert_eq!(phase(&pod), "ErrImagePull");
        pod["metadata"]["deletionTimestamp"] = json!("x");
        assert_eq!(phase(&pod), "Terminating");
        assert_eq!(phase(&json!({"status": {"phase": "Running"}})), "Running");
    }
}
