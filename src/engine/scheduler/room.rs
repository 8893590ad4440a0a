//! The room on Windows nodes: how many of the run's pods may start at once on each, and how many may be alive.
//!
//! A Windows node starts pods slowly, and its kubelet may become unhealthy over many (kubernetes/kubernetes#88153,
//! Azure/AKS#3612); a small node of EKS has nine addresses for pods (amazon-vpc-resource-controller-k8s,
//! pkg/aws/vpc/limits.go, m5.large, less one for the node itself).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;
use winconform_core::fixture::{FixtureKey, is_host_process};

/// The most pods that start at once on a node.
const START: u64 = 4;
/// The most pods that are alive on a node and have an address of their own.
pub(crate) const ALIVE: u64 = 8;

/// The pods of a fixture on one node.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Load {
    /// Those that start at once.
    pub(crate) pods: u64,
    /// Those that are there at once and have an address of their own.
    pub(crate) addresses: u64,
}

impl Load {
    pub(crate) fn add(&mut self, pod_spec: &Json) {
        self.pods += 1;
        self.addresses += u64::from(!is_host_process(pod_spec));
    }
}

/// What fixtures take of the Windows nodes, by the nodes' names; nothing of a fixture without such pods.
pub(crate) type Loads = BTreeMap<FixtureKey, BTreeMap<String, Load>>;

/// What the run has on the nodes at the moment.
#[derive(Debug, Default)]
pub(crate) struct Room {
    loads: Loads,
    /// The fixtures whose pods start.
    starting: Part,
    /// The fixtures whose pods are there, those that start among them.
    alive: Part,
}

/// Fixtures, and what they take of the nodes together.
#[derive(Debug, Default)]
struct Part {
    fixtures: BTreeSet<FixtureKey>,
    taken: BTreeMap<String, Load>,
}

impl Part {
    /// Changes which fixtures these are, or takes note of what they take now.
    fn change(&mut self, loads: &Loads, change: impl FnOnce(&mut BTreeSet<FixtureKey>)) {
        change(&mut self.fixtures);
        self.taken.clear();
        let each = self.fixtures.iter().filter_map(|key| loads.get(key));
        for (node, load) in each.flatten() {
            let sum = self.taken.entry(node.clone()).or_default();
            sum.pods += load.pods;
            sum.addresses += load.addresses;
        }
    }

    fn of(&self, node: &str) -> Load {
        self.taken.get(node).copied().unwrap_or_default()
    }
}

impl Room {
    pub(crate) fn new(loads: Loads) -> Self {
        Self {
            loads,
            ..Self::default()
        }
    }

    /// Whether a fixture may be applied beside those that are there, and the one for which room is kept. One that is too
    /// large for a node by itself may where nothing else is. Where no pods `leave`, how many are alive is what the run
    /// asks for.
    pub(crate) fn is_enough_for(
        &self,
        key: &FixtureKey,
        kept_for: Option<&FixtureKey>,
        leave: bool,
    ) -> bool {
        let nodes = self.loads.get(key).into_iter().flatten();
        let kept_for = kept_for.and_then(|key| self.loads.get(key));
        let fits =
            |taken: u64, more: u64, most: u64| taken == 0 || more == 0 || taken + more <= most;
        nodes.into_iter().all(|(node, load)| {
            let (starting, alive) = (self.starting.of(node), self.alive.of(node));
            let kept = kept_for.and_then(|loads| loads.get(node));
            let kept = kept.copied().unwrap_or_default();
            fits(starting.pods + kept.pods, load.pods, START)
                && (!leave || fits(alive.addresses + kept.addresses, load.addresses, ALIVE))
        })
    }

    pub(crate) fn applies(&mut self, key: &FixtureKey) {
        self.change(|fixtures| _ = fixtures.insert(key.clone()));
    }

    /// The scheduler has put the pods of a fixture elsewhere than was counted.
    pub(crate) fn bound(&mut self, key: &FixtureKey, load: BTreeMap<String, Load>) {
        self.loads.insert(key.clone(), load);
        self.change(|_| {});
    }

    /// The pods of a fixture have started, or will not.
    pub(crate) fn started(&mut self, key: &FixtureKey) {
        self.starting
            .change(&self.loads, |fixtures| _ = fixtures.remove(key));
    }

    /// The pods of a fixture are gone.
    pub(crate) fn removed(&mut self, key: &FixtureKey) {
        self.change(|fixtures| _ = fixtures.remove(key));
    }

    fn change(&mut self, change: impl Fn(&mut BTreeSet<FixtureKey>)) {
        for part in [&mut self.starting, &mut self.alive] {
            part.change(&self.loads, &change);
        }
    }

    /// Whether a fixture has pods on Windows nodes now.
    pub(crate) fn has(&self, key: &FixtureKey) -> bool {
        self.alive.fixtures.contains(key) && self.loads.contains_key(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use winconform_core::fixture::FixtureName;

    fn key(name: FixtureName) -> FixtureKey {
        name.in_pool(None)
    }

    /// Fixtures with so many pods and addresses on one node.
    fn room(fixtures: &[(FixtureName, u64, u64)]) -> Room {
        let loads = fixtures.iter().map(|(name, pods, addresses)| {
            let (pods, addresses) = (*pods, *addresses);
            let load = Load { pods, addresses };
            (key(*name), [("win-a".to_owned(), load)].into())
        });
        Room::new(loads.collect())
    }

    #[test]
    fn four_start_at_once_and_the_next_once_one_has_started() {
        let (first, second) = (FixtureName::CHURN, FixtureName::IIS);
        let mut room = room(&[(first, 4, 4), (second, 1, 1)]);
        assert!(room.is_enough_for(&key(first), None, true));
        room.applies(&key(first));
        assert!(!room.is_enough_for(&key(second), None, true));
        room.started(&key(first));
        assert!(room.is_enough_for(&key(second), None, true) && room.has(&key(first)));
    }

    #[test]
    fn room_is_kept_for_another() {
        let (large, small) = (FixtureName::CHURN, FixtureName::IIS);
        let mut room = room(&[(large, 3, 3), (small, 2, 2), (FixtureName::PROBED, 1, 1)]);
        room.applies(&key(small));
        let next = key(FixtureName::PROBED);
        assert!(room.is_enough_for(&next, None, true));
        assert!(!room.is_enough_for(&next, Some(&key(large)), true));
    }

    #[test]
    fn eight_are_alive_and_pods_on_the_network_of_the_node_do_not_count() {
        let (first, second, host) = (
            FixtureName::CHURN,
            FixtureName::IIS,
            FixtureName::WINDOWS_NODE_PROBER,
        );
        let mut room = room(&[(first, 8, 8), (second, 1, 1), (host, 1, 0)]);
        room.applies(&key(first));
        room.started(&key(first));
        assert!(
            !room.is_enough_for(&key(second), None, true)
                && room.is_enough_for(&key(host), None, true)
        );
        assert!(room.is_enough_for(&key(second), None, false));
        room.removed(&key(first));
        assert!(room.is_enough_for(&key(second), None, true) && !room.has(&key(first)));
    }

    #[test]
    fn what_has_no_pods_on_windows_always_has_room() {
        let first = FixtureName::CHURN;
        let mut room = room(&[(first, 9, 9)]);
        // Too large by itself: it gets an empty node
        assert!(room.is_enough_for(&key(first), None, true));
        room.applies(&key(first));
        let linux = key(FixtureName::LINUX_POD_PROBER);
        assert!(room.is_enough_for(&linux, None, true) && !room.has(&linux));
    }
}
