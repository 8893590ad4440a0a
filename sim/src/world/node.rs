//! A node, its addresses and its pods' addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::topology::{Build, IpFamilies, NetworkSpec, Pool};

/// A node of this simulator.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) pool: Pool,
    pub(crate) address: Ipv4Addr,
    /// Its IPv6 address, in a cluster with IPv6. Nothing on this machine listens there.
    pub(crate) address6: Option<Ipv6Addr>,
    pub(crate) families: IpFamilies,
    /// The port on which its kubelet serves.
    pub(crate) kubelet_port: u16,
    /// The first three bytes of its pods' IPv4 addresses.
    pub(crate) pod_network: [u8; 3],
    /// How its pods are connected; on Linux `L2Bridge` means plain routing, and `Overlay` means VXLAN.
    pub(crate) network: NetworkSpec,
    /// The revision of its Windows build; 0 on Linux.
    pub(crate) revision: u32,
    /// Whether it has booted since it joined.
    pub(crate) has_booted: bool,
}

impl Node {
    /// Creates a node with the default pod network.
    pub(crate) fn new(
        pool: Pool,
        address: impl Into<Ipv4Addr>,
        kubelet_port: u16,
        pod_network: [u8; 3],
    ) -> Self {
        let revision = |build: Build| build.kernel_version().rsplit_once('.')?.1.parse().ok();
        Self {
            pool,
            address: address.into(),
            address6: None,
            families: IpFamilies::default(),
            kubelet_port,
            pod_network,
            network: NetworkSpec::default(),
            revision: pool.build().and_then(revision).unwrap_or(0),
            has_booted: false,
        }
    }

    /// The node with the pod network that a topology gives it.
    pub(crate) fn connected(self, network: NetworkSpec) -> Self {
        Self { network, ..self }
    }

    /// The node with addresses of these families. The ranges lie beside kind's, which are `fd00:10:244::/56`
    /// for pods and `fd00:10:96::/112` for Services (pkg/apis/config/v1alpha4/default.go).
    pub(crate) fn of_families(self, families: IpFamilies) -> Self {
        let [a, b, c, d] = self.address.octets().map(u16::from);
        let address6 = Ipv6Addr::new(0xfd00, 0x10, 0, 0, 0, 0, a << 8 | b, c << 8 | d);
        Self {
            address6: (families == IpFamilies::DualStack).then_some(address6),
            families,
            ..self
        }
    }

    /// Its addresses, that of IPv4 first.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        both(self.address, self.address6)
    }

    /// The addresses of a pod on this node by its IPv4 address, reported or not, in the order of the node's
    /// addresses (kubelet, `sortPodIPs`).
    pub(crate) fn addresses_of(&self, address: Ipv4Addr) -> impl Iterator<Item = IpAddr> {
        both(address, self.address6_of(address))
    }

    /// Its address of the same family as `other`.
    pub(crate) fn like(&self, other: IpAddr) -> Option<IpAddr> {
        let mut addresses = self.addresses();
        addresses.find(|address| address.is_ipv6() == other.is_ipv6())
    }

    /// Its pods' networks, as in `spec.podCIDRs`. kube-controller-manager gives each node a /24 and a /64
    /// (`--node-cidr-mask-size-ipv4`, `--node-cidr-mask-size-ipv6`), whatever the node does with them.
    pub(crate) fn pod_cidrs(&self) -> Vec<String> {
        let [a, b, c] = self.pod_network;
        let second = self.address6.map(|_| self.in_pod_network6(0));
        let second = second.map(|network| format!("{network}/64"));
        let first = format!("{a}.{b}.{c}.0/24");
        std::iter::once(first).chain(second).collect()
    }

    /// An address in the /64 that belongs to this node's /24.
    fn in_pod_network6(&self, last: u8) -> Ipv6Addr {
        let [_, b, c] = self.pod_network.map(u16::from);
        Ipv6Addr::new(0xfd00, 0x10, 0x244, b << 8 | c, 0, 0, 0, last.into())
    }

    /// Whether an address lies in one of its pods' networks.
    pub(crate) fn is_around(&self, address: IpAddr) -> bool {
        match address {
            IpAddr::V4(address) => address.octets()[..3] == self.pod_network,
            IpAddr::V6(address) => {
                let network = self.in_pod_network6(0).segments();
                self.has_ipv6() && address.segments()[..4] == network[..4]
            }
        }
    }

    /// Whether its pods and its kube-proxy have IPv6.
    pub(crate) fn has_ipv6(&self) -> bool {
        self.families.have_ipv6_on(self.pool, self.network.mode)
    }

    /// Whether its kube-proxy forwards Services of the family of an address.
    pub(crate) fn forwards(&self, address: IpAddr) -> bool {
        address.is_ipv4() || self.has_ipv6()
    }

    /// A pod's IPv6 address by its IPv4 address: the node's own for a pod on the node's network.
    pub(crate) fn address6_of(&self, address: Ipv4Addr) -> Option<Ipv6Addr> {
        if address == self.address {
            return self.address6;
        }
        let [.., last] = address.octets();
        self.has_ipv6().then(|| self.in_pod_network6(last))
    }
}

/// An address of IPv4, and that of IPv6 if there is one.
pub(super) fn both(four: Ipv4Addr, six: Option<Ipv6Addr>) -> impl Iterator<Item = IpAddr> {
    std::iter::once(IpAddr::from(four)).chain(six.map(IpAddr::from))
}
