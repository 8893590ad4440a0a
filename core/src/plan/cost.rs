//! What a run asks of a cluster beside requests to its API server.

use std::collections::BTreeMap;
use std::fmt;

use crate::config::Image;
use crate::facts::{Facts, PoolName};
use crate::method::Quantity;

use super::pulls::Pulls;

/// What a run's pods ask of the nodes of a pool.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PoolCost {
    /// Pods in all.
    pub pods: u64,
    /// What those request that exist at once, by resource, with the pods themselves and their addresses.
    pub at_once: BTreeMap<&'static str, Quantity>,
    /// Further pods that exist only to be placed, whatever they request: most of them never run.
    pub placed: u64,
    /// What `pods` request together.
    pub cpu: Quantity,
    pub memory: Quantity,
    /// Images that a node pulls, unless it has them.
    pub images: usize,
    /// About how much it pulls, in tenths of a gigabyte.
    pub tenths: u32,
}

impl PoolCost {
    /// Adds what a node pulls: just over 1 GB for all images of Server Core and under 0.1 GB for all of Nano
    /// Server (Directions on Microsoft, *Windows Server Container Images*, February 2024), and as little for
    /// each of the rest.
    pub fn add_pulls(&mut self, pulls: &Pulls) {
        let fixtures = pulls.images.values().flatten();
        let mut roles = fixtures.filter_map(|fixture| fixture.image());
        let is_of_server_core = roles.any(|role| matches!(role, Image::ServerCore | Image::Iis));
        self.images += pulls.images.len();
        let images = u32::try_from(pulls.images.len()).unwrap_or(u32::MAX);
        self.tenths = self
            .tenths
            .saturating_add(10 * u32::from(is_of_server_core));
        self.tenths = self.tenths.saturating_add(images);
    }

    /// Adds so many pods, each with a container that requests so much.
    pub fn add_pods(&mut self, pods: u64, requests: impl Iterator<Item = [Quantity; 2]>) {
        self.pods += pods;
        for [cpu, memory] in requests {
            self.cpu = self.cpu.plus(cpu.times(pods));
            self.memory = self.memory.plus(memory.times(pods));
        }
    }
}

/// A resource of which the usable nodes of a pool have less left than a run needs at once.
#[derive(Clone, Debug, PartialEq)]
pub struct Shortage {
    pub pool: PoolName,
    pub resource: &'static str,
    pub needed: Quantity,
    pub left: Quantity,
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            pool,
            resource,
            needed,
            left,
        } = self;
        write!(
            f,
            "{pool}: the run needs {needed} of {resource} at once; left: {left}"
        )
    }
}

/// What the pools lack for a run. A resource of which a node does not say how much it has is not counted.
pub fn shortages(costs: &BTreeMap<PoolName, PoolCost>, facts: &Facts) -> Vec<Shortage> {
    let nodes = facts.nodes.value().into_iter().flatten();
    let nodes: BTreeMap<_, _> = nodes.map(|node| (&node.name, &node.details)).collect();
    let Some(workloads) = facts.workloads.value() else {
        return Vec::new();
    };
    // What a node has left of a resource
    let left = |node: &String, resource: &str| {
        let has = Quantity::parse(nodes.get(node)?.allocatable.get(resource)?)?;
        let taken = workloads
            .taken
            .get(node)
            .and_then(|taken| taken.get(resource));
        let taken = taken.and_then(|taken| Quantity::parse(taken));
        Some(
            has.less(taken.unwrap_or(Quantity::ZERO))
                .max(Quantity::ZERO),
        )
    };
    let pools = facts.pools();
    let mut shortages = Vec::new();
    for (pool, cost) in costs {
        let usable = pools
            .get(pool)
            .map(|pool| &pool.nodes[..])
            .unwrap_or_default();
        for (resource, needed) in &cost.at_once {
            let each: Option<Vec<_>> = usable.iter().map(|node| left(node, resource)).collect();
            let each = each.filter(|each| !each.is_empty());
            let sum = each.map(|each| each.into_iter().fold(Quantity::ZERO, Quantity::plus));
            if let Some(left) = sum.filter(|left| left < needed) {
                shortages.push(Shortage {
                    pool: pool.clone(),
                    resource,
                    needed: *needed,
                    left,
                });
            }
        }
    }
    shortages
}
