//! Faults that fit nothing in a topology: they would break nothing, and a healthy cluster would pass for a
//! broken one.

use std::collections::BTreeMap;

use thiserror::Error;

use super::kind::FaultKind;
use super::place::Place;
use super::plan::{FaultPlan, TimedFault};
use crate::topology::{NodeSpec, Os, Pool, Topology};

/// How many nodes of a pool an error names.
const NAMED: usize = 8;

/// Why a fault cannot be in a simulation.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Misfit {
    /// No such node is in its place; the last field lists the nodes there are, by pool.
    #[error("fault `{0}` breaks nothing: no {1} is in `{2}`; there are {3}")]
    Nowhere(String, &'static str, String, String),
    /// It is a fault of the load balancer, and there is none.
    #[error(
        "fault `{0}` breaks nothing: the topology has no load balancer (`load-balancer: true`)"
    )]
    NoLoadBalancer(String),
    /// It is a fault of IPv6, and its place has none.
    #[error(
        "fault `{0}` breaks nothing: neither pods nor kube-proxy have IPv6 on any node in `{1}`; it \
         takes `ip-families: [IPv4, IPv6]`, and on Windows the mode l2bridge and Windows Server 2022 or later"
    )]
    NoIpv6(String, String),
}

impl FaultPlan {
    /// The misfits of these faults with a topology whose nodes' names begin with `prefix`.
    pub fn misfits(&self, topology: &Topology, prefix: &str) -> Vec<Misfit> {
        let nodes: Vec<(String, Pool)> = topology
            .nodes
            .iter()
            .map(|spec| (format!("{prefix}{}", spec.name), spec.pool))
            .collect();
        let misfit = |timed: &TimedFault| {
            misplaced(timed, topology, &nodes).or_else(|| without_ipv6(timed, topology, &nodes))
        };
        self.iter().filter_map(misfit).collect()
    }
}

/// Why no node is in a fault's place.
fn misplaced(timed: &TimedFault, topology: &Topology, nodes: &[(String, Pool)]) -> Option<Misfit> {
    let fault = &timed.fault;
    let balancer = [
        FaultKind::LoadBalancerExhausted,
        FaultKind::LoadBalancerDead,
    ];
    if balancer.contains(&fault.kind) && !topology.load_balancer {
        return Some(Misfit::NoLoadBalancer(fault.to_string()));
    }
    let windows = fault.kind.info().parameter.is_of_windows();
    let on_any = |place: &Place| match place {
        // Namespaces may be created later
        Place::Namespace(_) => true,
        of_nodes => nodes.iter().any(|(name, pool)| {
            of_nodes.has_node(name, *pool) && (!windows || pool.os() == Os::Windows)
        }),
    };
    let mut ends = std::iter::once(&fault.place).chain(&fault.towards);
    let place = ends.find(|place| !on_any(place))?;
    let of = if windows { "Windows node" } else { "node" };
    Some(Misfit::Nowhere(
        fault.to_string(),
        of,
        place.to_string(),
        listed(nodes),
    ))
}

/// Why a fault of IPv6 finds no IPv6 in its place.
fn without_ipv6(
    timed: &TimedFault,
    topology: &Topology,
    nodes: &[(String, Pool)],
) -> Option<Misfit> {
    let (fault, families) = (&timed.fault, topology.ip_families);
    let of_ipv6 = [FaultKind::Ipv6ProxyDead, FaultKind::Ipv6Dropped];
    let mut specs = topology.nodes.iter().zip(nodes);
    let is_lost = |(spec, (name, pool)): (&NodeSpec, &(String, Pool))| {
        fault.place.has_node(name, *pool) && families.have_ipv6_on(*pool, spec.network.mode)
    };
    if !of_ipv6.contains(&fault.kind) || specs.any(is_lost) {
        return None;
    }
    Some(Misfit::NoIpv6(fault.to_string(), fault.place.to_string()))
}

/// Lists the nodes by pool: `linux (node/linux-a), windows-2022 (node/windows-2022-a)`.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{Build, IpFamilies, NetworkMode};

    fn misfits_of(faults: &[&str], topology: &Topology) -> Vec<String> {
        let timed = faults.iter().map(|text| text.parse::<TimedFault>());
        let plan: FaultPlan = timed.map(|fault| fault.expect("a fault")).collect();
        let misfits = plan.misfits(topology, "x-");
        misfits.iter().map(ToString::to_string).collect()
    }

    fn checked(fault: &str, topology: &Topology) -> Result<(), String> {
        misfits_of(&[fault], topology).pop().map_or(Ok(()), Err)
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
        let plan: FaultPlan = std::iter::once(fault).collect();
        assert_eq!(plan.misfits(&linux, ""), []);
    }

    #[test]
    fn a_fault_of_ipv6_is_refused_where_there_is_none() {
        let mut topology = Topology::hybrid();
        let old = NodeSpec::new("windows-2019-a", Pool::Windows(Build::Ws2019));
        topology.nodes.push(old);
        let mut overlay = NodeSpec::new("windows-2025-a", Pool::Windows(Build::Ws2025));
        overlay.network.mode = NetworkMode::Overlay;
        topology.nodes.push(overlay);
        let refused = |fault: &str, topology: &Topology| match checked(fault, topology) {
            Ok(()) => false,
            Err(text) => {
                assert!(text.contains("IPv6 on any node in"), "{text}");
                true
            }
        };
        for fault in ["ipv6-dropped", "ipv6-proxy-dead"] {
            for place in ["", "=all", "=linux", "=windows-2022"] {
                let fault = format!("{fault}{place}");
                topology.ip_families = IpFamilies::IPv4;
                assert!(refused(&fault, &topology), "{fault}");
                topology.ip_families = IpFamilies::DualStack;
                assert!(!refused(&fault, &topology), "{fault}");
            }
            for place in ["windows-2019", "windows-2025", "node/x-windows-2025-a"] {
                assert!(refused(&format!("{fault}={place}"), &topology), "{place}");
            }
            assert!(!refused(&format!("{fault}=windows"), &topology));
            // A fault on an unknown node gives one misfit only
            let told = misfits_of(&[&format!("{fault}=node/y")], &topology);
            assert!(told.len() == 1 && told[0].contains("no node is in"));
        }
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
