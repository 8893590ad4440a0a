//! `/stats/summary`: what containers and nodes use of processors and memory.
//!
//! Nothing is measured, for nothing runs: the numbers are part of what containers request, else what
//! their kind needs, and some chance that the seed fixes. Names of fields are those of k8s.io/kubelet
//! 0.37.0, `pkg/apis/stats/v1alpha1/types.go`; which of them a Windows node fills, those of kubernetes
//! 1.37.0, `pkg/kubelet/stats/cri_stats_provider_windows.go`: no resident memory, no inodes.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Container;
use serde_json::{Value, json};

use crate::nodes::cluster::{Cluster, NodeState};
use crate::nodes::node::DISK_KI;
use crate::pods::course::run::PodRun;
use crate::pods::reporting::book::State;
use crate::pods::spec::resources;
use crate::topology::Os;

/// What is used at a moment, and of processor time since the beginning.
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

/// The summary of a node and its pods, of which those are told that have a container that runs.
pub(super) fn summary(cluster: &Cluster, node: &NodeState) -> Value {
    let (os, now, since) = (node.pool.os(), node.wall.time(), node.started());
    let at = seconds(now);
    // What the system itself uses
    let (milli_cores, mebibytes) = match os {
        Os::Linux => (60, 900),
        Os::Windows => (120, 1700),
    };
    let cores = milli_cores * 1_000_000;
    let cores = about(cluster, "system processor", &node.name, cores);
    let memory_used = about(cluster, "system memory", &node.name, mebibytes << 20);
    let mut total = running(cores, memory_used, since, now);
    let mut pods = Vec::new();
    for run in cluster.runs(node).values() {
        let (told, used) = pod(cluster, run, now, &at);
        if used != Usage::default() {
            pods.push(told);
            total.add(used);
        }
    }
    let free = (u64::from(node.spec.memory) << 20).saturating_sub(total.memory);
    let disk_used = disk(&at, os, DISK_KI * 1024 / 3);
    let told = json!({
        "nodeName": node.name,
        "startTime": seconds(since),
        "cpu": processor(total, &at),
        "memory": memory(total, Some(free), os, &at),
        "fs": disk_used,
        "runtime": {"imageFs": disk_used, "containerFs": disk_used},
    });
    json!({"node": told, "pods": pods})
}

/// What is told of a pod, and what its containers use together.
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
    let told = json!({
        "podRef": {"name": run.key.name, "namespace": run.key.namespace, "uid": run.uid},
        "startTime": seconds(book.started),
        "containers": containers,
        "cpu": processor(total, at),
        "memory": memory(total, None, os, at),
    });
    (told, total)
}

/// What a container uses, and the bytes that a limit leaves.
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
    // Idle servers: a fifth of the processor asked for, half of the memory
    let (milli_cores, mebibytes) = match run.node.pool.os() {
        Os::Linux => (2, 14),
        Os::Windows => (9, 72),
    };
    let processor =
        stated(false, "cpu").map_or(milli_cores * 1_000_000, |cores| whole(cores * 0.2e9));
    let memory = stated(false, "memory").map_or(mebibytes << 20, |bytes| whole(bytes * 0.5));
    let limit = stated(true, "memory").map(whole);
    let name = format!("{} {}", run.uid, spec.name);
    let memory = about(cluster, "memory", &name, memory);
    let memory = limit.map_or(memory, |limit| memory.min(limit / 10 * 9));
    let processor = about(cluster, "processor", &name, processor);
    let used = running(processor, memory, since, now);
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

/// Within a fifth of a number, fixed by the seed.
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
    format!("{at:.0}")
}
