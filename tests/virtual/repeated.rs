//! Runs that observe everything more than once.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kube::api::DeleteParams;
use libtest_mimic::Trial;
use ordered_watch as watch;
use winconform::engine::{Repeat, RunOptions};
use winconform_core::config::{Durations, Limits};
use winconform_core::fixture::FixtureName;
use winconform_core::record::{Event, Exit, FixtureOutcome, Line, RunView};
use winconform_core::verdict::Verdict;

use crate::nodes::gentle::take;
use crate::nodes::ring::two;
use crate::rows::clusters::of_row;
use crate::rows::topologies::{as_demo, healthy_run};
use crate::world::{
    ALL, Outcome, World, lines, ran, selection, took, trial, undisturbed, watched, within,
    within_of,
};

/// A check of a Service after the run replaced its backends.
const CHURN: &str = "net.after-churn[pool=windows-2022,source=windows-pod]";

/// The deadline of pods in these runs, and enough repetitions to last longer.
const POD_DEADLINE: Duration = Duration::from_mins(1);
const REPETITIONS: u32 = 150;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("backends_come_and_go_in_each_repetition", each),
        trial("pods_that_stay_are_not_waited_for_to_go", staying),
        trial("pods_that_do_not_all_fit_are_made_in_each_repetition", anew),
        trial("what_goes_stale_only_later_has_failed_and_is_flaky", later),
        trial("what_fails_in_one_repetition_of_three_has_failed", once),
        trial("what_is_deleted_in_one_repetition_is_broken_there", deleted),
        trial("pods_that_end_by_their_deadline_are_made_anew", || {
            deadlines(Repeat::Times(REPETITIONS))
        }),
        trial("a_soak_is_outlived_by_its_pods", || {
            deadlines(Repeat::For(POD_DEADLINE * 2))
        }),
    ]
}

fn thrice(settings: RunOptions) -> RunOptions {
    RunOptions {
        repeat: Repeat::Times(3),
        selection: selection(&["net.after-churn", "net.service-ip-from-pod"]),
        ..settings
    }
}

/// Whether a line says that the run has replaced the backends.
fn stood(line: &Line) -> bool {
    matches!(&line.event, Event::Fixture { key, outcome: FixtureOutcome::Ready(_), .. }
        if key.name == FixtureName::CHURN)
}

/// The number of the repetition that begins with a line.
fn begins(line: &Line) -> Option<u32> {
    match line.event {
        Event::Repetition { number } => Some(number),
        _ => None,
    }
}

/// A check's final verdict, whether it is flaky, and how often it had each verdict (empty if never another).
type Came = (Verdict, bool, BTreeMap<Verdict, u32>);

fn came(view: &RunView, id: &str) -> Result<Came, String> {
    let mut checks = view.checks.values();
    let check = checks.find(|check| check.planned.id.as_str() == id);
    let conclusion = check.and_then(|check| check.conclusion.as_ref());
    let last = conclusion.ok_or(format!("{id} came to nothing"))?;
    Ok((last.verdict, last.flaky, last.repeated.clone()))
}

fn each() -> Outcome {
    within(async |world| {
        let before = world.objects();
        let ran = undisturbed(&world.cluster(), &thrice(world.settings("r0"))).await;
        ran.came_to(Exit::Conformant)?;
        let times = lines(&ran)?.iter().filter(|line| stood(line)).count();
        if times != 3 {
            return Err(format!("its backends came and went {times} times, not 3"));
        }
        world.unchanged(&before)
    })
}

/// A node keeps stale endpoints from the second repetition on.
fn later() -> Outcome {
    within(async |world| {
        let faults = world.joined.faults().clone();
        let (_alive, signals) = watch::channel(0);
        let listener = Box::new(move |line: &Line| {
            if matches!(line.event, Event::Repetition { number: 2 }) {
                faults.set("endpoint-stale=windows-2022".parse().expect("a fault"));
            }
        });
        let options = thrice(world.settings("r0"));
        let ran = ran(&world.cluster(), &options, signals, listener).await;
        ran.came_to(Exit::NotConformant)?;
        let came = came(&ran.view()?, CHURN)?;
        let times = BTreeMap::from([(Verdict::Pass, 1), (Verdict::Fail, 2)]);
        match came == (Verdict::Fail, true, times) {
            true => Ok(()),
            false => Err(format!("{came:?}")),
        }
    })
}

/// A check of the ring, or of the replaced backends, that fails only in the second repetition has failed,
/// once; other checks have not.
fn once() -> Outcome {
    const STALE: &str = "endpoint-stale=windows-2022";
    const NO_UDP: &str = "udp-dropped=node/windows-2022-b";
    let ring = |node: u32| {
        format!("net.pod-to-pod-udp/ring[pool=windows-2022,source=windows-pod,node={node}]")
    };
    within_of(two(), 1, async |world: &World| {
        let before = world.objects();
        let faults = world.joined.faults().clone();
        let (_alive, signals) = watch::channel(0);
        let listener = Box::new(move |line: &Line| {
            for fault in [STALE, NO_UDP].map(|fault| fault.parse().expect("a fault")) {
                match begins(line) {
                    Some(2) => faults.set(fault),
                    Some(3) => faults.lift(&fault),
                    _ => {}
                }
            }
        });
        let options = RunOptions {
            selection: selection(&["net.after-churn", "net.pod-to-pod-udp/ring"]),
            ..thrice(world.settings("r0"))
        };
        let ran = ran(&world.cluster(), &options, signals, listener).await;
        ran.came_to(Exit::NotConformant)?;
        let view = ran.view()?;
        let times = BTreeMap::from([(Verdict::Pass, 2), (Verdict::Fail, 1)]);
        let failed = (Verdict::Fail, true, times);
        for (id, fails) in [(CHURN, true), (&ring(1), false), (&ring(2), true)] {
            let came = came(&view, id)?;
            let is_it = match fails {
                true => came == failed,
                false => (came.0, came.1) == (Verdict::Pass, false),
            };
            if !is_it {
                return Err(format!("{id}: {came:?}\n{}", ran.report()));
            }
        }
        world.unchanged(&before)
    })
}

/// An object that someone deletes in the second repetition, and again after its re-creation, is an error
/// there: no check fails, its dependents are inconclusive, and the others get a verdict each time.
fn deleted() -> Outcome {
    within_of(two(), 1, async |world: &World| {
        let before = world.objects();
        let (tell, mut state) = watch::channel((0, false));
        let (_alive, signals) = watch::channel(0);
        let listener = Box::new(move |line: &Line| {
            let ready = stood(line);
            tell.send_modify(|state| *state = (begins(line).unwrap_or(state.0), ready));
        });
        let options = RunOptions {
            selection: selection(&["net.after-churn", "net.pod-to-pod-udp/ring"]),
            ..thrice(world.settings("r0"))
        };
        let cluster = world.cluster();
        let deletes = async {
            let client = world.server.client();
            let deployments: Api<Deployment> = Api::namespaced(client, "winconform-r0");
            let mut deleted = 0;
            while state.wait_for(|state| *state == (2, true)).await.is_ok() {
                let how = DeleteParams::default();
                let gone = deployments.delete("churn-windows-2022", &how).await;
                gone.map_err(|error| error.to_string())?;
                deleted += 1;
                let _ = state.changed().await.is_ok();
            }
            Ok::<_, String>(deleted)
        };
        let running = ran(&cluster, &options, signals, listener);
        let (ran, times) = tokio::join!(running, deletes);
        if times? != 2 {
            return Err("it was not deleted twice".to_owned());
        }
        ran.came_to(Exit::CouldNotTell)?;
        let view = ran.view()?;
        let passed = (Verdict::Pass, BTreeMap::from([(Verdict::Pass, 3)]));
        let untold = [(Verdict::Pass, 2), (Verdict::Inconclusive, 1)];
        let untold = (Verdict::Inconclusive, BTreeMap::from(untold));
        for check in view.checks.values() {
            let id = check.planned.id.as_str();
            let expected = match id.starts_with("net.after-churn") {
                true => &untold,
                false => &passed,
            };
            let (verdict, flaky, times) = came(&view, id)?;
            if (verdict, flaky, &times) != (expected.0, false, &expected.1) {
                return Err(format!("{id}: {verdict:?}, {times:?}\n{}", ran.report()));
            }
        }
        let (words, report) = (" of the 3 repetitions", ran.report());
        if !report.contains(words) {
            return Err(format!("that is not told:\n{report}"));
        }
        world.unchanged(&before)
    })
}

/// The most time of a whole run with two repetitions, in multiples of one with a single.
const TWICE: u32 = 2;

/// Between repetitions pods stay, so that none makes room for another.
fn staying() -> Outcome {
    const PRODUCT: &str = "kubeadm-flannel";
    let once = took(&healthy_run(PRODUCT)?.0);
    let twice = within_of(of_row(PRODUCT), 1, async move |world| {
        let options = RunOptions {
            repeat: Repeat::Times(2),
            ..as_demo(world)
        };
        let ran = watched(world, &ALL, &options, |_| {}).await?;
        ran.came_to(Exit::Conformant)?;
        Ok::<_, String>(took(&ran.view()?))
    })?;
    match twice <= once * TWICE {
        true => Ok(()),
        false => Err(format!("{twice:?}, and {once:?} of a single one")),
    }
}

/// The node of the Windows pool has room for a run of a single repetition, and not for all its pods at once.
fn anew() -> Outcome {
    within(async |world: &World| {
        take(world, "windows-2022-a", 98).await?;
        let options = RunOptions {
            repeat: Repeat::Times(2),
            selection: selection(&["area=pod"]),
            ..world.settings("r0")
        };
        let ran = undisturbed(&world.cluster(), &options).await;
        ran.came_to(Exit::Conformant)?;
        let times = made(&lines(&ran)?);
        if times.get("ends-windows-2022") != Some(&2) {
            return Err(format!("{times:?}"));
        }
        Ok(())
    })
}

/// How often a run made each pod.
fn made(lines: &[Line]) -> BTreeMap<String, u32> {
    let mut times = BTreeMap::new();
    for line in lines {
        if let Event::Intent(one) = &line.event
            && one.kind == "Pod"
        {
            *times.entry(one.name.clone()).or_default() += 1;
        }
    }
    times
}

/// Pods have a deadline, so that a killed run does not leave them for ever. A soak sets it beyond its own
/// end; other runs create the pods again after it. Either way every repetition observes every check.
fn deadlines(repeat: Repeat) -> Outcome {
    within(async |world: &World| {
        let before = world.objects();
        let durations = Durations {
            pod_deadline: POD_DEADLINE,
            ..Durations::default()
        };
        let cluster = world.with(world.server.client(), durations, Limits::default());
        let options = RunOptions {
            repeat,
            selection: selection(&["net.pod-to-pod-cross-os/to-linux"]),
            ..world.settings("r0")
        };
        let ran = undisturbed(&cluster, &options).await;
        ran.came_to(Exit::Conformant)?;
        let (view, lines) = (ran.view()?, lines(&ran)?);
        for check in view.checks.values() {
            let (verdict, flaky, times) = came(&view, check.planned.id.as_str())?;
            let others = times.keys().any(|verdict| *verdict != Verdict::Pass);
            if (verdict, flaky, others) != (Verdict::Pass, false, false) {
                return Err(format!("{verdict:?}, {times:?}\n{}", ran.report()));
            }
        }
        let last = lines.iter().filter_map(begins).max();
        if matches!(repeat, Repeat::Times(times) if last != Some(times))
            || took(&view) < POD_DEADLINE * 2
        {
            return Err(format!("it ended with repetition {last:?}"));
        }
        let times = made(&lines);
        let anew = matches!(repeat, Repeat::Times(_));
        if times.values().any(|times| *times > 1) != anew {
            return Err(format!("{times:?}"));
        }
        world.unchanged(&before)
    })
}
