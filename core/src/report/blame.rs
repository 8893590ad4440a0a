//! Which failed fixture a broken check goes back to, so that one cause is told once.

use std::collections::BTreeMap;

use crate::plan::CheckId;
use crate::record::{CheckView, FixtureOutcome, RunView};
use crate::verdict::{Because, Verdict};
use crate::way::{FixtureKey, Trouble, TroubleKind};

/// The failed fixtures that are causes of their own, and what each of them broke.
#[derive(Debug, Default)]
pub(super) struct Blame<'v> {
    /// By fixture, those of no consequence included.
    pub(super) roots: BTreeMap<&'v FixtureKey, Broke<'v>>,
}

/// What one failed fixture broke.
#[derive(Debug)]
pub(super) struct Broke<'v> {
    /// Why it failed.
    pub(super) trouble: &'v Trouble,
    /// How long that took, in milliseconds.
    pub(super) took_ms: u64,
    /// Checks that could not be told for it, in their planned order.
    pub(super) checks: Vec<&'v CheckId>,
    /// Fixtures that failed for it.
    pub(super) fixtures: Vec<&'v FixtureKey>,
}

impl<'v> Blame<'v> {
    /// Finds the causes of a run's broken checks among its failed fixtures.
    pub(super) fn of(view: &'v RunView) -> Self {
        let failed: BTreeMap<_, _> = view
            .fixtures
            .iter()
            .filter_map(|(key, (outcome, took_ms))| match outcome {
                FixtureOutcome::Failed(trouble) => Some((key, (trouble, *took_ms))),
                FixtureOutcome::Stands(_) => None,
            })
            .collect();
        let mut blame = Self::default();
        for (key, (trouble, took_ms)) in &failed {
            if root(&failed, key) == *key {
                let (checks, fixtures) = (Vec::new(), Vec::new());
                let broke = Broke {
                    trouble,
                    took_ms: *took_ms,
                    checks,
                    fixtures,
                };
                blame.roots.insert(key, broke);
            }
        }
        for key in failed.keys() {
            let root = root(&failed, key);
            if root != *key
                && let Some(broke) = blame.roots.get_mut(root)
            {
                broke.fixtures.push(key);
            }
        }
        for check in view.checks.values() {
            let culprit = trouble_of(check).and_then(|trouble| culprit(&failed, check, trouble));
            let root = culprit.map(|key| root(&failed, key));
            if let Some(broke) = root.and_then(|root| blame.roots.get_mut(root)) {
                broke.checks.push(&check.planned.id);
            }
        }
        blame
    }

    /// Whether a check was broken by one of the fixtures.
    pub(super) fn covers(&self, check: &CheckId) -> bool {
        self.roots
            .values()
            .any(|broke| broke.checks.contains(&check))
    }
}

type Failed<'v> = BTreeMap<&'v FixtureKey, (&'v Trouble, u64)>;

/// The fixture at the end of the chain of fixtures that failed for one another; of a circle,
/// which only a damaged record can hold, its first.
fn root<'v>(failed: &Failed<'v>, key: &'v FixtureKey) -> &'v FixtureKey {
    let mut chain = vec![key];
    let mut at = key;
    while let Some(next) = failed
        .get(at)
        .and_then(|(trouble, _)| named(failed, trouble))
    {
        if let Some(start) = chain.iter().position(|seen| *seen == next) {
            return chain[start..].iter().copied().min().unwrap_or(at);
        }
        chain.push(next);
        at = next;
    }
    at
}

/// The failed fixture that a trouble names as what does not stand.
fn named<'v>(failed: &Failed<'v>, trouble: &Trouble) -> Option<&'v FixtureKey> {
    if trouble.kind != TroubleKind::FixtureFailed {
        return None;
    }
    failed.keys().copied().find(|key| {
        let rest = trouble.detail.strip_prefix(key.to_string().as_str());
        let ends = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '-');
        // `windows-pod-prober in windows-2022` is not `windows-pod-prober`
        rest.is_some_and(|rest| ends(rest) && (key.pool.is_some() || !rest.starts_with(" in ")))
    })
}

/// The failed fixture a check's trouble comes from: named by it, or failed with the very same.
fn culprit<'v>(
    failed: &Failed<'v>,
    check: &CheckView,
    trouble: &Trouble,
) -> Option<&'v FixtureKey> {
    let same = || {
        failed
            .iter()
            .filter(|(_, (other, _))| *other == trouble)
            .map(|(key, _)| *key)
    };
    let here = || same().find(|key| key.pool.is_some() && key.pool == check.planned.point.pool);
    named(failed, trouble)
        .or_else(here)
        .or_else(|| same().next())
}

fn trouble_of(check: &CheckView) -> Option<&Trouble> {
    let conclusion = check
        .conclusion
        .as_ref()
        .filter(|c| c.verdict == Verdict::Broken)?;
    match &conclusion.because {
        Because::Trouble(trouble) | Because::ControlTrouble { trouble, .. } => Some(trouble),
        Because::Seen(_) | Because::Control { .. } | Because::Skipped(_) => None,
    }
}
