//! All rejections at a server that refuses every dry run, or that is in trouble: no check passes or fails for
//! this reason. And a run sends each dry run once. Whole runs where a webhook drops a field of every pod: no check fails.

use std::collections::BTreeSet;

use hybrid_sim::Effect;
use hybrid_sim::interference::{Fault, Interference};
use libtest_mimic::Trial;
use ordered_watch as watch;
use winconform::engine::RunOptions;
use winconform_core::config::Config;
use winconform_core::facts::Facts;
use winconform_core::fixture::FixtureName;
use winconform_core::method::{Bound, ReadyFixture, ReadyFixtures};
use winconform_core::plan::{Disposition, plan};
use winconform_core::record::RunView;
use winconform_core::report::terminal::{Colour, Detail, render};
use winconform_core::text::is_hostile;
use winconform_core::verdict::{SkipReason, Verdict};

use crate::rows::clusters::of_row;
use crate::world::{
    ALL, Outcome, World, ran_of, selection_of, trial, undisturbed, verdicts, within, within_of,
};

const REJECTIONS: &str = "area=reject";

/// Faults that refuse or break all dry runs of a resource.
const UNTOLD: [&str; 5] = [
    "admission-refuses=RESOURCE",
    "admission-refuses=RESOURCE:Forbidden",
    "webhook-refuses=RESOURCE:403",
    "webhook-times-out=RESOURCE",
    "webhook-no-dry-run=RESOURCE",
];

/// The resources of the dry runs.
const RESOURCES: [&str; 11] = [
    "pods",
    "pods/ephemeralcontainers",
    "pods/resize",
    "deployments",
    "replicasets",
    "statefulsets",
    "daemonsets",
    "jobs",
    "cronjobs",
    "replicationcontrollers",
    "podtemplates",
];

/// Interference under which at least a quarter of the checks pass.
const TROUBLE: [&str; 7] = [
    "too-many-requests=0.2",
    "server-restarts=200",
    "token-expires=400",
    "answers-403=jobs",
    "aggregated-down",
    "hostile-texts",
    "slow=0.1",
];

/// Fields of pods that a webhook may drop, but for the affinity, without which no DaemonSet finds its pods again: with
/// each push the first ones, at night all.
const DROPPED: [&str; 26] = [
    "spec.securityContext",
    "spec.containers[*].env",
    "spec.containers[*].volumeMounts",
    "spec.containers[*].lifecycle",
    "spec.containers[*].command",
    "spec.nodeSelector",
    "spec.containers[*].image",
    "spec.containers[*].args",
    "spec.containers[*].envFrom",
    "spec.containers[*].livenessProbe",
    "spec.containers[*].ports",
    "spec.containers[*].readinessProbe",
    "spec.containers[*].resources",
    "spec.containers[*].securityContext",
    "spec.containers[*].startupProbe",
    "spec.dnsPolicy",
    "spec.hostNetwork",
    "spec.hostPID",
    "spec.initContainers",
    "spec.overhead",
    "spec.priorityClassName",
    "spec.restartPolicy",
    "spec.shareProcessNamespace",
    "spec.terminationGracePeriodSeconds",
    "spec.tolerations",
    "spec.volumes",
];
const WITH_EACH_PUSH: usize = 7;

/// The check that fails where a webhook drops what the RuntimeClass added: then no pod has it.
const OF_A_CLASS: &str = "sched.runtime-class[pool=windows-2022]";
const BROUGHT: [&str; 2] = ["spec.nodeSelector", "spec.tolerations"];

pub(crate) fn trials() -> Vec<Trial> {
    let dropped = DROPPED.iter().enumerate().map(|(at, field)| {
        let name = format!("what_a_webhook_drops_is_held_against_nobody::{field}");
        trial(name, move || dropped(field)).with_ignored_flag(at >= WITH_EACH_PUSH)
    });
    let untold = UNTOLD.map(|fault| {
        let name = format!("rejections::nothing_is_told::{fault}");
        trial(name, move || untold(fault))
    });
    let error = TROUBLE.map(|fault| {
        let name = format!("rejections::nothing_is_told_wrongly::{fault}");
        trial(name, move || troubled(fault))
    });
    let once = trial("rejections::each_dry_run_is_sent_once", once);
    let broken = trial("what_a_webhook_does_elsewhere_hides_no_failure", broken);
    let sidecar = trial(
        "a_container_that_a_webhook_adds_is_held_against_nobody",
        sidecar,
    );
    let unrequested = trial(
        "an_autoscaler_that_a_webhook_leaves_without_a_use_tells_nothing",
        unrequested,
    );
    let rejections = untold
        .into_iter()
        .chain(error)
        .chain([once, broken, sidecar, unrequested]);
    rejections.chain(dropped).collect()
}

/// A webhook changes one pod of many; on nodes whose taint has no value, containers lack variables.
fn broken() -> Outcome {
    let mut topology = of_row("hybrid");
    let field = "spec.initContainers";
    let effect = Effect::Drops(field.parse().expect("a field"));
    topology.api.effects.push(effect);
    for node in &mut topology.nodes {
        for taint in node.taints.iter_mut().flatten() {
            taint.value.clear();
        }
    }
    within_of(topology, 1, async |world| {
        let fault = "variables-lost=windows-2022".parse().expect("a fault");
        world.joined.faults().set(fault);
        let options = RunOptions {
            selection: selection_of(&ALL, &["pod.configmap-env", "pod.init-containers[*"]),
            ..world.whole("r1")
        };
        let ran = undisturbed(&world.cluster(), &options).await;
        let report = ran.report();
        let failed = verdicts(&ran.view()?)["pod.configmap-env[pool=windows-2022]"];
        let words: Vec<_> = report.split_whitespace().collect();
        let named = "changed spec.initContainers of pod ends-windows-2022";
        let is_so = failed == Some(Verdict::Fail) && words.join(" ").contains(named);
        is_so.then_some(()).ok_or(report)
    })
}

fn dropped(field: &'static str) -> Outcome {
    let effect = Effect::Drops(field.parse().expect("a field"));
    held_against_nobody(effect, &|id| id == OF_A_CLASS && BROUGHT.contains(&field))
}

/// Another container, which requests nothing.
fn proxy() -> Effect {
    let [name, image] =
        ["proxy", "registry.k8s.io/e2e-test-images/agnhost:2.66.1"].map(str::to_owned);
    Effect::Sidecar { name, image }
}

/// Every pod gets another container.
fn sidecar() -> Outcome {
    held_against_nobody(proxy(), &|_| false)
}

/// Every pod gets another container, also those that an autoscaler measures.
fn unrequested() -> Outcome {
    let mut topology = of_row("openshift");
    topology.api.effects.push(proxy());
    within_of(topology, 1, async |world| {
        let options = RunOptions {
            selection: selection_of(&ALL, &["pod.hpa"]),
            ..world.whole("r1")
        };
        let ran = undisturbed(&world.cluster(), &options).await;
        let view = ran.view()?;
        let verdict = verdicts(&view)["pod.hpa[pool=windows-2022]"];
        let report = ran.report();
        let words: Vec<_> = report.split_whitespace().collect();
        let named = "missing request for cpu in container proxy of Pod scaled-linux-linux-";
        let is_so = verdict == Some(Verdict::Inconclusive) && words.join(" ").contains(named);
        is_so.then_some(()).ok_or(report)
    })
}

/// With what a webhook does to each pod no check fails, but for those that are so.
fn held_against_nobody(effect: Effect, is_so: &(dyn Fn(&str) -> bool + Sync)) -> Outcome {
    let mut topology = of_row("hybrid");
    topology.api.effects.push(effect);
    within_of(topology, 1, async |world| {
        let options = RunOptions {
            selection: selection_of(&ALL, &["!area=reject"]),
            ..world.whole("r1")
        };
        let ran = undisturbed(&world.cluster(), &options).await;
        let view = ran.view()?;
        let verdicts = verdicts(&view).into_iter();
        let told = verdicts
            .filter(|(_, it)| matches!(it, Some(Verdict::Fail | Verdict::LimitationLifted)));
        let told = told.map(|(id, _)| id).filter(|id| !is_so(id));
        let told: Vec<_> = told.collect();
        match told.is_empty() {
            true => Ok(()),
            false => Err(format!("{told:#?}\n{}", ran.report())),
        }
    })
}

/// The verdicts of all rejections under these faults, without those that the plan skips for the server's
/// version.
fn seen(faults: &[String]) -> Result<(RunView, Vec<(String, Verdict)>), String> {
    let faults = faults.iter().map(|fault| fault.parse::<Fault>());
    let faults = faults.collect::<Result<_, _>>();
    let faults: Vec<_> = faults.expect("faults of the way");
    let view = within(async |world: &World| {
        let before = world.objects();
        let interference = Interference::new(faults, 1);
        let cluster = world.behind(interference.before(&world.server.client()));
        let options = RunOptions {
            selection: selection_of(&ALL, &[REJECTIONS]),
            ..world.whole("r1")
        };
        let (_alive, signals) = watch::channel(0);
        let ran = ran_of(&ALL, &cluster, &options, signals, Box::new(|_| {})).await;
        let view = ran.view()?;
        world.left(&view, &before).await?;
        Ok::<_, String>(view)
    })?;
    if let Some(by) = &view.interrupted {
        return Err(format!("interrupted by {by}"));
    }
    let attempts = view.checks.values().flat_map(|check| &check.attempts);
    let mut assertions = attempts.flat_map(|attempt| &attempt.assertions);
    if !assertions.any(|assertion| assertion.reply.is_some() || assertion.error.is_some()) {
        return Err("nothing was asked".to_owned());
    }
    let is_of_version = |disposition: &Disposition| {
        matches!(disposition, Disposition::Skip(SkipReason::Version { .. }))
    };
    let checks = view.checks.values();
    let checks = checks.filter(|check| !is_of_version(&check.planned.disposition));
    let verdicts = checks.map(|check| {
        let id = check.planned.id.to_string();
        let conclusion = check.conclusion.as_ref();
        conclusion
            .map(|it| (id.clone(), it.verdict))
            .ok_or(format!("{id} has no verdict"))
    });
    let verdicts = verdicts.collect::<Result<_, _>>()?;
    Ok((view, verdicts))
}

fn untold(fault: &str) -> Outcome {
    let faults = RESOURCES.map(|resource| fault.replace("RESOURCE", resource));
    let (_, verdicts) = seen(&faults)?;
    let mut bad = verdicts
        .iter()
        .filter(|(_, it)| *it != Verdict::Inconclusive);
    bad.next()
        .map_or(Ok(()), |(id, verdict)| Err(format!("{id}: {verdict}")))
}

fn troubled(fault: &str) -> Outcome {
    let (view, verdicts) = seen(&[fault.to_owned()])?;
    let (passed, others): (Vec<_>, Vec<_>) = verdicts
        .iter()
        .partition(|(_, verdict)| *verdict == Verdict::Pass);
    if let Some((id, verdict)) = others.iter().find(|(_, it)| *it != Verdict::Inconclusive) {
        return Err(format!("{id}: {verdict}"));
    }
    if passed.len() * 4 < verdicts.len() {
        return Err(format!("only {} of {} told", passed.len(), verdicts.len()));
    }
    let text = render(&view, 120, Colour::Never, Detail::Full);
    let hostile = text.lines().find(|line| line.contains(is_hostile));
    hostile.map_or(Ok(()), |line| {
        Err(format!("raw text in the report: {line:?}"))
    })
}

fn once() -> Outcome {
    let (view, verdicts) = seen(&[])?;
    if let Some(other) = verdicts.iter().find(|(_, it)| *it != Verdict::Pass) {
        return Err(format!("{other:?}"));
    }
    let ended = view.ended.as_ref().ok_or("the run did not end")?;
    let is_dry = |name: &str| {
        name.starts_with("patch pods/") || name.starts_with("create ") && name != "create leases"
    };
    let sent = ended.requests.iter().filter(|(name, _)| is_dry(name));
    let sent: u64 = sent.map(|(_, count)| count).sum();
    let distinct = distinct(view.facts.as_ref().ok_or("no facts")?);
    let mut resent = ended.requests.iter();
    match sent == distinct && !resent.any(|(name, _)| name.starts_with("resent")) {
        true => Ok(()),
        false => Err(format!("{distinct} dry runs, sent {:?}", ended.requests)),
    }
}

/// The number of different dry runs.
fn distinct(facts: &Facts) -> u64 {
    let names = [FixtureName::NAMESPACES, FixtureName::UNBOUND_PODS];
    let ready = ReadyFixtures {
        fixtures: names
            .map(|name| (name.in_pool(None), ReadyFixture::default()))
            .into(),
        ..ReadyFixtures::default()
    };
    let at = Bound::to_ready(&ready);
    let checks = plan(&ALL, facts, &Config::default()).checks;
    let rejections = checks.iter().filter(|check| check.claim.area() == "reject");
    let assertions = rejections.flat_map(|check| &check.assertions);
    let prepared = assertions.map(|assertion| assertion.test.prepare(&at));
    let requests = prepared.map(|it| format!("{:?}", it.map(|prepared| prepared.request)));
    let distinct: BTreeSet<_> = requests.collect();
    u64::try_from(distinct.len()).unwrap_or(u64::MAX)
}
