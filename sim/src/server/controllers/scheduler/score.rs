//! Which of the nodes that take a pod is best: the weights of the default profile.

use serde_json::Value;

use super::affinity::{is_about, is_together};
use super::room::Amounts;
use super::{Fit, Place, Scene, Wanted};
use crate::base::fields::Fields;
use crate::nodes::placing::{is_of_term, tolerated};

const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// The scores of a node: one per plugin, and how much of the node would stay free.
#[derive(Debug)]
pub(super) struct Scores {
    /// The scores of `NodeAffinity`, `InterPodAffinity`, `TaintToleration` and `PodTopologySpread`.
    raw: [f64; 4],
    least: f64,
}

impl Scores {
    pub(super) fn for_place(scene: &Scene, wanted: &Wanted<'_>, place: &Place) -> Self {
        let (pod, node) = (wanted.pod, &*place.node);
        Self {
            raw: [
                by_node(pod, node),
                by_pods(scene, pod, node),
                by_taints(pod, place),
                spread(place, pod),
            ],
            least: least(place, wanted),
        }
    }
}

/// Returns the best node; of equally good ones, the first by name, where a real scheduler takes a random one.
pub(super) fn best(scene: &Scene, pod: &Value, fits: &[Fit]) -> Option<usize> {
    let nominated = pod["status"]["nominatedNodeName"].as_str();
    let nominated = nominated.and_then(|name| scene.position_of(name));
    if let Some(at) = nominated.filter(|at| fits[*at].is_ok()) {
        return Some(at);
    }
    let indexed = fits.iter().enumerate();
    let fit = indexed.filter_map(|(at, fit)| Some((at, fit.as_ref().ok()?)));
    // NodeAffinity 2, InterPodAffinity 2, TaintToleration 3, PodTopologySpread 2
    let mut weights = [2.0, 2.0, 3.0, 2.0].map(|weight| (weight, 0.0));
    for (_, scores) in fit.clone() {
        for ((_, most), score) in weights.iter_mut().zip(scores.raw) {
            *most = f64::max(*most, score.abs());
        }
    }
    let mut best: Option<(f64, usize)> = None;
    for (at, scores) in fit {
        let normal = scores.raw.iter().zip(weights);
        let normal = normal.map(|(score, (weight, most))| match most > 0.0 {
            true => weight * 100.0 * score / most,
            false => 0.0,
        });
        let score = normal.sum::<f64>() + scores.least;
        if best.is_none_or(|(most, _)| score > most + 1e-9) {
            best = Some((score, at));
        }
    }
    best.map(|(_, at)| at)
}

/// Counts pods or taints.
#[expect(clippy::cast_precision_loss, reason = "there are few")]
fn count(items: impl Iterator) -> f64 {
    items.count() as f64
}

fn weight(term: &Value) -> f64 {
    term["weight"].as_f64().unwrap_or(0.0)
}

fn by_node(pod: &Value, node: &Value) -> f64 {
    let terms = pod["spec"]["affinity"]["nodeAffinity"][PREFERRED].items();
    let hold = terms.filter(|term| is_of_term(&term["preference"], node));
    hold.map(weight).sum()
}

fn by_pods(scene: &Scene, pod: &Value, node: &Value) -> f64 {
    let of = |kind: &str, sign: f64| -> f64 {
        let terms = pod["spec"]["affinity"][kind][PREFERRED].items();
        let sums = terms.map(|weighted| {
            let term = &weighted["podAffinityTerm"];
            let near = scene.placed().filter(|(other, there)| {
                is_about(term, pod, other) && is_together(term, there, node)
            });
            sign * weight(weighted) * count(near)
        });
        sums.sum()
    };
    of("podAffinity", 1.0) + of("podAntiAffinity", -1.0)
}

/// Scores a node by its taints `PreferNoSchedule`.
fn by_taints(pod: &Value, place: &Place) -> f64 {
    if place.open {
        return 0.0;
    }
    let taints = place.node["spec"]["taints"].items();
    let soft = taints.filter(|taint| taint["effect"] == "PreferNoSchedule");
    let unwelcome = soft.filter(|taint| !tolerated(pod, taint));
    -count(unwelcome)
}

/// The UID of a pod's first owner.
fn owner_of(pod: &Value) -> Option<&str> {
    pod["metadata"]["ownerReferences"][0]["uid"].as_str()
}

/// Spreads the pods of one owner over nodes (`plugins/podtopologyspread`, `systemDefaultConstraints`).
fn spread(place: &Place, pod: &Value) -> f64 {
    let Some(owner) = owner_of(pod) else {
        return 0.0;
    };
    let pods = place.pods.iter();
    let same = pods.filter(|other| owner_of(other) == Some(owner));
    -count(same)
}

/// How much of a node would stay free (`plugins/noderesources/least_allocated.go`).
fn least(place: &Place, wanted: &Wanted<'_>) -> f64 {
    let left = ["cpu", "memory"].map(|what| {
        let of = |amounts: &Amounts| amounts.get(what).copied().unwrap_or(0.0);
        let total = of(&place.allocatable);
        // Unlike `pkg/scheduler/util/pod_resources.go`: a pod without requests counts as nothing
        let used = of(&place.taken) + of(&wanted.requests);
        match total > 0.0 {
            true => 100.0 * (total - used).max(0.0) / total,
            false => 0.0,
        }
    });
    left.iter().sum::<f64>() / 2.0
}
