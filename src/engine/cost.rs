//! What a run requests from a cluster, by the manifests of its plan's fixtures.

use std::collections::BTreeMap;

use serde_json::Value as Json;
use winconform_core::config::Config;
use winconform_core::facts::{Facts, PoolName};
use winconform_core::method::Quantity;
use winconform_core::plan::{Plan, PoolCost, pulls};

use super::fixtures::manifest;

/// What the pods of a plan request from the nodes of each pool. Pods that a controller replaces count once.
pub fn cost(plan: &Plan, facts: &Facts, config: &Config) -> BTreeMap<PoolName, PoolCost> {
    let pools = facts.pools();
    let mut costs = BTreeMap::<_, PoolCost>::new();
    for key in plan.fixtures() {
        let Some((name, pool)) = key.pool.as_ref().and_then(|name| pools.get_key_value(name))
        else {
            continue;
        };
        let pool = manifest::nodes_for(key.name, pool, config.limits.nodes_observed_from);
        let (images, durations) = (&config.images, &config.durations);
        // A fixture without an image has no objects
        let objects = manifest::objects(&key, "r", Some(&pool), images, durations, Some(""));
        let cost = costs.entry(name.clone()).or_default();
        for mut object in objects.unwrap_or_default() {
            let replicas = object["spec"]["replicas"].as_u64().unwrap_or(1);
            let Some(spec) = manifest::pod_spec(&mut object) else {
                continue;
            };
            if key.name.is_aimed() {
                cost.placed += replicas;
                continue;
            }
            let containers = spec["containers"].as_array();
            cost.add_pods(replicas, containers.into_iter().flatten().map(requests));
        }
    }
    for (name, pulls) in pulls(plan, facts, &config.images) {
        let cost = costs.entry(name).or_default();
        cost.add_pulls(&pulls);
    }
    costs
}

/// The processor and memory that a container requests.
fn requests(container: &Json) -> [Quantity; 2] {
    let requests = &container["resources"]["requests"];
    ["cpu", "memory"].map(|resource| {
        let amount = requests[resource].as_str().and_then(Quantity::parse);
        amount.unwrap_or(Quantity::ZERO)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_without_requests_asks_for_nothing() {
        let container = serde_json::json!({"resources": {"requests": {"cpu": "10m"}}});
        let [cpu, memory] = requests(&container).map(|amount| amount.to_string());
        assert_eq!((cpu.as_str(), memory.as_str()), ("10m", "0"));
    }
}
