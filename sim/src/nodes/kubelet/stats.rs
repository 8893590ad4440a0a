//! `/stats/summary`: the processor time and memory that containers and nodes use.
//!
//! The numbers are simulated: a share of what containers request, else what their kind needs, varied by
//! seeded chance. The fields' names come from k8s.io/kubelet 0.37.0, `pkg/apis/stats/v1alpha1/types.go`;
//! those that a Windows node fills, from kubernetes 1.37.0,
//! `pkg/kubelet/stats/cri_stats_provider_windows.go`: no resident memory, no inodes.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Container;
use serde_json::{Value, json};

use crate::fault::FaultKind;
use crate::nodes::cluster::{Cluster, NodeState};
use crate::nodes::node::DISK_KI;
use crate::pods::course::run::PodRun;
use crate::pods::reporting::book::State;
use crate::pods::spec::resources;
use crate::program::shell::BUSY;
use crate::topology::Os;

/// Current usage, and the processor time used since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Usage {
    nano_cores: u64,
    core_nanos: u64,
    /// The working set, in bytes.
    memory: u64,
}

impl Usage {
    fn add(&mut self, other: Self) {
        self.nano_cores += other.nano_cores;
        self.core_nanos += other.core_nanos;
        self.memory += other.memory;
    }
}

/// The summary of a node and of those of its pods that have a running container.
pub(super) fn summary(cluster: &Cluster, node: &NodeState) -> Value {
    let (os, now, since) = (node.pool.os(), node.wall.time(), node.started());
    let at = seconds(now);
    // The usage of the operating system
    let (milli_cores, mebibytes) = match os {
        Os::Linux => (60, 900),
        Os::Windows => (120, 1700),
    };
    let cores = milli_cores * 1_000_000;
    let cores = about(cluster, "system processor", &node.name, cores);
    let memory_used = about(cluster, "system memory", &node.name, mebibytes << 20);
    let mut total = running(cores, memory_used, since, now);
    let mut pods = Vec::new();
    let reports = !node.suffers(FaultKind::StatsMissing, &cluster.faults.current());
    for run in cluster.runs(node).values().filter(|_| reports) {
        let (stats, used) = pod(cluster, run, now, &at);
        if used != Usage::default() {
            pods.push(stats);
            total.add(used);
        }
    }
    let free = (u64::from(node.spec.memory) << 20).saturating_sub(total.memory);
    let disk_used = disk(&at, os, DISK_KI * 1024 / 3);
    let node_stats = json!({
        "nodeName": node.name,
        "startTime": seconds(since),
        "cpu": processor(total, &at),
        "memory": memory(total, Some(free), os, &at),
        "fs": disk_used,
        "runtime": {"imageFs": disk_used, "containerFs": disk_used},
    });
    json!({"node": node_stats, "pods": pods})
}

/// The statistics of a pod, and the total usage of its containers.
fn pod(cluster: &Cluster, run: &PodRun, now: Timestamp, at: &str) -> (Value, Usage) {
    let os = run.node.pool.os();
    let book = run.book();
    let specs = run.pod.spec.iter().flat_map(|spec| {
        let init = spec.init_containers.iter().flatten();
        init.chain(&spec.containers)
    });
    let (mut containers, mut total) = (Vec::new(), Usage::default());
    for spec in specs {
        let known = book.container(&spec.name).map(|known| &known.state);
        let Some(State::Running(since)) = known else {
            continue;
        };
        let (used, available) = container(cluster, run, spec, *since, now);
        total.add(used);
        containers.push(json!({
            "name": spec.name,
            "startTime": seconds(*since),
            "cpu": processor(used, at),
            "memory": memory(used, available, os, at),
            "rootfs": disk(at, os, 64 << 10),
            "logs": disk(at, os, 4 << 10),
        }));
    }
    let stats = json!({
        "podRef": {"name": run.key.name, "namespace": run.key.namespace, "uid": run.uid},
        "startTime": seconds(book.started),
        "containers": containers,
        "cpu": processor(total, at),
        "memory": memory(total, None, os, at),
    });
    (stats, total)
}

/// The usage of a container, and how many bytes of memory its limit leaves.
fn container(
    cluster: &Cluster,
    run: &PodRun,
    spec: &Container,
    since: Timestamp,
    now: Timestamp,
) -> (Usage, Option<u64>) {
    let stated = |limit: bool, name: &str| {
        let stated = resources::stated(spec.resources.as_ref(), limit, name);
        stated.map(resources::in_units)
    };
    // An idle server uses a fifth of the requested processor time and half of the requested memory
    let (milli_cores, mebibytes) = match run.node.pool.os() {
        Os::Linux => (2, 14),
        Os::Windows => (9, 72),
    };
    let processor =
        stated(false, "cpu").map_or(milli_cores * 1_000_000, |cores| whole(cores * 0.2e9));
    let memory = stated(false, "memory").map_or(mebibytes << 20, |bytes| whole(bytes * 0.5));
    let limit = stated(true, "memory").map(whole);
    let is_busy = |argument: &String| BUSY.contains(&argument.as_str());
    let processor = match stated(true, "cpu") {
        Some(cores) if spec.args.iter().flatten().any(is_busy) => whole(cores * 1e9),
        _ => processor,
    };
    let name = format!("{} {}", run.uid, spec.name);
    let memory = about(cluster, "memory", &name, memory);
    let memory = limit.map_or(memory, |limit| memory.min(limit / 10 * 9));
    let processor = about(cluster, "processor", &name, processor);
    let mut used = running(processor, memory, since, now);
    if run.suffers(FaultKind::CpuUnmeasured, cluster) {
        // Without any a metrics server has nothing of the pod
        (used.nano_cores, used.core_nanos) = (0, 1_000_000);
    }
    (used, limit.map(|limit| limit - memory))
}

fn running(nano_cores: u64, memory: u64, since: Timestamp, at: Timestamp) -> Usage {
    let seconds = at.duration_since(since).as_secs_f64().max(0.0);
    #[expect(clippy::cast_precision_loss, reason = "a plausible number")]
    let core_nanos = whole(nano_cores as f64 * seconds);
    Usage {
        nano_cores,
        core_nanos,
        memory,
    }
}

/// A number within 20 % of `number`, fixed by the seed.
fn about(cluster: &Cluster, what: &str, name: &str, number: u64) -> u64 {
    let chance = &cluster.chance;
    let number = chance.about(&format!("{what} {name}"), Duration::from_nanos(number));
    u64::try_from(number.as_nanos()).unwrap_or(u64::MAX)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cast of a float stops at the bounds"
)]
fn whole(number: f64) -> u64 {
    (number as u64).min(1 << 50)
}

fn processor(usage: Usage, at: &str) -> Value {
    json!({
        "time": at,
        "usageNanoCores": usage.nano_cores,
        "usageCoreNanoSeconds": usage.core_nanos,
    })
}

fn memory(usage: Usage, available: Option<u64>, os: Os, at: &str) -> Value {
    let mut stats = json!({
        "time": at,
        "usageBytes": usage.memory / 8 * 9,
        "workingSetBytes": usage.memory,
        "pageFaults": usage.memory >> 12,
    });
    if let Some(available) = available {
        stats["availableBytes"] = available.into();
    }
    if os == Os::Linux {
        stats["rssBytes"] = (usage.memory / 8 * 7).into();
        stats["majorPageFaults"] = 0.into();
    }
    stats
}

fn disk(at: &str, os: Os, used: u64) -> Value {
    let capacity = DISK_KI * 1024;
    let mut stats = json!({
        "time": at,
        "availableBytes": capacity / 3 * 2,
        "capacityBytes": capacity,
        "usedBytes": used,
    });
    if os == Os::Linux {
        let inodes = capacity >> 14;
        stats["inodes"] = inodes.into();
        stats["inodesFree"] = (inodes / 10 * 9).into();
        stats["inodesUsed"] = (inodes / 10).into();
    }
    stats
}

/// metav1.Time, the type of a sample's time too: whole seconds.
fn seconds(at: Timestamp) -> String {
    format!("{at:.0}")
}
