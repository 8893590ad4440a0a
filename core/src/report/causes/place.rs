//! Where a cause is: as much of the cluster as what failed covers, made smaller by what passed from other nodes and
//! between other pools.

use std::collections::BTreeSet;

use strum::IntoStaticStr;

use super::catalogue::Side;
use super::trouble::{End, Seen, ways};
use crate::facts::{Os, Pool, PoolName};
use crate::report::findings::places::Pools;
use crate::text::printable;

/// How many nodes or pools are named.
const NAMED: usize = 4;

/// How much of a cluster a cause is in.
#[derive(Clone, Copy, Debug, Eq, IntoStaticStr, PartialEq)]
#[strum(serialize_all = "kebab-case")]
pub enum Scope {
    Cluster,
    Os,
    Pool,
    Node,
    Path,
}

/// What is known beside the checks that show a cause: those that would show it as well.
pub(super) struct Others<'a> {
    pub(super) well: &'a [&'a Seen<'a>],
    /// Those in trouble that causes before have taken.
    pub(super) taken: &'a [&'a Seen<'a>],
    /// Nodes from which pods on others are reached, for [`Side::Reach`].
    pub(super) reaching: BTreeSet<&'a End>,
}

/// A part of a cluster.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Place {
    Cluster,
    /// All pools of one operating system: of Linux, or several of Windows.
    Os(Os, BTreeSet<PoolName>),
    Pools(BTreeSet<PoolName>),
    Nodes(BTreeSet<End>),
    /// Between pools.
    Paths(BTreeSet<(PoolName, PoolName)>),
    /// From nodes, which reach others, to pools.
    Ways(BTreeSet<End>, BTreeSet<PoolName>),
}

impl Place {
    pub(super) fn scope(&self) -> Scope {
        match self {
            Self::Cluster => Scope::Cluster,
            Self::Os(..) => Scope::Os,
            Self::Pools(_) => Scope::Pool,
            Self::Nodes(_) => Scope::Node,
            Self::Paths(_) | Self::Ways(..) => Scope::Path,
        }
    }

    /// Where checks are in trouble that checks which are well do not contradict.
    pub(super) fn find(
        side: Side,
        troubles: &[&Seen<'_>],
        others: &Others<'_>,
        pools: &Pools,
    ) -> Self {
        let find = |side| Self::find(side, troubles, others, pools);
        match side {
            Side::Cluster => Self::Cluster,
            Side::From => Self::at(troubles, others, pools, |seen| seen.from.as_ref()),
            Side::To => Self::at(troubles, others, pools, |seen| seen.to.as_ref()),
            Side::About => match shared(troubles, pools) {
                Some(pool) => Self::of_pools([pool].into(), pools),
                None => Self::at(troubles, others, pools, |seen| seen.about.as_ref()),
            },
            Side::Named => {
                // `a, b, c and 7 more` names a few of many
                if troubles.iter().any(|seen| names_few(&seen.text)) {
                    return find(Side::About);
                }
                let named = troubles.iter().flat_map(|seen| &seen.named);
                // A check that names none tells of the node that it observes from
                let unnamed = troubles.iter().filter(|seen| seen.named.is_empty());
                let from = unnamed.filter_map(|seen| seen.from.as_ref());
                let nodes: BTreeSet<_> = named
                    .clone()
                    .chain(from)
                    .filter(|end| end.node.is_some())
                    .cloned()
                    .collect();
                let named = match nodes.is_empty() {
                    true => named.cloned().collect(),
                    false => nodes,
                };
                match named.is_empty() {
                    true => find(Side::About),
                    false => Self::of_nodes(named, pools),
                }
            }
            Side::Observer => {
                let nodes = troubles.iter().map(|seen| seen.observer.clone());
                match nodes.collect::<Option<BTreeSet<_>>>() {
                    Some(nodes) => Self::of_nodes(nodes, pools),
                    None => find(Side::From),
                }
            }
            Side::Way | Side::Reach => {
                Self::way(troubles, others, pools).unwrap_or_else(|| find(Side::From))
            }
        }
    }

    /// What causes before have taken may be of this one, too, if it is on nodes of both systems; and otherwise need not.
    fn at(
        troubles: &[&Seen<'_>],
        others: &Others<'_>,
        pools: &Pools,
        end: for<'a, 'b> fn(&'a Seen<'b>) -> Option<&'a End>,
    ) -> Self {
        let nodes_of = |seen: &[&Seen<'_>], pool: &PoolName| -> BTreeSet<End> {
            let ends = seen.iter().filter_map(|seen| end(seen));
            let ends = ends.filter(|it| it.pool == *pool && it.node.is_some());
            ends.cloned().collect()
        };
        let pools_of = |seen: &[&Seen<'_>]| -> BTreeSet<PoolName> {
            let ends = seen.iter().filter_map(|seen| end(seen));
            ends.map(|it| it.pool.clone()).collect()
        };
        let mut there = pools_of(troubles);
        let is_of_both = there.len() > 1 && there.contains(&PoolName::linux());
        let well = match is_of_both {
            true => others.well.to_vec(),
            false => [others.well, others.taken].concat(),
        };
        if is_of_both {
            let taken = pools_of(others.taken);
            there.extend(taken.difference(&pools_of(others.well)).cloned());
        }
        let (mut whole, mut nodes) = (BTreeSet::new(), BTreeSet::new());
        for pool in there {
            let failed = nodes_of(troubles, &pool);
            let passed = nodes_of(&well, &pool);
            match failed.is_empty() || passed.is_subset(&failed) {
                true => _ = whole.insert(pool),
                false => nodes.extend(failed),
            }
        }
        if nodes.is_empty() {
            return Self::of_pools(whole, pools);
        }
        for name in whole {
            let of_pool = pools.get(&name).into_iter().flat_map(|pool| &pool.nodes);
            nodes.extend(of_pool.map(|node| End {
                pool: name.clone(),
                node: Some(node.clone()),
            }));
        }
        Self::Nodes(nodes)
    }

    fn of_nodes(nodes: BTreeSet<End>, pools: &Pools) -> Self {
        let there: BTreeSet<_> = nodes.iter().map(|end| end.pool.clone()).collect();
        let are_all = |name: &PoolName| {
            let total = pools.get(name).map_or(0, Pool::total);
            let mut named = nodes.iter().filter(|end| end.pool == *name);
            named.clone().any(|end| end.node.is_none()) || named.by_ref().count() >= total
        };
        match there.iter().all(are_all) {
            true => Self::of_pools(there, pools),
            false => Self::Nodes(nodes),
        }
    }

    fn of_pools(there: BTreeSet<PoolName>, pools: &Pools) -> Self {
        let of = |os: Os| -> BTreeSet<PoolName> {
            let pools = pools.iter().filter(|(_, pool)| pool.os == os);
            pools.map(|(name, _)| name.clone()).collect()
        };
        let (linux, windows) = (of(Os::Linux), of(Os::Windows));
        if there.is_empty() || linux.union(&windows).all(|pool| there.contains(pool)) {
            Self::Cluster
        } else if there == linux {
            Self::Os(Os::Linux, there)
        } else if there == windows && windows.len() > 1 {
            Self::Os(Os::Windows, there)
        } else {
            Self::Pools(there)
        }
    }

    /// The way on which checks are in trouble, if they are on one.
    fn way(troubles: &[&Seen<'_>], others: &Others<'_>, pools: &Pools) -> Option<Self> {
        let well = others.well;
        let failed = ways(troubles);
        if let Some(nodes) = common(troubles, well, pools) {
            // A node that others do not reach is at the end of their ways
            let begins =
                |seen: &&&Seen<'_>| seen.from.as_ref().is_some_and(|end| nodes.contains(end));
            let begun: Vec<_> = troubles.iter().filter(begins).copied().collect();
            let to: BTreeSet<_> = ways(&begun).into_iter().map(|(_, to)| to).collect();
            let reach = nodes.iter().all(|end| others.reaching.contains(end));
            return Some(match reach && !to.is_empty() {
                true => Self::Ways(nodes, to),
                false => Self::Nodes(nodes),
            });
        }
        if failed.is_empty() {
            return None;
        }
        let passed = ways(well);
        let meets = |way: &(PoolName, PoolName), pool: &PoolName| way.0 == *pool || way.1 == *pool;
        let apart = |way: &&(PoolName, PoolName)| way.0 != way.1;
        let alone = pools.keys().filter(|pool| {
            failed.iter().all(|way| meets(way, pool))
                && !passed.iter().filter(apart).any(|way| meets(way, pool))
        });
        let alone: Vec<_> = alone.collect();
        if let [pool] = alone.as_slice() {
            let of_it =
                |seen: &&&Seen<'_>| seen.from.as_ref().is_some_and(|from| from.pool == **pool);
            let troubles: Vec<_> = troubles.iter().filter(of_it).copied().collect();
            let well: Vec<_> = well.iter().filter(of_it).copied().collect();
            let others = Others {
                well: &well,
                taken: &[],
                reaching: BTreeSet::new(),
            };
            return Some(match troubles.is_empty() {
                true => Self::of_pools(BTreeSet::from([(*pool).clone()]), pools),
                false => Self::at(&troubles, &others, pools, |seen| seen.from.as_ref()),
            });
        }
        let between = failed.iter().filter(apart).count() > 0;
        let is_whole = between && !passed.iter().any(|way| apart(&way)) && pools.len() > 2;
        Some(match is_whole {
            true => Self::Cluster,
            false => Self::Paths(failed),
        })
    }

    /// Whether it is of several pools, or of nodes of several.
    pub(super) fn is_of_pools(&self) -> bool {
        let several = self.pools().is_some_and(|pools| pools.len() > 1);
        several && matches!(self, Self::Pools(_) | Self::Nodes(_))
    }

    /// A node of it, if one is named.
    pub(super) fn node(&self, pools: &Pools) -> Option<String> {
        let of_pool = |name: &PoolName| {
            let pool = pools.get(name)?;
            pool.nodes.first().or(pool.unusable.first()).cloned()
        };
        match self {
            Self::Cluster => pools.keys().rev().find_map(of_pool),
            Self::Os(_, names) | Self::Pools(names) => names.iter().find_map(of_pool),
            Self::Nodes(nodes) | Self::Ways(nodes, _) => {
                nodes.iter().find_map(|end| end.node.clone())
            }
            Self::Paths(paths) => paths.iter().rev().find_map(|(from, _)| of_pool(from)),
        }
    }

    /// The place as the end of a sentence, printable.
    pub(super) fn words(&self) -> String {
        let list = |names: Vec<&str>| {
            let more = match names.len().saturating_sub(NAMED) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let names: Vec<_> = names.into_iter().take(NAMED).collect();
            format!("{}{more}", printable(&names.join(", ")))
        };
        let on = |nodes: &BTreeSet<End>| {
            let names: Vec<_> = nodes.iter().filter_map(|end| end.node.as_deref()).collect();
            let word = if names.len() == 1 { "node" } else { "nodes" };
            format!("{word} {}", list(names))
        };
        let all = |names: &BTreeSet<PoolName>| list(names.iter().map(PoolName::as_str).collect());
        match self {
            Self::Cluster => "in the whole cluster".to_owned(),
            Self::Os(Os::Linux, _) => "on Linux nodes".to_owned(),
            Self::Os(Os::Windows, _) => "on Windows nodes of every pool".to_owned(),
            Self::Pools(names) => format!("in {}", all(names)),
            Self::Nodes(nodes) => format!("on {}", on(nodes)),
            Self::Ways(nodes, to) => format!("from {} to {}", on(nodes), all(to)),
            Self::Paths(paths) => {
                let ways = paths
                    .iter()
                    .map(|(from, to)| format!("from {from} to {to}"));
                printable(&ways.collect::<Vec<_>>().join(", "))
            }
        }
    }

    /// The pools that it is in; `None` of the whole cluster.
    pub(super) fn pools(&self) -> Option<BTreeSet<PoolName>> {
        match self {
            Self::Cluster => None,
            Self::Os(_, pools) | Self::Pools(pools) => Some(pools.clone()),
            Self::Nodes(nodes) | Self::Ways(nodes, _) => {
                Some(nodes.iter().map(|end| end.pool.clone()).collect())
            }
            Self::Paths(paths) => Some(paths.iter().map(|(from, _)| from.clone()).collect()),
        }
    }
}

/// Whether a text names a few of many.
fn names_few(text: &str) -> bool {
    let mut more = text.match_indices(" more");
    more.any(|(at, _)| text[..at].ends_with(|last: char| last.is_ascii_digit()))
}

/// The nodes at which all ways in trouble meet, if any do and checks from another node of their pool are well.
fn common(troubles: &[&Seen<'_>], well: &[&Seen<'_>], pools: &Pools) -> Option<BTreeSet<End>> {
    let nodes = |seen: &Seen<'_>| -> BTreeSet<End> {
        let ends = seen
            .named
            .iter()
            .chain(&seen.from)
            .filter(|end| end.node.is_some());
        ends.cloned().collect()
    };
    let each = troubles
        .iter()
        .map(|seen| nodes(seen))
        .filter(|nodes| !nodes.is_empty());
    let common = each.reduce(|all, nodes| all.intersection(&nodes).cloned().collect())?;
    let from: BTreeSet<_> = well
        .iter()
        .filter_map(|seen| seen.from.as_ref())
        .filter(|end| end.node.is_some())
        .collect();
    let is_alone = |end: &End| {
        let total = pools.get(&end.pool).map_or(0, Pool::total);
        let mut others = from.iter().filter(|other| other.pool == end.pool);
        others.any(|other| *other != end)
            && common.iter().filter(|other| other.pool == end.pool).count() < total
    };
    // Others reach what is at the end of their ways
    let is_reached = |end: &End| {
        let mut well = well.iter();
        well.any(|seen| {
            let leads_there = seen.to.as_ref().is_some_and(|to| to.pool == end.pool);
            leads_there && seen.from.as_ref().is_some_and(|from| from != end)
        })
    };
    let is_it = |end: &End| is_alone(end) && !is_reached(end);
    (!common.is_empty() && common.iter().all(is_it)).then_some(common)
}

/// The Windows pool that all checks in trouble have to do with, if it is the only one.
fn shared(troubles: &[&Seen<'_>], pools: &Pools) -> Option<PoolName> {
    let windows = pools.iter().filter(|(_, pool)| pool.os == Os::Windows);
    let mut shared = windows.map(|(name, _)| name).filter(|name| {
        let is_of = |seen: &&Seen<'_>| {
            let ends = [&seen.from, &seen.to, &seen.about];
            let mut ends = ends.into_iter().flatten().chain(&seen.named);
            ends.any(|end| end.pool == **name) || seen.text.contains(name.as_str())
        };
        troubles.iter().all(is_of)
    });
    let first = shared.next()?;
    shared.next().is_none().then(|| first.clone())
}
