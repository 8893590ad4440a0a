//! Evidence from the status of pods and nodes and from the events about them; pure.
//!
//! It has no environment and no arguments of a pod, which may hold secrets.

use std::collections::BTreeSet;

use serde_json::Value as Json;
use winconform_core::fixture::FixtureKey;
use winconform_core::record::{Evidence, EvidenceKind};

use crate::cluster::objects::status::{conditions, containers, items, text};

/// A pod's node and status, without anything that its containers run with.
pub(crate) fn status(pod: &Json) -> Evidence {
    let metadata = &pod["metadata"];
    let of = format!("Pod {}/{}", text(&metadata["namespace"]), name_of(pod));
    let status = &pod["status"];
    let mut lines = vec![format!(
        "{} on {} {} {}",
        text(&status["phase"]),
        node_of(pod).unwrap_or("no node"),
        text(&status["reason"]),
        text(&status["message"])
    )];
    lines.extend(status_lines(pod).filter(|line| !line.contains(" True ")));
    for container in containers(pod) {
        let mut line = format!("container {}:", text(&container["name"]));
        for (word, state) in [
            ("", &container["state"]),
            (" last", &container["lastState"]),
        ] {
            for (is, how) in state.as_object().into_iter().flatten() {
                let (reason, message) = (text(&how["reason"]), text(&how["message"]));
                line.push_str(&format!("{word} {is} {reason} {message}"));
                if let Some(code) = how["exitCode"].as_i64() {
                    line.push_str(&format!(" exit code {code}"));
                }
                line.push(';');
            }
        }
        let restarts = container["restartCount"].as_u64().unwrap_or(0);
        lines.push(format!("{line} {restarts} restarts"));
    }
    Evidence::from_text(EvidenceKind::Status, of, &lines.join("\n"))
}

pub(crate) fn node_status(node: &Json) -> Evidence {
    let of = format!("Node {}", name_of(node));
    let info = &node["status"]["nodeInfo"];
    let versions = [
        "osImage",
        "kernelVersion",
        "kubeletVersion",
        "containerRuntimeVersion",
    ];
    let versions = versions.map(|key| text(&info[key])).join(", ");
    let lines: Vec<_> = std::iter::once(versions)
        .chain(status_lines(node))
        .collect();
    Evidence::from_text(EvidenceKind::Node, of, &lines.join("\n"))
}

fn status_lines(object: &Json) -> impl Iterator<Item = String> {
    conditions(object).map(|condition| {
        let of = |key: &str| text(&condition[key]);
        let (reason, message) = (of("reason"), of("message"));
        format!("{} {} {reason} {message}", of("type"), of("status"))
    })
}

/// Events about pods, about their owners, and about the fixture's own object; the latest last.
pub(crate) fn describe_events(events: &[Json], pods: &[&Json], key: &FixtureKey) -> String {
    let owners = pods.iter().flat_map(|pod| {
        items(&pod["metadata"]["ownerReferences"]).map(|owner| text(&owner["name"]))
    });
    let names: BTreeSet<_> = pods.iter().map(|pod| name_of(pod)).chain(owners).collect();
    let plain = key.object_name();
    let mut dated: Vec<_> = events
        .iter()
        .filter(|event| {
            let about = text(&event["involvedObject"]["name"]);
            names.contains(about) || about == plain
        })
        .map(|event| {
            let when = [&event["lastTimestamp"], &event["eventTime"]]
                .map(text)
                .into_iter()
                .find(|when| !when.is_empty());
            let of = |key: &str| text(&event[key]);
            let about = text(&event["involvedObject"]["name"]);
            let count = event["count"].as_u64().unwrap_or(1);
            let (kind, reason, message) = (of("type"), of("reason"), of("message"));
            let line = format!("{kind} {reason} {about} ({count}): {message}");
            (when.unwrap_or_default(), line.replace('\n', " "))
        })
        .collect();
    dated.sort();
    let lines: Vec<_> = dated.into_iter().map(|(_, line)| line).collect();
    lines.join("\n")
}

pub(crate) fn node_of(pod: &Json) -> Option<&str> {
    pod["spec"]["nodeName"].as_str()
}

pub(crate) fn name_of(object: &Json) -> &str {
    text(&object["metadata"]["name"])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use winconform_core::facts::{PoolName, WindowsBuild};
    use winconform_core::fixture::FixtureName;

    fn pod() -> Json {
        json!({
            "metadata": {"namespace": "a", "name": "web-1",
                "ownerReferences": [{"name": "web-7f"}]},
            "spec": {"nodeName": "win-a",
                "containers": [{"name": "c", "env": [{"name": "KEY", "value": "hunter2"}]}]},
            "status": {
                "phase": "Running",
                "conditions": [
                    {"type": "PodScheduled", "status": "True"},
                    {"type": "Ready", "status": "False", "reason": "ContainersNotReady",
                        "message": "containers with unready status: [c]"},
                ],
                "containerStatuses": [{"name": "c", "restartCount": 3,
                    "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}},
                    "lastState": {"terminated": {"reason": "Error", "exitCode": 1}}}],
            },
        })
    }

    #[test]
    fn a_pod_is_told_by_its_status_alone() {
        let evidence = status(&pod());
        assert_eq!(evidence.of, "Pod a/web-1");
        let lines: Vec<_> = evidence.lines.iter().map(|line| line.trim_end()).collect();
        assert_eq!(
            lines,
            [
                "Running on win-a",
                "Ready False ContainersNotReady containers with unready status: [c]",
                "container c: waiting CrashLoopBackOff back-off; last terminated Error  exit code 1; \
                 3 restarts",
            ]
        );
    }

    #[test]
    fn events_are_of_what_belongs_to_the_fixture_and_the_latest_is_last() {
        let event = |about: &str, at: &str, message: &str| {
            json!({"involvedObject": {"name": about}, "lastTimestamp": at, "type": "Warning",
                "reason": "R", "count": 2, "message": message})
        };
        let events = [
            event("web-1", "2026-01-01T00:00:02Z", "later"),
            event("web-7f", "2026-01-01T00:00:01Z", "with password=hunter2"),
            event("other", "2026-01-01T00:00:03Z", "not ours"),
            event(
                "win-webserver-windows-2022",
                "2026-01-01T00:00:00Z",
                "first",
            ),
        ];
        let pool = PoolName::windows(WindowsBuild::SERVER_2022);
        let key = FixtureName::WIN_WEBSERVER.in_pool(Some(&pool));
        let told = describe_events(&events, &[&pod()], &key);
        let evidence = Evidence::from_text(EvidenceKind::Events, String::new(), &told);
        assert_eq!(
            evidence.lines,
            [
                "Warning R win-webserver-windows-2022 (2): first",
                "Warning R web-7f (2): with password=***",
                "Warning R web-1 (2): later",
            ]
        );
    }

    #[test]
    fn a_windows_node_says_its_patch_revision() {
        let node = json!({"metadata": {"name": "win-a"}, "status": {
            "nodeInfo": {"osImage": "Windows Server 2022 Datacenter",
                "kernelVersion": "10.0.20348.2322", "kubeletVersion": "v1.37.0",
                "containerRuntimeVersion": "containerd://2.1.0"},
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady",
                "message": "kubelet is posting ready status"}]}});
        assert_eq!(
            node_status(&node).lines,
            [
                "Windows Server 2022 Datacenter, 10.0.20348.2322, v1.37.0, containerd://2.1.0",
                "Ready True KubeletReady kubelet is posting ready status",
            ]
        );
    }
}
