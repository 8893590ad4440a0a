//! A fixture as a target: its addresses, names and ports in the observed family.

use std::net::IpAddr;

use super::aims::{Aim, Aims, unknown};
use super::sample::sample;
use crate::facts::{IpFamily, PoolName};
use crate::fixture::{FixtureName, Serves};
use crate::method::error::{ErrorKind, ObservationError, Result};
use crate::method::exchange::Host;
use crate::method::place::{Bound, PoolNode, ReadyFixture, ReadyPod, Served, assertions_alone};

/// A fixture as a target.
pub(super) struct Binding<'b, 'a> {
    of: FixtureName,
    pub(super) fixture: &'a ReadyFixture,
    pub(super) at: &'b Bound<'a>,
}

impl<'b, 'a> Binding<'b, 'a> {
    /// Binds a ready fixture; an error where only some of its pods have an address of the second family.
    pub(super) fn to_fixture(of: FixtureName, at: &'b Bound<'a>) -> Result<Self> {
        let fixture = at.fixture(of)?;
        let binding = Self { of, fixture, at };
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

    /// The request to its Service, where one of its pods is on the node of the vantage point.
    pub(super) fn service_from_here(&self) -> Result<Aims<'a>> {
        match self.pods_here()?.absent {
            Some(absent) => Ok(Aims::none(absent)),
            None => Ok(Aims::from_each([self.service()?])),
        }
    }

    pub(super) fn service(&self) -> Result<Aim<'a>> {
        let (address, port) = self.address()?;
        let host = Host::Address(address);
        Ok(self.to(format!("Service IP {host}"), host, port))
    }

    /// The Service by its name, with its namespace and `below` where that is given.
    pub(super) fn by_name(&self, below: Option<String>) -> Result<Aim<'a>> {
        let (_, port) = self.address()?;
        let name = self.served()?.name;
        let name = name.ok_or_else(|| self.lacks("Service name"))?;
        let name = match below {
            None => name,
            Some(below) => format!("{name}.{}{below}", self.at.ready.namespace),
        };
        Ok(self.to(name.clone(), Host::Name(name), port))
    }

    /// The Service without an address by its full name, on the port of the pods.
    pub(super) fn headless(&self) -> Result<Aim<'a>> {
        let port = self.fixture.port.ok_or_else(|| self.lacks("port"))?;
        let name = self.served()?.headless;
        let name = name.ok_or_else(|| self.lacks("headless Service"))?;
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

    /// Whether a node should forward the fixture's NodePort.
    fn forwards(&self, node: &PoolNode) -> bool {
        node.pool == PoolName::linux() || self.has_our_pods(node)
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

    pub(super) fn node_ports(&self, wanted: impl Fn(&PoolNode) -> bool) -> Result<Aims<'a>> {
        let nodes = self.at.ready.nodes.iter();
        let nodes = nodes.filter(|node| wanted(node) && self.forwards(node));
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

    /// The node port of a node; `None` where the node has no address of the Service's family.
    pub(super) fn node_port(&self, node: &PoolNode) -> Result<Option<Aim<'a>>> {
        let (service, _) = self.address()?;
        if node.addresses.is_empty() {
            return Err(unknown("address", &node.name));
        }
        let port = self.served()?.node_port;
        let port = port.ok_or_else(|| self.lacks("node port"))?;
        let mut addresses = node.addresses.iter();
        let address = addresses.find(|address| address.is_ipv4() == service.is_ipv4());
        let aim = |address: &IpAddr| {
            let shown = format!("port {port} of node {}", node.name);
            self.to(shown, Host::Address(*address), port)
        };
        Ok(address.map(aim))
    }

    /// Whether a node runs one of our pods with an address of the family: Windows forwards a node port only
    /// where at least one pod runs (Microsoft, common-problems.md, "my Kubernetes NodePort"), so that other
    /// nodes prove nothing.
    fn has_our_pods(&self, node: &PoolNode) -> bool {
        let pods = self.at.ready.fixtures.iter();
        let mut pods = pods
            .filter(|(key, _)| {
                // An assertion at a node's port does not depend on the probers of that node
                let assertions = [
                    FixtureName::WINDOWS_NODE_PROBER,
                    FixtureName::EACH_WINDOWS_NODE,
                    FixtureName::RING,
                ];
                !assertions.contains(&key.name)
            })
            .flat_map(|(_, fixture)| &fixture.pods);
        let has = |pod: &ReadyPod| {
            self.at.family.is_none() || self.at.of_family(&pod.addresses).is_some()
        };
        pods.any(|pod| pod.node == node.name && has(pod))
    }

    pub(super) fn address(&self) -> Result<(IpAddr, u16)> {
        let service = self.served()?.service;
        service.ok_or_else(|| self.lacks("Service address"))
    }

    fn served(&self) -> Result<Served> {
        self.fixture.served(self.at.family)
    }

    pub(super) fn to(&self, shown: String, host: Host, port: u16) -> Aim<'a> {
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

    pub(super) fn lacks(&self, what: &str) -> ObservationError {
        let detail = format!("{} has no {what}", self.of.as_str());
        ErrorKind::FixtureFailed.error(detail)
    }
}
