//! What a run requests from a cluster, by the manifests of its plan's fixtures.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde_json::Value as Json;
use winconform_core::config::Config;
use winconform_core::facts::{Facts, Os, PoolName, WorkloadsFact};
use winconform_core::fixture::is_host_process;
use winconform_core::method::Quantity;
use winconform_core::plan::{Plan, PoolCost, pulls};

use super::fixtures::load::is_bound_to_none;
use super::fixtures::manifest;
use super::fixtures::runtime_class::{self, chosen};
use super::scheduler::room::ALIVE;
use crate::cluster::objects::status::requested;

/// Whether a pod has an address of its own, and what it requests of processor and memory.
type Asked = (bool, [Quantity; 2]);

/// What the pods of a plan request from the nodes of each pool. Pods that a controller replaces count once. `stay`
/// says that all pods stay until the end.
pub fn cost(
    plan: &Plan,
    facts: &Facts,
    config: &Config,
    stay: bool,
) -> BTreeMap<PoolName, PoolCost> {
    let pools = facts.pools();
    // A run whose RuntimeClass is missing does not begin
    let class = chosen(config, facts).ok().flatten();
    let overhead = |resource| {
        let class = class.as_ref()?;
        Quantity::parse(class.overhead.get(resource)?)
    };
    let overhead = ["cpu", "memory"].map(|it| overhead(it).unwrap_or(Quantity::ZERO));
    let mut costs = BTreeMap::<_, PoolCost>::new();
    let mut each = BTreeMap::<_, Vec<Asked>>::new();
    // Of those that are only placed, one at a time may come to a Linux node
    if plan.fixtures().iter().any(|key| key.name.needs_linux())
        && pools.contains_key(&PoolName::linux())
    {
        each.insert(PoolName::linux(), vec![(true, [Quantity::ZERO; 2])]);
    }
    for key in plan.fixtures() {
        let Some((name, pool)) = key.pool.as_ref().and_then(|name| pools.get_key_value(name))
        else {
            continue;
        };
        let pool = manifest::nodes_for(key.name, pool, config.limits.nodes_observed_from);
        let (images, durations) = (&config.images, &config.durations);
        // A fixture without an image has no objects
        let objects = manifest::objects(&key, "r", Some(&pool), images, durations);
        let cost = costs.entry(name.clone()).or_default();
        for mut object in objects.unwrap_or_default() {
            let replicas = object["spec"]["replicas"].as_u64().unwrap_or(1);
            let Some(spec) = manifest::pod_spec(&mut object) else {
                continue;
            };
            if key.name.is_aimed() {
                cost.placed += replicas;
                if stay && !is_bound_to_none(&object) {
                    let each = each.entry(name.clone()).or_default();
                    each.extend((0..replicas).map(|_| (true, [Quantity::ZERO; 2])));
                }
                continue;
            }
            let containers = spec["containers"].as_array().into_iter().flatten();
            let overhead = runtime_class::is_for(key.name).then_some(overhead);
            let requests: Vec<_> = containers.map(requests).chain(overhead).collect();
            cost.add_pods(replicas, requests.iter().copied());
            let sum = requests.into_iter().fold([Quantity::ZERO; 2], add);
            let pod = (!is_host_process(spec), sum);
            let each = each.entry(name.clone()).or_default();
            each.extend((0..replicas).map(|_| pod));
        }
    }
    for (name, pods) in each {
        let (Some(pool), Some(cost)) = (pools.get(&name), costs.get_mut(&name)) else {
            continue;
        };
        // Nothing limits how many are on Linux nodes at once, and most stay until late
        let most = (pool.os == Os::Windows && !stay).then_some(pool.nodes.len());
        cost.at_once = at_once(pods, most);
    }
    for (name, pulls) in pulls(plan, facts, &config.images) {
        let cost = costs.entry(name).or_default();
        cost.add_pulls(&pulls);
    }
    costs
}

/// What the largest of these pods request that can exist at once on so many nodes; what all request, if they stay.
fn at_once(pods: Vec<Asked>, nodes: Option<usize>) -> BTreeMap<&'static str, Quantity> {
    let (mut own, host): (Vec<_>, Vec<_>) = pods.into_iter().partition(|(own, _)| *own);
    own.sort_by_key(|(_, [_, memory])| Reverse(*memory));
    if let Some(nodes) = nodes {
        own.truncate(nodes * usize::try_from(ALIVE).unwrap_or(usize::MAX));
    }
    let count = |pods: usize| Quantity::ONE.times(pods as u64);
    let all = own.iter().chain(&host).map(|(_, requests)| *requests);
    let [cpu, memory] = all.fold([Quantity::ZERO; 2], add);
    let (pods, addresses) = (count(own.len() + host.len()), count(own.len()));
    let needed = [
        ("pods", pods),
        (WorkloadsFact::ADDRESS, addresses),
        ("cpu", cpu),
        ("memory", memory),
    ];
    needed.into()
}

fn add(sum: [Quantity; 2], more: [Quantity; 2]) -> [Quantity; 2] {
    [sum[0].plus(more[0]), sum[1].plus(more[1])]
}

/// The processor and memory that a container requests.
fn requests(container: &Json) -> [Quantity; 2] {
    ["cpu", "memory"].map(|resource| requested(container, resource))
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
