//! Which of the nodes that take a pod is best: the weights of the default profile.

use serde_json::Value;

use super::affinity::{is_about, is_together};
use super::filter::term_holds;
use super::{Scene, room};
use crate::server::controllers::node::tolerates;

const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Of several, the first in the order of their names: a real scheduler takes one by chance.
pub(super) fn best<'a>(scene: &Scene<'_>, pod: &Value, fit: &[&'a str]) -> Option<&'a str> {
    if let [only] = fit {
        return Some(only);
    }
    let node = |name: &str| {
        let found = scene.nodes.iter().find(|(own, _)| *own == name);
        found.map_or(&Value::Null, |(_, node)| *node)
    };
    let nominated = pod["status"]["nominatedNodeName"].as_str();
    if let Some(name) = fit.iter().find(|name| nominated == Some(**name)) {
        return Some(name);
    }
    let raw: Vec<[f64; 4]> = fit
        .iter()
        .map(|name| {
            let node = node(name);
            [
                by_node(pod, node),
                by_pods(scene, pod, node),
                by_taints(pod, node),
                spread(scene, pod, name),
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
    let total = |at: usize| -> f64 {
        let normal = raw[at].iter().zip(weights);
        let normal = normal.map(|(score, (weight, most))| {
            if most > 0.0 {
                weight * 100.0 * score / most
            } else {
                0.0
            }
        });
        normal.sum::<f64>() + least(scene, pod, fit[at], node(fit[at]))
    };
    let mut best: Option<(f64, &str)> = None;
    for (at, name) in fit.iter().enumerate() {
        let score = total(at);
        if best.is_none_or(|(most, _)| score > most + 1e-9) {
            best = Some((score, name));
        }
    }
    best.map(|(_, name)| name)
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

fn by_pods(scene: &Scene<'_>, pod: &Value, node: &Value) -> f64 {
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
fn spread(scene: &Scene<'_>, pod: &Value, node: &str) -> f64 {
    let owner = &pod["metadata"]["ownerReferences"][0]["uid"];
    if owner.is_null() {
        return 0.0;
    }
    let same = scene.pods_on(node).iter();
    let same = same.filter(|other| other["metadata"]["ownerReferences"][0]["uid"] == *owner);
    #[expect(clippy::cast_precision_loss, reason = "a count of pods")]
    let count = same.count() as f64;
    -count
}

/// How much of a node would be left (`plugins/noderesources/least_allocated.go`).
fn least(scene: &Scene<'_>, pod: &Value, name: &str, node: &Value) -> f64 {
    let (has, taken) = (room::allocatable(node), room::taken(scene.pods_on(name)));
    let wanted = room::requests(pod);
    let left = ["cpu", "memory"].map(|what| {
        let all = has.get(what).copied().unwrap_or(0.0);
        // What asks for nothing counts as a little (`pkg/scheduler/util/pod_resources.go`)
        let used = taken.get(what).unwrap_or(&0.0) + wanted.get(what).unwrap_or(&0.0);
        if all > 0.0 {
            100.0 * (all - used).max(0.0) / all
        } else {
            0.0
        }
    });
    left.iter().sum::<f64>() / 2.0
}
