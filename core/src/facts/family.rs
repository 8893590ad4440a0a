//! The families of IP addresses that a cluster has.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::cluster::Facts;
use super::network::CniMode;

/// A family of IP addresses.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum IpFamily {
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
}

impl IpFamily {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Ipv4, Self::Ipv6];

    /// The family of an address.
    pub fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(_) => Self::Ipv4,
            IpAddr::V6(_) => Self::Ipv6,
        }
    }

    /// The family's word, in lower case as names of objects need it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ipv4 => "ipv4",
            Self::Ipv6 => "ipv6",
        }
    }

    /// The family of an address or a network as it is written.
    fn of_written(text: &str) -> Self {
        match text.contains(':') {
            true => Self::Ipv6,
            false => Self::Ipv4,
        }
    }

    fn other(self) -> Self {
        match self {
            Self::Ipv4 => Self::Ipv6,
            Self::Ipv6 => Self::Ipv4,
        }
    }
}

impl fmt::Display for IpFamily {
    /// As in `spec.ipFamilies` of a Service.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ipv4 => "IPv4",
            Self::Ipv6 => "IPv6",
        })
    }
}

impl Facts {
    /// The second family of a cluster whose pods have two, by its own signs: `spec.podCIDRs` of a
    /// node, the addresses of the cluster's DNS, or those of pods on Windows nodes. `None` without
    /// any: that nodes themselves have addresses of both says nothing of pods.
    pub fn second_family(&self) -> Option<IpFamily> {
        let nodes = self.nodes.value()?;
        let dns = self.dns.value().and_then(Option::as_ref);
        let of_dns = dns.map(|dns| dns.addresses.as_slice());
        let lists = nodes.iter().map(|node| node.details.pod_cidrs.as_slice());
        let lists: Vec<_> = lists.chain(of_dns).collect();
        let families =
            |list: &[String]| list.iter().map(|text| IpFamily::of_written(text)).collect();
        let lists = lists.into_iter().map(families);
        let lists: Vec<Vec<IpFamily>> = lists.filter(|list: &Vec<_>| !list.is_empty()).collect();
        let two = |list: &Vec<IpFamily>| IpFamily::ALL.iter().all(|family| list.contains(family));
        if let Some(both) = lists.iter().find(|list| two(list)) {
            return Some(both[0].other());
        }
        let workloads = self.workloads.value();
        let of_pods = workloads.is_some_and(|found| found.windows_families.contains_key(BOTH));
        if !of_pods {
            return None;
        }
        let mut addresses = nodes.iter().flat_map(|node| &node.details.addresses);
        let of_node = || {
            let internal = addresses.find(|(kind, _)| kind == "InternalIP");
            internal.map(|(_, address)| IpFamily::of_written(address))
        };
        let first = lists.first().map(|list| list[0]).or_else(of_node);
        first.map(IpFamily::other)
    }

    /// Why Windows pods have no addresses of a family, where that is documented: "Overlay (VXLAN)
    /// networks on Windows do not support dual-stack networking" (Kubernetes, IPv4/IPv6 dual-stack).
    /// Where the mode is not known their addresses tell.
    pub fn without_family(&self, family: IpFamily) -> Option<String> {
        let cni = self.cni.value().and_then(Option::as_ref)?;
        let none = family == IpFamily::Ipv6 && cni.mode == Some(CniMode::Overlay);
        let product = &cni.product;
        none.then(|| format!("{product} is in mode overlay, in which Windows has no {family}"))
    }
}

/// How `windows_families` names pods with addresses of both.
const BOTH: &str = "ipv4,ipv6";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{ClusterDns, Known, NodeDetails, NodeFact, Os, WorkloadsFact};

    fn known<T>(value: T) -> Known<T> {
        Known::Fact {
            value,
            source: "/".to_owned(),
        }
    }

    fn texts(list: &[&str]) -> Vec<String> {
        list.iter().map(|&text| text.to_owned()).collect()
    }

    /// A cluster of one node that has these podCIDRs and addresses.
    fn facts(pod_cidrs: &[&str], addresses: &[&str]) -> Facts {
        let internal = addresses.iter();
        let internal = internal.map(|&at| ("InternalIP".to_owned(), at.to_owned()));
        let node = NodeFact {
            name: "n".to_owned(),
            os: Os::Linux,
            build: None,
            usable: true,
            taints: Vec::new(),
            details: NodeDetails {
                pod_cidrs: texts(pod_cidrs),
                addresses: internal.collect(),
                ..NodeDetails::default()
            },
        };
        Facts {
            nodes: known(vec![node]),
            ..Facts::default()
        }
    }

    fn with_pods(facts: Facts, families: &str) -> Facts {
        let workloads = WorkloadsFact {
            windows_families: [(families.to_owned(), 1)].into(),
            ..WorkloadsFact::default()
        };
        Facts {
            workloads: known(workloads),
            ..facts
        }
    }

    #[test]
    fn the_second_family_follows_the_first() {
        let (four, six) = ("10.0.0.0/24", "fd00::/64");
        assert_eq!(
            facts(&[four, six], &[]).second_family(),
            Some(IpFamily::Ipv6)
        );
        assert_eq!(
            facts(&[six, four], &[]).second_family(),
            Some(IpFamily::Ipv4)
        );
        let mut of_dns = facts(&[], &[]);
        of_dns.dns = known(Some(ClusterDns {
            service: "kube-system/kube-dns".to_owned(),
            addresses: texts(&["10.96.0.10", "fd00::a"]),
            endpoints: Vec::new(),
        }));
        assert_eq!(of_dns.second_family(), Some(IpFamily::Ipv6));
        let of_pods = with_pods(facts(&[], &["10.1.0.1"]), BOTH);
        assert_eq!(of_pods.second_family(), Some(IpFamily::Ipv6));
        let of_pods = with_pods(facts(&[six], &["10.1.0.1"]), BOTH);
        assert_eq!(of_pods.second_family(), Some(IpFamily::Ipv4));
    }

    #[test]
    fn without_a_sign_of_two_there_is_no_second() {
        for one in [
            facts(&["10.0.0.0/24"], &["10.1.0.1", "fd01::1"]),
            facts(&["fd00::/64"], &[]),
            with_pods(facts(&["10.0.0.0/24"], &[]), "ipv4"),
            // Which is the first nobody says
            with_pods(facts(&[], &[]), BOTH),
            Facts::default(),
        ] {
            assert_eq!(one.second_family(), None, "{one:?}");
        }
    }
}
