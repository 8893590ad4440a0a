//! What a node has left: processors, memory, ports, places.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::quantity::amount;

type Amounts = BTreeMap<String, f64>;

fn amounts(value: &Value) -> Amounts {
    let fields = value.as_object().into_iter().flatten();
    fields
        .filter_map(|(name, value)| Some((name.clone(), amount(value.as_str()?)?)))
        .collect()
}

/// What a pod asks for: its containers together, or the largest that runs before them, and its
/// overhead.
pub(super) fn requests(pod: &Value) -> Amounts {
    let of = |list: &str| -> Vec<Amounts> {
        let containers = pod["spec"][list].as_array();
        containers
            .into_iter()
            .flatten()
            .map(|one| amounts(&one["resources"]["requests"]))
            .collect()
    };
    let mut all = Amounts::new();
    for own in of("containers") {
        for (name, amount) in own {
            *all.entry(name).or_default() += amount;
        }
    }
    for own in of("initContainers") {
        for (name, amount) in own {
            let most = all.entry(name).or_default();
            *most = most.max(amount);
        }
    }
    for (name, amount) in amounts(&pod["spec"]["overhead"]) {
        *all.entry(name).or_default() += amount;
    }
    all
}

/// What is taken of a node by its pods.
pub(super) fn taken(pods: &[&Value]) -> Amounts {
    let mut all = Amounts::new();
    for pod in pods {
        for (name, amount) in requests(pod) {
            *all.entry(name).or_default() += amount;
        }
    }
    all
}

pub(super) fn allocatable(node: &Value) -> Amounts {
    amounts(&node["status"]["allocatable"])
}

/// What a node lacks for a pod, in the words of `plugins/noderesources/fit.go`.
pub(super) fn missing(pod: &Value, node: &Value, own: &[&Value]) -> Vec<String> {
    // Of sums of decimal fractions
    const NEAR: f64 = 1e-6;
    let (has, taken) = (allocatable(node), taken(own));
    let mut missing = Vec::new();
    #[expect(clippy::cast_precision_loss, reason = "a count of pods")]
    let places = (own.len() + 1) as f64;
    if has.get("pods").is_none_or(|most| places > *most) {
        missing.push("Too many pods".to_owned());
    }
    for (name, wanted) in requests(pod) {
        let left = has.get(&name).unwrap_or(&0.0) - taken.get(&name).unwrap_or(&0.0);
        if wanted > 0.0 && wanted > left + NEAR {
            missing.push(format!("Insufficient {name}"));
        }
    }
    missing
}

/// The ports of the node that a pod takes.
fn ports(pod: &Value) -> impl Iterator<Item = (&Value, &str)> {
    let containers = pod["spec"]["containers"].as_array();
    let ports = containers
        .into_iter()
        .flatten()
        .filter_map(|one| one["ports"].as_array())
        .flatten();
    ports
        .filter(|port| port["hostPort"].as_u64().is_some_and(|number| number > 0))
        .map(|port| {
            (
                &port["hostPort"],
                port["protocol"].as_str().unwrap_or("TCP"),
            )
        })
}

pub(super) fn ports_are_free(pod: &Value, own: &[&Value]) -> bool {
    ports(pod).all(|wanted| {
        !own.iter()
            .any(|other| ports(other).any(|taken| taken == wanted))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn asks(cpu: &str, port: u16) -> Value {
        json!({"spec": {"containers": [{"resources": {"requests": {"cpu": cpu}},
            "ports": [{"hostPort": port, "protocol": "TCP"}]}]}})
    }

    #[test]
    fn what_is_taken_is_not_left() {
        let node = json!({"status": {"allocatable": {"cpu": "1", "pods": "2"}}});
        let (small, large) = (asks("100m", 80), asks("900m", 81));
        assert_eq!(missing(&large, &node, &[&small]), Vec::<String>::new());
        assert_eq!(
            missing(&large, &node, &[&small, &small]),
            ["Too many pods", "Insufficient cpu"]
        );
        assert!(!ports_are_free(&small, &[&large, &small]) && ports_are_free(&small, &[&large]));
        let gpu = json!({"spec": {"containers": [{"resources": {"requests": {"gpu": "1"}}}]}});
        assert_eq!(missing(&gpu, &node, &[]), ["Insufficient gpu"]);
    }
}
