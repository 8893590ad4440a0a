//! Where checks look from and at, and of how many nodes that is.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::json::kept;
use crate::facts::{Facts, IpFamily, NodeOrdinal, PoolName};
use crate::plan;
use crate::record::RunView;
use crate::text::{counted, printable};
use crate::way::{ContainerKind, SourceKind, Workload};

/// Where a check is and looks from, in reports for programs.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Point {
    pool: Option<String>,
    source: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    workload: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    container: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    family: Option<&'static str>,
}

impl Point {
    pub(super) fn of(view: &RunView, point: &plan::Point) -> Self {
        Self {
            pool: point.pool.as_ref().map(|pool| kept(pool.as_str())),
            source: point.source.map(SourceKind::as_str),
            to: point.to.as_ref().map(|pool| kept(pool.as_str())),
            node: point.node,
            node_name: node(view, point).as_deref().map(kept),
            workload: point.workload.map(Workload::as_str),
            container: point.container.map(ContainerKind::as_str),
            value: point.value.as_deref().map(kept),
            family: point.family.map(IpFamily::as_str),
        }
    }
}

/// The name of the node that a check looks from, where each of its pool does. Foreign text.
pub(super) fn node(view: &RunView, point: &plan::Point) -> Option<String> {
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
