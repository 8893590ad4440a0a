//! Which nodes a run uses, and how: no virtual node, none that the configuration excludes, and no spared one where
//! others are.

pub(crate) mod gentle;
pub(crate) mod ring;

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::runtime::watcher::Event;
use libtest_mimic::Trial;
use winconform::engine::{RunError, RunOptions};
use winconform_core::config::{Config, Nodes as Kept};
use winconform_core::record::{Exit, RunView};
use winconform_core::report::junit;
use winconform_core::verdict::Verdict;

use crate::rows::clusters::of_row;
use crate::world::{Outcome, SUITES, trial, undisturbed, watched, within_of};

pub(crate) fn trials() -> Vec<Trial> {
    let own = [
        trial("pods_are_on_the_nodes_of_a_run_alone", on_its_nodes),
        trial("a_pool_that_is_excluded_is_not_tested", without_a_pool),
        trial(
            "what_is_excluded_and_not_there_begins_nothing",
            nothing_there,
        ),
    ];
    own.into_iter().chain(gentle::trials()).collect()
}

/// The nodes that a configuration excludes.
fn excluded(list: &str) -> Kept {
    let mut found = Vec::new();
    let text = format!("nodes: {{exclude: [{list}]}}");
    let Config { nodes, .. } = winconform_core::config::read("config.yaml", &text, &mut found);
    assert_eq!(found, []);
    nodes
}

fn on_its_nodes() -> Outcome {
    let mut topology = of_row("three-builds-fargate-spared");
    let labelled = topology.nodes.iter_mut();
    let labelled = labelled.filter(|node| node.name == "windows-2025-a");
    labelled.for_each(|node| drop(node.labels.insert("team".to_owned(), "payments".to_owned())));
    within_of(topology, 1, async |world| {
        let mut options: RunOptions = world.whole("r0");
        options.config.nodes = excluded("windows-2019-b, team=payments");
        let mut used = BTreeSet::new();
        let record = |event: Event<Pod>| {
            if let Event::InitApply(pod) | Event::Apply(pod) = event
                && pod.labels().contains_key("winconform/run")
            {
                used.extend(pod.spec.and_then(|spec| spec.node_name));
            }
        };
        let ran = watched(world, &SUITES, &options, record).await?;
        ran.came_to(Exit::Conformant)?;
        let own = [
            "linux-a",
            "linux-b",
            "windows-2019-a",
            "windows-2022-a",
            "windows-2022-b",
            "windows-2025-b",
        ];
        let used: Vec<_> = used.iter().map(String::as_str).collect();
        if used != own {
            return Err(format!("pods were on {used:?}"));
        }
        let view = ran.view()?;
        spares(
            &view,
            "net.pod-to-pod-cross-node/ring[pool=windows-2022,source=windows-pod,node=1]",
        )
    })
}

/// Whether a check is skipped since its node is spared.
fn spares(view: &RunView, id: &str) -> Outcome {
    let mut checks = view.checks.values();
    let check = checks.find(|check| check.planned.id.as_str() == id);
    let concluded = check.and_then(|check| check.conclusion.as_ref());
    let said = concluded.map(|it| (it.verdict, format!("{:?}", it.reason)));
    match said {
        Some((Verdict::Skip, why)) if why.contains("aks-spot-0") => Ok(()),
        other => Err(format!("{id}: {other:?}")),
    }
}

fn without_a_pool() -> Outcome {
    within_of(of_row("three-builds"), 1, async |world| {
        let mut options: RunOptions = world.whole("r0");
        options.config.nodes = excluded("windows-2019-a, windows-2019-b");
        let ran = undisturbed(&world.cluster(), &options).await;
        ran.came_to(Exit::CouldNotTell)?;
        let view = ran.view()?;
        let report = junit::render(&view).map_err(|error| error.to_string())?;
        let why = "the cluster has no usable windows-2019 node: windows-2019-a is excluded by the configuration";
        match report.contains(why) {
            true => Ok(()),
            false => Err(format!("the report does not say that {why}")),
        }
    })
}

fn nothing_there() -> Outcome {
    within_of(of_row("hybrid"), 1, async |world| {
        let before = world.objects();
        for (list, said) in [
            ("windows-2022-b", "no node is called `windows-2022-b`"),
            ("linux-a, kubernetes.io/os=windows", "every usable node"),
        ] {
            let mut options: RunOptions = world.whole("r0");
            options.config.nodes = excluded(list);
            let ran = undisturbed(&world.cluster(), &options).await;
            match &ran.finished {
                Err(RunError::Configuration(problems)) if problems.to_string().contains(said) => {}
                other => return Err(format!("{list}: {other:?}")),
            }
        }
        match before == world.objects() {
            true => Ok(()),
            false => Err("something was created".to_owned()),
        }
    })
}
