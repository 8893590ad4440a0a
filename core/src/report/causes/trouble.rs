//! Checks that did not come to what a healthy cluster gives, with all that tells them apart.

use std::collections::{BTreeMap, BTreeSet};

use super::evidence::Collected;
use crate::facts::{IpFamily, NodeOrdinal, PoolName};
use crate::fixture::FixtureName;
use crate::method::{Comparison, SourceKind, VantageKey};
use crate::record::{CheckView, FixtureOutcome, RunView};
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
    /// The node of the pod that it observes from, if it is in trouble.
    pub(super) observer: Option<End>,
    pub(super) to: Option<End>,
    /// The pool that it is about, or that of the fixture which failed.
    pub(super) about: Option<End>,
    /// Whether anything was observed, be it of a control.
    pub(super) observed: bool,
    /// What was seen or why nothing was, in lower case, without the bodies of answers.
    pub(super) text: String,
    /// The nodes that the text names, and the one that had to boot for the check.
    pub(super) named: BTreeSet<End>,
}

impl<'v> Seen<'v> {
    /// The family of addresses, if it is the cluster's second.
    pub(super) fn family(&self) -> Option<IpFamily> {
        self.check.planned.point.family
    }

    pub(super) fn fails(&self) -> bool {
        self.check.verdict() == Some(Verdict::Fail)
    }

    fn new(check: &'v CheckView, case: usize, names: &Names<'_>) -> Self {
        let point = &check.planned.point;
        let end = |pool: PoolName, node| End { pool, node };
        let mut from = point.source_pool().map(|pool| names.end(pool, point.node));
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
            from = pool.map(|pool| names.end(pool, fixture.node));
            about.clone_from(&from);
        }
        let observed = matches!(reason, Some(Reason::Seen(_) | Reason::Control { .. }));
        let is_well = check.verdict().is_none_or(Verdict::is_expected);
        let trouble = reason.filter(|_| !is_well);
        let text = trouble.map(text).unwrap_or_default();
        let ends = words(&text).filter_map(|word| names.ends.get(word));
        let booted = trouble.and_then(|_| names.booted(check));
        let places = ends.flatten().cloned().chain(booted).collect();
        Self {
            check,
            case,
            observer: trouble.and_then(|_| names.observer(check)),
            from,
            to: to.map(|pool| end(pool, None)),
            about,
            observed,
            text: text.to_lowercase(),
            named: places,
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
    /// The id of a check of each case, by which patterns tell a case from others of its claim.
    pub(super) cases: Vec<&'v str>,
    /// Nodes from which pods on others are reached, by the family of addresses.
    pub(super) reaching: BTreeSet<(Option<IpFamily>, End)>,
    /// What the run collected after failures.
    pub(super) evidence: Collected<'v>,
}

impl<'v> All<'v> {
    pub(super) fn of(view: &'v RunView, pools: &Pools) -> Self {
        let mut all = Self::default();
        let (mut known, names) = (BTreeMap::new(), Names::of(view, pools));
        all.evidence = Collected::from_view(view, |text| names.node(text));
        for check in view.checks.values() {
            let case = check.planned.id.case();
            let case = *known.entry(case).or_insert_with(|| {
                all.cases.push(check.planned.id.as_str());
                all.cases.len() - 1
            });
            let seen = || Seen::new(check, case, &names);
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
        let reaches = all.well.iter().filter(|seen| reaches_others(seen));
        let others = all.troubles.iter();
        let reaches = reaches.chain(others.filter(|seen| reaches_linux(seen) || resolves(seen)));
        let nodes = reaches.filter_map(|seen| {
            let from = seen.from.clone().filter(|end| end.node.is_some())?;
            Some((seen.family(), from))
        });
        all.reaching = nodes.collect();
        all
    }
}

/// Whether a check that is well says that a node reaches pods on others: those of the cluster's DNS, which are on Linux
/// nodes, are on others than a Windows node.
fn reaches_others(seen: &Seen<'_>) -> bool {
    let from = seen.from.as_ref();
    let is_windows = from.is_some_and(|from| from.pool != PoolName::linux());
    match seen.check.planned.claim.as_str() {
        "net.pod-to-pod-cross-os" | "net.pod-to-pod-cross-node" | "net.node-to-pod" => true,
        // A name that is documented not to resolve says nothing
        "net.dns-service" | "net.dns-search" => {
            is_windows && seen.check.verdict() == Some(Verdict::Pass)
        }
        _ => false,
    }
}

/// Whether a check in trouble says that its Linux node reaches pods on others: its control does, which observes from
/// there. Datagrams say nothing of connections.
fn reaches_linux(seen: &Seen<'_>) -> bool {
    let is_linux = |from: &End| from.pool == PoolName::linux();
    if !seen.from.as_ref().is_some_and(is_linux)
        || seen.check.planned.claim.as_str() == "net.pod-to-pod-udp"
    {
        return false;
    }
    let last = seen.check.attempts.last();
    let mut controls = last.into_iter().flat_map(|attempt| &attempt.assertions);
    controls.any(|control| {
        control.name == "between-linux" && matches!(control.comparison, Some(Comparison::Met(_)))
    })
}

/// Whether a check in trouble says that its Windows node reaches the pods of the cluster's DNS, which are on Linux nodes:
/// the name that it asked for has resolved. Where none has, curl says that resolving timed out, and not the connection.
fn resolves(seen: &Seen<'_>) -> bool {
    let is_windows = |from: &End| from.pool != PoolName::linux();
    seen.from.as_ref().is_some_and(is_windows)
        && matches!(seen.check.reason(), Some(Reason::Seen(_)))
        && ["net.dns-service", "net.dns-search"].contains(&seen.check.planned.claim.as_str())
        && seen.text.contains("connection timed out")
}

/// The names of nodes, found at once in clusters of many.
struct Names<'p> {
    view: &'p RunView,
    /// What a text may name: nodes, and operating systems for their pools.
    ends: BTreeMap<&'p str, Vec<End>>,
    by_ordinal: BTreeMap<&'p PoolName, Vec<&'p String>>,
}

impl<'p> Names<'p> {
    fn of(view: &'p RunView, pools: &'p Pools) -> Self {
        let mut ends = BTreeMap::<_, Vec<_>>::new();
        for (name, pool) in pools {
            let nodes = pool.nodes.iter().chain(&pool.unusable).chain(&pool.spared);
            let nodes = nodes.map(|node| (node.as_str(), Some(node.clone())));
            for (word, node) in nodes.chain([(pool.os.into(), None)]) {
                let pool = name.clone();
                ends.entry(word).or_default().push(End { pool, node });
            }
        }
        let by_ordinal = pools.iter().map(|(name, pool)| (name, pool.in_order()));
        Self {
            view,
            ends,
            by_ordinal: by_ordinal.collect(),
        }
    }

    /// The node of the pod that a check observes from, if there is one such pod.
    fn observer(&self, check: &CheckView) -> Option<End> {
        let point = &check.planned.point;
        let from = VantageKey {
            kind: point.source?,
            pool: point.source_pool(),
            node: point.node,
        };
        let (FixtureOutcome::Ready(ready), _) = self.view.fixtures.get(&from.prober()?)? else {
            return None;
        };
        match ready.pods.as_slice() {
            [pod] => Some(End {
                pool: from.pool?,
                node: Some(pod.node.clone()),
            }),
            _ => None,
        }
    }

    /// The node of a pod that the run observes after a boot, if the check is about it and the pod was there again.
    fn booted(&self, check: &CheckView) -> Option<End> {
        let planned = &check.planned;
        let pool = planned.point.pool.as_ref()?;
        if planned.claim.as_str() != "net.after-reboot" {
            return None;
        }
        let key = FixtureName::REBOOTED.in_pool(Some(pool));
        let (FixtureOutcome::Ready(ready), _) = self.view.fixtures.get(&key)? else {
            return None;
        };
        Some(End {
            pool: pool.clone(),
            node: Some(ready.pods.first()?.node.clone()),
        })
    }

    /// The first node that a text names.
    fn node(&self, text: &str) -> Option<End> {
        let ends = words(text).filter_map(|word| self.ends.get(word));
        ends.flatten().find(|end| end.node.is_some()).cloned()
    }

    fn end(&self, pool: PoolName, node: Option<NodeOrdinal>) -> End {
        let node = node.and_then(|node| {
            let place = usize::from(node).checked_sub(1)?;
            Some((*self.by_ordinal.get(&pool)?.get(place)?).clone())
        });
        End { pool, node }
    }
}

/// The words of a text that may be names: also the part of each before one of its dots, which may end a sentence.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    let words = text.split(move |c| !part(c));
    words.flat_map(|word| {
        let dots = word.match_indices('.').map(|(at, _)| &word[..at]);
        dots.chain([word])
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
