//! Settings of the simulated cluster's network that no API object holds.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

use crate::topology::SecurityGroup;

/// Namespace and name of the Service that is the cluster's DNS, as kubeadm and most vendors, RKE2 and `OpenShift`
/// call it.
pub(crate) const CLUSTER_DNS: [(&str, &str); 3] = [
    ("kube-system", "kube-dns"),
    ("kube-system", "rke2-coredns-rke2-coredns"),
    ("openshift-dns", "dns-default"),
];

/// Whether a Service is the cluster's DNS.
pub(crate) fn is_cluster_dns(namespace: &str, name: &str) -> bool {
    CLUSTER_DNS.contains(&(namespace, name))
}

/// A server outside the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outside {
    /// Its names, without a dot at the end.
    pub(crate) names: Vec<String>,
    pub(crate) address: IpAddr,
    pub(crate) tcp: BTreeSet<u16>,
    pub(crate) udp: BTreeSet<u16>,
}

/// Settings for the whole cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Network {
    /// The cluster's DNS domain.
    pub(crate) domain: String,
    pub(crate) outside: Vec<Outside>,
    /// Whether they answer pings.
    pub(crate) outside_pings: bool,
    pub(crate) between_nodes: Option<SecurityGroup>,
    /// The address from which the outside client connects.
    pub(crate) client: Ipv4Addr,
    /// The nodes' own name server, which knows outside names only.
    pub(crate) nodes_resolver: IpAddr,
}

impl Default for Network {
    /// The outside servers are those that upstream's tests ask (Kubernetes,
    /// `test/e2e/windows/hybrid_network.go`: 8.8.8.8:53 and www.google.com), those that Windows asks to
    /// detect internet access (Microsoft, NCSI), Cloudflare's resolver, example.com, and a server of shares. The web
    /// servers, that of shares and the client have addresses from RFC 5737.
    fn default() -> Self {
        let outside = |names: &[&str], address: [u8; 4], tcp: &[u16], udp: &[u16]| Outside {
            names: names.iter().map(|&name| name.to_owned()).collect(),
            address: address.into(),
            tcp: tcp.iter().copied().collect(),
            udp: udp.iter().copied().collect(),
        };
        Self {
            domain: "cluster.local".to_owned(),
            outside: vec![
                outside(&["dns.google"], [8, 8, 8, 8], &[53, 443], &[53]),
                outside(&["one.one.one.one"], [1, 1, 1, 1], &[53, 80, 443], &[53]),
                outside(
                    &["www.msftconnecttest.com"],
                    [203, 0, 113, 20],
                    &[80, 443],
                    &[],
                ),
                outside(&["files.corp.example"], [203, 0, 113, 45], &[445], &[]),
                outside(&["www.google.com"], [203, 0, 113, 10], &[80, 443], &[]),
                outside(
                    &["www.example.com", "example.com"],
                    [203, 0, 113, 80],
                    &[80, 443],
                    &[],
                ),
            ],
            outside_pings: true,
            between_nodes: None,
            client: [198, 51, 100, 7].into(),
            nodes_resolver: [8, 8, 8, 8].into(),
        }
    }
}
