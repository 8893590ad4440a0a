//! Whether checks are where a cause is, or may be in trouble because of it.

use std::collections::BTreeSet;

use super::catalogue::Side;
use super::place::Place;
use super::trouble::{End, Seen};

impl Place {
    /// Whether a check is here, by the side of a cause; `false` if nothing tells.
    pub(super) fn holds(&self, side: Side, seen: &Seen<'_>) -> bool {
        let end = match side {
            Side::To => &seen.to,
            Side::About | Side::Named => &seen.about,
            Side::From | Side::Way | Side::Reach | Side::Observer => &seen.from,
            Side::Cluster => return false,
        };
        let Some(end) = end else {
            return false;
        };
        match self {
            Self::Cluster => true,
            Self::Os(_, pools) | Self::Pools(pools) => pools.contains(&end.pool),
            Self::Nodes(nodes) => nodes.contains(end),
            Self::Ways(nodes, to) => {
                nodes.contains(end) && seen.to.as_ref().is_some_and(|end| to.contains(&end.pool))
            }
            Self::Paths(paths) => {
                let way = seen
                    .to
                    .as_ref()
                    .map(|to| (end.pool.clone(), to.pool.clone()));
                way.is_some_and(|way| paths.contains(&way))
            }
        }
    }

    /// Whether a check may be in trouble because of a cause where it observes from.
    pub(super) fn may_reach_from(&self, seen: &Seen<'_>) -> bool {
        match &seen.from {
            Some(from) => self.may_hold(from),
            None => self.may_reach(seen),
        }
    }

    /// Whether a check may be in trouble because of a cause here.
    pub(super) fn may_reach(&self, seen: &Seen<'_>) -> bool {
        let ends = || seen.from.iter().chain(&seen.to).chain(&seen.named);
        let is_of = |nodes: &BTreeSet<End>, end: &End| {
            nodes.contains(end) || end.node.is_none() && has_pool(nodes, end)
        };
        match self {
            Self::Cluster => true,
            Self::Os(_, pools) | Self::Pools(pools) => ends().any(|end| pools.contains(&end.pool)),
            Self::Nodes(nodes) => ends().any(|end| is_of(nodes, end)),
            Self::Ways(nodes, to) => {
                let from = seen.from.as_ref().or(seen.to.as_ref());
                let mut ends = from.into_iter().chain(&seen.named);
                let leads_there = seen.to.as_ref().is_none_or(|end| to.contains(&end.pool));
                leads_there && ends.any(|end| is_of(nodes, end))
            }
            Self::Paths(paths) => match (&seen.from, &seen.to) {
                // A reply goes the other way
                (Some(from), Some(to)) => {
                    let way = (from.pool.clone(), to.pool.clone());
                    // A node may pass it on to another of its pool
                    let within = (way.1.clone(), way.1.clone());
                    paths.contains(&way)
                        || paths.contains(&within)
                        || paths.contains(&(way.1, way.0))
                }
                (Some(from), None) => {
                    let mut pools = paths.iter().flat_map(|(from, to)| [from, to]);
                    pools.any(|pool| *pool == from.pool)
                }
                (None, _) => {
                    let mut pools = paths.iter().flat_map(|(from, to)| [from, to]);
                    pools.any(|pool| ends().any(|end| end.pool == *pool))
                }
            },
        }
    }

    /// Whether one of its nodes is at an end of its pools; `None` if it is not of nodes, or the end of no node of theirs.
    pub(super) fn has_node(&self, end: &End) -> Option<bool> {
        let (Self::Nodes(nodes) | Self::Ways(nodes, _)) = self else {
            return None;
        };
        let is_near = end.node.is_some() && has_pool(nodes, end);
        is_near.then(|| nodes.contains(end))
    }

    /// Whether an end may be in it: of its pools, and of its nodes where it is of nodes.
    pub(super) fn may_hold(&self, end: &End) -> bool {
        let is_there = self.pools().is_none_or(|pools| pools.contains(&end.pool));
        is_there && self.has_node(end) != Some(false)
    }
}

/// Whether some of these nodes are in the pool of an end.
fn has_pool(nodes: &BTreeSet<End>, end: &End) -> bool {
    let first = End {
        pool: end.pool.clone(),
        node: None,
    };
    let next = nodes.range(first..).next();
    next.is_some_and(|node| node.pool == end.pool)
}
