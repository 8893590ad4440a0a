//! What a run asks of a cluster beside requests to its API server.

use crate::config::Image;
use crate::method::Quantity;

use super::pulls::Pulls;

/// What a run's pods ask of the nodes of a pool.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PoolCost {
    /// Pods, all of which may exist at once.
    pub pods: u64,
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
