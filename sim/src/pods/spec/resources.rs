//! Requests and limits of pods: amounts, sums, and the `qosClass` that follows from them.

use k8s_openapi::api::core::v1::{Container, PodSpec, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

/// A quantity in thousandths of its unit, rounded up as the API server does.
pub(crate) fn milli(quantity: &Quantity) -> Option<i128> {
    thousandths(&quantity.0)
}

/// A quantity in its unit (processors, bytes).
pub(crate) fn amount(text: &str) -> Option<f64> {
    thousandths(text).map(in_units)
}

/// Converts thousandths of a unit to units.
#[expect(clippy::cast_precision_loss, reason = "no node has so much")]
pub(crate) fn in_units(thousandths: i128) -> f64 {
    thousandths as f64 / 1000.0
}

/// The stated request or limit of one resource, in thousandths of its unit; `None` if it is 0.
pub(crate) fn stated(
    resources: Option<&ResourceRequirements>,
    limits: bool,
    name: &str,
) -> Option<i128> {
    let resources = resources?;
    let amounts = match limits {
        true => resources.limits.as_ref(),
        false => resources.requests.as_ref(),
    };
    let amount = amounts?.get(name).and_then(milli);
    amount.filter(|amount| *amount > 0)
}

fn thousandths(text: &str) -> Option<i128> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '+' | '-')));
    let (number, suffix) = text.split_at(end.unwrap_or(text.len()));
    let (factor, divisor): (i128, i128) = match suffix {
        "" => (1000, 1),
        "m" => (1, 1),
        "u" => (1, 1000),
        "n" => (1, 1_000_000),
        "k" => (1_000_000, 1),
        "M" => (1_000_000_000, 1),
        "G" => (1_000_000_000_000, 1),
        "T" => (1_000_000_000_000_000, 1),
        "Ki" => (1000 << 10, 1),
        "Mi" => (1000 << 20, 1),
        "Gi" => (1000 << 30, 1),
        "Ti" => (1000 << 40, 1),
        exponent => {
            let exponent: u32 = exponent.strip_prefix(['e', 'E'])?.parse().ok()?;
            (1000 * 10_i128.checked_pow(exponent.min(18))?, 1)
        }
    };
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let digits = u32::try_from(part.len())
        .ok()
        .filter(|digits| *digits <= 9)?;
    let scale = 10_i128.pow(digits);
    let number: i128 = format!("{whole}{part}").parse().ok()?;
    let exact = number.checked_mul(factor)?;
    let below = scale * divisor;
    Some(exact.div_euclid(below) + i128::from(exact.rem_euclid(below) != 0))
}

/// How much of one resource a pod requests, in thousandths: the sum of its containers and sidecars,
/// or what its largest init container needs beside the sidecars before it, plus the overhead
/// (`component-helpers/resource/helpers.go`, `PodRequests`).
pub(crate) fn requested(spec: &PodSpec, resource: &str) -> i128 {
    let request = |of: Option<&_>| stated(of, false, resource).unwrap_or(0);
    let asks = |container: &Container| request(container.resources.as_ref());
    let overhead = spec.overhead.as_ref().and_then(|map| map.get(resource));
    let overhead = overhead.and_then(milli).unwrap_or(0);
    let pods_own = spec.resources.as_ref();
    let requests = pods_own.and_then(|map| map.requests.as_ref());
    if requests.is_some_and(|map| map.contains_key(resource)) {
        return request(pods_own) + overhead;
    }
    let (mut sidecars, mut peak) = (0, 0);
    for container in spec.init_containers.iter().flatten() {
        if container.restart_policy.as_deref() == Some("Always") {
            sidecars += asks(container);
            peak = peak.max(sidecars);
        } else {
            peak = peak.max(sidecars + asks(container));
        }
    }
    let together: i128 = spec.containers.iter().map(asks).sum();
    peak.max(sidecars + together) + overhead
}

/// A pod's `qosClass` (kubernetes 1.37.0, `pkg/apis/core/v1/helper/qos/qos.go`, `ComputePodQOS`).
pub(crate) fn qos_class(spec: &PodSpec) -> &'static str {
    let pods_own = spec.resources.as_ref();
    let containers = spec.containers.iter();
    let lists: Vec<Option<&ResourceRequirements>> = match pods_own {
        Some(set) => vec![Some(set)],
        None => containers
            .chain(spec.init_containers.iter().flatten())
            .map(|container| container.resources.as_ref())
            .collect(),
    };
    let computed = ["cpu", "memory"];
    let any = lists.iter().any(|each| {
        let of = |name: &&str| stated(*each, true, name).or(stated(*each, false, name));
        computed.iter().any(|name| of(name).is_some())
    });
    let guaranteed = lists.iter().all(|each| {
        computed.iter().all(|name| {
            let limit = stated(*each, true, name);
            limit.is_some() && stated(*each, false, name).is_none_or(|given| Some(given) == limit)
        })
    });
    match (any, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn spec(value: Value) -> PodSpec {
        serde_json::from_value(value).expect("a spec")
    }

    #[test]
    fn quantities_are_read_in_thousandths() {
        let read = |text: &str| milli(&Quantity(text.to_owned()));
        for (text, thousandths) in [
            ("250m", 250),
            ("1", 1000),
            ("0.5", 500),
            ("1Ki", 1_024_000),
            ("1e3", 1_000_000),
            ("100n", 1),
            ("1.5Gi", 1_610_612_736_000),
        ] {
            assert_eq!(read(text), Some(thousandths), "{text}");
        }
        for text in ["", "Ki", "1x", "1.2.3", "--1"] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn init_containers_count_where_they_need_more() {
        let asks = |cpu: &str| json!({"requests": {"cpu": cpu}});
        let pod = spec(json!({
            "initContainers": [
                {"name": "s", "restartPolicy": "Always", "resources": asks("100m")},
                {"name": "i", "resources": asks("2")},
            ],
            "containers": [{"name": "a", "resources": asks("500m")}],
            "overhead": {"cpu": "50m"},
        }));
        assert_eq!(requested(&pod, "cpu"), 2150);
        assert_eq!(requested(&pod, "memory"), 0);
    }

    #[test]
    fn classes() {
        let class = |resources: Value| {
            qos_class(&spec(
                json!({"containers": [{"name": "a", "resources": resources}]}),
            ))
        };
        let both = json!({"cpu": "1", "memory": "1Gi"});
        assert_eq!(class(json!({})), "BestEffort");
        assert_eq!(class(json!({"limits": both})), "Guaranteed");
        assert_eq!(
            class(json!({"limits": both, "requests": both})),
            "Guaranteed"
        );
        assert_eq!(class(json!({"limits": {"cpu": "1"}})), "Burstable");
        assert_eq!(class(json!({"requests": both})), "Burstable");
    }
}
