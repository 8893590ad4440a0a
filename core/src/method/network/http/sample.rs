//! Which nodes are observed one by one: all of few nodes, or a sample of many that the run's id decides.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use crate::facts::PoolName;
use crate::method::place::PoolNode;

/// At most this many nodes are each observed from every vantage point; of more nodes, each run picks another
/// sample of this size.
const NODES: usize = 64;

/// Returns these nodes if they are few, or else as many of each pool as there is room for, drawn with the
/// run's id as the seed: a reader of the record draws the same nodes.
pub(super) fn sample<'a>(
    run: &str,
    nodes: impl IntoIterator<Item = &'a PoolNode>,
) -> Vec<&'a PoolNode> {
    let mut nodes: Vec<_> = nodes.into_iter().collect();
    if nodes.len() <= NODES {
        return nodes;
    }
    let drawn = |node: &PoolNode| {
        let seeded = Sha256::new().chain_update(run).chain_update([0]);
        seeded.chain_update(&node.name).finalize()
    };
    nodes.sort_by_cached_key(|node| drawn(node));
    let mut of_pool = BTreeMap::<&PoolName, usize>::new();
    let mut in_turn: Vec<_> = nodes
        .into_iter()
        .map(|node| {
            let before = of_pool.entry(&node.pool).or_default();
            *before += 1;
            (*before, node)
        })
        .collect();
    // The first of every pool, then the second of every pool, and so on
    in_turn.sort_by_key(|(turn, _)| *turn);
    let mut picked: Vec<_> = in_turn.into_iter().map(|(_, node)| node).collect();
    picked.truncate(NODES);
    picked.sort_by(|one, other| one.name.cmp(&other.name));
    picked
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::facts::WindowsBuild;

    fn nodes(linux: usize, windows: usize) -> Vec<PoolNode> {
        let node = |pool: PoolName, number: usize| PoolNode {
            name: format!("{pool}-{number:04}"),
            pool,
            kubelet: None,
            addresses: Vec::new(),
        };
        let linux = (0..linux).map(|number| node(PoolName::linux(), number));
        let pool = PoolName::windows(WindowsBuild::SERVER_2022);
        let windows = (0..windows).map(|number| node(pool.clone(), number));
        linux.chain(windows).collect()
    }

    fn names(run: &str, nodes: &[PoolNode]) -> BTreeSet<String> {
        let picked = sample(run, nodes);
        picked.into_iter().map(|node| node.name.clone()).collect()
    }

    #[test]
    fn few_nodes_are_all_there() {
        let few = nodes(NODES / 2, NODES / 2);
        assert_eq!(names("r1", &few).len(), NODES);
    }

    #[test]
    fn of_many_each_pool_has_its_share_and_each_run_its_own() {
        let many = nodes(3, 1000);
        let picked = names("r1", &many);
        assert_eq!(picked.len(), NODES);
        assert_eq!(
            picked
                .iter()
                .filter(|name| name.starts_with("linux"))
                .count(),
            3
        );
        assert_eq!(picked, names("r1", &many));
        assert_ne!(picked, names("r2", &many));
    }
}
