//! A fixture as a target: its addresses, names and ports in the observed family.

use std::net::IpAddr;

use super::aims::{Aim, Aims, unknown};
use super::sample::sample;
use crate::facts::{IpFamily, PoolName};
use crate::fixture::{FixtureName, Serves};
use crate::method::error::{ErrorKind, ObservationError, Result};
use crate::method::exchange::Host;
use crate::method::place::{Bound, PoolNode, ReadyFixture, ReadyPod, Served, assertions_alone};
use crate::text::printable;

/// A fixture as a target.
pub(super) struct Binding<'b, 'a> {
    of: FixtureName,
    pub(super) fixture: &'a ReadyFixture,
    /// The fixture whose Services lead to it, and that one as it is ready: itself, if no other is named.
    through: FixtureName,
    pub(super) serving: &'a ReadyFixture,
    at: &'b Bound<'a>,
}

impl<'b, 'a> Binding<'b, 'a> {
    /// Binds a ready fixture; an error where only some of its pods have an address of the second family.
    pub(super) fn to_fixture(
        of: FixtureName,
        through: Option<FixtureName>,
        at: &'b Bound<'a>,
    ) -> Result<Self> {
        let fixture = at.fixture(of)?;
        let serving = through.map_or(Ok(fixture), |through| at.fixture(through))?;
        let binding = Self {
            of,
            fixture,
            through: through.unwrap_or(of),
            serving,
            at,
        };
        let lacks = |pod: &&ReadyPod| at.of_family(&pod.addresses).is_none();
        match (at.family, fixture.pods.iter().find(lacks)) {
            (Some(family), Some(pod)) => {
                let ReadyPod { name, node, .. } = pod;
                let what = format!("{family} address for pod {name} on {node}, as for others");
                Err(binding.lacks(&what))
            }
            _ => Ok(binding),
        }
    }

    pub(super) fn pods(&self, wanted: impl Fn(&ReadyPod) -> bool) -> Result<Aims<'a>> {
        let port = self.fixture.port.ok_or_else(|| self.lacks("port"))?;
        self.pods_at(port, wanted)
    }

    /// The requests to its pods at the port to which its Services lead.
    pub(super) fn pods_behind_service(&self) -> Result<Aims<'a>> {
        self.pods_at(self.target_port()?, |_| true)
    }

    fn target_port(&self) -> Result<u16> {
        let port = self.serving.target_port;
        port.ok_or_else(|| lacks(self.through, "Service that leads to a port"))
    }

    fn pods_at(&self, port: u16, wanted: impl Fn(&ReadyPod) -> bool) -> Result<Aims<'a>> {
        let pods = self.fixture.pods.iter();
        let aims = pods.filter(|pod| wanted(pod)).map(|pod| {
            let address = self.at.of_family(&pod.addresses);
            let address = address.ok_or_else(|| self.lacks("address of each pod"))?;
            let shown = format!("pod {} on {}", pod.name, pod.node);
            Ok(Aim {
                by: std::slice::from_ref(pod),
                ..Aim::to_host(Host::Address(address), port, self.path(), shown)
            })
        });
        let each: Vec<_> = aims.collect::<Result<_>>()?;
        let absent = each.is_empty().then(|| {
            let nodes: std::collections::BTreeSet<_> =
                self.fixture.pods.iter().map(|pod| &*pod.node).collect();
            let nodes: Vec<_> = nodes.into_iter().collect();
            match (self.at.vantage(), self.fixture.pods.as_slice()) {
                (Ok(here), [alone]) if here.name == alone.name => assertions_alone(self.of),
                (here, _) => {
                    let here = here.map_or("nowhere", |pod| &pod.node);
                    let nodes = nodes.join(", ");
                    format!(
                        "it observes from node {here}, and the pods of {} are on {nodes}",
                        self.of.as_str()
                    )
                }
            }
        });
        Ok(Aims {
            absent,
            ..Aims::from_each(each)
        })
    }

    /// The requests to its pods on the node of the vantage point.
    pub(super) fn pods_here(&self) -> Result<Aims<'a>> {
        let here = &self.at.vantage()?.node;
        self.pods(|pod| pod.node == *here)
    }

    /// The request to its Service, where all of its pods are on the node of the vantage point.
    pub(super) fn service_from_here(&self) -> Result<Aims<'a>> {
        let here = &self.at.vantage()?.node;
        match self.fixture.pods.iter().find(|pod| pod.node != *here) {
            Some(ReadyPod { name, node, .. }) => Ok(Aims::none(format!(
                "it observes from node {here}, and the Service also leads to pod {name} on {node}"
            ))),
            None => Ok(Aims::from_each([self.service()?])),
        }
    }

    pub(super) fn service(&self) -> Result<Aim<'a>> {
        Ok(self.to_service(self.address()?))
    }

    /// The request to its other Service.
    pub(super) fn other_service(&self) -> Result<Aim<'a>> {
        let other = self.served()?.other_service;
        let other = other.ok_or_else(|| lacks(self.through, "other Service's address"))?;
        Ok(self.to_service(other))
    }

    /// The requests to its Service, one for each port.
    pub(super) fn service_ports(&self) -> Result<Vec<Aim<'a>>> {
        let (address, first) = self.address()?;
        let ports = [first]
            .into_iter()
            .chain(self.serving.more_ports.iter().copied());
        let aim = |port| Aim {
            shown: format!("port {port} of Service IP {address}"),
            ..self.to_service((address, port))
        };
        Ok(ports.map(aim).collect())
    }

    fn to_service(&self, (address, port): (IpAddr, u16)) -> Aim<'a> {
        let host = Host::Address(address);
        self.to(format!("Service IP {host}"), host, port)
    }

    /// The Service by its name, with its namespace and `below` where that is given.
    pub(super) fn by_name(&self, below: Option<String>) -> Result<Aim<'a>> {
        let (_, port) = self.address()?;
        let name = self.served()?.name;
        let name = name.ok_or_else(|| lacks(self.through, "Service name"))?;
        let name = match below {
            None => name,
            Some(below) => format!("{name}.{}{below}", self.at.ready.namespace),
        };
        Ok(self.to(name.clone(), Host::Name(name), port))
    }

    /// The Service without an address by its full name, on the port of the pods to which Services lead.
    pub(super) fn headless(&self) -> Result<Aim<'a>> {
        let port = self.target_port()?;
        let name = self.served()?.headless;
        let name = name.ok_or_else(|| lacks(self.through, "headless Service"))?;
        let name = self.at.full_name(&name)?;
        Ok(self.to(name.clone(), Host::Name(name), port))
    }

    /// The alias of the fixture's Service, by its full name.
    pub(super) fn alias(&self) -> Result<Aim<'a>> {
        let (_, port) = self.address()?;
        let alias = self.at.fixture(FixtureName::ALIAS)?;
        let name = alias.name.as_ref();
        let name = name.ok_or_else(|| self.lacks("alias"))?;
        let name = self.at.full_name(name)?;
        Ok(self.to(name.clone(), Host::Name(name), port))
    }

    /// The request to the load balancer of a fixture. From inside the cluster, one that traffic does not
    /// bypass says nothing of the cluster: the load balancer decides whether it admits its own backends (AWS,
    /// "Network Load Balancer troubleshooting": none without loopback).
    pub(super) fn balancer(&self) -> Result<Aims<'a>> {
        let (_, port) = self.address()?;
        let balancer = &self.at.fixture(FixtureName::LOAD_BALANCER)?.balancer;
        let lacks = || self.lacks("load balancer's address");
        let balancer = balancer.as_ref().ok_or_else(lacks)?;
        let within = self.at.from.is_none_or(|from| from.prober().is_some());
        if within && !balancer.short_cut {
            let at = printable(&balancer.at);
            let absent = format!("from within, {at} is the load balancer's own matter");
            return Ok(Aims::none(absent));
        }
        let host = Host::parse(&balancer.at);
        let host = host.ok_or_else(|| self.lacks("load balancer's address that is one"))?;
        let shown = format!("load balancer {host}");
        Ok(Aims::from_each([self.to(shown, host, port)]))
    }

    /// Whether a node should forward the fixture's NodePort, whatever the network: it runs Linux, or a pod of
    /// the Service.
    fn forwards(&self, node: &PoolNode) -> bool {
        node.pool == PoolName::linux() || self.has(node, &self.fixture.pods)
    }

    /// Whether one of these pods runs on a node and has an address of the family.
    fn has(&self, node: &PoolNode, pods: &[ReadyPod]) -> bool {
        let of_family = |pod: &ReadyPod| {
            self.at.family.is_none() || self.at.of_family(&pod.addresses).is_some()
        };
        let mut pods = pods.iter();
        pods.any(|pod| pod.node == node.name && of_family(pod))
    }

    /// The node ports of all nodes except the vantage point's.
    pub(super) fn node_ports_of_others(&self, here: &str) -> Result<Aims<'a>> {
        let mut nodes = self.at.ready.nodes.iter();
        if nodes.any(|node| node.name != here && self.forwards(node)) {
            return self.node_ports(|node| node.name != here);
        }
        Ok(Aims::none(format!(
            "it observes from node {here}, and no other forwards the NodePort"
        )))
    }

    /// The node ports of all nodes that have to forward them.
    pub(super) fn node_ports(&self, wanted: impl Fn(&PoolNode) -> bool) -> Result<Aims<'a>> {
        self.node_ports_of(|node| wanted(node) && self.forwards(node))
    }

    /// The node ports of Windows nodes that run pods of ours, and none of the Service.
    pub(super) fn node_ports_without_backend(&self) -> Result<Aims<'a>> {
        let lacks_one = |node: &PoolNode| !self.forwards(node) && self.has_our_pods(node);
        if self.at.ready.nodes.iter().any(lacks_one) {
            return self.node_ports_of(lacks_one);
        }
        Ok(Aims::none(format!(
            "no Windows node runs pods of ours and none of {}",
            self.of.as_str()
        )))
    }

    fn node_ports_of(&self, wanted: impl Fn(&PoolNode) -> bool) -> Result<Aims<'a>> {
        let nodes = self.at.ready.nodes.iter().filter(|node| wanted(node));
        let aims = sample(&self.at.ready.run, nodes)
            .into_iter()
            .filter_map(|node| self.node_port(node).transpose());
        let each: Vec<_> = aims.collect::<Result<_, _>>()?;
        match (each.is_empty(), self.at.family) {
            (true, Some(family)) => Ok(Aims::none(format!(
                "no node that forwards its NodePort has an {family} address"
            ))),
            (true, None) => {
                let family = IpFamily::from_address(self.address()?.0);
                Err(self.lacks(&format!("node with an address of its family, {family}")))
            }
            (false, _) => Ok(Aims::from_each(each)),
        }
    }

    /// The node port of the vantage point's node.
    pub(super) fn own_node_port(&self) -> Result<Aims<'a>> {
        let here = &self.at.vantage()?.node;
        let unknown = || unknown("address", here);
        let mut nodes = self.at.ready.nodes.iter();
        let node = nodes.find(|node| node.name == *here);
        let node = node.ok_or_else(unknown)?;
        if !node.addresses.is_empty() && !self.forwards(node) {
            return Ok(Aims::none(format!(
                "it observes from node {here}, which runs no pod of the Service"
            )));
        }
        match (self.node_port(node)?, self.at.family) {
            (None, Some(family)) => Ok(Aims::none(format!("node {here} has no {family} address"))),
            (aim, _) => Ok(Aims::from_each([aim.ok_or_else(unknown)?])),
        }
    }

    /// The node port of a node; `None` where the node has no address of the Service's family.
    fn node_port(&self, node: &PoolNode) -> Result<Option<Aim<'a>>> {
        let (service, _) = self.address()?;
        if node.addresses.is_empty() {
            return Err(unknown("address", &node.name));
        }
        let port = self.served()?.node_port;
        let port = port.ok_or_else(|| lacks(self.through, "node port"))?;
        let mut addresses = node.addresses.iter();
        let address = addresses.find(|address| address.is_ipv4() == service.is_ipv4());
        let aim = |address: &IpAddr| {
            let shown = format!("port {port} of node {}", node.name);
            self.to(shown, Host::Address(*address), port)
        };
        Ok(address.map(aim))
    }

    /// Whether a node runs one of our pods with an address of the family: Windows forwards a node port only
    /// where at least one pod runs (Microsoft, common-problems.md, "my Kubernetes NodePort"; rancher issue
    /// 20511), so that other nodes prove nothing.
    fn has_our_pods(&self, node: &PoolNode) -> bool {
        let fixtures = self.at.ready.fixtures.iter();
        let mut fixtures = fixtures.filter(|(key, _)| {
            // An assertion at a node's port does not depend on the probers of that node
            let probers = [
                FixtureName::WINDOWS_NODE_PROBER,
                FixtureName::EACH_WINDOWS_NODE,
                FixtureName::RING,
            ];
            !probers.contains(&key.name)
        });
        fixtures.any(|(_, fixture)| self.has(node, &fixture.pods))
    }

    fn address(&self) -> Result<(IpAddr, u16)> {
        let service = self.served()?.service;
        service.ok_or_else(|| lacks(self.through, "Service address"))
    }

    fn served(&self) -> Result<Served> {
        self.serving.served(self.at.family)
    }

    fn to(&self, shown: String, host: Host, port: u16) -> Aim<'a> {
        Aim {
            by: match self.of.serves() {
                Some(Serves::Page) => &[],
                _ => &self.fixture.pods,
            },
            ..Aim::to_host(host, port, self.path(), shown)
        }
    }

    fn path(&self) -> &'static str {
        match self.of.serves() {
            Some(Serves::Hostname) => "/hostname",
            _ => "/",
        }
    }

    fn lacks(&self, what: &str) -> ObservationError {
        lacks(self.of, what)
    }
}

fn lacks(fixture: FixtureName, what: &str) -> ObservationError {
    let detail = format!("{} has no {what}", fixture.as_str());
    ErrorKind::FixtureFailed.error(detail)
}
