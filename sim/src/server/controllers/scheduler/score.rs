//! Which of the nodes that take a pod is best: the weights of the default profile.

use serde_json::Value;

use super::affinity::{is_about, is_together};
use super::filter::term_holds;
use super::room::Amounts;
use super::{Place, Scene, Wanted};
use crate::server::controllers::node::tolerates;

const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Of several, the first in the order of their names: a real scheduler takes one by chance.
pub(super) fn best(scene: &Scene, wanted: &Wanted<'_>, fit: &[usize]) -> Option<usize> {
    if let [only] = fit {
        return Some(*only);
    }
    let pod = wanted.pod;
    let nominated = pod["status"]["nominatedNodeName"].as_str();
    let nominated = nominated.and_then(|name| scene.at(name));
    if let Some(at) = nominated.filter(|at| fit.contains(at)) {
        return Some(at);
    }
    let places = fit.iter().map(|at| &scene.places[*at]);
    let raw: Vec<[f64; 4]> = places
        .map(|place| {
            let node = place.node.value();
            [
                by_node(pod, node),
                by_pods(scene, pod, node),
                by_taints(pod, node),
                spread(place, pod),
            ]
        })
        .collect();
    let most = |at: usize| {
        raw.iter()
            .map(|scores| scores[at].abs())
            .fold(0.0, f64::max)
    };
    // NodeAffinity 2, InterPodAffinity 2, TaintToleration 3, PodTopologySpread 2
    let weights = [
        (2.0, most(0)),
        (2.0, most(1)),
        (3.0, most(2)),
        (2.0, most(3)),
    ];
    let mut best: Option<(f64, usize)> = None;
    for (at, raw) in fit.iter().zip(&raw) {
        let normal = raw.iter().zip(weights);
        let normal = normal.map(|(score, (weight, most))| {
            if most > 0.0 {
                weight * 100.0 * score / most
            } else {
                0.0
            }
        });
        let score = normal.sum::<f64>() + least(&scene.places[*at], wanted);
        if best.is_none_or(|(most, _)| score > most + 1e-9) {
            best = Some((score, *at));
        }
    }
    best.map(|(_, at)| at)
}

fn weight(term: &Value) -> f64 {
    term["weight"].as_f64().unwrap_or(0.0)
}

fn by_node(pod: &Value, node: &Value) -> f64 {
    let terms = pod["spec"]["affinity"]["nodeAffinity"][PREFERRED].as_array();
    let terms = terms
        .into_iter()
        .flatten()
        .filter(|term| term_holds(&term["preference"], node));
    terms.map(weight).sum()
}

fn by_pods(scene: &Scene, pod: &Value, node: &Value) -> f64 {
    let of = |kind: &str, sign: f64| -> f64 {
        let terms = pod["spec"]["affinity"][kind][PREFERRED].as_array();
        let sums = terms.into_iter().flatten().map(|weighted| {
            let term = &weighted["podAffinityTerm"];
            let near = scene.placed().filter(|(other, there)| {
                is_about(scene, term, pod, other) && is_together(term, there, node)
            });
            #[expect(clippy::cast_precision_loss, reason = "a count of pods")]
            let count = near.count() as f64;
            sign * weight(weighted) * count
        });
        sums.sum()
    };
    of("podAffinity", 1.0) + of("podAntiAffinity", -1.0)
}

/// Taints that only ask.
fn by_taints(pod: &Value, node: &Value) -> f64 {
    let taints = node["spec"]["taints"].as_array();
    let soft = taints
        .into_iter()
        .flatten()
        .filter(|taint| taint["effect"] == "PreferNoSchedule");
    let unwelcome = soft.filter(|taint| {
        let tolerations = pod["spec"]["tolerations"].as_array();
        !tolerations
            .into_iter()
            .flatten()
            .any(|one| tolerates(one, taint))
    });
    #[expect(clippy::cast_precision_loss, reason = "a count of taints")]
    let count = unwelcome.count() as f64;
    -count
}

/// Pods of one owner spread over the nodes (`plugins/podtopologyspread`, `systemDefaultConstraints`).
fn spread(place: &Place, pod: &Value) -> f64 {
    let owner = &pod["metadata"]["ownerReferences"][0]["uid"];
    if owner.is_null() {
        return 0.0;
    }
    let same = place.pods.iter();
    let same = same.filter(|other| other["metadata"]["ownerReferences"][0]["uid"] == *owner);
    #[expect(clippy::cast_precision_loss, reason = "a count of pods")]
    let count = same.count() as f64;
    -count
}

/// How much of a node would be left (`plugins/noderesources/least_allocated.go`).
fn least(place: &Place, wanted: &Wanted<'_>) -> f64 {
    let left = ["cpu", "memory"].map(|what| {
        let of = |amounts: &Amounts| amounts.get(what).copied().unwrap_or(0.0);
        let all = of(&place.allocatable);
        // What asks for nothing counts as a little (`pkg/scheduler/util/pod_resources.go`)
        let used = of(&place.taken) + of(&wanted.requests);
        if all > 0.0 {
            100.0 * (all - used).max(0.0) / all
        } else {
            0.0
        }
    });
    left.iter().sum::<f64>() / 2.0
}
