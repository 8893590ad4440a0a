//! The nodes of a simulated cluster, with their operating systems and builds, and what is around them.

mod api;
mod named;

pub use api::{ApiSpec, Effect};
pub use named::NamedTopology;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::world::Protocol;

/// The kernel of the Linux nodes.
pub(crate) const LINUX_KERNEL: &str = "6.12.48+deb13-amd64";

/// The nodes that a simulator joins to a cluster; each has a /24 of pod addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// The nodes, in the order of their pod networks.
    pub nodes: Vec<NodeSpec>,
    /// The families of the addresses of nodes, pods and Services.
    pub ip_families: IpFamilies,
    /// Whether servers outside the cluster answer.
    pub outside: bool,
    /// Whether they answer pings.
    pub outside_pings: bool,
    /// What nodes and their pods may send to other nodes and their pods; `None` means everything.
    pub between_nodes: Option<SecurityGroup>,
    /// Whether Services of type LoadBalancer get addresses, at which outside clients reach them.
    pub load_balancer: bool,
    /// What an embedded API server has and does beside the nodes; another API server has its own.
    pub api: ApiSpec,
}

/// The ports to which a security group lets packets pass between nodes. It lets no ping pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SecurityGroup {
    /// First and last TCP ports.
    pub tcp: Vec<(u16, u16)>,
    /// First and last UDP ports.
    pub udp: Vec<(u16, u16)>,
}

impl SecurityGroup {
    /// That of terraform-aws-modules/eks: DNS, and TCP from port 1025 on (`node_groups.tf`,
    /// `ingress_self_coredns_*` and `ingress_nodes_ephemeral`; issue 2513).
    pub(crate) fn of_terraform_eks() -> Self {
        Self {
            tcp: vec![(53, 53), (1025, 65535)],
            udp: vec![(53, 53)],
        }
    }

    /// Whether packets of a protocol pass to a port.
    pub(crate) fn passes(&self, protocol: Protocol, port: u16) -> bool {
        let ranges = match protocol {
            Protocol::Tcp => &self.tcp,
            Protocol::Udp => &self.udp,
            Protocol::Icmp => return false,
        };
        let mut ranges = ranges.iter();
        ranges.any(|(first, last)| (*first..=*last).contains(&port))
    }
}

impl Topology {
    /// The most nodes that one simulator can have: each needs a listener and a /24 of pod addresses from the
    /// 32768 in 10.128.0.0/9.
    pub const MOST_NODES: usize = 2000;

    /// The most nodes in memory, where a listener is no socket.
    pub const MOST_IN_MEMORY: usize = 20_000;

    /// The topology of these nodes, with nothing special around them.
    pub fn of(nodes: Vec<NodeSpec>) -> Self {
        Self {
            nodes,
            ip_families: IpFamilies::default(),
            outside: true,
            outside_pings: true,
            between_nodes: None,
            load_balancer: false,
            api: ApiSpec::default(),
        }
    }

    /// The topology of one Linux node and one of Windows Server 2022.
    pub fn hybrid() -> Self {
        Self::of(vec![
            NodeSpec::new("linux-a", Pool::Linux),
            NodeSpec::new("windows-2022-a", Pool::Windows(Build::Ws2022)),
        ])
    }

    /// The pools of its nodes, in the order of their first nodes.
    pub fn pools(&self) -> Vec<Pool> {
        let mut pools = Vec::new();
        for spec in &self.nodes {
            if !pools.contains(&spec.pool) {
                pools.push(spec.pool);
            }
        }
        pools
    }

    /// The topology with this number of nodes, spread evenly over its pools and named after them; the first
    /// pools get the rest of the division. The nodes of a pool copy its existing nodes in turn.
    #[must_use]
    pub fn of_nodes(&self, count: usize) -> Self {
        let pools = self.pools();
        let each = |(at, pool): (usize, &Pool)| {
            let pool = *pool;
            let specs: Vec<_> = self.nodes.iter().filter(|spec| spec.pool == pool).collect();
            let share = count / pools.len() + usize::from(at < count % pools.len());
            let like = specs.into_iter().cycle().take(share).enumerate();
            let named = like.map(|(index, like)| NodeSpec {
                name: format!("{pool}-{}", letters(index)),
                ..like.clone()
            });
            named.collect::<Vec<_>>()
        };
        Self {
            nodes: pools.iter().enumerate().flat_map(each).collect(),
            ..self.clone()
        }
    }
}

/// The letters of a number: `a` to `z`, then `aa` and so on.
pub fn letters(index: usize) -> String {
    let last = char::from(b'a' + u8::try_from(index % 26).unwrap_or(0));
    match index / 26 {
        0 => last.to_string(),
        before => letters(before - 1) + &last.to_string(),
    }
}

/// The families of a cluster's addresses. IPv4 comes first: nodes serve on loopback, where IPv6 has a single
/// address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IpFamilies {
    /// `[IPv4]`.
    #[default]
    IPv4,
    /// `[IPv4, IPv6]`.
    DualStack,
}

impl IpFamilies {
    /// Whether pods and kube-proxy have IPv6 on a node. On Windows only l2bridge has dual stack
    /// (dual-stack.md, "Windows support"; on overlay kube-proxy falls back to a single stack,
    /// `DualStackCompatible` in pkg/proxy/winkernel/proxier.go), and HNS has it from 11.10 (hcsshim,
    /// hcn/hcnglobals.go), which is later than the 9 of Windows Server 2019, although windows-networking.md
    /// names that build.
    pub(crate) fn have_ipv6_on(self, pool: Pool, mode: NetworkMode) -> bool {
        let windows = |build| build >= Build::Ws2022 && mode == NetworkMode::L2Bridge;
        self == Self::DualStack && pool.build().is_none_or(windows)
    }
}

/// One node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSpec {
    /// The node's name, a DNS label.
    pub name: String,
    /// Its operating system and build.
    pub pool: Pool,
    /// The number of its processors.
    pub cpus: u32,
    /// Its memory in MiB.
    pub memory: u32,
    /// Labels beyond those of every node of its pool, which they may replace.
    pub labels: BTreeMap<String, String>,
    /// Annotations beyond those that a kubelet sets.
    pub annotations: BTreeMap<String, String>,
    /// Its taints; `None` means those of every node of its pool.
    pub taints: Option<Vec<TaintSpec>>,
    /// The runtime handlers beyond those of every node of its pool.
    pub handlers: Vec<String>,
    /// The handlers that it reports in `status.runtimeHandlers`, the empty one for the default; none means those of
    /// every node of its pool, and `handlers`.
    pub reported_handlers: Vec<String>,
    /// Its container runtime and the version of that, as the kubelet reports them.
    pub runtime: String,
    /// The version of its kubelet; `None` means the API server's.
    pub kubelet: Option<String>,
    /// How many pods it takes.
    pub pods: u32,
    /// Resources beyond those of every node, such as addresses, with their amounts.
    pub resources: BTreeMap<String, u32>,
    /// What it says instead of running a pod, if it is the face of a service without nodes.
    pub stand_in: Option<String>,
    /// How its pods are connected.
    pub network: NetworkSpec,
}

impl NodeSpec {
    /// Whether its runtime is CRI-O.
    pub(crate) fn is_crio(&self) -> bool {
        self.runtime.starts_with("cri-o://")
    }

    /// Creates a default node, with 4 processors and 16 GiB.
    pub fn new(name: impl Into<String>, pool: Pool) -> Self {
        Self {
            name: name.into(),
            pool,
            cpus: 4,
            memory: 16 * 1024,
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            taints: None,
            handlers: Vec::new(),
            reported_handlers: Vec::new(),
            runtime: "containerd://2.1.0".to_owned(),
            kubelet: None,
            pods: 110,
            resources: BTreeMap::new(),
            stand_in: None,
            network: NetworkSpec::default(),
        }
    }
}

/// A taint of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaintSpec {
    /// The key.
    pub key: String,
    /// The value, which may be empty.
    pub value: String,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub effect: String,
}

/// How a node's pods are connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a property of its own"
)]
pub struct NetworkSpec {
    /// How HNS connects a Windows node's pods.
    pub mode: NetworkMode,
    /// Whether kube-proxy runs with `--enable-dsr` on Windows, so that backends answer clients directly.
    pub dsr: bool,
    /// Whether the CNI enforces `NetworkPolicies`.
    pub policies: bool,
    /// Whether the CNI supports `hostPort`, as plugins from 0.8.6 with the capability `portMappings` do
    /// (Microsoft, common-problems.md).
    pub host_ports: bool,
    /// Whether a Windows node leads its `NodePort`s to pods of other nodes.
    pub forwards_node_ports: bool,
}

impl Default for NetworkSpec {
    fn default() -> Self {
        Self {
            mode: NetworkMode::default(),
            dsr: false,
            policies: false,
            host_ports: true,
            forwards_node_ports: true,
        }
    }
}

/// How HNS connects a Windows node's pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum NetworkMode {
    /// `win-bridge`: nodes route to each other's pods.
    #[default]
    L2Bridge,
    /// `win-overlay`: VXLAN between nodes.
    Overlay,
    /// Pods have addresses of the nodes' network, unaltered.
    Transparent,
}

impl NetworkMode {
    /// All modes.
    pub const ALL: [Self; 3] = [Self::L2Bridge, Self::Overlay, Self::Transparent];
}

/// The operating systems of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Os {
    /// Linux.
    Linux,
    /// Windows Server.
    Windows,
}

impl Os {
    /// The value of the label `kubernetes.io/os` and of `spec.os.name`.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// The builds of Windows Server that run containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Build {
    /// Windows Server 2019.
    Ws2019,
    /// Windows Server 2022.
    Ws2022,
    /// Windows Server 2025.
    Ws2025,
}

impl Build {
    /// All builds, oldest first.
    pub const ALL: [Self; 3] = [Self::Ws2019, Self::Ws2022, Self::Ws2025];

    /// The year of the product.
    pub fn year(self) -> u16 {
        match self {
            Self::Ws2019 => 2019,
            Self::Ws2022 => 2022,
            Self::Ws2025 => 2025,
        }
    }

    /// The value of the label `node.kubernetes.io/windows-build`.
    pub fn label(self) -> String {
        let version = self.kernel_version().rsplit_once('.');
        version.map_or("", |(build, _)| build).to_owned()
    }

    /// The kernel version that a node of this build reports: build and patch revision.
    pub fn kernel_version(self) -> &'static str {
        match self {
            Self::Ws2019 => "10.0.17763.6414",
            Self::Ws2022 => "10.0.20348.2762",
            Self::Ws2025 => "10.0.26100.1742",
        }
    }
}

/// The nodes of one operating system and one build; a fault may have a pool as its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pool {
    /// The Linux nodes.
    Linux,
    /// The Windows nodes of one build.
    Windows(Build),
}

impl Pool {
    /// The pool's operating system.
    pub fn os(self) -> Os {
        match self {
            Self::Linux => Os::Linux,
            Self::Windows(_) => Os::Windows,
        }
    }

    /// The pool's Windows build; `None` for Linux.
    pub fn build(self) -> Option<Build> {
        match self {
            Self::Linux => None,
            Self::Windows(build) => Some(build),
        }
    }
}

impl fmt::Display for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Linux => f.write_str("linux"),
            Self::Windows(build) => write!(f, "windows-{}", build.year()),
        }
    }
}

impl FromStr for Pool {
    type Err = UnknownPool;

    fn from_str(text: &str) -> Result<Self, UnknownPool> {
        [Self::Linux]
            .into_iter()
            .chain(Build::ALL.map(Self::Windows))
            .find(|pool| pool.to_string() == text)
            .ok_or_else(|| UnknownPool(text.to_owned()))
    }
}

/// A text that names no pool.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no pool is called `{0}`; there are linux, windows-2019, windows-2022 and windows-2025")]
pub struct UnknownPool(String);

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn topologies_have_names_of_their_own() {
        let names: BTreeSet<_> = NamedTopology::ALL.iter().map(|known| known.name).collect();
        assert_eq!(names.len(), NamedTopology::ALL.len());
        let far: Vec<_> = [0, 25, 26, 51, 52, 701, 702].map(letters).into();
        assert_eq!(far, ["a", "z", "aa", "az", "ba", "zz", "aaa"]);
    }

    #[test]
    fn a_security_group_lets_ports_pass_and_no_ping() {
        let group = SecurityGroup::of_terraform_eks();
        let passes = |protocol, port| group.passes(protocol, port);
        assert!(passes(Protocol::Tcp, 8080) && passes(Protocol::Udp, 53));
        assert!(!passes(Protocol::Tcp, 80) && !passes(Protocol::Udp, 8081));
        assert!(!passes(Protocol::Icmp, 0));
    }

    #[test]
    fn pools_read_as_they_print() {
        for pool in [
            Pool::Linux,
            Pool::Windows(Build::Ws2019),
            Pool::Windows(Build::Ws2025),
        ] {
            assert_eq!(pool.to_string().parse(), Ok(pool));
        }
        assert_eq!(
            "windows".parse::<Pool>(),
            Err(UnknownPool("windows".to_owned()))
        );
    }

    #[test]
    fn nodes_are_spread_over_the_pools() {
        let builds = Build::ALL.map(Pool::Windows);
        let pools = [Pool::Linux].into_iter().chain(builds);
        let topology = Topology::of(
            pools
                .map(|pool| NodeSpec::new(format!("{pool}-a"), pool))
                .collect(),
        );
        assert_eq!(topology.of_nodes(4), topology);
        let pools = |topology: &Topology| -> Vec<usize> {
            let of = |pool| topology.nodes.iter().filter(move |spec| spec.pool == pool);
            topology
                .pools()
                .into_iter()
                .map(|pool| of(pool).count())
                .collect()
        };
        assert_eq!(pools(&topology.of_nodes(10)), [3, 3, 2, 2]);
        assert_eq!(topology.of_nodes(0).nodes, []);
        let mut uneven = Topology::hybrid();
        uneven.nodes[0].cpus = 64;
        uneven.load_balancer = true;
        let many = uneven.of_nodes(100);
        assert!(many.load_balancer && many.nodes[..50].iter().all(|spec| spec.cpus == 64));
        let names: BTreeSet<_> = many.nodes.iter().map(|spec| &spec.name).collect();
        assert_eq!((names.len(), pools(&many)), (100, vec![50, 50]));
    }
}
