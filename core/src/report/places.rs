//! The nodes that are looked from one by one.

use std::collections::{BTreeMap, BTreeSet};

use crate::facts::{Facts, NodeOrdinal, PoolName};
use crate::plan::Point;
use crate::record::RunView;
use crate::text::{counted, printable};

/// The name of the node that a check looks from, where each of its pool does. Foreign text.
pub(super) fn node(view: &RunView, point: &Point) -> Option<String> {
    let (pool, node) = (point.pool.as_ref()?, point.node?);
    view.facts.as_ref()?.pools().get(pool)?.node(node).cloned()
}

/// Of each pool that should be looked from node by node, of how many something is known; with their
/// names where that is not all: `windows-2022 2 of 3 nodes (win-a, win-c)`. Printable.
pub(super) fn looked_from(view: &RunView) -> Vec<String> {
    let pools = view.facts.as_ref().map(Facts::pools);
    let pools = pools.unwrap_or_default();
    let mut looked = BTreeMap::<&PoolName, BTreeSet<NodeOrdinal>>::new();
    for check in view.checks.values() {
        let point = &check.planned.point;
        let (Some(pool), Some(node)) = (&point.pool, point.node) else {
            continue;
        };
        let conclusion = check.conclusion.as_ref();
        let told = conclusion.is_some_and(|conclusion| conclusion.verdict.is_conclusive());
        looked.entry(pool).or_default().extend(told.then_some(node));
    }
    let told = looked.into_iter().filter_map(|(name, looked)| {
        let pool = pools.get(name)?;
        let all = counted(pool.nodes.len() + pool.unusable.len(), "node");
        let count = format!("{} {} of {all}", printable(name.as_str()), looked.len());
        let names = looked.iter().filter_map(|node| pool.node(*node));
        let names: Vec<_> = names.map(|name| printable(name)).collect();
        let whole = names.is_empty() || looked.len() == pool.nodes.len() + pool.unusable.len();
        Some(match whole {
            true => count,
            false => format!("{count} ({})", names.join(", ")),
        })
    });
    told.collect()
}
