//! A run that is killed in the middle of a scenario: `cleanup` removes what it left, and a run that resumes its record
//! takes all steps again and comes to the verdict of an undisturbed one.

use std::future::pending;
use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{Config, watcher};
use tokio::time::timeout;
use winconform::cluster::connect;
use winconform_core::config::Limits;
use winconform_core::method::Scenario;
use winconform_core::record::{CheckView, RunView, read};
use winconform_core::verdict::Verdict;

use super::{Outcome, Run, Trials, World, binary, ends, equal, everything, unchanged};
use crate::scenarios::of;
use crate::world::{durations, options};

/// How long after its pods run a scenario is under way that keeps its container running for 5 s or 10 s.
const MIDDLE: Duration = Duration::from_secs(1);

/// By then every scenario is under way.
const PATIENCE: Duration = Duration::from_mins(3);

pub(super) fn add(trials: &mut Trials) {
    for scenario in Scenario::ALL {
        let name = format!("life::a_scenario_is_killed::{}", scenario.as_str());
        trials.add(name, async move |world: &World| {
            killed(world, *scenario).await
        });
    }
}

async fn killed(world: &World, scenario: Scenario) -> Outcome {
    let (claim, _) = of(scenario);
    let before = everything(world).await;
    let [out, other] = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
    let mut run = Run::of(world, out.path(), &[claim]);
    let begun = timeout(PATIENCE, under_way(world, scenario, &mut run)).await;
    begun.map_err(|_| "the scenario does not begin in time")??;
    run.child.start_kill().map_err(|error| error.to_string())?;
    let (code, progress) = run.end().await;
    equal(code, None, &progress)?;
    let earlier = view(out.path())?;
    concluded(&earlier, None)?;
    ends(binary(world, &["cleanup"]), 0).await?;
    unchanged(&before, &everything(world).await)?;

    let record = out.path().join("record.jsonl");
    let (record, folder) = (record.to_string_lossy(), other.path().to_string_lossy());
    let resumes = ["run", "--resume", &record, "--out", &folder];
    let selected = ["--select", claim];
    ends(binary(world, &[&resumes[..], &selected].concat()), 0).await?;
    let whole = view(other.path())?;
    if whole.resumed != Some((earlier.started.run, 0)) {
        return Err(format!("it resumes {:?}", whole.resumed));
    }
    concluded(
        &whole,
        Some(match scenario {
            Scenario::MemoryOverUse => Verdict::Informational,
            _ => Verdict::Pass,
        }),
    )?;
    unchanged(&before, &everything(world).await)
}

/// Waits until the scenario of a run is under way, but not over: the pod shows the first act of those that act at once
/// or end soon; the others let a container run on for a while, before or between their acts.
async fn under_way(world: &World, scenario: Scenario, run: &mut Run) -> Outcome {
    let ready = run.until("in windows-2022 after");
    match scenario {
        Scenario::LivenessProbe
        | Scenario::MemoryOverUse
        | Scenario::NetworkAfterRestart
        | Scenario::StartupProbe => {
            ready.await?;
            let _ = timeout(MIDDLE, pending::<()>()).await;
        }
        Scenario::ReadinessProbe => {
            let mut was_ready = false;
            let shown = shows(world, scenario, |pod| {
                let is_ready = is_ready(pod);
                let is_acted_on = was_ready && !is_ready;
                was_ready |= is_ready;
                is_acted_on
            });
            tokio::try_join!(ready, shown)?;
        }
        Scenario::PreStop
        | Scenario::SubPathRelease
        | Scenario::TerminationGrace
        | Scenario::WorkloadSignals => {
            let shown = shows(world, scenario, |pod| {
                pod.metadata.deletion_timestamp.is_some()
            });
            tokio::try_join!(ready, shown)?;
        }
    }
    Ok(())
}

/// Waits until the pod of a scenario shows it.
async fn shows(world: &World, scenario: Scenario, mut it: impl FnMut(&Pod) -> bool) -> Outcome {
    let options = options(&world.kubeconfig);
    let direct = connect(&options, durations(), Limits::default()).await;
    let direct = direct.map_err(|error| error.to_string())?;
    let (_, pod) = of(scenario);
    let only = Config::default().fields(&format!("metadata.name={pod}"));
    let pods = Api::<Pod>::all(direct.api.client().clone());
    let mut seen = pin!(watcher(pods, only).applied_objects());
    while let Some(pod) = seen.next().await {
        if pod.is_ok_and(|pod| it(&pod)) {
            return Ok(());
        }
    }
    Err("the watch of the pod ended".to_owned())
}

/// Whether the container that the scenario is about is ready.
fn is_ready(pod: &Pod) -> bool {
    let statuses = pod.status.as_ref();
    let statuses = statuses.and_then(|status| status.container_statuses.as_deref());
    let mut statuses = statuses.into_iter().flatten();
    statuses.any(|status| status.name == "main" && status.ready)
}

fn view(out: &Path) -> Result<RunView, String> {
    let record = std::fs::read_to_string(out.join("record.jsonl")).expect("a record");
    read(record.as_bytes()).map_err(|error| error.to_string())
}

/// Whether the only check of a run has this verdict.
fn concluded(view: &RunView, verdict: Option<Verdict>) -> Outcome {
    let seen: Vec<_> = view.checks.values().map(CheckView::verdict).collect();
    match seen == [verdict] {
        true => Ok(()),
        false => Err(format!("{seen:?}, not {verdict:?}")),
    }
}
