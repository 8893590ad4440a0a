//! Every fault of pods, nodes and kubelets changes exactly what its facets say, and lifting it heals.
//!
//! Pods of every kind live through a day in paused time: some run when the fault sets in, some are
//! started under it, some after it. Each fault has a day everywhere, and a part of a day, which it
//! shares with others that are elsewhere, at each kind of place that it can have.

mod ask;
mod ends;
mod look;
pub(super) mod scene;
mod shows;
pub(super) mod stub;

use std::collections::BTreeSet;

use look::{NOTHING, Observation, Observed, observe};
use scene::{NAMESPACES, PLACES, Scene, pool};

use crate::fault::{FaultInfo, FaultKind, ProductFault};
pub(crate) use shows::{Shows, shows};

/// A day: what was seen while the fault held, and after it was lifted.
struct Day {
    broken: Observed,
    healed: Observed,
}

async fn day(faults: &[ProductFault]) -> Day {
    let scene = Scene::begin().await;
    scene.create(1);
    scene.pass(60).await;
    scene.set(faults);
    scene.pass(1).await;
    scene.create(2);
    scene.pass(120).await;
    scene.tell(1);
    scene.tell(2);
    // A node evicts one pod after the other
    scene.pass(420).await;
    let broken = observe(&scene, &[1, 2]).await;
    scene.lift(faults);
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
            (_, "pod") => {
                let what = match change.subject {
                    "pod" => change.facet("aspect"),
                    other => other,
                };
                let same = of("at", from) && of("namespace", from) && of("pod", from);
                same && needs(what, from.facet("aspect"))
            }
            _ => false,
        })
}

/// Whether an aspect of a pod, or what is asked of it, cannot be without another as it was.
fn needs(what: &str, aspect: &str) -> bool {
    const RUNNING: &[&str] = &[
        "probe",
        "pre-stop",
        "grace",
        "exit-code",
        "restarts",
        "rest",
        "exec",
        "logs",
    ];
    const IMAGE: &[&str] = &["pull-time", "start"];
    const SANDBOX: &[&str] = &["pull", "host-process"];
    let among: &[&[&str]] = match aspect {
        "binding" | "eviction" => return true,
        "sandbox" | "host-process" => &[SANDBOX, IMAGE, RUNNING],
        "pull" => &[IMAGE, RUNNING],
        "start" => &[RUNNING],
        // Who ends otherwise may not have come to print
        "exit-code" => &[&["logs"]],
        // Who is killed at once has no time for its hook
        "grace" => &[&["pre-stop"]],
        _ => &[],
    };
    among.iter().any(|names| names.contains(&what))
}

/// A fault and what it is said to change.
#[derive(Clone, Copy)]
struct Claim<'a> {
    fault: &'a ProductFault,
    facets: &'a [&'a str],
}

impl Claim<'_> {
    fn says(&self, of: &Observation) -> bool {
        let about = |facet: &&str| is_about(facet, self.fault, of);
        self.facets.iter().any(about)
    }
}

/// What is wrong with claims, by what was seen on a healthy day and on one with their faults.
fn judge(claims: &[Claim<'_>], healthy: &Observed, broken: &Observed) -> Vec<String> {
    let is_meant = |of: &Observation| claims.iter().any(|claim| claim.says(of));
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
            let faults = written(claims.iter().map(|claim| claim.fault));
            wrong.push(format!(
                "{faults}: {of:?} of {generation}: {before}, now {after}, which is not said"
            ));
        }
    }
    for claim in claims {
        let fault = claim.fault;
        for ((of, _), before) in healthy {
            let untouched = !meant.contains(of) && claim.says(of);
            if untouched && can_change(of, before) {
                wrong.push(format!(
                    "{fault}: {of:?}: {before} as before, which it says it changes"
                ));
            }
        }
        if !meant.iter().any(|of| claim.says(of)) {
            wrong.push(format!("{fault} changes nothing that is seen"));
        }
    }
    wrong
}

fn written<'a>(faults: impl Iterator<Item = &'a ProductFault>) -> String {
    let each: Vec<String> = faults.map(ToString::to_string).collect();
    each.join(" and ")
}

/// What is left of faults that were lifted.
fn left(faults: &[ProductFault], healthy: &Observed, healed: &Observed) -> Vec<String> {
    let faults = written(faults.iter());
    let mut left = Vec::new();
    for (key, before) in healthy {
        let ((of, generation), after) = (key, &healed[key]);
        let aspect = of.facet("aspect");
        // A boot has been, and what it has told stays told
        let stays = of.subject == "node" && aspect == "boot";
        // Of those that lived through it: whether they run again, if they had not ended
        let lived = (1..=2).contains(generation);
        let same = match (lived, of.subject) {
            (true, "connection") => {
                let ends = ["from", "to"].map(|end| (of.facet(end), NAMESPACES[0], "serves"));
                let over = |end| ended(end, *generation, healthy, healed);
                after == before || ends.into_iter().any(over)
            }
            (true, "exec" | "logs") => {
                let pod = (of.facet("at"), of.facet("namespace"), of.facet("pod"));
                after == before || ended(pod, *generation, healthy, healed)
            }
            (true, _) => {
                let mut eviction = of.clone();
                let aspect_of_it = eviction.facets.insert("aspect", "eviction".to_owned());
                let evicted = healed.get(&(eviction, *generation));
                aspect_of_it.is_none_or(|aspect| aspect != "probe")
                    || before == NOTHING
                    || evicted.is_some_and(|evicted| evicted != "none")
                    || after.split(' ').next() == before.split(' ').next()
            }
            (false, _) => after == before,
        };
        if !same && !stays {
            left.push(format!(
                "{faults}, lifted: {of:?} of {generation}: {before} before, now {after}"
            ));
        }
    }
    left
}

fn is_here(kind: FaultKind) -> bool {
    matches!(shows(kind), Shows::AtOnce | Shows::AtStart)
}

/// Whether a pod has been evicted, or has ended in another way than on a healthy day.
fn ended(
    (node, namespace, pod): (&str, &str, &str),
    generation: u8,
    healthy: &Observed,
    healed: &Observed,
) -> bool {
    healthy.iter().any(|(key, before)| {
        let (of, own) = key;
        let is = of.subject == "pod"
            && *own == generation
            && ["eviction", "exit-code"].contains(&of.facet("aspect"))
            && (of.facet("at"), of.facet("namespace"), of.facet("pod")) == (node, namespace, pod);
        is && healed[key] != *before
    })
}

/// The faults of each day: each kind has one everywhere, and a part of one at each kind of place.
fn days() -> Vec<Vec<ProductFault>> {
    let kinds = || {
        let infos = ProductFault::catalogue();
        infos.filter(|info| is_here(info.kind))
    };
    let at = |info: &FaultInfo, place: &str| -> ProductFault {
        let text = format!("{}={place}", info.name);
        text.parse().expect("a fault")
    };
    let mut days: Vec<Vec<ProductFault>> = kinds()
        .map(|info| vec![info.name.parse().expect("a fault")])
        .collect();
    let [pool, node, namespace] = PLACES;
    let namespaced = kinds().filter(|info| info.parameter.takes_namespaces());
    let mut namespaced = namespaced.map(|info| at(info, namespace));
    // Not the same one in all places: it would change whatever it is about
    let others = kinds().skip(1).chain(kinds().take(1));
    for (info, other) in kinds().zip(others) {
        let both = [at(info, pool), at(other, node)];
        days.push(both.into_iter().chain(namespaced.next()).collect());
    }
    days
}

/// In how many tests the days are, so that they go by side by side.
const SHARES: usize = 4;

#[tokio::test(start_paused = true)]
async fn each_fault_of_pods_and_nodes_changes_what_it_says_and_nothing_else_1() {
    changes(0).await;
}

#[tokio::test(start_paused = true)]
async fn each_fault_of_pods_and_nodes_changes_what_it_says_and_nothing_else_2() {
    changes(1).await;
}

#[tokio::test(start_paused = true)]
async fn each_fault_of_pods_and_nodes_changes_what_it_says_and_nothing_else_3() {
    changes(2).await;
}

#[tokio::test(start_paused = true)]
async fn each_fault_of_pods_and_nodes_changes_what_it_says_and_nothing_else_4() {
    changes(3).await;
}

/// One share of the days.
async fn changes(share: usize) {
    let healthy = day(&[]).await;
    let mut wrong = Vec::new();
    for faults in days().into_iter().skip(share).step_by(SHARES) {
        let seen = day(&faults).await;
        let claims = faults.iter().map(|fault| Claim {
            fault,
            facets: fault.kind.facets(),
        });
        let claims: Vec<Claim<'_>> = claims.collect();
        wrong.extend(judge(&claims, &healthy.broken, &seen.broken));
        wrong.extend(left(&faults, &healthy.healed, &seen.healed));
        for (at, claim) in claims.iter().enumerate() {
            let fault = claim.fault;
            let ran = healthy.broken.iter();
            let ran = ran.filter(|((of, generation), _)| *generation < 2 && claim.says(of));
            let touched = ran
                .filter(|(of, before)| seen.broken[*of] != **before)
                .count();
            let shows = shows(fault.kind);
            if (touched > 0) != (shows == Shows::AtOnce) {
                wrong.push(format!(
                    "{fault} shows {shows:?}, and {touched} that ran have changed"
                ));
            }
            // Facets that say more, or less, are found out
            let labels = claim
                .facets
                .iter()
                .any(|facet| facet.contains("aspect=labels"));
            let planted = match labels {
                true => "node aspect=status",
                false => "node aspect=labels",
            };
            let more: Vec<&str> = claim.facets.iter().copied().chain([planted]).collect();
            let found = |facets: &[&str]| {
                let mut other = claims.clone();
                other[at] = Claim { fault, facets };
                !judge(&other, &healthy.broken, &seen.broken).is_empty()
            };
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
fn the_scene_has_every_place_and_none_has_anything_of_another() {
    let places = PLACES.map(|place| -> ProductFault {
        let text = format!("crash-loop={place}");
        text.parse().expect("a fault")
    });
    let mut holders = Vec::new();
    Scene::each(|_, node, namespace| {
        let holds = |fault: &&ProductFault| fault.place.has_pod(namespace, node, pool(node));
        holders.push(places.iter().filter(holds).collect::<Vec<_>>());
    });
    assert!(holders.iter().all(|holders| holders.len() < 2));
    for fault in &places {
        assert!(holders.iter().any(|holders| holders == &[fault]), "{fault}");
    }
}

#[test]
fn each_kind_has_each_kind_of_place() {
    let days = days();
    let tried: BTreeSet<String> = days.iter().flatten().map(ToString::to_string).collect();
    for info in ProductFault::catalogue() {
        if !is_here(info.kind) {
            continue;
        }
        let most = if info.parameter.takes_namespaces() {
            3
        } else {
            2
        };
        for place in &PLACES[..most] {
            assert!(
                tried.contains(&format!("{}={place}", info.name)),
                "{}",
                info.name
            );
        }
        assert!(tried.contains(info.name), "{}", info.name);
    }
}
