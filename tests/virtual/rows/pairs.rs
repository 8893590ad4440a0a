//! Whether the report names both causes of two faults at once. The pairs come from the table of faults, drawn by a
//! seed: both on one topology, and neither hiding the other there.

use std::collections::BTreeSet;

use hybrid_sim::ProductFault;
use libtest_mimic::Trial;
use ordered_watch as watch;
use sha2::{Digest as _, Sha256};
use winconform::engine::RunOptions;
use winconform_core::record::RunView;
use winconform_core::report::causes::causes;

use crate::rows::told::{breaks, is_cause_of};
use crate::rows::{EACH, healthy, of_areas, with_place_for};
use crate::table::{Row, healthy as row_of, tries_all};
use crate::world::{ALL, Outcome, World, ran_of, trial, within_of};

/// How many pairs are tried each night.
pub(super) const PAIRS: usize = 300;
/// The seed by which they are drawn.
const SEED: u32 = 1;
/// In how many of them at least both causes are named: 85 of a hundred.
pub(super) const BOTH: usize = 255;
/// How many causes there are at most for ten faults.
const CAUSES: usize = 13;

pub(crate) fn trials() -> Vec<Trial> {
    let name = "both_causes_of_two_faults_are_named";
    let nightly = tries_all().then(|| trial(name, both));
    nightly.into_iter().collect()
}

fn both() -> Outcome {
    let (mut right, mut told, mut wrong) = (0, 0, Vec::new());
    let pairs = drawn()?;
    for pair in &pairs {
        let view = seen(pair)?;
        let (causes, _) = causes(&view);
        told += causes.len();
        let missed = pair
            .iter()
            .filter(|row| !causes.iter().any(|cause| is_cause_of(&view, cause, row)));
        let missed: Vec<_> = missed.map(|row| row.fault.as_str()).collect();
        if missed.is_empty() {
            right += 1;
            continue;
        }
        let said: Vec<_> = causes.iter().map(|cause| cause.says.as_str()).collect();
        let [one, other] = pair.map(|row| row.fault.as_str());
        wrong.push(format!(
            "{one} and {other} on {}: {missed:?} is not among {said:#?}",
            pair[0].topology
        ));
    }
    let all = pairs.len();
    let said = format!(
        "both causes in {right} of {all} pairs, {told} causes for {} faults",
        2 * all
    );
    if right >= BOTH && told * 10 <= CAUSES * 2 * all {
        return Ok(());
    }
    Err(format!("{said}\n{}", wrong.join("\n")))
}

/// The first pairs by the digest of the seed and their names.
fn drawn() -> Result<Vec<[&'static Row; 2]>, String> {
    let mut known = Vec::new();
    for row in EACH.iter() {
        let is_one = row.cause.is_some() && breaks(row) && row.objects.is_empty();
        // What pulls for hours ends too late
        if is_one
            && !row.fault.starts_with("pull-slow")
            && row.fault.parse::<ProductFault>().is_ok()
        {
            known.push((row, turned(row)?));
        }
    }
    let mut pairs = Vec::new();
    for (at, (one, of_one)) in known.iter().enumerate() {
        for (other, of_other) in &known[at + 1..] {
            let kinds = [one, other].map(|row| row.fault.split('=').next());
            let apart = one.topology == other.topology && kinds[0] != kinds[1];
            if apart && shows_beside(of_one, other) && shows_beside(of_other, one) {
                let names = format!("{SEED} {} {} {}", one.topology, one.fault, other.fault);
                pairs.push((Sha256::digest(names), [*one, *other]));
            }
        }
    }
    pairs.sort_by_key(|(digest, _)| *digest);
    Ok(pairs
        .into_iter()
        .take(PAIRS)
        .map(|(_, pair)| pair)
        .collect())
}

/// The checks of a healthy run that fail or cannot be told under the fault of a row.
fn turned(row: &Row) -> Result<BTreeSet<&'static str>, String> {
    let ids = healthy(&row.topology)?.checks.values();
    let ids = ids.map(|check| check.planned.id.as_str());
    Ok(ids.filter(|id| row.troubles(id)).collect())
}

/// Whether one of these checks keeps its verdict under the fault of another row, as far as its areas tell.
fn shows_beside(turned: &BTreeSet<&str>, other: &Row) -> bool {
    turned.iter().any(|id| {
        let area = id.split('.').next().unwrap_or_default();
        other.areas.iter().any(|it| it == area)
            && other.turns.first_match(id).is_none()
            && other.by_chance.first_match(id).is_none()
    })
}

/// The view of a run under both faults.
fn seen(pair: &[&Row; 2]) -> Result<RunView, String> {
    let faults = pair.map(|row| row.fault.parse::<ProductFault>());
    let faults: Result<Vec<_>, _> = faults.into_iter().collect();
    let faults = faults.map_err(|error| error.to_string())?;
    let topology = with_place_for(&faults, &pair[0].topology)?;
    within_of(topology, 1, async |world: &World| {
        for fault in faults {
            world.joined.faults().set(fault);
        }
        world.joined.shown().await;
        let options = RunOptions {
            selection: of_areas(row_of(&pair[0].topology), &[]),
            ..world.whole("r1")
        };
        let (_alive, signals) = watch::channel(0);
        let ran = ran_of(&ALL, &world.cluster(), &options, signals, Box::new(|_| {})).await;
        ran.view()
    })
}
