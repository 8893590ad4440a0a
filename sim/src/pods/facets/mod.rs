//! Every fault of pods, nodes and kubelets changes exactly what its facets say, and lifting it heals.
//!
//! Pods of every kind live through a day in paused time: some run when the fault sets in, some are
//! started under it, some after it.

mod ask;
mod look;
mod scene;
mod stub;

use std::collections::BTreeSet;

use look::{NOTHING, Observation, Observed, observe};
use scene::{NODES, PLACES, Scene, pool};

use crate::fault::{FaultKind, Parameter, ProductFault};

/// Where a kind of fault is seen in full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shows {
    /// In connections and names: `memory/facets.rs`.
    InTheNetwork,
    /// Here, at once: in nodes, kubelets and pods that run.
    AtOnce,
    /// Here, in pods that are started from now on.
    AtStart,
    /// In pods that are refused without it, which this scene has none of: the project's whole runs.
    InWholeRuns,
}

pub(crate) fn shows(kind: FaultKind) -> Shows {
    use FaultKind as Kind;
    match kind {
        Kind::KubeProxyDead
        | Kind::NodePortClosed
        | Kind::TrafficCut
        | Kind::TrafficCutOneWay
        | Kind::DnsDown
        | Kind::DnsSuffixWrong
        | Kind::DnsWrongAddress
        | Kind::DnsSlow
        | Kind::VipSticks
        | Kind::EndpointStale
        | Kind::MtuBlackHole
        | Kind::SourceRewritten
        | Kind::HairpinBroken
        | Kind::UdpDropped
        | Kind::PingDropped
        | Kind::OutboundPingAnswers
        | Kind::CaptiveProxy
        | Kind::ServiceAnswersWrong
        | Kind::NodeServiceIpAnswers
        | Kind::NodeServiceIpResets
        | Kind::LocalNodePortAnswers => Shows::InTheNetwork,
        Kind::NodeLabelWrong
        | Kind::NodeLabelsMissing
        | Kind::Untainted
        | Kind::TaintIgnored
        | Kind::KubeletSkewed
        | Kind::RuntimeDocker
        | Kind::NothingReserved
        | Kind::NodeNotReady
        | Kind::NodeVanishes
        | Kind::NodeReboots
        | Kind::ClockWrong
        | Kind::MemoryPressure
        | Kind::CrashLoop
        | Kind::ProbeIgnored
        | Kind::PreStopSkipped
        | Kind::GraceIgnored
        | Kind::ExitCodeLost
        | Kind::ExecRefused
        | Kind::ExecOutputLost
        | Kind::ToolsLocalised
        | Kind::LogsEmpty
        | Kind::LogsCut => Shows::AtOnce,
        Kind::RequestsIgnored | Kind::AnyBuildRuns | Kind::PlatformUnasked => Shows::InWholeRuns,
        Kind::ImageMissing
        | Kind::PullFails
        | Kind::PullSlow
        | Kind::ImageBuildWrong
        | Kind::PauseImageWrong
        | Kind::SandboxFails
        | Kind::HandlerUnknown
        | Kind::ServercoreCrashes
        | Kind::HostProcessRefused => Shows::AtStart,
    }
}

/// A day: what was seen while the fault held, and after it was lifted.
struct Day {
    broken: Observed,
    healed: Observed,
}

async fn day(fault: Option<&ProductFault>) -> Day {
    let scene = Scene::begin().await;
    scene.create(1);
    scene.pass(60).await;
    scene.set(fault);
    scene.pass(1).await;
    scene.create(2);
    scene.pass(120).await;
    scene.tell(1);
    scene.tell(2);
    // A node evicts one pod after the other
    scene.pass(420).await;
    let broken = observe(&scene, &[1, 2]).await;
    scene.lift(fault);
    // The longest back-off, and the longest between two looks of a probe
    scene.pass(620).await;
    scene.create(3);
    scene.pass(120).await;
    scene.tell(3);
    scene.pass(420).await;
    let healed = observe(&scene, &[1, 2, 3]).await;
    scene.end().await;
    Day { broken, healed }
}

/// Whether a pattern of the catalogue is about an observation.
fn is_about(pattern: &str, fault: &ProductFault, observation: &Observation) -> bool {
    let mut words = pattern.split(' ');
    words.next() == Some(observation.subject)
        && words.all(|word| {
            let (key, value) = word.split_once('=').expect("facets are pairs");
            let seen = observation.facet(key);
            if value != "PLACE" {
                return value.split('|').any(|value| value == seen);
            }
            let namespace = observation.facet("namespace");
            !seen.is_empty() && fault.place.has_pod(namespace, seen, pool(seen))
        })
}

/// Whether what was seen can be broken at all: what has come to nothing, or is as the fault would
/// have it, cannot.
fn can_change(observation: &Observation, seen: &str) -> bool {
    match observation.facet("aspect") {
        // The others have their image
        "pull" => seen.contains("Pulling:"),
        "probe" => seen.starts_with("unready"),
        // It is not started again
        "start" => seen != NOTHING && observation.facet("pod") != "fails",
        "exit-code" => seen != "0" && seen != NOTHING,
        _ => seen != NOTHING,
    }
}

/// Whether a change is of what a pod no longer came to, or came to only now, by what has changed of
/// it before, or of its node.
fn follows(change: &Observation, meant: &BTreeSet<&Observation>) -> bool {
    let of = |name: &str, from: &Observation| change.facet(name) == from.facet(name);
    meant
        .iter()
        .any(|from| match (change.subject, from.subject) {
            ("connection", _) => {
                let ends = [change.facet("from"), change.facet("to")];
                let server = from.facet("pod") == "serves" && from.facet("namespace") == "test";
                ends.contains(&from.facet("at")) && (server || from.subject == "kubelet")
            }
            (_, "kubelet") => of("at", from),
            _ => {
                of("at", from)
                    && of("namespace", from)
                    && of("pod", from)
                    && !from.facet("pod").is_empty()
            }
        })
}

/// What is wrong with facets, by what was seen on a healthy day and on one with the fault.
fn judge(
    fault: &ProductFault,
    facets: &[&str],
    healthy: &Observed,
    broken: &Observed,
) -> Vec<String> {
    let is_meant = |of: &Observation| facets.iter().any(|facet| is_about(facet, fault, of));
    let differs = |(of, before): (&(Observation, u8), &String)| broken[of] != *before;
    let changes: Vec<_> = healthy.iter().filter(|one| differs(*one)).collect();
    let meant: BTreeSet<&Observation> = changes
        .iter()
        .map(|((of, _), _)| of)
        .filter(|of| is_meant(of))
        .collect();
    let mut wrong = Vec::new();
    for (key, before) in &changes {
        let (of, generation) = key;
        let after = &broken[*key];
        let came_or_went = *after == NOTHING || *before == NOTHING;
        if !(is_meant(of) || came_or_went && follows(of, &meant)) {
            wrong.push(format!(
                "{fault}: {of:?} of {generation}: {before}, now {after}, which it does not say"
            ));
        }
    }
    for ((of, _), before) in healthy {
        let untouched = !meant.contains(of) && is_meant(of);
        if untouched && can_change(of, before) {
            wrong.push(format!(
                "{fault}: {of:?}: {before} as before, which it says it changes"
            ));
        }
    }
    if changes.is_empty() {
        wrong.push(format!("{fault} changes nothing that is seen"));
    }
    wrong
}

/// What is left of a fault that was lifted.
fn left(fault: &ProductFault, healthy: &Observed, healed: &Observed) -> Vec<String> {
    let mut left = Vec::new();
    for (key, before) in healthy {
        let ((of, generation), after) = (key, &healed[key]);
        let aspect = of.facet("aspect");
        // A boot has been, and what it has told stays told
        let stays = of.subject == "node" && aspect == "boot";
        // Of those that lived through it: whether they run again, if they had not ended
        let lived = (1..=2).contains(generation);
        let same = match lived {
            true => {
                let mut eviction = of.clone();
                let aspect_of_it = eviction.facets.insert("aspect", "eviction".to_owned());
                let evicted = healed.get(&(eviction, *generation));
                aspect_of_it.is_none_or(|aspect| aspect != "probe")
                    || before == NOTHING
                    || evicted.is_some_and(|evicted| evicted != "none")
                    || after.split(' ').next() == before.split(' ').next()
            }
            false => after == before,
        };
        if !same && !stays {
            left.push(format!(
                "{fault}, lifted: {of:?} of {generation}: {before} before, now {after}"
            ));
        }
    }
    left
}

/// Everywhere, and one other place: of the kinds that can have it, each third has each sort.
fn places(kind: FaultKind) -> Vec<ProductFault> {
    let parameter = kind.info().parameter;
    let sorts = PLACES.iter().filter(|place| match parameter {
        Parameter::Pods => true,
        _ => !place.starts_with("=namespace/"),
    });
    let sorts: Vec<&&str> = sorts.skip(1).collect();
    let turn = kind as usize % sorts.len();
    ["", sorts[turn]]
        .map(|place| {
            format!("{}{place}", kind.info().name)
                .parse()
                .expect("a fault")
        })
        .into()
}

#[tokio::test(start_paused = true)]
async fn each_fault_of_pods_and_nodes_changes_what_it_says_and_nothing_else() {
    let healthy = day(None).await;
    let mut wrong = Vec::new();
    for info in ProductFault::catalogue() {
        let shows = shows(info.kind);
        if matches!(shows, Shows::InTheNetwork | Shows::InWholeRuns) {
            continue;
        }
        for fault in places(info.kind) {
            let seen = day(Some(&fault)).await;
            wrong.extend(judge(&fault, info.facets, &healthy.broken, &seen.broken));
            wrong.extend(left(&fault, &healthy.healed, &seen.healed));
            let ran = healthy
                .broken
                .iter()
                .filter(|((_, generation), _)| *generation < 2);
            let touched = ran
                .filter(|(of, before)| seen.broken[*of] != **before)
                .count();
            if (touched > 0) != (shows == Shows::AtOnce) {
                wrong.push(format!(
                    "{fault} shows {shows:?}, and {touched} that ran have changed"
                ));
            }
            // Facets that say more, or less, are found out
            let labels = info
                .facets
                .iter()
                .any(|facet| facet.contains("aspect=labels"));
            let planted = match labels {
                true => "node aspect=status",
                false => "node aspect=labels",
            };
            let more: Vec<&str> = info.facets.iter().copied().chain([planted]).collect();
            let found =
                |facets: &[&str]| !judge(&fault, facets, &healthy.broken, &seen.broken).is_empty();
            assert!(found(&more) && found(&[]), "{fault}");
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn the_scene_has_every_place() {
    for place in PLACES.iter().filter(|place| !place.is_empty()) {
        let fault: ProductFault = format!("crash-loop{place}").parse().expect("a fault");
        let has = |node: &&(&str, _)| fault.place.has_pod("test", node.0, node.1);
        let inside = NODES.iter().filter(has).count();
        assert!(inside > 0, "{place}");
    }
}
