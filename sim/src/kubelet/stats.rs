//! `/stats/summary` and `/metrics/resource`.
//!
//! Names of fields are those of k8s.io/kubelet 0.37.0, `pkg/apis/stats/v1alpha1/types.go`; which of
//! them a Windows node fills, those of kubernetes 1.37.0,
//! `pkg/kubelet/stats/cri_stats_provider_windows.go`: no resident memory, no inodes. The metrics
//! are those of `pkg/kubelet/metrics/collectors/resource_metrics.go`.

use jiff::Timestamp;
use jiff::fmt::temporal::DateTimePrinter;
use serde_json::{Value, json};

use super::usage::{ContainerUsage, NodeUsage, PodUsage, Usage};
use crate::cluster::NodeState;
use crate::node::DISK_KI;
use crate::topology::Os;

/// The summary; `processor_and_memory` leaves out the rest (`?only_cpu_and_memory=true`).
pub(super) fn summary(node: &NodeState, usage: &NodeUsage, processor_and_memory: bool) -> Value {
    let (os, at) = (node.pool.os(), seconds(usage.at));
    let free = usage.memory.saturating_sub(usage.total.memory);
    let mut told = json!({
        "nodeName": node.name,
        "startTime": seconds(usage.since),
        "cpu": processor(usage.total, &at),
        "memory": memory(usage.total, Some(free), os, &at),
    });
    if !processor_and_memory {
        let disk = disk(&at, os, DISK_KI * 1024 / 3);
        told["fs"] = disk.clone();
        told["runtime"] = json!({"imageFs": disk.clone(), "containerFs": disk});
    }
    let pods: Vec<Value> = usage
        .pods
        .iter()
        .map(|known| pod(known, os, &at, processor_and_memory))
        .collect();
    json!({"node": told, "pods": pods})
}

fn pod(pod: &PodUsage, os: Os, at: &str, processor_and_memory: bool) -> Value {
    let container = |known: &ContainerUsage| {
        let mut told = json!({
            "name": known.name,
            "startTime": seconds(known.since),
            "cpu": processor(known.usage, at),
            "memory": memory(known.usage, known.available, os, at),
        });
        if !processor_and_memory {
            told["rootfs"] = disk(at, os, 64 << 10);
            told["logs"] = disk(at, os, 4 << 10);
        }
        told
    };
    json!({
        "podRef": {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid},
        "startTime": seconds(pod.started),
        "containers": pod.containers.iter().map(container).collect::<Vec<_>>(),
        "cpu": processor(pod.total, at),
        "memory": memory(pod.total, None, os, at),
    })
}

fn processor(usage: Usage, at: &str) -> Value {
    json!({
        "time": at,
        "usageNanoCores": usage.nano_cores,
        "usageCoreNanoSeconds": usage.core_nanos,
    })
}

fn memory(usage: Usage, available: Option<u64>, os: Os, at: &str) -> Value {
    let mut told = json!({
        "time": at,
        "usageBytes": usage.memory / 8 * 9,
        "workingSetBytes": usage.memory,
        "pageFaults": usage.memory >> 12,
    });
    if let Some(available) = available {
        told["availableBytes"] = available.into();
    }
    if os == Os::Linux {
        told["rssBytes"] = (usage.memory / 8 * 7).into();
        told["majorPageFaults"] = 0.into();
    }
    told
}

fn disk(at: &str, os: Os, used: u64) -> Value {
    let capacity = DISK_KI * 1024;
    let mut told = json!({
        "time": at,
        "availableBytes": capacity / 3 * 2,
        "capacityBytes": capacity,
        "usedBytes": used,
    });
    if os == Os::Linux {
        let inodes = capacity >> 14;
        told["inodes"] = inodes.into();
        told["inodesFree"] = (inodes / 10 * 9).into();
        told["inodesUsed"] = (inodes / 10).into();
    }
    told
}

/// metav1.Time, which the times of samples are too: whole seconds.
pub(super) fn seconds(at: Timestamp) -> String {
    let mut text = String::new();
    let printer = DateTimePrinter::new().precision(Some(0));
    let _ = printer.print_timestamp(&at, &mut text);
    text
}

/// Prometheus' text form, version 0.0.4.
pub(super) fn metrics(usage: &NodeUsage) -> String {
    let at = usage.at.as_millisecond();
    let labels = |pod: &PodUsage| format!("namespace=\"{}\",pod=\"{}\"", pod.namespace, pod.name);
    let of_pods = |number: fn(&PodUsage) -> String| -> Vec<String> {
        let line = |pod| format!("{{{}}} {} {at}", labels(pod), number(pod));
        usage.pods.iter().map(line).collect()
    };
    let of_containers = |number: fn(&ContainerUsage) -> String, at: &str| -> Vec<String> {
        let each = |pod: &PodUsage| {
            let labels = labels(pod);
            let line = |known: &ContainerUsage| {
                format!(
                    "{{container=\"{}\",{labels}}} {}{at}",
                    known.name,
                    number(known)
                )
            };
            pod.containers.iter().map(line).collect::<Vec<_>>()
        };
        usage.pods.iter().flat_map(each).collect()
    };
    let stamped = format!(" {at}");
    let families = [
        (
            "container_cpu_usage_seconds_total",
            "Cumulative cpu time consumed by the container in core-seconds",
            "counter",
            of_containers(|known| core_seconds(known.usage), &stamped),
        ),
        (
            "container_memory_working_set_bytes",
            "Current working set of the container in bytes",
            "gauge",
            of_containers(|known| known.usage.memory.to_string(), &stamped),
        ),
        (
            "container_start_time_seconds",
            "Start time of the container since unix epoch in seconds",
            "gauge",
            of_containers(|known| known.since.as_second().to_string(), ""),
        ),
        (
            "node_cpu_usage_seconds_total",
            "Cumulative cpu time consumed by the node in core-seconds",
            "counter",
            vec![format!(" {}{stamped}", core_seconds(usage.total))],
        ),
        (
            "node_memory_working_set_bytes",
            "Current working set of the node in bytes",
            "gauge",
            vec![format!(" {}{stamped}", usage.total.memory)],
        ),
        (
            "pod_cpu_usage_seconds_total",
            "Cumulative cpu time consumed by the pod in core-seconds",
            "counter",
            of_pods(|pod| core_seconds(pod.total)),
        ),
        (
            "pod_memory_working_set_bytes",
            "Current working set of the pod in bytes",
            "gauge",
            of_pods(|pod| pod.total.memory.to_string()),
        ),
        (
            "resource_scrape_error",
            "1 if there was an error while getting container metrics, 0 otherwise",
            "gauge",
            vec![" 0".to_owned()],
        ),
    ];
    let mut text = String::new();
    for (name, help, kind, lines) in families {
        let stable = format!("# HELP {name} [STABLE] {help}\n# TYPE {name} {kind}\n");
        // A family without samples is not told at all
        if !lines.is_empty() {
            text.push_str(&stable);
        }
        for line in lines {
            text.push_str(&format!("{name}{line}\n"));
        }
    }
    text
}

#[expect(clippy::cast_precision_loss, reason = "a metric is a float")]
fn core_seconds(usage: Usage) -> String {
    (usage.core_nanos as f64 / 1e9).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage() -> NodeUsage {
        let at = "2026-01-02T03:04:05.9Z".parse().expect("a time");
        let one = Usage {
            nano_cores: 2_000_000,
            core_nanos: 1_500_000_000,
            memory: 8 << 20,
        };
        let container = ContainerUsage {
            name: "main".to_owned(),
            since: Timestamp::UNIX_EPOCH,
            usage: one,
            available: Some(1 << 20),
        };
        let pod = PodUsage {
            namespace: "test".to_owned(),
            name: "web".to_owned(),
            uid: "u".to_owned(),
            started: Timestamp::UNIX_EPOCH,
            containers: vec![container],
            total: one,
        };
        NodeUsage {
            at,
            since: Timestamp::UNIX_EPOCH,
            total: one,
            memory: 16 << 30,
            pods: vec![pod],
        }
    }

    #[test]
    fn metrics_are_those_of_a_kubelet() {
        let text = metrics(&usage());
        let line = "container_cpu_usage_seconds_total{container=\"main\",namespace=\"test\",\
                    pod=\"web\"} 1.5 1767323045900\n";
        assert!(text.contains(line), "{text}");
        assert!(
            text.contains("node_memory_working_set_bytes 8388608 1767323045900\n"),
            "{text}"
        );
        let mut idle = usage();
        idle.pods.clear();
        assert!(!metrics(&idle).contains("container_"));
    }

    #[test]
    fn a_windows_node_tells_neither_inodes_nor_resident_memory() {
        use crate::topology::{Build, NodeSpec, Pool};
        for (pool, linux) in [(Pool::Linux, true), (Pool::Windows(Build::Ws2022), false)] {
            let node = NodeState::alone(NodeSpec::new("n", pool));
            let told = summary(&node, &usage(), false);
            assert_eq!(told["node"]["fs"].get("inodes").is_some(), linux);
            let memory = &told["pods"][0]["containers"][0]["memory"];
            assert_eq!(memory.get("rssBytes").is_some(), linux);
            assert_eq!(memory["availableBytes"], 1 << 20);
            assert_eq!(told["node"]["cpu"]["time"], "2026-01-02T03:04:05Z");
            let less = summary(&node, &usage(), true);
            assert_eq!(less["node"].get("fs"), None);
        }
    }
}
