//! What each failed fixture broke, so that one cause is told once.

use std::collections::BTreeMap;

use crate::fixture::FixtureKey;
use crate::method::ObservationError;
use crate::plan::CheckId;
use crate::record::{FixtureOutcome, RunView};
use crate::verdict::Reason;

/// The failed fixtures of a run, and what each of them broke.
#[derive(Debug)]
pub(crate) struct Blame<'v> {
    /// By fixture, those of no consequence included.
    pub(crate) roots: BTreeMap<&'v FixtureKey, Broke<'v>>,
}

/// What one failed fixture broke.
#[derive(Debug)]
pub(crate) struct Broke<'v> {
    pub(crate) error: &'v ObservationError,
    /// How long that took, in milliseconds.
    pub(crate) took_ms: u64,
    /// Checks that could not be told for it, in their planned order.
    pub(crate) checks: Vec<&'v CheckId>,
}

impl<'v> Blame<'v> {
    /// The failed fixtures of a run with their checks.
    pub(crate) fn from_view(view: &'v RunView) -> Self {
        let failed = view
            .fixtures
            .iter()
            .filter_map(|(key, (outcome, took_ms))| match outcome {
                FixtureOutcome::Failed(error) => Some((
                    key,
                    Broke {
                        error,
                        took_ms: *took_ms,
                        checks: Vec::new(),
                    },
                )),
                FixtureOutcome::Ready(_) => None,
            });
        let mut roots: BTreeMap<_, _> = failed.collect();
        for check in view.checks.values() {
            if let Some(Reason::Fixture { fixture, .. }) = check.reason()
                && let Some(broke) = roots.get_mut(fixture)
            {
                broke.checks.push(&check.planned.id);
            }
        }
        Self { roots }
    }

    /// Whether a check was broken by one of the fixtures.
    pub(crate) fn covers(&self, check: &CheckId) -> bool {
        self.roots
            .values()
            .any(|broke| broke.checks.contains(&check))
    }
}
