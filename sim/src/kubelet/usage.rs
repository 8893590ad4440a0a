//! What containers and nodes use of processors and memory: part of what they request, else what
//! their kind needs, and some chance that the seed fixes.
//!
//! Nothing is measured, for nothing runs: the numbers are plausible, and are told by `/stats/summary`.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Container;

use crate::cluster::{Cluster, NodeState};
use crate::loopback::wall;
use crate::pods::book::State;
use crate::pods::resources::amount;
use crate::pods::run::PodRun;
use crate::topology::Os;

/// What is used at a moment, and of processor time since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) nano_cores: u64,
    pub(crate) core_nanos: u64,
    /// The working set, in bytes.
    pub(crate) memory: u64,
}

impl Usage {
    fn add(&mut self, other: Self) {
        self.nano_cores += other.nano_cores;
        self.core_nanos += other.core_nanos;
        self.memory += other.memory;
    }
}

/// A container that runs.
pub(crate) struct ContainerUsage {
    pub(crate) name: String,
    pub(crate) since: Timestamp,
    pub(crate) usage: Usage,
    /// The bytes that a limit leaves.
    pub(crate) available: Option<u64>,
}

/// A pod with its containers that run.
pub(crate) struct PodUsage {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) started: Timestamp,
    pub(crate) containers: Vec<ContainerUsage>,
    pub(crate) total: Usage,
}

/// A node with its pods.
pub(crate) struct NodeUsage {
    pub(crate) at: Timestamp,
    pub(crate) since: Timestamp,
    pub(crate) total: Usage,
    /// The node's memory in bytes.
    pub(crate) memory: u64,
    pub(crate) pods: Vec<PodUsage>,
}

/// What a node and its pods use now.
pub(crate) fn of(cluster: &Cluster, node: &NodeState) -> NodeUsage {
    let at = wall();
    let pods: Vec<PodUsage> = cluster
        .runs(node)
        .values()
        .map(|run| pod(cluster, run, at))
        .filter(|pod| !pod.containers.is_empty())
        .collect();
    let since = node.started();
    // What the system itself uses
    let (milli_cores, mebibytes) = match node.pool.os() {
        Os::Linux => (60, 900),
        Os::Windows => (120, 1700),
    };
    let mut total = running(
        about(
            cluster,
            "system processor",
            &node.name,
            milli_cores * 1_000_000,
        ),
        about(cluster, "system memory", &node.name, mebibytes << 20),
        since,
        at,
    );
    for pod in &pods {
        total.add(pod.total);
    }
    NodeUsage {
        at,
        since,
        total,
        memory: u64::from(node.spec.memory) << 20,
        pods,
    }
}

fn pod(cluster: &Cluster, run: &PodRun, at: Timestamp) -> PodUsage {
    let book = run.book();
    let specs = run.pod.spec.iter().flat_map(|spec| {
        let init = spec.init_containers.iter().flatten();
        init.chain(&spec.containers)
    });
    let containers: Vec<_> = specs
        .filter_map(|spec| match book.container(&spec.name)?.state {
            State::Running { since } => Some(container(cluster, run, spec, since, at)),
            _ => None,
        })
        .collect();
    let mut total = Usage::default();
    for container in &containers {
        total.add(container.usage);
    }
    PodUsage {
        namespace: run.key.namespace.clone(),
        name: run.key.name.clone(),
        uid: run.uid.clone(),
        started: book.started,
        containers,
        total,
    }
}

fn container(
    cluster: &Cluster,
    run: &PodRun,
    spec: &Container,
    since: Timestamp,
    at: Timestamp,
) -> ContainerUsage {
    let stated = |limit: bool, resource: &str| {
        let resources = spec.resources.as_ref()?;
        let list = if limit {
            resources.limits.as_ref()?
        } else {
            resources.requests.as_ref()?
        };
        amount(&list.get(resource)?.0).filter(|amount| *amount > 0.0)
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
    ContainerUsage {
        name: spec.name.clone(),
        since,
        usage: running(processor, memory, since, at),
        available: limit.map(|limit| limit - memory),
    }
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
