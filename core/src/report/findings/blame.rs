//! What each failed fixture broke, so that a report names one cause once.

use std::collections::BTreeMap;

use crate::fixture::FixtureKey;
use crate::method::ObservationError;
use crate::record::{CheckView, FixtureOutcome, RunView};
use crate::verdict::Reason;

/// The failed fixtures of a run, and what each of them broke.
#[derive(Debug)]
pub(crate) struct Blame<'v> {
    /// By fixture, including fixtures that broke nothing.
    pub(crate) roots: BTreeMap<&'v FixtureKey, Broke<'v>>,
}

/// What one failed fixture broke.
#[derive(Debug)]
pub(crate) struct Broke<'v> {
    pub(crate) error: &'v ObservationError,
    /// How long it took to fail, in milliseconds.
    pub(crate) took_ms: u64,
    /// The checks that are inconclusive because of it, by their places in the plan.
    pub(crate) checks: Vec<(usize, &'v CheckView)>,
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
        for (place, check) in &view.checks {
            if let Some(Reason::Fixture { fixture, .. }) = check.reason()
                && let Some(broke) = roots.get_mut(fixture)
            {
                broke.checks.push((*place, check));
            }
        }
        Self { roots }
    }

    /// Whether one of the fixtures broke a check.
    pub(crate) fn covers(&self, check: &CheckView) -> bool {
        let Some(Reason::Fixture { fixture, .. }) = check.reason() else {
            return false;
        };
        self.roots.contains_key(fixture)
    }
}
