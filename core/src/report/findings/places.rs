//! Where checks observe from, and how many nodes that covers.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::facts::{Facts, Pool, PoolName};
use crate::method::SourceKind;
use crate::plan;
use crate::record::RunView;
use crate::text::{counted, printable};
use crate::verdict::Verdict;

/// The values of a point by the names of their axes.
pub(crate) fn axes(point: &plan::Point) -> BTreeMap<&'static str, Cow<'_, str>> {
    let values = point.values();
    values.map(|(axis, value)| (axis.as_str(), value)).collect()
}

/// The point of a check, in reports for programs.
pub(crate) fn point(pools: &Pools, point: &plan::Point) -> Value {
    let mut values = json!({"pool": null, "source": null});
    for (axis, value) in axes(point) {
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

/// For each pool that a run observes from node by node, or that has one usable node, from how many nodes a
/// check is conclusive; with their names if these are not all: `windows-2022 2 of 3 nodes (win-a, win-c)`. If
/// fewer nodes are known from Windows nodes themselves, how many these are, too. Printable.
pub(crate) fn observed_from(view: &RunView) -> Vec<String> {
    let pools = pools(view);
    let each = view
        .checks
        .values()
        .any(|check| check.planned.point.node.is_some());
    let mut observed = BTreeMap::<&PoolName, Nodes<'_>>::new();
    let mut from_any = BTreeSet::new();
    for check in view.checks.values() {
        let point = &check.planned.point;
        let Some((name, pool)) = point
            .source_pool()
            .and_then(|name| pools.get_key_value(&name))
        else {
            continue;
        };
        // The prober of a pool with one usable node is there
        let node = match (point.node, pool.nodes.as_slice(), point.source) {
            (Some(node), ..) => pool.node(node),
            (None, [alone], Some(kind)) if each && kind != SourceKind::Outside => Some(alone),
            (None, ..) => None,
        };
        let is_known = check.verdict().is_some_and(Verdict::is_conclusive);
        from_any.extend((is_known && node.is_none()).then_some(name));
        if let Some(node) = node {
            let nodes = observed.entry(name).or_default();
            nodes.known.extend(is_known.then_some(node));
            if point.source == Some(SourceKind::WindowsNode) {
                let themselves = nodes.themselves.get_or_insert_default();
                themselves.extend(is_known.then_some(node));
            }
        }
    }
    // That none is known tells nothing where the run was killed before, or observed from some node or other
    let tells = |name| view.ended.is_some() && !from_any.contains(name);
    let told = observed.into_iter();
    let told = told.filter(|(name, nodes)| !nodes.known.is_empty() || tells(*name));
    let texts = told.flat_map(|(name, nodes)| {
        let pool = &pools[name];
        let total = pool.total();
        let name = printable(name.as_str());
        let fewer = |few: &BTreeSet<_>| few.len() < nodes.known.len();
        let themselves = nodes.themselves.filter(fewer);
        let themselves = themselves.map(|few| of_all(&format!("{name} themselves"), &few, total));
        [Some(of_all(&name, &nodes.known, total)), themselves]
    });
    texts.flatten().collect()
}

/// The nodes of a pool of which something is known.
#[derive(Default)]
struct Nodes<'a> {
    known: BTreeSet<&'a String>,
    /// The nodes known from Windows nodes themselves, if a run observes from these.
    themselves: Option<BTreeSet<&'a String>>,
}

/// How many of all nodes these are, and which, unless they are all or none.
fn of_all(what: &str, nodes: &BTreeSet<&String>, total: usize) -> String {
    let count = format!("{what} {} of {}", nodes.len(), counted(total, "node"));
    let names: Vec<_> = nodes.iter().map(|name| printable(name)).collect();
    match nodes.is_empty() || nodes.len() == total {
        true => count,
        false => format!("{count} ({})", names.join(", ")),
    }
}
