//! Checks that did not come to what a healthy cluster gives, with all that tells them apart.

use std::collections::{BTreeMap, BTreeSet};

use crate::facts::{IpFamily, PoolName};
use crate::method::SourceKind;
use crate::record::{CheckView, RunView};
use crate::report::findings::places::Pools;
use crate::verdict::{Reason, Verdict};

/// One end of a way: a pool, and a node of it if that is known.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct End {
    pub(super) pool: PoolName,
    pub(super) node: Option<String>,
}

/// A check with its ends.
pub(super) struct Seen<'v> {
    pub(super) check: &'v CheckView,
    /// The place of its case among all cases.
    pub(super) case: usize,
    pub(super) from: Option<End>,
    pub(super) to: Option<End>,
    /// The pool that it is about, or that of the fixture which failed.
    pub(super) about: Option<End>,
    /// Whether anything was observed, be it of a control.
    pub(super) observed: bool,
    /// What was seen or why nothing was, in lower case, without the bodies of answers.
    pub(super) text: String,
    /// The nodes that the text names.
    pub(super) named: BTreeSet<End>,
}

impl<'v> Seen<'v> {
    /// The family of addresses, if it is the cluster's second.
    pub(super) fn family(&self) -> Option<IpFamily> {
        self.check.planned.point.family
    }

    fn new(check: &'v CheckView, case: usize, pools: &Pools) -> Self {
        let point = &check.planned.point;
        let end = |pool: PoolName, node| End { pool, node };
        let mut from = point
            .source_pool()
            .map(|pool| end(pool, point.node_name(pools)));
        let id = check.planned.id.as_str();
        let is_linux = |kind| matches!(kind, SourceKind::LinuxNode | SourceKind::LinuxPod);
        let to = match (point.to.as_ref(), point.source) {
            (Some(to), _) => Some(to.clone()),
            (None, Some(SourceKind::Outside)) => point.pool.clone(),
            (None, Some(kind)) if is_linux(kind) => point.pool.clone(),
            (None, Some(_)) if id.contains("/ring") => point.pool.clone(),
            (None, Some(_)) if id.contains("/to-linux") => Some(PoolName::linux()),
            (None, _) => None,
        };
        let reason = check.reason();
        let mut about = point.pool.clone().map(|pool| end(pool, None));
        if let Some(Reason::Fixture { fixture, .. }) = reason {
            let pool = fixture.pool.clone();
            from = pool.map(|pool| {
                let nodes = pools.get(&pool);
                let node = fixture.node.and_then(|node| nodes?.node(node).cloned());
                end(pool, node)
            });
            about.clone_from(&from);
        }
        let observed = matches!(reason, Some(Reason::Seen(_) | Reason::Control { .. }));
        let is_well = check.verdict().is_none_or(Verdict::is_expected);
        let text = reason.filter(|_| !is_well).map(text).unwrap_or_default();
        let searched = (!text.is_empty()).then_some(pools).into_iter().flatten();
        let named = searched.flat_map(|(pool, nodes)| {
            let nodes = nodes
                .nodes
                .iter()
                .chain(&nodes.unusable)
                .chain(&nodes.spared);
            let named = nodes.filter(|node| names(&text, node));
            named.map(|node| end(pool.clone(), Some(node.clone())))
        });
        let of_system = pools
            .iter()
            .filter(|(_, pool)| names(&text, pool.os.into()));
        let named = named.chain(of_system.map(|(pool, _)| end(pool.clone(), None)));
        let named = named.collect();
        Self {
            check,
            case,
            from,
            to: to.map(|pool| end(pool, None)),
            about,
            observed,
            text: text.to_lowercase(),
            named,
        }
    }
}

/// The checks of a run that say something, and their cases.
#[derive(Default)]
pub(super) struct All<'v> {
    /// Those that fail or could not be told.
    pub(super) troubles: Vec<Seen<'v>>,
    /// Those that are as in a healthy cluster.
    pub(super) well: Vec<Seen<'v>>,
    pub(super) cases: Vec<&'v str>,
}

impl<'v> All<'v> {
    pub(super) fn of(view: &'v RunView, pools: &Pools) -> Self {
        let mut all = Self::default();
        let mut known = BTreeMap::new();
        for check in view.checks.values() {
            let id = check.planned.id.as_str();
            let case = id.split('[').next().unwrap_or(id);
            let case = *known.entry(case).or_insert_with(|| {
                all.cases.push(case);
                all.cases.len() - 1
            });
            let seen = || Seen::new(check, case, pools);
            match check.verdict() {
                _ if view.waiver(check).is_some() => {}
                Some(Verdict::Fail | Verdict::Inconclusive) => all.troubles.push(seen()),
                Some(Verdict::Pass | Verdict::KnownLimitation) => all.well.push(seen()),
                Some(
                    Verdict::Skip
                    | Verdict::Informational
                    | Verdict::Warn
                    | Verdict::LimitationLifted,
                )
                | None => {}
            }
        }
        all
    }
}

/// Whether a text has a name as a word of its own.
fn names(text: &str, name: &str) -> bool {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + name.len()..].chars().next();
        !before.is_some_and(part) && !after.is_some_and(|c| part(c) && c != '.')
    })
}

/// What a verdict depends on, in the words of who said it.
fn text(reason: &Reason) -> String {
    match reason {
        Reason::Seen(difference) => without_bodies(&difference.seen),
        Reason::Control { name, difference } => {
            format!("control {name}: {}", without_bodies(&difference.seen))
        }
        Reason::ObservationError(error)
        | Reason::Fixture { error, .. }
        | Reason::ControlError { error, .. } => error.to_string(),
        Reason::Skipped(reason) => reason.to_string(),
    }
}

/// A text without the bodies of answers, which anybody may have written: `200 with` in place of ``200 with `…` ``.
fn without_bodies(text: &str) -> String {
    let mut parts = text.split(" with `");
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        kept.push_str(" with");
        kept.push_str(part.split_once('`').map_or("", |(_, rest)| rest));
    }
    kept
}

/// The pools of both ends of checks.
pub(super) fn ways(seen: &[&Seen<'_>]) -> BTreeSet<(PoolName, PoolName)> {
    let ways = seen
        .iter()
        .filter_map(|seen| seen.from.as_ref().zip(seen.to.as_ref()));
    ways.map(|(from, to)| (from.pool.clone(), to.pool.clone()))
        .collect()
}
