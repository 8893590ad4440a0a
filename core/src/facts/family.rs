//! The families of IP addresses that a cluster has.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

use super::cluster::Facts;
use super::known::Known;
use super::network::CniMode;

#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
#[derive(IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum IpFamily {
    Ipv4,
    Ipv6,
}

crate::text::words!(IpFamily);

impl IpFamily {
    pub fn from_address(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(_) => Self::Ipv4,
            IpAddr::V6(_) => Self::Ipv6,
        }
    }

    /// The family of an address or a network as it is written.
    pub(crate) fn of_written(text: &str) -> Self {
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

/// Whether the pods of a cluster have addresses of a second family.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum SecondFamily {
    /// There is no sign of one.
    None,
    Is(IpFamily),
    /// The facts do not say.
    Unknown {
        /// The second family if there is one: IPv6, unless a fact says that IPv6 is the first.
        would_be: IpFamily,
        /// What could not be read, and why.
        reason: String,
    },
}

impl SecondFamily {
    /// The family that checks are planned in: an unknown second family has checks, too, and they are
    /// inconclusive.
    pub fn perhaps(&self) -> Option<IpFamily> {
        match self {
            Self::None => None,
            Self::Is(family)
            | Self::Unknown {
                would_be: family, ..
            } => Some(*family),
        }
    }
}

impl Facts {
    /// The second family of a cluster whose pods have two, by the cluster's own signs: `spec.podCIDRs` of a
    /// node, the addresses of its DNS, or those of pods on Windows nodes. Addresses of both families on the
    /// nodes themselves say nothing of pods. Without these signs there is no second family if pods could be
    /// read, and the cluster's DNS or podCIDRs of one family, too. Where pods could not be read, there is
    /// none only where podCIDRs decide.
    pub fn second_family(&self) -> SecondFamily {
        let unread = |what: &str, reason: &str| format!("{what}: {reason}");
        let unknown = |first: Option<IpFamily>, reason: String| SecondFamily::Unknown {
            would_be: first.map_or(IpFamily::Ipv6, IpFamily::other),
            reason,
        };
        let nodes = self.nodes.value().map(Vec::as_slice).unwrap_or_default();
        let dns = self.dns.value().and_then(Option::as_ref);
        let of_dns = dns.map(|dns| dns.addresses.as_slice());
        let of_nodes = nodes.iter().map(|node| node.details.pod_cidrs.as_slice());
        let of_nodes = of_nodes.filter(|list| !list.is_empty());
        let families =
            |list: &[String]| list.iter().map(|text| IpFamily::of_written(text)).collect();
        let given: Vec<Vec<_>> = of_nodes.map(families).collect();
        let lists: Vec<_> = given.iter().cloned().chain(of_dns.map(families)).collect();
        let two = |list: &&Vec<IpFamily>| IpFamily::ALL.iter().all(|family| list.contains(family));
        if let Some(both) = lists.iter().find(two) {
            return SecondFamily::Is(both[0].other());
        }
        let mut addresses = nodes.iter().flat_map(|node| &node.details.addresses);
        let of_node = || {
            let internal = addresses.find(|(kind, _)| kind == "InternalIP");
            internal.map(|(_, address)| IpFamily::of_written(address))
        };
        let of_lists = lists.iter().find_map(|list| list.first().copied());
        let first = of_lists.or_else(of_node);
        let workloads = self.workloads.value();
        let both = workloads.is_some_and(|known| known.windows_families.contains_key(BOTH));
        if let (true, Some(first)) = (both, first) {
            return SecondFamily::Is(first.other());
        }
        if let Known::Unknown { reason } = &self.nodes {
            return unknown(first, unread("nodes", reason));
        }
        match (&self.workloads, &self.dns) {
            _ if both => unknown(None, "no node tells which of two is the first".to_owned()),
            (Known::Unknown { reason }, _) => {
                match self.pod_cidrs_decide() && given.len() == nodes.len() {
                    true => SecondFamily::None,
                    false => unknown(first, unread("pods", reason)),
                }
            }
            (Known::Fact { .. }, Known::Unknown { reason }) if given.is_empty() => {
                unknown(first, unread("the cluster's DNS", reason))
            }
            (Known::Fact { .. }, _) => SecondFamily::None,
        }
    }

    /// Whether pods have addresses of their nodes' podCIDRs and no others: Flannel takes them from there
    /// (flannel, `pkg/subnet/kube/kube.go`), while plugins that divide their own networks ignore podCIDRs
    /// (Calico, "Get started with IP address management"; Azure CNI, Amazon VPC CNI). A single family of the
    /// cluster's own Services decides nothing: where pods have two, a Service still has one unless its
    /// `ipFamilyPolicy` asks for more (Kubernetes, IPv4/IPv6 dual-stack).
    fn pod_cidrs_decide(&self) -> bool {
        let cni = self.cni.value().and_then(Option::as_ref);
        cni.is_some_and(|cni| cni.product == FLANNEL)
    }

    /// Why Windows pods have no addresses of a family, where that is documented: "Overlay (VXLAN) networks on
    /// Windows do not support dual-stack networking" (Kubernetes, IPv4/IPv6 dual-stack), and Calico has no
    /// IPv6 there in any mode (Calico, limitations of Calico for Windows). Elsewhere a missing address of a
    /// family that pods should have is an error.
    pub fn without_family(&self, family: IpFamily) -> Option<String> {
        let cni = self.cni.value().and_then(Option::as_ref)?;
        let product = &cni.product;
        match family {
            IpFamily::Ipv6 if cni.mode == Some(CniMode::Overlay) => Some(format!(
                "{product} is in mode overlay, in which Windows has no {family}"
            )),
            IpFamily::Ipv6 if product == CALICO => {
                Some(format!("{product} gives Windows no {family}"))
            }
            IpFamily::Ipv4 | IpFamily::Ipv6 => None,
        }
    }
}

/// Network plugins, as the facts name them.
const CALICO: &str = "calico";
const FLANNEL: &str = "flannel";

/// How `windows_families` names pods with addresses of both families.
const BOTH: &str = "ipv4,ipv6";

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value as Json};

    use super::super::values;
    use crate::rows::listed;

    #[test]
    fn the_second_family_is_told_by_the_signs_of_it() {
        let rows: Vec<Map<String, Json>> = listed(include_str!("family.yaml"));
        for mut row in rows {
            let second = row.remove("second").expect("what it is");
            let told = format!("{:?}", values::facts(&row).second_family());
            assert_eq!(told, second, "{row:?}");
        }
    }
}
