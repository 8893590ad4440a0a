//! All interference between harness and server.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use hybrid_sim::interference::{Fault, Interference};
use hybrid_sim::{Effect, Topology};
use libtest_mimic::Trial;
use ordered_watch as watch;
use winconform::engine::RunOptions;
use winconform_core::document::Placed;
use winconform_core::plan::Selection;
use winconform_core::record::{Event, Line, RunView};
use winconform_core::verdict::Verdict;

use crate::harness::{BROKEN_WORLD, Told, seeds, seeds_of_a_broken_world};
use crate::products::{self, of_the_way};
use crate::rows::clusters::{disrupted, of_row};
use crate::rows::policy::mutating;
use crate::table;
use crate::troubles::{TROUBLES, tally};
use crate::world::{
    Outcome, World, of_all_or, ran, selection, trial, undisturbed, verdicts, within, within_of,
};

pub(crate) fn trials() -> Vec<Trial> {
    let harness = TROUBLES.iter().flat_map(|fault| {
        [
            trial(format!("harness::{fault}"), move || {
                harness(fault, seeds(), &[])
            }),
            trial(format!("harness_in_a_broken_world::{fault}"), move || {
                harness(fault, seeds_of_a_broken_world(), &BROKEN_WORLD)
            }),
        ]
    });
    let boots = trial("a_node_boots_while_it_is_looked_at", boots);
    let once = AT_A_BOOT.map(|trouble| {
        let name = format!("the_named_node_boots_once_and_last::{trouble}");
        trial(name, move || boots_once(trouble))
    });
    let silent = ["node-reboots", "node-vanishes"].map(|fault| {
        let name = format!("a_node_is_silent_while_it_is_looked_at::{fault}");
        trial(name, move || silent(fault))
    });
    harness.chain([boots]).chain(once).chain(silent).collect()
}

/// The number of the fixture event on Windows at which the node boots.
const BOOTS_AT: [usize; 3] = [1, 3, 5];

/// The line of the record after which the node falls silent.
const SILENT_AT: [usize; 4] = [170, 185, 200, 220];

/// The checks under interference: some with every kind of request.
const OF_HARNESS: [&str; 5] = [
    "area=env",
    "reject.hostPID",
    "sample.win-webserver",
    "net.service-ip-from-pod",
    "net.node-to-service-ip",
];

/// Under a harness fault no check of a healthy cluster fails, and none that is broken passes.
fn harness(fault: &'static str, seeds: u64, broken: &[&str]) -> Outcome {
    let rows = broken.iter().map(|fault| table::row("hybrid", fault));
    let rows: Vec<_> = rows.collect();
    let mut totals = Told::under(fault);
    for seed in 0..seeds {
        let fault = fault.parse().expect("a fault of the way");
        let view = seen(broken, vec![fault], seed, of_all_or(&OF_HARNESS))?;
        totals.add(seed, &view, tally(&view, &rows))?;
        let mut conclusions = view.checks.values().filter_map(|it| it.conclusion.as_ref());
        let fails = conclusions.any(|it| it.verdict == Verdict::Fail);
        // A run that loses its Lease concludes nothing
        if !broken.is_empty() && !fails && view.interrupted.is_none() {
            return Err(format!("seed {seed}: nothing broken is told"));
        }
    }
    // However few the runs: nothing else competes with them
    if totals.right == 0 {
        return Err("all of it is untold".to_owned());
    }
    totals.enough()
}

/// A node boots after the run has observed its pods, or before: they are no longer the pods that were ready,
/// and no check fails for this reason.
fn boots() -> Outcome {
    let mut right = 0;
    for wanted in BOOTS_AT {
        let view = within(async |world: &World| {
            let faults = world.joined.faults().clone();
            let fixtures = AtomicUsize::new(0);
            let listener = Box::new(move |line: &Line| {
                let Event::Fixture { key, .. } = &line.event else {
                    return;
                };
                let is_there = key
                    .pool
                    .as_ref()
                    .is_some_and(|pool| pool.as_str() == "windows-2022");
                if is_there && fixtures.fetch_add(1, Ordering::Relaxed) + 1 == wanted {
                    faults.set("node-reboots=windows-2022".parse().expect("a fault"));
                }
            });
            let options = RunOptions {
                selection: selection(&["!sample.dotnet-probes", "!area=sched"]),
                ..world.whole("r1")
            };
            let (_alive, signals) = watch::channel(0);
            ran(&world.cluster(), &options, signals, listener)
                .await
                .view()
        })?;
        let tally = tally(&view, &[]);
        right += tally.map_err(|why| format!("{wanted}: {why}"))?.0;
    }
    match right {
        0 => Err("nothing told".to_owned()),
        _ => Ok(()),
    }
}

/// What may come between, or lead what has a node boot astray, when a node boots for a check.
const AT_A_BOOT: [&str; 4] = [
    "none",
    "cut-exec=0.2",
    "lose-exit-frame=0.2",
    "affinity-dropped",
];

/// The node that is named boots once, after the verdicts of all other checks, and no other node does.
fn boots_once(trouble: &'static str) -> Outcome {
    let mut topology = of_row("hybrid-pairs");
    if trouble == "affinity-dropped" {
        let field = "spec.affinity".parse().expect("a field");
        topology.api.effects.push(Effect::Drops(field));
    }
    let node = disrupted("hybrid-pairs-boots").expect("it has one");
    let lines = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&lines);
    let listener = Box::new(move |line: &Line| {
        let line = match &line.event {
            Event::Intent(object) => object.name.clone(),
            Event::Verdict { check, .. } => check.to_string(),
            _ => return,
        };
        seen.lock().expect("no holder panics").push(line);
    });
    let (view, boots) = within_of(topology, 1, async |world| {
        let mut options = RunOptions {
            selection: selection(&["net.after-reboot", "sample.win-webserver"]),
            ..world.whole("r1")
        };
        let named = Placed::by_argument(node.clone(), "--yes-disrupt");
        options.config.disrupt = Some(named);
        let is_fault = trouble.contains('=');
        let fault = is_fault.then(|| trouble.parse().expect("a fault of the way"));
        let interference = Interference::new(fault.into_iter().collect(), 1);
        let cluster = world.behind(interference.before(&world.server.client()));
        let (_alive, signals) = watch::channel(0);
        let ran = ran(&cluster, &options, signals, listener).await;
        Ok::<_, String>((ran.view()?, world.boots()))
    })?;
    let others = boots.iter().filter(|(name, _)| **name != node);
    let booted = boots.get(&node).copied();
    if others.clone().any(|(_, boots)| *boots > 0) || booted > Some(1) {
        return Err(format!("{boots:?}"));
    }
    let lines = lines.lock().expect("no holder panics");
    let mut after = lines
        .iter()
        .skip_while(|line| !line.starts_with("rebooter-"));
    if let Some(late) = after.find(|line| line.starts_with("sample.")) {
        return Err(format!("{late} comes later: {lines:#?}"));
    }
    let verdict = verdicts(&view)["net.after-reboot[pool=windows-2022]"];
    let is_made = lines.iter().any(|line| line.starts_with("rebooter-"));
    let passes = is_made && booted == Some(1) && verdict == Some(Verdict::Pass);
    let is_so = match trouble {
        "none" => passes,
        _ => verdict != Some(Verdict::Fail),
    };
    is_so
        .then_some(())
        .ok_or_else(|| format!("{verdict:?} {boots:?} {lines:#?}"))
}

fn three_builds() -> Topology {
    of_row("three-builds")
}

/// One of two nodes of a pool falls silent, is Ready to the API server for a while, and may come back: no
/// check fails for this reason, though network checks have only 3 s to converge.
fn silent(fault: &'static str) -> Outcome {
    let mut would_have_failed = 0;
    for wanted in SILENT_AT {
        let view = within_of(three_builds(), 1, async |world: &World| {
            let faults = world.joined.faults().clone();
            let lines = AtomicUsize::new(0);
            let listener = Box::new(move |_: &Line| {
                if lines.fetch_add(1, Ordering::Relaxed) + 1 == wanted {
                    let fault = format!("{fault}=node/windows-2022-b");
                    faults.set(fault.parse().expect("a fault"));
                }
            });
            let options = RunOptions {
                selection: selection(&[
                    "net.pod-to-pod-cross-node",
                    "net.service-types",
                    "net.dns-*",
                ]),
                ..world.whole("r1")
            };
            let (_alive, signals) = watch::channel(0);
            let cluster = world.impatient();
            ran(&cluster, &options, signals, listener).await.view()
        })?;
        let of = |wanted: &[Verdict]| {
            let concluded = view
                .checks
                .values()
                .filter_map(|check| check.conclusion.as_ref());
            concluded
                .filter(|one| wanted.contains(&one.verdict))
                .count()
        };
        let (failed, untold) = (
            of(&[Verdict::Fail, Verdict::Warn]),
            of(&[Verdict::Inconclusive]),
        );
        if failed > 0 || untold == 0 || of(&[Verdict::Pass]) == 0 {
            let report = products::described(&view);
            return Err(format!(
                "{wanted}: {failed} failed, {untold} untold\n{report}"
            ));
        }
        let attempts = view.checks.values().flat_map(|check| &check.attempts);
        let errors = attempts
            .flat_map(|attempt| &attempt.assertions)
            .filter_map(|assertion| assertion.error.as_ref());
        would_have_failed += errors
            .filter(|error| error.detail.contains(", on which it failed, "))
            .count();
    }
    match would_have_failed {
        0 => Err("none of it would have failed".to_owned()),
        _ => Ok(()),
    }
}

/// A whole run with these product faults and this interference.
fn seen(
    broken: &[&str],
    faults: Vec<Fault>,
    seed: u64,
    selection: Selection,
) -> Result<RunView, String> {
    seen_of(Topology::hybrid(), broken, faults, seed, selection)
}

/// Like `seen`, on other nodes.
pub(crate) fn seen_of(
    topology: Topology,
    broken: &[&str],
    mut faults: Vec<Fault>,
    seed: u64,
    selection: Selection,
) -> Result<RunView, String> {
    faults.extend(of_the_way(broken));
    within_of(topology, seed, async |world: &World| {
        for fault in broken.iter().filter_map(|fault| fault.parse().ok()) {
            world.joined.faults().set(fault);
        }
        world.joined.shown().await;
        let before = world.objects();
        let interference = Interference::new(faults, seed);
        let client = interference.before(&world.server.client());
        let cluster = world.behind(mutating(client, broken));
        let options = RunOptions {
            selection,
            ..world.whole("r1")
        };
        let ran = undisturbed(&cluster, &options).await;
        let view = ran.view()?;
        world.left(&view, &before).await?;
        Ok(view)
    })
}
