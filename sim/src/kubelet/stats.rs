//! `/stats/summary`.
//!
//! Names of fields are those of k8s.io/kubelet 0.37.0, `pkg/apis/stats/v1alpha1/types.go`; which of
//! them a Windows node fills, those of kubernetes 1.37.0,
//! `pkg/kubelet/stats/cri_stats_provider_windows.go`: no resident memory, no inodes.

use jiff::Timestamp;
use jiff::fmt::temporal::DateTimePrinter;
use serde_json::{Value, json};

use super::usage::{ContainerUsage, NodeUsage, PodUsage, Usage};
use crate::cluster::NodeState;
use crate::node::DISK_KI;
use crate::topology::Os;

/// The summary.
pub(super) fn summary(node: &NodeState, usage: &NodeUsage) -> Value {
    let (os, at) = (node.pool.os(), seconds(usage.at));
    let free = usage.memory.saturating_sub(usage.total.memory);
    let disk_used = disk(&at, os, DISK_KI * 1024 / 3);
    let told = json!({
        "nodeName": node.name,
        "startTime": seconds(usage.since),
        "cpu": processor(usage.total, &at),
        "memory": memory(usage.total, Some(free), os, &at),
        "fs": disk_used,
        "runtime": {"imageFs": disk_used, "containerFs": disk_used},
    });
    let pods: Vec<Value> = usage.pods.iter().map(|known| pod(known, os, &at)).collect();
    json!({"node": told, "pods": pods})
}

fn pod(pod: &PodUsage, os: Os, at: &str) -> Value {
    let container = |known: &ContainerUsage| {
        json!({
            "name": known.name,
            "startTime": seconds(known.since),
            "cpu": processor(known.usage, at),
            "memory": memory(known.usage, known.available, os, at),
            "rootfs": disk(at, os, 64 << 10),
            "logs": disk(at, os, 4 << 10),
        })
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
fn seconds(at: Timestamp) -> String {
    let mut text = String::new();
    let printer = DateTimePrinter::new().precision(Some(0));
    let _ = printer.print_timestamp(&at, &mut text);
    text
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
    fn a_windows_node_tells_neither_inodes_nor_resident_memory() {
        use crate::topology::{Build, NodeSpec, Pool};
        for (pool, linux) in [(Pool::Linux, true), (Pool::Windows(Build::Ws2022), false)] {
            let node = NodeState::alone(NodeSpec::new("n", pool));
            let told = summary(&node, &usage());
            assert_eq!(told["node"]["fs"].get("inodes").is_some(), linux);
            let memory = &told["pods"][0]["containers"][0]["memory"];
            assert_eq!(memory.get("rssBytes").is_some(), linux);
            assert_eq!(memory["availableBytes"], 1 << 20);
            assert_eq!(told["node"]["cpu"]["time"], "2026-01-02T03:04:05Z");
        }
    }
}
