//! What a node has left: processors, memory, ports, places.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Place, Wanted};
use crate::base::fields::Fields;
use crate::pods::spec::resources::amount;

/// How much of what.
pub(super) type Amounts = BTreeMap<String, f64>;

/// Adds some to others.
pub(super) fn add(to: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        match to.get_mut(name) {
            Some(sum) => *sum += amount,
            None => drop(to.insert(name.clone(), *amount)),
        }
    }
}

fn amounts(value: &Value) -> Amounts {
    let amounts = value.fields();
    amounts
        .filter_map(|(name, value)| Some((name.clone(), amount(value.as_str()?)?)))
        .collect()
}

/// What a pod asks for: its containers together, or the largest that runs before them, and its
/// overhead.
pub(super) fn requests(pod: &Value) -> Amounts {
    let spec = &pod["spec"];
    let of = |list: &str| {
        let containers = spec[list].items();
        containers.map(|one| amounts(&one["resources"]["requests"]))
    };
    let mut all = Amounts::new();
    of("containers").for_each(|own| add(&mut all, &own));
    for (name, amount) in of("initContainers").flatten() {
        let most = all.entry(name).or_default();
        *most = most.max(amount);
    }
    add(&mut all, &amounts(&spec["overhead"]));
    all
}

pub(super) fn allocatable(node: &Value) -> Amounts {
    amounts(&node["status"]["allocatable"])
}

/// What a node lacks for a pod, in the words of `plugins/noderesources/fit.go`, as if some pods were
/// not there.
pub(super) fn missing(wanted: &Wanted<'_>, place: &Place, without: &[&Value]) -> Vec<String> {
    // Of sums of decimal fractions
    const NEAR: f64 = 1e-6;
    let mut freed = Amounts::new();
    for gone in without {
        add(&mut freed, &requests(gone));
    }
    let of = |amounts: &Amounts, name: &str| amounts.get(name).copied().unwrap_or(0.0);
    let mut missing = Vec::new();
    #[expect(clippy::cast_precision_loss, reason = "a count of pods")]
    let places = (place.pods.len() - without.len() + 1) as f64;
    let has = &place.allocatable;
    if has.get("pods").is_none_or(|most| places > *most) {
        missing.push("Too many pods".to_owned());
    }
    for (name, wanted) in &wanted.requests {
        let left = of(has, name) - of(&place.taken, name) + of(&freed, name);
        if *wanted > 0.0 && *wanted > left + NEAR {
            missing.push(format!("Insufficient {name}"));
        }
    }
    missing
}

/// The ports of the node that a pod takes.
pub(super) fn ports(pod: &Value) -> impl Iterator<Item = (&Value, &str)> {
    let containers = pod["spec"]["containers"].items();
    let ports = containers.flat_map(|one| one["ports"].items());
    let taken = ports.filter(|port| port["hostPort"].number() > 0);
    taken.map(|port| {
        let protocol = port["protocol"].as_str().unwrap_or("TCP");
        (&port["hostPort"], protocol)
    })
}

pub(super) fn ports_are_free<'a>(
    pod: &Value,
    own: &(impl Iterator<Item = &'a Value> + Clone),
) -> bool {
    ports(pod).all(|wanted| {
        let mut others = own.clone();
        !others.any(|other| ports(other).any(|taken| taken == wanted))
    })
}
