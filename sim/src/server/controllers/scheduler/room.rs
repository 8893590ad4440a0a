//! The free resources of a node: processors, memory, ports, and places for pods.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Place, Wanted};
use crate::base::fields::Fields;
use crate::pods::spec::resources::amount;

/// Amounts by resource.
pub(super) type Amounts = BTreeMap<String, f64>;

/// Adds the amounts in `more` to those in `to`.
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

/// A pod's requests: the sum of its containers, or its largest init container if that needs more,
/// plus the overhead.
pub(super) fn requests(pod: &Value) -> Amounts {
    let spec = &pod["spec"];
    let of = |list: &str| {
        let containers = spec[list].items();
        containers.map(|one| amounts(&one["resources"]["requests"]))
    };
    let mut sums = Amounts::new();
    of("containers").for_each(|one| add(&mut sums, &one));
    for (name, amount) in of("initContainers").flatten() {
        let most = sums.entry(name).or_default();
        *most = most.max(amount);
    }
    add(&mut sums, &amounts(&spec["overhead"]));
    sums
}

pub(super) fn allocatable(node: &Value) -> Amounts {
    amounts(&node["status"]["allocatable"])
}

/// What a node lacks for a pod, in the messages of `plugins/noderesources/fit.go`, as if the pods
/// in `without` were gone.
pub(super) fn missing(wanted: &Wanted<'_>, place: &Place, without: &[&Value]) -> Vec<String> {
    // The tolerance for sums of decimal fractions
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

/// The host ports of a pod, with their protocols.
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
    placed: &(impl Iterator<Item = &'a Value> + Clone),
) -> bool {
    ports(pod).all(|wanted| {
        let mut others = placed.clone();
        !others.any(|other| ports(other).any(|taken| taken == wanted))
    })
}
