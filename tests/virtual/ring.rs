//! Runs in which each node is observed from: two of Windows and two of Linux.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::LazyLock;
use std::time::Duration;

use hybrid_sim::{Build, NodeSpec, Pool, Topology};
use libtest_mimic::Trial;
use winconform::engine::RunOptions;
use winconform_core::claims::Pattern;
use winconform_core::facts::{PoolName, WindowsBuild};
use winconform_core::fixture::FixtureName;
use winconform_core::record::{CheckView, EvidenceKind, RunView};
use winconform_core::verdict::Verdict;

use crate::deadline::{overdue, since};
use crate::faults::seen_of;
use crate::harness::{Told, seeds, seeds_of_a_broken_world};
use crate::killed::{at_event, goes_on};
use crate::products::{described, usual};
use crate::signals::{once, twice};
use crate::troubles::tally_of;
use crate::world::{
    Outcome, Ran, World, lines, selection, took, trial, unbroken_in, verdicts, within_of,
};

/// What is observed: all of the ring, and what has a pod of its own beside it.
const OF_RING: [&str; 4] = [
    "env.windows-build-label",
    "net.*/ring",
    "net.*/each-*node",
    "net.service-ip-from-pod",
];

/// The same in short: what ends the ring's assertions, and what begins them.
const SHORT: [&str; 3] = [
    "env.windows-build-label",
    "net.pod-to-pod-cross-node/ring",
    "net.dns-service/each-node",
];

/// Harness faults, and how long a run may take under each, in hundredths of what the same takes without.
///
/// What is sent or observed again costs moments, and what was deleted ends a wait at once. Of a watch
/// that is silent nothing is known until it is given up, after `watch` and a little more: as long as the
/// rest of a run; of four in a row that are silent there is one in 600. What hangs is given up after
/// `api_answer`, an exec after `exec_connect` or `exec_idle`: of 200 runs the longest took 772, and under `cut-exec` 127. None
/// of it waits for `fixture`, which is as long as 15 runs.
const HARNESS: [(&str, u32); 5] = [
    ("delete-created=0.2", 125),
    ("silent-watch=0.2", 425),
    ("reset=0.2", 125),
    ("cut-exec=0.2", 135),
    ("hang=0.2", 800),
];

/// So many of them, the first, make runs that differ much: with all seeds, and in a broken world, too.
const MANIFOLD: usize = 2;

/// What is broken of one of the two nodes, and what that turns: that node as a source, both ways, or by itself.
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

/// What is not observed: nothing of the cluster is on an overlay.
const NOT_LOOKED_AT: &str = "net.overlay-node-pod";

/// How many runs of each kind are broken off at least.
const LEAST: usize = 6;

pub(crate) fn trials() -> Vec<Trial> {
    let healthy = HARNESS.into_iter().enumerate();
    let healthy = healthy.map(|(at, (fault, hundredths))| {
        let seeds = match at < MANIFOLD {
            true => seeds(),
            false => seeds().div_ceil(2),
        };
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
    let told = trial(
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
        .chain([told])
        .chain(broken_off)
        .collect()
}

/// Two Linux nodes and two of Windows Server 2022.
pub(crate) fn two() -> Topology {
    let mut topology = Topology::hybrid();
    topology.nodes.extend([
        NodeSpec::new("linux-b", Pool::Linux),
        NodeSpec::new("windows-2022-b", Pool::Windows(Build::Ws2022)),
    ]);
    topology
}

/// How long a run takes by its seed that no harness fault disturbs, in a healthy cluster and in the
/// broken one: all of it is told there.
static CALM: [LazyLock<BTreeMap<u64, Duration>>; 2] = [
    LazyLock::new(|| calm(seeds(), &[])),
    LazyLock::new(|| calm(seeds_of_a_broken_world(), &BROKEN)),
];

fn calm(seeds: u64, broken: &[&str]) -> BTreeMap<u64, Duration> {
    let took = (0..seeds).map(|seed| {
        let view = seen_of(two(), broken, Vec::new(), seed, selection(&OF_RING));
        let view = view.expect("it leaves nothing");
        let told = tally_of(&view, &expected(&view, !broken.is_empty()));
        assert_eq!(told, Ok((view.checks.len(), 0)), "{}", described(&view));
        (seed, took(&view))
    });
    took.collect()
}

/// Under a harness fault nothing of a ring is wrong, enough of it is told, and in time.
fn harness(fault: &'static str, hundredths: u32, seeds: u64, broken: &[&str]) -> Outcome {
    let mut told = Told::under(fault);
    let mut failed = BTreeSet::new();
    for seed in 0..seeds {
        let faults = vec![fault.parse().expect("a fault of the way")];
        let view = seen_of(two(), broken, faults, seed, selection(&OF_RING))?;
        told.add(
            seed,
            &view,
            tally_of(&view, &expected(&view, !broken.is_empty())),
        )?;
        let (took, calm) = (took(&view), CALM[usize::from(!broken.is_empty())][&seed]);
        if took > calm * hundredths / 100 {
            let told = described(&view);
            return Err(format!(
                "seed {seed}: {took:?}, and {calm:?} without:\n{told}"
            ));
        }
        let all = verdicts(&view).into_iter();
        failed.extend(all.filter_map(|(id, it)| (it == Some(Verdict::Fail)).then_some(id)));
    }
    if !broken.is_empty() && failed.is_empty() {
        return Err("nothing broken is told".to_owned());
    }
    told.enough()
}

/// Whether a check asks the pod of a prober that was put on the second node, where packets are lost.
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

/// What every check should come to, in a healthy cluster or a broken one.
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
        let usual = match id.starts_with(NOT_LOOKED_AT) {
            true => Verdict::Skip,
            false => usual(check.planned.claim_type),
        };
        (id, turned.map_or(usual, |(_, verdict)| *verdict))
    });
    checks.collect()
}

/// Beside the pod that failed on the second node stands what HNS says there, asked of that node itself.
fn tells_beside() -> Outcome {
    let select = selection(&["net.pod-to-pod-udp/ring", "net.node-to-service-ip*"]);
    let view = seen_of(two(), &BROKEN[..1], Vec::new(), 0, select)?;
    let key = FixtureName::RING.in_pool(Some(&PoolName::windows(WindowsBuild::SERVER_2022)));
    let diagnosis = view.diagnoses.get(&key.on(Some(2)));
    let evidence = diagnosis.ok_or("there is no diagnosis")?.evidence.iter();
    let hns = evidence.filter(|one| one.kind == EvidenceKind::Hns);
    let of: Vec<_> = hns.map(|one| one.of.as_str()).collect();
    match of.as_slice() {
        ["windows-node in windows-2022, node 2"] => Ok(()),
        other => Err(format!("{other:?}")),
    }
}

fn settings(world: &World, run: &str) -> RunOptions {
    RunOptions {
        selection: selection(&SHORT),
        ..world.settings(run)
    }
}

/// A run with a ring that nothing disturbs, and where it may be broken off: at the first event of each kind.
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

/// Nothing is left of a run that was killed, and another goes on with its record.
fn killed() -> Outcome {
    let (whole, all) = whole()?;
    let expected = verdicts(&whole.view()?);
    let mut settled = BTreeSet::new();
    for at in all {
        let done = within_of(two(), 1, async |world: &World| {
            let before = world.objects();
            let record = at_event(world, &settings(world, "r1"), at).await;
            world.cleaned_up().await?;
            world.unchanged(&before)?;
            let record = record.ok_or("it ended before")?;
            let again = settings(world, "r2");
            let settled = goes_on(world, again, &record, &expected).await?;
            world.unchanged(&before)?;
            Ok(settled)
        });
        settled.extend(done.map_err(|error: String| format!("killed at {at}: {error}"))?);
    }
    // Of nothing, of some and of all
    match settled.len() {
        0..3 => Err(format!("only ever {settled:?} were settled")),
        _ => Ok(()),
    }
}

/// The first signal ends a run in order, the second at once.
fn signals() -> Outcome {
    let (whole, all) = whole()?;
    let mut abandoned = 0;
    for at in all {
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

/// Nothing is begun after a deadline.
fn deadlines() -> Outcome {
    let (whole, all) = whole()?;
    let lines = lines(&whole)?;
    let at = lines.iter().filter(|line| all.contains(&line.seq));
    let instants: BTreeSet<_> = at.map(|line| since(lines[0].at, line)).collect();
    for after in instants {
        let ended = within_of(two(), 1, async |world: &World| {
            overdue(world, settings(world, "r1"), &whole, after).await
        });
        ended.map_err(|error| format!("deadline after {after:?}: {error}"))?;
    }
    Ok(())
}
