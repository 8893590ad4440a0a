//! Tables, as `kubectl get` prints them: the columns of the kinds that people look at, name and age
//! of all others (kubernetes 1.37.0, `pkg/printers/internalversion/printers.go`).

use jiff::Timestamp;
use serde_json::{Value, json};

use super::ask::Ask;
use super::objects::metadata_of;
use crate::clock;

/// Columns: a name, and whether it is shown in wide tables alone.
type Columns = &'static [(&'static str, bool)];

pub(super) fn of(ask: &Ask, objects: &[Value], version: u64) -> Value {
    let columns = columns(ask.kind.plural);
    let definitions: Vec<Value> = columns
        .iter()
        .map(|(name, wide)| {
            let format = if *name == "Name" { "name" } else { "" };
            json!({"name": name, "type": "string", "format": format, "description": "", "priority": i32::from(*wide)})
        })
        .collect();
    let rows: Vec<Value> = objects
        .iter()
        .map(|object| {
            let cells: Vec<String> = columns
                .iter()
                .map(|(name, _)| cell(ask.kind.plural, name, object))
                .collect();
            json!({"cells": cells, "object": metadata_of(object)})
        })
        .collect();
    json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": version.to_string()},
        "columnDefinitions": definitions, "rows": rows,
    })
}

fn columns(plural: &str) -> Columns {
    match plural {
        "pods" => &[
            ("Name", false),
            ("Ready", false),
            ("Status", false),
            ("Restarts", false),
            ("Age", false),
            ("IP", true),
            ("Node", true),
            ("Nominated Node", true),
            ("Readiness Gates", true),
        ],
        "nodes" => &[
            ("Name", false),
            ("Status", false),
            ("Roles", false),
            ("Age", false),
            ("Version", false),
            ("Internal-IP", true),
            ("External-IP", true),
            ("OS-Image", true),
            ("Kernel-Version", true),
            ("Container-Runtime", true),
        ],
        "namespaces" => &[("Name", false), ("Status", false), ("Age", false)],
        "services" => &[
            ("Name", false),
            ("Type", false),
            ("Cluster-IP", false),
            ("External-IP", false),
            ("Port(s)", false),
            ("Age", false),
            ("Selector", true),
        ],
        "deployments" => &[
            ("Name", false),
            ("Ready", false),
            ("Up-to-date", false),
            ("Available", false),
            ("Age", false),
            ("Containers", true),
            ("Images", true),
            ("Selector", true),
        ],
        "replicasets" => &[
            ("Name", false),
            ("Desired", false),
            ("Current", false),
            ("Ready", false),
            ("Age", false),
        ],
        "statefulsets" => &[("Name", false), ("Ready", false), ("Age", false)],
        "daemonsets" => &[
            ("Name", false),
            ("Desired", false),
            ("Current", false),
            ("Ready", false),
            ("Up-to-date", false),
            ("Available", false),
            ("Age", false),
        ],
        "jobs" => &[
            ("Name", false),
            ("Status", false),
            ("Completions", false),
            ("Age", false),
        ],
        "events" => &[
            ("Last Seen", false),
            ("Type", false),
            ("Reason", false),
            ("Object", false),
            ("Message", false),
        ],
        "endpointslices" => &[
            ("Name", false),
            ("AddressType", false),
            ("Ports", false),
            ("Endpoints", false),
            ("Age", false),
        ],
        "configmaps" => &[("Name", false), ("Data", false), ("Age", false)],
        _ => &[("Name", false), ("Age", false)],
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn count(value: &Value) -> String {
    value.as_i64().unwrap_or(0).to_string()
}

/// What is not there is told so.
fn or_none(text: String) -> String {
    if text.is_empty() {
        "<none>".to_owned()
    } else {
        text
    }
}

fn joined<'a>(values: impl Iterator<Item = &'a Value>, each: impl Fn(&Value) -> String) -> String {
    or_none(values.map(each).collect::<Vec<_>>().join(","))
}

fn pairs(labels: &Value) -> String {
    let labels = labels.as_object().into_iter().flatten();
    let pairs = labels.map(|(name, value)| format!("{name}={}", text(value)));
    or_none(pairs.collect::<Vec<_>>().join(","))
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn cell(plural: &str, column: &str, object: &Value) -> String {
    let (meta, spec, status) = (&object["metadata"], &object["spec"], &object["status"]);
    match (plural, column) {
        (_, "Name") => text(&meta["name"]),
        (_, "Age") => age(&meta["creationTimestamp"]),
        ("pods", "Ready") => {
            let ready = items(&status["containerStatuses"])
                .filter(|one| one["ready"] == true)
                .count();
            format!("{ready}/{}", items(&spec["containers"]).count())
        }
        ("pods", "Status") => phase(object),
        ("pods", "Restarts") => {
            let restarts =
                items(&status["containerStatuses"]).filter_map(|one| one["restartCount"].as_i64());
            restarts.sum::<i64>().to_string()
        }
        ("pods", "IP") => or_none(text(&status["podIP"])),
        ("pods", "Node") => or_none(text(&spec["nodeName"])),
        ("pods", "Nominated Node") => or_none(text(&status["nominatedNodeName"])),
        ("nodes", _) => node(column, object),
        ("namespaces", "Status") => text(&status["phase"]),
        ("services", "Type") => text(&spec["type"]),
        ("services", "Cluster-IP") => or_none(text(&spec["clusterIP"])),
        ("services", "External-IP") => match spec["type"].as_str() {
            Some("LoadBalancer") => match &status["loadBalancer"]["ingress"][0] {
                Value::Null => "<pending>".to_owned(),
                ingress => text(ingress.get("ip").unwrap_or(&ingress["hostname"])),
            },
            Some("ExternalName") => text(&spec["externalName"]),
            _ => "<none>".to_owned(),
        },
        ("services", "Port(s)") => joined(items(&spec["ports"]), |port| {
            let node = port["nodePort"]
                .as_u64()
                .map(|node| format!(":{node}"))
                .unwrap_or_default();
            format!("{}{node}/{}", port["port"], text(&port["protocol"]))
        }),
        ("services", "Selector") => pairs(&spec["selector"]),
        ("deployments" | "statefulsets", "Ready") => {
            format!(
                "{}/{}",
                count(&status["readyReplicas"]),
                count(&spec["replicas"])
            )
        }
        ("deployments", "Up-to-date") => count(&status["updatedReplicas"]),
        ("deployments", "Containers") => {
            joined(items(&spec["template"]["spec"]["containers"]), |one| {
                text(&one["name"])
            })
        }
        ("deployments", "Images") => {
            joined(items(&spec["template"]["spec"]["containers"]), |one| {
                text(&one["image"])
            })
        }
        ("deployments", "Selector") => pairs(&spec["selector"]["matchLabels"]),
        ("deployments", "Available") => count(&status["availableReplicas"]),
        ("replicasets", "Desired") => count(&spec["replicas"]),
        ("replicasets", "Current") => count(&status["replicas"]),
        ("replicasets", "Ready") => count(&status["readyReplicas"]),
        ("daemonsets", "Desired") => count(&status["desiredNumberScheduled"]),
        ("daemonsets", "Current") => count(&status["currentNumberScheduled"]),
        ("daemonsets", "Ready") => count(&status["numberReady"]),
        ("daemonsets", "Up-to-date") => count(&status["updatedNumberScheduled"]),
        ("daemonsets", "Available") => count(&status["numberAvailable"]),
        ("jobs", "Status") => {
            let ended = items(&status["conditions"])
                .find(|one| one["type"] == "Complete" || one["type"] == "Failed");
            ended.map_or_else(|| "Running".to_owned(), |end| text(&end["type"]))
        }
        ("jobs", "Completions") => format!(
            "{}/{}",
            count(&status["succeeded"]),
            count(&spec["completions"])
        ),
        ("events", "Last Seen") => age(&object["lastTimestamp"]),
        ("events", "Object") => {
            let about = &object["involvedObject"];
            format!(
                "{}/{}",
                text(&about["kind"]).to_lowercase(),
                text(&about["name"])
            )
        }
        ("events", "Message") => text(&object["message"]).trim().to_owned(),
        ("events", other) => text(&object[other.to_lowercase()]),
        ("endpointslices", "AddressType") => text(&object["addressType"]),
        ("endpointslices", "Ports") => joined(items(&object["ports"]), |port| text(&port["port"])),
        ("endpointslices", "Endpoints") => joined(items(&object["endpoints"]), |endpoint| {
            text(&endpoint["addresses"][0])
        }),
        ("configmaps", "Data") => object["data"]
            .as_object()
            .map_or(0, serde_json::Map::len)
            .to_string(),
        _ => "<none>".to_owned(),
    }
}

fn node(column: &str, object: &Value) -> String {
    let (spec, status) = (&object["spec"], &object["status"]);
    let address = |kind: &str| {
        let found = items(&status["addresses"]).find(|address| address["type"] == kind);
        or_none(
            found
                .map(|address| text(&address["address"]))
                .unwrap_or_default(),
        )
    };
    let info = |field: &str| text(&status["nodeInfo"][field]);
    match column {
        "Status" => {
            let ready = items(&status["conditions"]).find(|one| one["type"] == "Ready");
            let ready = ready.map(|ready| text(&ready["status"]));
            let mut told = match ready.as_deref() {
                Some("True") => "Ready",
                Some(_) => "NotReady",
                None => "Unknown",
            }
            .to_owned();
            if spec["unschedulable"] == true {
                told.push_str(",SchedulingDisabled");
            }
            told
        }
        "Roles" => {
            let labels = object["metadata"]["labels"].as_object();
            let roles = labels.into_iter().flatten();
            let roles = roles.filter_map(|(name, _)| name.strip_prefix("node-role.kubernetes.io/"));
            or_none(roles.collect::<Vec<_>>().join(","))
        }
        "Version" => info("kubeletVersion"),
        "Internal-IP" => address("InternalIP"),
        "External-IP" => address("ExternalIP"),
        "OS-Image" => info("osImage"),
        "Kernel-Version" => format!("{} ({})", info("kernelVersion"), info("architecture")),
        "Container-Runtime" => info("containerRuntimeVersion"),
        _ => "<none>".to_owned(),
    }
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

/// How long ago something was, in at most two units (apimachinery, `duration.HumanDuration`).
fn age(since: &Value) -> String {
    let since = since
        .as_str()
        .and_then(|since| since.parse::<Timestamp>().ok());
    let Some(since) = since else {
        return "<unknown>".to_owned();
    };
    human(clock::now().duration_since(since).as_secs())
}

fn human(seconds: i64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let pair = |large: i64, unit: &str, small: i64, lower: &str| match small {
        0 => format!("{large}{unit}"),
        small => format!("{large}{unit}{small}{lower}"),
    };
    match seconds {
        ..0 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => pair(minutes, "m", seconds % 60, "s"),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => pair(hours, "h", minutes % 60, "m"),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => pair(days, "d", hours % 24, "h"),
        _ => format!("{days}d"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_kubectls() {
        for (seconds, told) in [
            (-1, "0s"),
            (119, "119s"),
            (150, "2m30s"),
            (660, "11m"),
            (11_000, "3h3m"),
            (90_000, "25h"),
            (200_000, "2d7h"),
        ] {
            assert_eq!(human(seconds), told);
        }
    }

    #[test]
    fn a_pods_status_is_that_of_its_containers() {
        let mut pod = json!({"status": {"phase": "Pending", "containerStatuses": [{"state": {"waiting": {"reason": "ErrImagePull"}}}]}});
        assert_eq!(phase(&pod), "ErrImagePull");
        pod["metadata"]["deletionTimestamp"] = json!("x");
        assert_eq!(phase(&pod), "Terminating");
        assert_eq!(phase(&json!({"status": {"phase": "Running"}})), "Running");
    }
}
