//! Connections to a Service: to its virtual address or its load balancer's, and the choice of a backend.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::{Backend, Flow, Outcome, Protocol};
use crate::fault::FaultKind;
use crate::topology::{Build, NetworkMode, Os};
use crate::world::{Endpoint, Key, Node, Service, ServicePort};

/// Windows user guide, windows-networking.md: Windows supports no more backends per Service than this.
const MOST_BACKENDS: usize = 1024;

/// Microsoft, common-problems.md, "Load balancers are plumbed inconsistently": HNS reserves a block of 64
/// ephemeral ports for each load balancer without DSR; 49152 to 65535 hold this many blocks.
const PORT_BLOCKS: usize = 256;

/// Whether HNS runs out of ports: the same page says that KB4551853, which is 17763.1217, reserves fewer.
fn runs_out_of_ports(node: &Node) -> bool {
    let old = node.pool.build() == Some(Build::Ws2019) && node.revision < 1217;
    old && !node.network.dsr
}

impl<'a> Flow<'a> {
    pub(super) fn to_service(self, key: &Key, service: &Service) -> Outcome {
        let Some((name, node)) = self.node else {
            return self.through_load_balancer(key, service);
        };
        let request = self.request;
        let virtual_address = service.addresses.contains(&request.to);
        let captive = virtual_address && request.protocol == Protocol::Tcp;
        if captive && self.world.faults.any(FaultKind::ServiceAnswersWrong) {
            return Outcome::WrongAnswer;
        }
        let os = node.pool.os();
        if self.request.protocol == Protocol::Icmp {
            // acs-engine issue 572: the virtual address answers pings from a Windows pod, whatever its ports
            // do; an iptables kube-proxy assigns it to no interface
            return if os == Os::Windows && self.pod.is_some() {
                self.answered(Backend::Echo)
            } else {
                Outcome::TimedOut
            };
        }
        if self.is_unproxied(name) {
            return Outcome::TimedOut;
        }
        if self.is_host() && os == Os::Windows {
            if virtual_address && self.world.suffers(FaultKind::NodeServiceIpResets, name) {
                return Outcome::Reset;
            }
            // Windows user guide: "Windows container hosts are not able to access the IP of services
            // scheduled on them"; the debug page (debug/windows.md) says so of any Service, and this model
            // follows it
            let lifted = [
                FaultKind::NodeServiceIpAnswers,
                FaultKind::RemoteServiceIpAnswers,
            ];
            let is_lifted = lifted
                .into_iter()
                .any(|kind| self.world.suffers(kind, name));
            if !virtual_address || !is_lifted {
                return Outcome::TimedOut;
            }
        }
        let Some(port) = port_of(service, request.protocol, request.port) else {
            // No rule matches such a packet: it leaves by the default route and gets lost
            return Outcome::TimedOut;
        };
        let local = if virtual_address {
            service.internal_local
        } else {
            // kube-proxy's iptables mode, "pod traffic for external destinations": a connection from the node
            // itself goes to any backend; winkernel balances over local backends only
            service.external_local && os == Os::Windows && node.network.dsr
        };
        self.behind_virtual_address(node)
            .balance(key, service, port, local)
    }

    /// The outcome for a client outside the cluster: virtual addresses have no route there; a load balancer
    /// picks a node.
    fn through_load_balancer(self, key: &Key, service: &Service) -> Outcome {
        let request = self.request;
        if !service.external.contains(&request.to) || request.protocol == Protocol::Icmp {
            return Outcome::TimedOut;
        }
        if self.world.faults.any(FaultKind::LoadBalancerDead) {
            return Outcome::TimedOut;
        }
        let Some(port) = port_of(service, request.protocol, request.port) else {
            return Outcome::TimedOut;
        };
        // healthCheckNodePort: with externalTrafficPolicy Local, the load balancer leaves out nodes without a
        // backend
        let nodes = &self.world.nodes;
        let picked = if service.external_local {
            let backends = self.backends(key, port, None).0.into_iter();
            let names: BTreeSet<&str> = backends
                .filter_map(|(endpoint, _)| endpoint.node.as_deref())
                .collect();
            let local: Vec<(&'a String, &'a Node)> = names
                .into_iter()
                .filter_map(|name| nodes.get_key_value(name))
                .filter(|(_, node)| node.forwards(request.to))
                .collect();
            pick(&local, request.turn)
        } else {
            // The load balancer asks kube-proxy or the node port whether a node is healthy (KEP-3836)
            let healthy = |(name, node): &(&'a String, &'a Node)| {
                node.forwards(request.to) && !self.is_unproxied(name)
            };
            nodes.in_turn(request.turn).find(healthy)
        };
        match picked {
            Some((name, node)) => self.through_node_port(name, node, key, service, port),
            None => Outcome::TimedOut,
        }
    }

    /// Lets a node forward a request that came to it for a Service.
    pub(super) fn through_node_port(
        self,
        name: &'a str,
        node: &'a Node,
        key: &Key,
        service: &Service,
        port: &ServicePort,
    ) -> Outcome {
        if self.is_unproxied(name) {
            return Outcome::TimedOut;
        }
        let winkernel = node.pool.os() == Os::Windows;
        if winkernel {
            // windows-networking.md: "Local NodePort access from the node itself fails (works for
            // other nodes or external clients)"
            let itself = self.is_host() && self.is_on(name);
            if itself && !self.world.suffers(FaultKind::LocalNodePortAnswers, name) {
                return Outcome::TimedOut;
            }
            // Microsoft, common-problems.md: NodePort forwarding needs at least one pod on the
            // Windows node
            if !self.world.pods.any_on(name) {
                return Outcome::TimedOut;
            }
        }
        // Calico issues 4078 and 7305: only the node on which the backend runs answers
        let stays = winkernel
            && (!node.network.forwards_node_ports
                || self.world.suffers(FaultKind::NodePortNotForwarded, name));
        // windows-networking.md: externalTrafficPolicy Local needs DSR, keeps the client's address and
        // forwards to no other node; without DSR it has no effect. Preserve-destination "also disables
        // node-node forwarding", and needs DSR too; Linux ignores that annotation
        let local = match winkernel {
            true => node.network.dsr && (service.external_local || service.preserves_destination),
            false => service.external_local,
        };
        let turned_away = self.is_on(name) && !winkernel && local;
        let forwarded = Self {
            // With the policy Cluster, kube-proxy masquerades the requests that it forwards
            source: if local {
                self.source
            } else {
                node.like(self.source).unwrap_or(self.source)
            },
            node: Some((name, node)),
            forwarded: true,
            ..self
        };
        // AKS issue 1157 and kubernetes issue 62046: connections that come in with the policy are lost
        let drops = service.external_local && self.world.suffers(FaultKind::LocalPolicyDrops, name);
        if drops && !forwarded.backends(key, port, Some(name)).0.is_empty() {
            return Outcome::TimedOut;
        }
        // iptables: a connection from the node itself may go to any backend in spite of the policy
        forwarded.balance(key, service, port, stays || local && !turned_away)
    }

    /// Whether nothing on a node forwards to Services of the request's family: kube-proxy has one proxier per
    /// family (pkg/proxy/metaproxier).
    fn is_unproxied(&self, node: &str) -> bool {
        self.world.suffers(FaultKind::KubeProxyDead, node)
            || self.request.to.is_ipv6() && self.world.suffers(FaultKind::Ipv6ProxyDead, node)
    }

    /// The request with the source address that it has behind a virtual address.
    fn behind_virtual_address(self, node: &Node) -> Self {
        let source = if self.pod.is_none() || node.pool.os() != Os::Windows {
            self.source
        } else if node.network.mode == NetworkMode::Overlay && !node.network.dsr {
            // kube-proxy `--source-vip`: "The IP address of the source VIP for non-DSR", on overlay
            // (pkg/proxy/winkernel/proxier.go)
            let [a, b, c] = node.pod_network;
            [a, b, c, 2].into()
        } else if node.pool.build() == Some(Build::Ws2019) && node.revision < 1432 {
            // Calico, limitations: "kube-proxy unconditionally applies source NAT to traffic from
            // local pods to service ClusterIPs" on 1809 prior to build 17763.1432
            node.like(self.source).unwrap_or(self.source)
        } else {
            self.source
        };
        Self { source, ..self }
    }

    fn balance(self, key: &Key, service: &Service, port: &ServicePort, local: bool) -> Outcome {
        let Some((name, node)) = self.node else {
            return Outcome::TimedOut;
        };
        let os = node.pool.os();
        let winkernel = os == Os::Windows;
        if runs_out_of_ports(node) && self.world.services.before(key) >= PORT_BLOCKS {
            return Outcome::TimedOut;
        }
        let (backends, any) = self.backends(key, port, local.then_some(name));
        if winkernel && backends.len() > MOST_BACKENDS {
            return Outcome::TimedOut;
        }
        let dead = |kind, is: bool| winkernel && is && self.world.suffers(kind, name);
        let slices = &self.world.slices;
        if dead(FaultKind::EmptiedServiceDead, slices.was_emptied(key))
            || dead(
                FaultKind::ReusedAddressDead,
                self.world.services.was_given_up(self.request.to),
            )
        {
            return Outcome::TimedOut;
        }
        // windows-networking.md: session affinity needs Windows Server 2022; kube-proxy prints "Session
        // Affinity is not supported on this version of Windows" and goes on
        let sticks = !winkernel || node.pool.build() >= Some(Build::Ws2022);
        let turn = if !self.forwarded && self.world.suffers(FaultKind::VipSticks, name) {
            0
        } else if service.sticky && sticks && !self.world.suffers(FaultKind::AffinityIgnored, name)
        {
            client_turn(self.client())
        } else {
            self.request.turn
        };
        let Some((endpoint, target)) = pick(&backends, turn) else {
            return match os {
                // kube-proxy's iptables mode rejects connections to a Service without endpoints ("has no
                // endpoints" -j REJECT), and drops them if only other nodes have some ("has no local
                // endpoints" -j DROP, pkg/proxy/iptables/proxier.go)
                Os::Linux if !any => Outcome::Refused,
                // winkernel creates no load balancer for such a Service (pkg/proxy/winkernel/proxier.go)
                Os::Linux | Os::Windows => Outcome::TimedOut,
            };
        };
        // The guide says so of "services scheduled on them" alone
        let is_here = endpoint.node.as_deref() == Some(name);
        if self.is_host()
            && winkernel
            && is_here
            && !self.world.suffers(FaultKind::NodeServiceIpAnswers, name)
        {
            return Outcome::TimedOut;
        }
        // If the pod runs on another node, a node has already forwarded the request with its own address
        let itself = self.pod.is_some_and(|(_, pod)| {
            Some(endpoint.address) == pod.like(endpoint.address) && self.is_on(&pod.node)
        });
        let mut flow = self;
        if itself {
            // A pod cannot reach itself through its Service under l2bridge (hcsshim issue 1511), or with DSR
            // (calico issue 5522, AKS issue 2608)
            let fails = node.network.mode == NetworkMode::L2Bridge || node.network.dsr;
            if winkernel && fails || self.world.suffers(FaultKind::HairpinBroken, name) {
                return Outcome::TimedOut;
            }
            // KUBE-MARK-MASQ: a pod does not see itself as its client
            flow.source = node.like(self.source).unwrap_or(self.source);
        }
        flow.deliver(endpoint.address, target)
    }

    /// The backends that may take a connection and their ports, on one node or on all; and whether the
    /// Service has any usable backend.
    fn backends(
        &self,
        key: &Key,
        port: &ServicePort,
        local_to: Option<&str>,
    ) -> (Vec<(&'a Endpoint, u16)>, bool) {
        let world = self.world;
        let known: Vec<(&Endpoint, u16)> = world
            .slices
            .for_service(key)
            .filter_map(|slice| Some((slice, *slice.ports.get(&port.name)?)))
            .flat_map(|(slice, target)| slice.endpoints.iter().map(move |each| (each, target)))
            // kube-proxy has one proxier per family (pkg/proxy/metaproxier)
            .filter(|(each, _)| each.address.is_ipv6() == self.request.to.is_ipv6())
            .filter(|(each, _)| !self.is_lost(each.address))
            .collect();
        let of = |wanted: &dyn Fn(&Endpoint) -> bool, node: Option<&str>| {
            let here = |each: &Endpoint| node.is_none() || each.node.as_deref() == node;
            let picked = known.iter().filter(|(each, _)| wanted(each) && here(each));
            picked.copied().collect::<Vec<_>>()
        };
        // pkg/proxy/topology.go, CategorizeEndpoints: where no endpoint is ready, the terminating ones that
        // still serve count
        let usable = |node| match of(&|each| each.ready, node) {
            none if none.is_empty() => of(&|each| each.serving_last, node),
            ready => ready,
        };
        let any = !usable(None).is_empty();
        let mut chosen = usable(local_to);
        if let Some((name, _)) = self.node
            && !self.forwarded
            && world.suffers(FaultKind::EndpointStale, name)
        {
            let target = known.first().map_or(port.port, |(_, target)| *target);
            let gone = world.slices.gone(key).iter();
            let gone = gone.filter(|gone| gone.address.is_ipv6() == self.request.to.is_ipv6());
            chosen.extend(gone.map(|gone| (gone, target)));
        }
        (chosen, any)
    }

    /// Whether HNS has removed a backend with another Service that had it, too.
    fn is_lost(&self, backend: IpAddr) -> bool {
        let suffers = |(name, node): (&str, &Node)| {
            let winkernel = node.pool.os() == Os::Windows;
            winkernel && self.world.suffers(FaultKind::SharedBackendLost, name)
        };
        self.node.is_some_and(suffers) && self.world.slices.was_shared(backend)
    }

    /// The client address by which session affinity works.
    fn client(&self) -> IpAddr {
        match (self.pod, self.forwarded) {
            (Some((_, pod)), _) => pod.like(self.source).unwrap_or(self.source),
            (None, true) if self.request.from == super::Origin::Outside => {
                self.world.network.client.into()
            }
            _ => self.source,
        }
    }
}

fn port_of(service: &Service, protocol: Protocol, number: u16) -> Option<&ServicePort> {
    let mut ports = service.ports.iter();
    ports.find(|port| port.protocol == protocol && port.port == number)
}

fn pick<T: Copy>(from: &[T], turn: u64) -> Option<T> {
    let at = turn.checked_rem(from.len() as u64)?;
    from.get(usize::try_from(at).ok()?).copied()
}

/// A number that is constant for a client.
fn client_turn(client: IpAddr) -> u64 {
    match client {
        IpAddr::V4(client) => u64::from(u32::from(client)),
        IpAddr::V6(client) => client.octets().iter().map(|byte| u64::from(*byte)).sum(),
    }
}
