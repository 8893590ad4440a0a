//! A run that resumes the record of an earlier one.

use std::collections::{BTreeMap, BTreeSet};

use winconform_core::plan::Plan;
use winconform_core::record::{Event, RunView};

use super::journal::{Journal, JournalError};

/// Puts on record the checks of a plan that an earlier run has settled, and removes them from the plan.
pub(crate) fn go_on(
    journal: &Journal,
    earlier: &RunView,
    plan: &mut Plan,
) -> Result<(), JournalError> {
    let ids: BTreeSet<_> = plan.checks.iter().map(|check| check.id.clone()).collect();
    let settled = earlier
        .settled()
        .filter(|check| ids.contains(&check.planned.id));
    let settled: BTreeMap<_, _> = settled.map(|check| (&check.planned.id, check)).collect();
    journal.write(Event::Resumed {
        run: earlier.started.run.clone(),
        checks: settled.len(),
    })?;
    for check in settled.values() {
        for attempt in &check.attempts {
            journal.write(Event::Attempt(attempt.clone()))?;
        }
        if let Some(conclusion) = check.conclusion.clone() {
            let check = check.planned.id.clone();
            journal.write(Event::Verdict { check, conclusion })?;
        }
    }
    plan.checks.retain(|check| !settled.contains_key(&check.id));
    Ok(())
}
