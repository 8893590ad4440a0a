//! Puts on record, before anything is observed, how the run began, the facts, and the planned checks; of a run
//! that resumes an earlier one, also what that has settled.

use std::collections::{BTreeMap, BTreeSet};

use winconform_core::facts::Facts;
use winconform_core::plan::{Check, Plan, Selected};
use winconform_core::record::{Event, PlannedCheck, RunView, SCHEMA, Started};
use winconform_core::suite::Suites;

use super::journal::{Journal, JournalError};
use crate::cluster::Cluster;
use crate::engine::life::{Life, RunError, RunOptions};

pub(crate) fn started(cluster: &Cluster, suites: &Suites, options: &RunOptions) -> Started {
    let waivers = options.config.waivers.iter();
    Started {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        run: options.run.clone(),
        context: cluster.context.clone(),
        unverified: cluster.unverified,
        suites: suites.digest.clone(),
        profile: options.config.profile,
        config: options.config.digest.clone(),
        selection: options.selection.written(),
        again: options.selection.of_earlier_run(),
        unchecked: options.selection.unchecked().to_vec(),
        waivers: waivers.map(|placed| placed.value.clone()).collect(),
        boots: options.config.may_boot(),
    }
}

/// Puts the facts and the planned checks on record; returns the plan, without the checks that a resumed run
/// has settled.
pub(crate) fn noted(
    life: Life<'_>,
    suites: &Suites,
    facts: &Facts,
    selected: Selected,
) -> Result<Plan, RunError> {
    let (options, journal) = (life.options, life.journal);
    if let Some(earlier) = &options.resume {
        earlier
            .can_be_resumed(&started(life.cluster, suites, options), facts)
            .and_then(|()| earlier.is_kept_by(&selected, facts))
            .map_err(RunError::Resume)?;
    }
    let Selected {
        mut plan, left_out, ..
    } = selected;
    let note = |event| journal.write(event).map_err(RunError::Journal);
    note(Event::Facts(Box::new(facts.clone())))?;
    if !left_out.is_empty() {
        note(Event::LeftOut(left_out))?;
    }
    note(Event::Plan(plan.checks.iter().map(planned).collect()))?;
    if let Some(earlier) = &options.resume {
        go_on(journal, earlier, &mut plan).map_err(RunError::Journal)?;
    }
    Ok(plan)
}

fn planned(check: &Check) -> PlannedCheck {
    PlannedCheck {
        id: check.id.clone(),
        claim: check.claim.clone(),
        claim_type: check.claim_type,
        title: check.title.clone(),
        hint: check.hint.clone(),
        when: check.when.clone(),
        point: check.point.clone(),
        disposition: check.disposition.clone(),
        limitation: check.limitation.clone(),
    }
}

/// Puts on record the checks of a plan that an earlier run has settled, and removes them from the plan.
fn go_on(journal: &Journal, earlier: &RunView, plan: &mut Plan) -> Result<(), JournalError> {
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
