//! Facts as tests write them: by the values that differ from the usual ones.

use serde_json::{Map, Value as Json, json};

use super::{Facts, LoadBalancerFact, WorkloadsFact};

/// Facts with these values by name; a value `{unknown: {reason}}` is an unknown fact.
pub(crate) fn facts(values: &Map<String, Json>) -> Facts {
    let usual = json!({
        "cni": {"product": "", "mode": null, "vxlan": null, "signs": []},
        "dns": {"service": "", "addresses": [], "endpoints": []},
        "load-balancer": LoadBalancerFact::default(),
        "workloads": WorkloadsFact::default(),
    });
    let node = json!({"name": "n", "os": "linux", "build": null, "usable": true, "taints": [],
        "details": {"kubelet": "v1.37.0", "runtime": "containerd://2.1.0"}});
    let fact = |(name, value): (&String, &Json)| {
        let value = match value {
            known if known.get("unknown").is_some() => return (name.clone(), known.clone()),
            Json::Array(nodes) if name == "nodes" => {
                nodes.iter().map(|one| over(&node, one)).collect()
            }
            other => over(&usual[name], other),
        };
        (
            name.clone(),
            json!({"fact": {"value": value, "source": "/"}}),
        )
    };
    let facts: Map<_, _> = values.iter().map(fact).collect();
    serde_json::from_value(facts.into()).expect("facts")
}

/// The usual value with these fields replaced.
fn over(usual: &Json, value: &Json) -> Json {
    match (usual, value) {
        (Json::Object(usual), Json::Object(value)) => {
            let mut fields = usual.clone();
            for (key, value) in value {
                let field = over(usual.get(key).unwrap_or(&Json::Null), value);
                fields.insert(key.clone(), field);
            }
            fields.into()
        }
        _ => value.clone(),
    }
}
