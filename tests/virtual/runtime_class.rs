//! Runs whose Windows pods are under a RuntimeClass of the cluster.

use std::collections::BTreeMap;

use hybrid_sim::{Pool, Topology};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::node::v1::RuntimeClass;
use kube::api::PostParams;
use kube::runtime::watcher::Event;
use kube::{Api, ResourceExt};
use libtest_mimic::Trial;
use serde_json::json;
use winconform::engine::{RunError, RunOptions};
use winconform_core::record::Exit;

use crate::world::{Outcome, SUITES, World, trial, undisturbed, watched, within_of};

const HANDLER: &str = "runhcs-wcow-hypervisor";

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("windows_pods_run_under_the_class_that_is_chosen", chosen),
        trial(
            "a_class_whose_handler_no_node_has_is_not_held_against_the_cluster",
            unhandled,
        ),
        trial(
            "a_class_whose_handler_no_node_reports_begins_nothing",
            unreported,
        ),
        trial("a_class_that_is_missing_begins_nothing", missing),
    ]
}

/// A cluster whose Windows nodes have the handler, or not, with a class for it.
async fn with_class(world: &World) -> Result<(), String> {
    let class = json!({
        "metadata": {"name": "hyper-v"},
        "handler": HANDLER,
        "overhead": {"podFixed": {"memory": "300Mi"}},
    });
    let class = serde_json::from_value(class).map_err(|error| error.to_string())?;
    let classes = Api::<RuntimeClass>::all(world.server.client());
    let created = classes.create(&PostParams::default(), &class).await;
    created.map(drop).map_err(|error| error.to_string())
}

fn topology(has_handler: bool) -> Topology {
    let mut topology = Topology::hybrid();
    for node in &mut topology.nodes {
        if has_handler && node.pool != Pool::Linux {
            node.handlers = vec![HANDLER.to_owned()];
        }
    }
    topology
}

fn options(world: &World, class: &str) -> RunOptions {
    let mut options = world.whole("r0");
    let (text, mut found) = (format!("fixtures: {{runtime-class: {class}}}"), Vec::new());
    let read = winconform_core::config::read("config.yaml", &text, &mut found);
    options.config.runtime_class = read.runtime_class;
    options
}

/// What each pod of the run was created with: the fixture, whether Windows is its system and it has an isolation
/// of its own, and the class it is under.
#[derive(Default)]
struct Classes(BTreeMap<String, String>);

impl Classes {
    fn record(&mut self, event: Event<Pod>) {
        let (Event::InitApply(pod) | Event::Apply(pod)) = event else {
            return;
        };
        let Some(spec) = &pod.spec else { return };
        let Some(fixture) = pod.labels().get("winconform/fixture") else {
            return;
        };
        let is_windows = spec.os.as_ref().is_some_and(|os| os.name == "windows");
        if is_windows {
            let class = spec.runtime_class_name.clone().unwrap_or_default();
            // Several runs' names end in their ids
            self.0
                .insert(fixture.clone(), class.trim_end_matches("-r0").to_owned());
        }
    }
}

fn chosen() -> Outcome {
    within_of(topology(true), 1, async |world| {
        with_class(world).await?;
        let (mut classes, options) = (Classes::default(), options(world, "hyper-v"));
        let ran = watched(world, &SUITES, &options, |event| classes.record(event)).await?;
        ran.came_to(Exit::Conformant)?;
        let report = ran.report();
        if !report.contains("limitation-lifted  limit.hyperv-isolation") {
            return Err(report);
        }
        let under = |class: &str| {
            let of = classes.0.iter().filter(|(_, of)| of.starts_with(class));
            of.map(|(fixture, _)| fixture.as_str()).collect::<Vec<_>>()
        };
        let expected = [
            "churn",
            "cron-job",
            "daemon-set",
            "dense",
            "ends",
            "gmsa",
            "hooked",
            "host-network",
            "host-path",
            "jobs",
            "leaving",
            "leaving-core",
            "linked",
            "memory-medium",
            "nano-server",
            "nfs",
            "non-root",
            "pod-side",
            "polite",
            "probed",
            "replica-set",
            "replication-controller",
            "restarted",
            "retried",
            "settings",
            "sidecar",
            "single-file",
            "slow-starter",
            "startup",
            "stateful-set",
            "sub-paths",
            "toolbox",
            "win-webserver",
            "windows-pod-prober",
        ];
        match under("hyper-v") {
            under if under == expected => Ok(()),
            under => Err(format!("{under:?} of {:?}", classes.0)),
        }
    })
}

/// The node reports a handler that it no longer has.
fn unhandled() -> Outcome {
    let mut topology = topology(false);
    let reported = ["", "runhcs-wcow-process", HANDLER].map(str::to_owned);
    for node in &mut topology.nodes {
        if node.pool != Pool::Linux {
            node.reported_handlers = reported.to_vec();
        }
    }
    within_of(topology, 1, async |world| {
        with_class(world).await?;
        let ran = undisturbed(&world.cluster(), &options(world, "hyper-v")).await;
        ran.came_to(Exit::CouldNotTell)?;
        let report = ran.report();
        let words = format!("no runtime for \"{HANDLER}\" is configured");
        match report.contains(&words) {
            true => Ok(()),
            false => Err(report),
        }
    })
}

fn unreported() -> Outcome {
    let expected = "config.yaml:1:27: no Windows node has the handler `runhcs-wcow-hypervisor`\n  hint: they have their default one, runhcs-wcow-process\n1 problem";
    refused(topology(false), "hyper-v", expected)
}

fn missing() -> Outcome {
    let expected = "config.yaml:1:27: the cluster has no RuntimeClass `hyperv`\n  hint: did you mean `hyper-v`? known are: hyper-v\n1 problem";
    refused(topology(true), "hyperv", expected)
}

/// A run under this class begins nothing, for this problem.
fn refused(topology: Topology, class: &str, expected: &str) -> Outcome {
    within_of(topology, 1, async |world| {
        with_class(world).await?;
        let before = world.objects();
        let ran = undisturbed(&world.cluster(), &options(world, class)).await;
        let said = match &ran.finished {
            Err(RunError::Configuration(problems)) => problems.to_string(),
            other => return Err(format!("{other:?}")),
        };
        match said == expected {
            true => world.unchanged(&before),
            false => Err(said),
        }
    })
}
