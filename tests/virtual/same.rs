//! Two runs of one seed write the same record, byte for byte, timestamps included.

use std::collections::BTreeSet;

use libtest_mimic::Trial;
use winconform::engine::RunOptions;
use winconform_core::record::{Event, Exit};

use crate::world::{Outcome, World, lines, trial, unbroken, undisturbed, within_seeded};

/// The number of seeds.
const SEEDS: u64 = 10;
/// The seed whose runs always have all checks.
const WHOLE: u64 = 1;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("runs_of_one_seed_write_the_same", same),
        trial("attempts_are_timed_without_the_wait_for_fixtures", timed),
    ]
}

fn same() -> Outcome {
    let mut records = BTreeSet::new();
    for seed in 1..=SEEDS {
        let (first, second) = (record(seed)?, record(seed)?);
        let mut pairs = first.lines().zip(second.lines());
        if let Some((first, second)) = pairs.find(|(first, second)| first != second) {
            return Err(format!("seed {seed}:\n{first}\nand\n{second}"));
        }
        if first.len() != second.len() {
            return Err(format!("seed {seed}: one record goes on"));
        }
        records.insert(first);
    }
    // If all records were the same, the seed would have no effect
    match records.len() {
        0 | 1 => Err("no seed makes a difference".to_owned()),
        _ => Ok(()),
    }
}

/// The clock of these runs is exact, and so is when each attempt began and how long it took.
fn timed() -> Outcome {
    const PROBER: &str = "linux-pod-prober in linux";
    const SEEN: &str = ",source=linux-pod]";
    let lines = lines(&unbroken())?;
    let (mut ready, mut seen) = (None, 0);
    for line in &lines {
        match &line.event {
            Event::Fixture { key, .. } if key.to_string() == PROBER => ready = Some(line.at),
            Event::Attempt(attempt) => {
                let tried = attempt.tried.ok_or("an attempt without times")?;
                let took = line.at.duration_since(tried.began).as_millis();
                let after = match attempt.check.as_str().ends_with(SEEN) {
                    true => ready.ok_or("an attempt before its prober")?,
                    false => lines[0].at,
                };
                if took != i128::from(tried.took_ms) || tried.began < after {
                    return Err(format!("{line:?}"));
                }
                seen += usize::from(after > lines[0].at);
            }
            _ => {}
        }
    }
    match seen {
        0 => Err(format!("no check {SEEN}")),
        _ => Ok(()),
    }
}

/// The record of a run in a world of this seed.
fn record(seed: u64) -> Result<String, String> {
    within_seeded(seed, async |world: &World| {
        let options: RunOptions = match seed {
            WHOLE => world.whole("r1"),
            _ => world.settings("r1"),
        };
        let ran = undisturbed(&world.cluster(), &options).await;
        ran.came_to(Exit::Conformant)?;
        Ok(ran.text)
    })
}
