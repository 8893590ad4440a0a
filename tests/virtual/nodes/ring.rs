//! Runs that observe from each node: two Windows nodes and two Linux nodes.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::LazyLock;
use std::time::Duration;

use hybrid_sim::Topology;
use libtest_mimic::Trial;
use winconform::engine::RunOptions;
use winconform_core::claims::Pattern;
use winconform_core::facts::{PoolName, WindowsBuild};
use winconform_core::fixture::FixtureName;
use winconform_core::record::{CheckView, EvidenceKind, RunView};
use winconform_core::verdict::Verdict;

use crate::events::deadline::{overdue, since};
use crate::events::killed::{at_event, goes_on};
use crate::events::signals::{once, twice};
use crate::faults::seen_of;
use crate::harness::{Told, seeds_of_a_broken_world};
use crate::products::{described, usual};
use crate::rows::clusters::of_row;
use crate::table::asked;
use crate::troubles::tally_of;
use crate::world::{
    Outcome, Ran, World, lines, selection, took, trial, unbroken_in, verdicts, within_of,
};

/// The checks: all that observe from each node, and some with other pods.
const OF_RING: [&str; 4] = [
    "env.windows-build-label",
    "net.*/ring",
    "net.*/each-*node",
    "net.service-ip-from-pod",
];

/// A few of these checks, among them the first and the last of the ring's assertions.
const SHORT: [&str; 3] = [
    "env.windows-build-label",
    "net.pod-to-pod-cross-node/ring",
    "net.dns-service/each-node",
];

/// Harness faults, and the most time of a run under each, in hundredths of the time of the same run without.
///
/// A repeated request or observation costs moments, and a deleted object ends a wait at once. The tool gives
/// up a silent watch after `watch` and a little more, as long as the rest of a run; four in a row are silent
/// in one case of 600. It gives up a hanging request after `api_answer`, and an exec after `exec_connect` or
/// `exec_idle`: of 200 runs the longest took 836, and under `cut-exec` 127. No run waits for `fixture`, which
/// is as long as 15 runs.
const HARNESS: [(&str, u32); 5] = [
    ("delete-created=0.2", 145),
    ("silent-watch=0.2", 425),
    ("reset=0.2", 125),
    ("cut-exec=0.2", 135),
    ("hang=0.2", 900),
];

/// Runs under the first so many faults differ much: they get all seeds, and a broken cluster, too.
const MANIFOLD: usize = 2;

/// Faults of one of the two nodes, and the verdicts they change: from that node, both ways, or of itself.
const BROKEN: [&str; 3] = [
    "udp-dropped=node/windows-2022-b",
    "mtu-black-hole=node/windows-2022-b",
    "node-service-ip-answers=node/windows-2022-b",
];
const TURNED: [(&str, Verdict); 3] = [
    ("net.pod-to-pod-udp/ring[*node=2]", Verdict::Fail),
    ("net.long-payload/ring", Verdict::Fail),
    (
        "net.node-to-service-ip/each-windows-node[*node=2]",
        Verdict::LimitationLifted,
    ),
];

/// The claim that is skipped: no network of the cluster is an overlay.
const NOT_LOOKED_AT: &str = "net.overlay-node-pod";

/// The least number of runs of each kind that a trial interrupts.
const LEAST: usize = 6;

/// How many seeds a fault has unless a number is asked for, as each night.
const OFTEN: u64 = 6;

pub(crate) fn trials() -> Vec<Trial> {
    let healthy = HARNESS.into_iter().enumerate();
    let healthy = healthy.map(|(at, (fault, hundredths))| {
        let seeds = if at < MANIFOLD { OFTEN } else { OFTEN / 2 };
        let seeds = asked().unwrap_or(seeds);
        trial(format!("ring::harness::{fault}"), move || {
            harness(fault, hundredths, seeds, &[])
        })
    });
    let broken = HARNESS.into_iter().take(MANIFOLD);
    let broken = broken.map(|(fault, hundredths)| {
        trial(
            format!("ring::harness_in_a_broken_world::{fault}"),
            move || harness(fault, hundredths, seeds_of_a_broken_world(), &BROKEN),
        )
    });
    let diagnosed = trial(
        "ring::what_fails_on_a_node_is_told_with_its_network",
        tells_beside,
    );
    let broken_off = [
        trial("ring::killed_and_gone_on_with", killed),
        trial("ring::signals", signals),
        trial("ring::deadlines", deadlines),
    ];
    healthy
        .chain(broken)
        .chain([diagnosed])
        .chain(broken_off)
        .collect()
}

/// Two Linux nodes and two of Windows Server 2022.
pub(crate) fn two() -> Topology {
    of_row("hybrid-pairs")
}

/// The time of an undisturbed run by its seed, in a healthy cluster and in the broken one; there, every check
/// gets its expected verdict.
static CALM: [LazyLock<BTreeMap<u64, Duration>>; 2] = [
    LazyLock::new(|| calm(asked().unwrap_or(OFTEN), &[])),
    LazyLock::new(|| calm(seeds_of_a_broken_world(), &BROKEN)),
];

fn calm(seeds: u64, broken: &[&str]) -> BTreeMap<u64, Duration> {
    let took = (0..seeds).map(|seed| {
        let view = seen_of(two(), broken, Vec::new(), seed, selection(&OF_RING));
        let view = view.expect("it leaves nothing");
        let tally = tally_of(&view, &expected(&view, !broken.is_empty()));
        assert_eq!(tally, Ok((view.checks.len(), 0)), "{}", described(&view));
        (seed, took(&view))
    });
    took.collect()
}

/// Under a harness fault no verdict of the ring is wrong, enough are conclusive, and the run is in time.
fn harness(fault: &'static str, hundredths: u32, seeds: u64, broken: &[&str]) -> Outcome {
    let mut totals = Told::under(fault);
    let mut failed = BTreeSet::new();
    for seed in 0..seeds {
        let faults = vec![fault.parse().expect("a fault of the way")];
        let view = seen_of(two(), broken, faults, seed, selection(&OF_RING))?;
        totals.add(
            seed,
            &view,
            tally_of(&view, &expected(&view, !broken.is_empty())),
        )?;
        let (took, calm) = (took(&view), CALM[usize::from(!broken.is_empty())][&seed]);
        if took > calm * hundredths / 100 {
            let report = described(&view);
            return Err(format!(
                "seed {seed}: {took:?}, and {calm:?} without:\n{report}"
            ));
        }
        let verdicts = verdicts(&view).into_iter();
        failed.extend(verdicts.filter_map(|(id, it)| (it == Some(Verdict::Fail)).then_some(id)));
    }
    if !broken.is_empty() && failed.is_empty() {
        return Err("nothing broken is told".to_owned());
    }
    totals.enough()
}

/// Whether a check queries a prober's pod on the second node, where packets are lost.
fn asks_the_second(check: &CheckView) -> bool {
    let assertions = check
        .attempts
        .iter()
        .flat_map(|attempt| &attempt.assertions);
    let mut seen = assertions.filter_map(|assertion| assertion.observation.as_ref());
    seen.any(|seen| {
        seen.to_string()
            .contains("pod prober-windows-2022 on windows-2022-b")
    })
}

/// The expected verdict of every check, in a healthy or a broken cluster.
fn expected(view: &RunView, broken: bool) -> BTreeMap<&str, Verdict> {
    let turned = TURNED.map(|(name, verdict)| {
        let pattern = Pattern::parse(name).expect("a pattern of ids");
        (pattern, verdict)
    });
    let checks = view.checks.values().map(|check| {
        let id = check.planned.id.as_str();
        let mut turned = turned.iter().filter(|_| broken);
        let turned = turned.find(|(pattern, _)| pattern.covers(id));
        if broken && id.starts_with("net.long-payload") && asks_the_second(check) {
            return (id, Verdict::Fail);
        }
        let usual = match id {
            id if id.starts_with(NOT_LOOKED_AT) => Verdict::Skip,
            // All nodes run Windows Server 2022, where it is no limitation
            id if id.starts_with("net.session-affinity") => Verdict::Pass,
            _ => usual(check.planned.claim_type),
        };
        (id, turned.map_or(usual, |(_, verdict)| *verdict))
    });
    checks.collect()
}

/// The diagnosis of the pod that failed on the second node has the output of HNS on that node.
fn tells_beside() -> Outcome {
    let select = selection(&["net.pod-to-pod-udp/ring", "net.node-to-service-ip*"]);
    let view = seen_of(
        two(),
        &["udp-dropped=node/windows-2022-a"],
        Vec::new(),
        0,
        select,
    )?;
    let key = FixtureName::RING.in_pool(Some(&PoolName::windows(WindowsBuild::SERVER_2022)));
    let diagnosis = view.diagnoses.get(&key.on(Some(1)));
    let evidence = diagnosis.ok_or("there is no diagnosis")?.evidence.iter();
    let hns = evidence.filter(|one| one.kind == EvidenceKind::Hns);
    let of: Vec<_> = hns.map(|one| one.of.as_str()).collect();
    match of.as_slice() {
        ["windows-node in windows-2022, node 1"] => Ok(()),
        other => Err(format!("{other:?}")),
    }
}

fn settings(world: &World, run: &str) -> RunOptions {
    RunOptions {
        selection: selection(&SHORT),
        ..world.settings(run)
    }
}

/// An undisturbed run with a ring, and the events at which trials interrupt it: the first of each kind.
fn whole() -> Result<(Ran, BTreeSet<u64>), String> {
    let whole = unbroken_in(two(), &selection(&SHORT));
    let mut kinds = HashSet::new();
    let lines = lines(&whole)?.into_iter();
    let first = lines.filter(|line| kinds.insert(std::mem::discriminant(&line.event)));
    let at: BTreeSet<_> = first.map(|line| line.seq).collect();
    match at.len() {
        0..LEAST => Err(format!("only {at:?}")),
        _ => Ok((whole, at)),
    }
}

/// Cleanup removes what a killed run left, and another run resumes its record.
fn killed() -> Outcome {
    let (whole, events) = whole()?;
    let expected = verdicts(&whole.view()?);
    let mut settled = BTreeSet::new();
    for at in events {
        let done = within_of(two(), 1, async |world: &World| {
            let before = world.objects();
            let record = at_event(world, &settings(world, "r1"), at).await;
            world.cleaned_up().await?;
            world.unchanged(&before)?;
            let record = record.ok_or("it ended before")?;
            let again = settings(world, "r2");
            let settled = goes_on(&world.cluster(), again, &record, &expected).await?;
            world.unchanged(&before)?;
            Ok(settled)
        });
        settled.extend(done.map_err(|error: String| format!("killed at {at}: {error}"))?);
    }
    // Records with no, some and all checks settled
    match settled.len() {
        0..3 => Err(format!("only ever {settled:?} were settled")),
        _ => Ok(()),
    }
}

/// The first signal ends a run in order, the second at once.
fn signals() -> Outcome {
    let (whole, events) = whole()?;
    let mut abandoned = 0;
    for at in events {
        let first = within_of(two(), 1, async |world: &World| {
            once(world, &settings(world, "r1"), &whole, at).await
        });
        let second = within_of(two(), 1, async |world: &World| {
            twice(world, &settings(world, "r1"), at).await
        });
        let done = first.and(second);
        let done = done.map_err(|error| format!("signal at {at}: {error}"))?;
        abandoned += usize::from(done.is_some());
    }
    match abandoned {
        0..LEAST => Err(format!("only {abandoned} were abandoned")),
        _ => Ok(()),
    }
}

/// A run starts nothing after its deadline.
fn deadlines() -> Outcome {
    let (whole, events) = whole()?;
    let lines = lines(&whole)?;
    let at = lines.iter().filter(|line| events.contains(&line.seq));
    let instants: BTreeSet<_> = at.map(|line| since(lines[0].at, line)).collect();
    for after in instants {
        let ended = within_of(two(), 1, async |world: &World| {
            overdue(world, settings(world, "r1"), &whole, after).await
        });
        ended.map_err(|error| format!("deadline after {after:?}: {error}"))?;
    }
    Ok(())
}
