//! Preemption (`plugins/defaultpreemption`): pods of lower priority that make room for one. Of
//! disruption budgets nothing is known here.

use serde_json::Value;

use super::{COMPONENT, Fit, Scene, Wanted, filter, priority};
use crate::server::controllers::pods::{is_going, set_condition};
use crate::server::kinds::Kind;
use crate::server::state::State;
use crate::world::Key;

/// What preemption comes to.
pub(super) enum Found {
    /// The pod may not preempt.
    Not(&'static str),
    /// Of so many nodes, none gets better: by its words, how many.
    Nowhere {
        unhelpful: usize,
        in_vain: usize,
    },
    Victims {
        node: String,
        victims: Vec<Value>,
    },
}

impl Found {
    pub(super) fn words(&self) -> String {
        match self {
            Self::Not(why) => format!("not eligible due to {why}."),
            Self::Nowhere { unhelpful, in_vain } => {
                let mut told = Vec::new();
                if *in_vain > 0 {
                    told.push(format!(
                        "{in_vain} No preemption victims found for incoming pod"
                    ));
                }
                if *unhelpful > 0 {
                    told.push(format!(
                        "{unhelpful} Preemption is not helpful for scheduling"
                    ));
                }
                let all = unhelpful + in_vain;
                told.sort();
                format!("0/{all} nodes are available: {}.", told.join(", "))
            }
            Self::Victims { node, victims } => format!(
                "found a potential placement for pod on node {node}, preempting {} victims",
                victims.len()
            ),
        }
    }
}

pub(super) fn find(scene: &Scene, wanted: &Wanted<'_>, looked: &[Fit]) -> Found {
    let pod = wanted.pod;
    if pod["spec"]["preemptionPolicy"] == "Never" {
        return Found::Not("preemptionPolicy=Never");
    }
    let lower = |other: &&Value| priority(other) < priority(pod);
    if let Some(node) = pod["status"]["nominatedNodeName"].as_str() {
        let own = scene.at(node).map(|at| &scene.places[at].pods);
        let own = own.into_iter().flatten().map(AsRef::as_ref);
        if own.filter(lower).any(is_going) {
            return Found::Not("a terminating pod on the nominated node");
        }
    }
    let mut best: Option<(i64, usize, String, Vec<Value>)> = None;
    let (mut unhelpful, mut in_vain) = (0, 0);
    for (place, rejection) in scene.places.iter().zip(looked) {
        let resolvable = rejection
            .as_ref()
            .is_err_and(|rejection| rejection.resolvable);
        if !resolvable {
            unhelpful += 1;
            continue;
        }
        let own = place.pods.iter().map(AsRef::as_ref);
        let mut gone: Vec<&Value> = own.filter(lower).collect();
        if gone.is_empty() || filter::check(scene, wanted, place, &gone).is_err() {
            in_vain += 1;
            continue;
        }
        // As many as can stay do, the most important ones first
        gone.sort_by_key(|other| std::cmp::Reverse(priority(other)));
        for other in gone.clone() {
            let rest: Vec<&Value> = gone
                .iter()
                .copied()
                .filter(|one| !std::ptr::eq(*one, other))
                .collect();
            if filter::check(scene, wanted, place, &rest).is_ok() {
                gone = rest;
            }
        }
        let highest = gone
            .iter()
            .map(|other| priority(other))
            .max()
            .unwrap_or(i64::MIN);
        let better = best
            .as_ref()
            .is_none_or(|(least, count, ..)| (highest, gone.len()) < (*least, *count));
        if better {
            let victims = gone.iter().map(|other| (*other).clone()).collect();
            best = Some((highest, gone.len(), place.name.clone(), victims));
        }
    }
    match best {
        Some((_, _, node, victims)) => Found::Victims { node, victims },
        None => Found::Nowhere { unhelpful, in_vain },
    }
}

/// Has the victims go.
pub(super) fn remove(state: &mut State, pod: &Value, node: &str, victims: &[Value]) {
    let uid = pod["metadata"]["uid"].as_str().unwrap_or_default();
    for victim in victims {
        let text = |field: &str| victim["metadata"][field].as_str().unwrap_or_default();
        let key = Key::new(text("namespace"), text("name"));
        state.edit("pods", &key, |victim| {
            let message = format!("{COMPONENT}: preempting to accommodate a higher priority pod");
            set_condition(
                &mut victim["status"],
                "DisruptionTarget",
                "True",
                "PreemptionByScheduler",
                &message,
            );
        });
        state.discard("pods", &key);
        let message = format!("Preempted by pod {uid} on node {node}");
        state.tell(
            COMPONENT,
            (Kind::named("pods"), victim),
            ("Normal", "Preempted", &message),
        );
    }
}
