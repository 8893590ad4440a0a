//! The faults of a simulation: whether they are on its nodes, and when they come and go.

use std::collections::BTreeMap;
use std::time::Duration;

use super::JoinError;
use crate::cluster::Cluster;
use crate::fault::{FaultKind, FaultPlan, Place};
use crate::topology::{Os, Pool, Topology};

/// How many nodes of a pool are named to whoever named none of them.
const NAMED: usize = 8;

/// Refuses a fault that is on no node of a topology: it would break nothing, and a healthy cluster
/// would pass for a broken one.
pub(super) fn check(plan: &FaultPlan, topology: &Topology, prefix: &str) -> Result<(), JoinError> {
    let nodes: Vec<(String, Pool)> = topology
        .nodes
        .iter()
        .map(|spec| (format!("{prefix}{}", spec.name), spec.pool))
        .collect();
    for timed in plan.iter() {
        let fault = &timed.fault;
        let balancer = [
            FaultKind::LoadBalancerExhausted,
            FaultKind::LoadBalancerDead,
        ];
        if balancer.contains(&fault.kind) && !topology.load_balancer {
            return Err(JoinError::NoLoadBalancer(fault.to_string()));
        }
        let windows = fault.kind.info().parameter.is_of_windows();
        let on_any = |place: &Place| match place {
            // Namespaces come and go
            Place::Namespace(_) => true,
            of_nodes => nodes.iter().any(|(name, pool)| {
                of_nodes.has_node(name, *pool) && (!windows || pool.os() == Os::Windows)
            }),
        };
        let mut ends = std::iter::once(&fault.place).chain(&fault.towards);
        if let Some(place) = ends.find(|place| !on_any(place)) {
            return Err(JoinError::FaultNowhere {
                fault: fault.to_string(),
                place: place.to_string(),
                os: if windows { "Windows node" } else { "node" },
                nodes: listed(&nodes),
            });
        }
    }
    Ok(())
}

/// The nodes by their pools: `linux (node/linux-a), windows-2022 (node/windows-2022-a)`.
fn listed(nodes: &[(String, Pool)]) -> String {
    let mut pools: BTreeMap<Pool, Vec<String>> = BTreeMap::new();
    for (name, pool) in nodes {
        pools.entry(*pool).or_default().push(format!("node/{name}"));
    }
    let pools = pools.into_iter().map(|(pool, mut names)| {
        let more = names.len().saturating_sub(NAMED);
        names.truncate(NAMED);
        if more > 0 {
            names.push(format!("{more} more"));
        }
        format!("{pool} ({})", names.join(", "))
    });
    pools.collect::<Vec<_>>().join(", ")
}

/// Sets and lifts faults at their moments.
pub(super) async fn go_by(cluster: &Cluster, plan: &FaultPlan) {
    let mut passed = Duration::ZERO;
    for (moment, fault, sets) in plan.later() {
        cluster.clock.pass(moment.saturating_sub(passed)).await;
        passed = moment;
        if sets {
            cluster.faults.set(fault);
        } else {
            cluster.faults.lift(&fault);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::TimedFault;
    use crate::topology::NodeSpec;

    fn checked(fault: &str, topology: &Topology) -> Result<(), String> {
        let timed: TimedFault = fault.parse().expect(fault);
        let plan = std::iter::once(timed).collect();
        check(&plan, topology, "x-").map_err(|error| error.to_string())
    }

    #[test]
    fn a_fault_on_no_node_is_refused_with_the_nodes_there_are() {
        let hybrid = Topology::hybrid();
        assert_eq!(
            checked("dns-down=node/linux-a@30s", &hybrid),
            Err(
                "fault `dns-down=node/linux-a` breaks nothing: no node is in `node/linux-a`; there are \
                 linux (node/x-linux-a), windows-2022 (node/x-windows-2022-a)"
                    .to_owned()
            )
        );
        let refused = |fault: &str, says: &str| {
            let text = checked(fault, &hybrid).expect_err(fault);
            assert!(text.contains(says), "{text}");
        };
        refused("kube-proxy-dead=windows-2019", "in `windows-2019`;");
        refused("traffic-cut=node/typo:linux", "in `node/typo`;");
        refused("traffic-cut=linux:windows-2025", "in `windows-2025`;");
        refused("untainted=node/x-linux-a", "no Windows node is in");
        for fault in [
            "dns-down",
            "dns-down=windows",
            "untainted",
            "dns-down=node/x-linux-a",
            "traffic-cut=linux:node/x-windows-2022-a",
        ] {
            assert_eq!(checked(fault, &hybrid), Ok(()));
        }
    }

    #[test]
    fn a_fault_of_windows_is_refused_where_there_is_none() {
        let mut linux = Topology::hybrid();
        linux.nodes.retain(|node| node.pool == Pool::Linux);
        for fault in ["untainted", "dns-down=windows"] {
            let text = checked(fault, &linux).expect_err(fault);
            assert!(text.contains("there are linux (node/x-linux-a)"), "{text}");
        }
        linux.nodes.clear();
        assert!(checked("dns-down", &linux).is_err());
        let fault = FaultKind::PullFails.on(Place::Namespace("any".to_owned()));
        let plan = std::iter::once(fault).collect();
        assert!(check(&plan, &linux, "").is_ok());
    }

    #[test]
    fn of_many_nodes_some_are_named() {
        let mut many = Topology::hybrid();
        let nodes = (0..10).map(|number| NodeSpec::new(format!("l{number}"), Pool::Linux));
        many.nodes = nodes.collect();
        let text = checked("dns-down=windows", &many).expect_err("no Windows");
        assert!(text.ends_with("node/x-l7, 2 more)"), "{text}");
    }
}
