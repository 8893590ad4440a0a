//! Where checks observe from and at, and of how many nodes that is.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::facts::{Facts, Pool, PoolName};
use crate::method::SourceKind;
use crate::plan;
use crate::record::RunView;
use crate::text::{counted, printable};
use crate::verdict::Verdict;

/// Where a check is and observes from, in reports for programs.
pub(crate) fn point(pools: &Pools, point: &plan::Point) -> Value {
    let mut values = json!({"pool": null, "source": null});
    for (axis, value) in crate::report::plan::point(point) {
        values[axis] = json!(value);
    }
    if let Some(node) = point.node {
        values["node"] = json!(node);
    }
    if let Some(name) = point.node_name(pools) {
        values["node-name"] = json!(name);
    }
    values
}

/// The pools of a run's cluster.
pub(crate) type Pools = BTreeMap<PoolName, Pool>;

/// The pools of a run's cluster, as far as they are known.
pub(crate) fn pools(view: &RunView) -> Pools {
    view.facts.as_ref().map(Facts::pools).unwrap_or_default()
}

/// Of each pool that is observed from node by node, or has one usable node alone, of how many something is
/// known; with their names where that is not all: `windows-2022 2 of 3 nodes (win-a, win-c)`. Where it is
/// known of fewer that were observed from themselves, of how many. Printable.
pub(crate) fn observed_from(view: &RunView) -> Vec<String> {
    let pools = pools(view);
    let each = view
        .checks
        .values()
        .any(|check| check.planned.point.node.is_some());
    let mut observed = BTreeMap::<&PoolName, Nodes<'_>>::new();
    for check in view.checks.values() {
        let point = &check.planned.point;
        let Some((name, pool)) = point
            .source_pool()
            .and_then(|name| pools.get_key_value(&name))
        else {
            continue;
        };
        // The prober of such a pool can be nowhere else
        let node = match (point.node, pool.nodes.as_slice(), point.source) {
            (Some(node), ..) => pool.node(node),
            (None, [alone], Some(kind)) if each && kind != SourceKind::Outside => Some(alone),
            (None, ..) => None,
        };
        let told = check.verdict().is_some_and(Verdict::is_conclusive);
        if let Some(node) = node {
            let nodes = observed.entry(name).or_default();
            nodes.known.extend(told.then_some(node));
            if point.source == Some(SourceKind::WindowsNode) {
                let themselves = nodes.themselves.get_or_insert_default();
                themselves.extend(told.then_some(node));
            }
        }
    }
    let told = observed.into_iter().flat_map(|(name, nodes)| {
        let pool = &pools[name];
        let all = pool.nodes.len() + pool.unusable.len();
        let name = printable(name.as_str());
        let fewer = |own: &BTreeSet<_>| own.len() < nodes.known.len();
        let themselves = nodes.themselves.filter(fewer);
        let themselves = themselves.map(|own| of_all(&format!("{name} themselves"), &own, all));
        [Some(of_all(&name, &nodes.known, all)), themselves]
    });
    told.flatten().collect()
}

/// The nodes of a pool of which something is known.
#[derive(Default)]
struct Nodes<'a> {
    known: BTreeSet<&'a String>,
    /// Those observed from themselves, where Windows nodes are.
    themselves: Option<BTreeSet<&'a String>>,
}

/// How many of all nodes these are, and which, unless they are all or none.
fn of_all(what: &str, nodes: &BTreeSet<&String>, all: usize) -> String {
    let count = format!("{what} {} of {}", nodes.len(), counted(all, "node"));
    let names: Vec<_> = nodes.iter().map(|name| printable(name)).collect();
    match nodes.is_empty() || nodes.len() == all {
        true => count,
        false => format!("{count} ({})", names.join(", ")),
    }
}
