//! The ready fixtures of a run, and what an assertion is bound to.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Moment;
use super::error::{ErrorKind, ObservationError, Result};
use super::vantage::VantageKey;
use crate::config::Outside;
use crate::facts::{Facts, IpFamily, NodeFact, NodeOrdinal, Pool, PoolName, WindowsBuild};
use crate::fixture::{FixtureKey, FixtureName};

/// A fixture that is ready.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct ReadyFixture {
    /// Its Service's virtual address and port in the cluster's first family, where it has one.
    pub service: Option<(IpAddr, u16)>,
    /// That Service's name.
    pub name: Option<String>,
    pub node_port: Option<u16>,
    /// The further ports of that Service.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub more_ports: Vec<u16>,
    /// The name of its Service without an address in the first family.
    pub headless: Option<String>,
    /// The virtual address and port of its other Service in the first family, where it has two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other_service: Option<(IpAddr, u16)>,
    /// The port its pods serve on.
    pub port: Option<u16>,
    /// The port of its pods to which its Services lead; it may be another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_port: Option<u16>,
    /// The port its pods serve UDP on.
    pub udp: Option<u16>,
    /// Its pods, by name.
    pub pods: Vec<ReadyPod>,
    /// What the run did with its pods before, and how long after it was applied that was over.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Moment>,
    /// The cluster's DNS suffix, as a prober reports it.
    pub domain: Option<String>,
    /// Where a load balancer answers for its Service.
    pub balancer: Option<Balancer>,
    /// How it is served in the cluster's second family, where the cluster has two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub second: Option<Served>,
    /// Why its Services could not be created in the second family; in the first it is ready all the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub second_broken: Option<ObservationError>,
}

impl ReadyFixture {
    /// How Services serve it in a family, or in the cluster's first family for `None`.
    pub(crate) fn served(&self, family: Option<IpFamily>) -> Result<Served> {
        let Some(family) = family else {
            return Ok(Served {
                service: self.service,
                name: self.name.clone(),
                node_port: self.node_port,
                headless: self.headless.clone(),
                other_service: self.other_service,
            });
        };
        match (&self.second, &self.second_broken) {
            (_, Some(broken)) => Err(broken.clone()),
            (Some(second), None) => Ok(second.clone()),
            (None, None) => {
                let detail = format!("nobody has asked for Services in {family}");
                Err(ErrorKind::FixtureFailed.error(detail))
            }
        }
    }
}

/// How Services serve a fixture in one family; empty where the API server gives Services no addresses of that
/// family.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Served {
    /// The Service's virtual address and port, where it has one.
    pub service: Option<(IpAddr, u16)>,
    pub name: Option<String>,
    pub node_port: Option<u16>,
    /// The name of its Service without an address.
    pub headless: Option<String>,
    /// The virtual address and port of another Service of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other_service: Option<(IpAddr, u16)>,
}

/// Where a load balancer answers, the first of `status.loadBalancer.ingress`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Balancer {
    /// Its address or name.
    pub at: String,
    /// Whether nodes and pods reach the Service's backends without it: it has an address, and its `ipMode` is
    /// not `Proxy` (KEP-1860).
    pub short_cut: bool,
}

impl Balancer {
    /// Reads the load balancer from a Service's status; `None` while the status has none.
    pub fn from_service(service: &serde_json::Value) -> Option<Self> {
        let ingress = &service["status"]["loadBalancer"]["ingress"][0];
        let text = |key: &str| ingress[key].as_str().filter(|text| !text.is_empty());
        let at = text("ip").or(text("hostname"))?.to_owned();
        Some(Self {
            short_cut: text("ip").is_some() && text("ipMode") != Some("Proxy"),
            at,
        })
    }
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ReadyPod {
    pub name: String,
    pub uid: String,
    pub node: String,
    /// Its addresses, `status.podIPs`: the primary family first.
    pub addresses: Vec<IpAddr>,
    /// How often its containers had restarted when the fixture became ready.
    #[serde(default)]
    pub restarts: u64,
}

/// A node that pods may be placed on.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PoolNode {
    pub name: String,
    pub pool: PoolName,
    pub kubelet: Option<u16>,
    /// Its addresses of type `InternalIP`.
    pub addresses: Vec<IpAddr>,
}

/// The ready fixtures of a run and its surroundings, to which targets are bound.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadyFixtures {
    /// The run's id.
    pub run: String,
    /// The namespace of samples and pod probers, at `PodSecurity` level baseline.
    pub namespace: String,
    /// The namespace of probers on nodes' networks and of dry runs, at level privileged.
    pub host_namespace: String,
    /// The cluster's usable nodes.
    pub nodes: Vec<PoolNode>,
    /// All nodes of the cluster, as the facts have them.
    pub node_facts: Arc<Vec<NodeFact>>,
    /// What lies outside the cluster.
    pub outside: Arc<Outside>,
    pub fixtures: BTreeMap<FixtureKey, ReadyFixture>,
}

impl ReadyFixtures {
    /// A run without a ready fixture.
    pub fn new(
        run: &str,
        [namespace, host_namespace]: [String; 2],
        facts: &Facts,
        outside: &Outside,
    ) -> Self {
        let node_facts = facts.nodes.value().map(Vec::as_slice).unwrap_or_default();
        let mut nodes = Vec::new();
        for (pool, Pool { nodes: usable, .. }) in facts.pools() {
            nodes.extend(usable.into_iter().map(|name| {
                let mut matching = node_facts.iter().filter(|node| node.name == name);
                let details = matching.next().map(|node| &node.details);
                let addresses = details.into_iter().flat_map(|details| &details.addresses);
                let internal = addresses.filter(|(kind, _)| kind == "InternalIP");
                PoolNode {
                    addresses: internal.filter_map(|(_, at)| at.parse().ok()).collect(),
                    kubelet: details.and_then(|details| details.kubelet_port),
                    pool: pool.clone(),
                    name,
                }
            }));
        }
        Self {
            run: run.to_owned(),
            namespace,
            host_namespace,
            nodes,
            node_facts: Arc::new(node_facts.to_vec()),
            outside: Arc::new(outside.clone()),
            fixtures: BTreeMap::new(),
        }
    }

    /// The namespace of a fixture's pods.
    pub fn namespace_of(&self, fixture: FixtureName) -> &str {
        match fixture.is_in_host_namespace() {
            true => &self.host_namespace,
            false => &self.namespace,
        }
    }

    /// Why a pod outside its node's network should have an address of this family: its node has a range of
    /// the family (Kubernetes, IPv4/IPv6 dual-stack), or another such pod of its pool has one. Before Windows
    /// Server 2022 HNS gives no IPv6 address (hcsshim, `hcn/hcnglobals.go`).
    fn due(&self, pod: &ReadyPod, family: IpFamily) -> Option<String> {
        let node = self.node_facts.iter().find(|node| node.name == pod.node);
        let build = node.and_then(|node| node.build);
        if family == IpFamily::Ipv6 && build.is_some_and(|build| build < WindowsBuild::SERVER_2022)
        {
            return None;
        }
        let mut ranges = node.into_iter().flat_map(|node| &node.details.pod_cidrs);
        let range = ranges.find(|range| IpFamily::of_written(range) == family);
        if let Some(range) = range {
            // Kubernetes, IPv4/IPv6 dual-stack, "Windows support"
            let unless = match build {
                Some(_) => {
                    " (unless its network is an overlay, which gives Windows pods one family)"
                }
                None => "",
            };
            return Some(format!("{} has {range} for its pods{unless}", pod.node));
        }
        let pool = |name: &str| Some(&self.nodes.iter().find(|node| node.name == name)?.pool);
        let own = pool(&pod.node)?;
        let fixtures = self.fixtures.iter();
        let networked = fixtures.filter(|(key, _)| !key.name.is_on_node());
        let mut others = networked.flat_map(|(_, fixture)| &fixture.pods);
        let has = |other: &&ReadyPod| {
            let mut addresses = other.addresses.iter();
            pool(&other.node) == Some(own)
                && addresses.any(|address| IpFamily::from_address(*address) == family)
        };
        let other = others.find(has)?;
        Some(format!("pod {} on {} has", other.name, other.node))
    }
}

/// Why an assertion asks no pod of a fixture whose only pod is the one that observes.
pub(crate) fn assertions_alone(of: FixtureName) -> String {
    let of = of.as_str();
    format!("it observes from the only pod of {of}, which does not observe itself")
}

pub(crate) fn prober_lacks(what: &str) -> ObservationError {
    ErrorKind::FixtureFailed.error(format!("the prober has no {what}"))
}

/// What an assertion is bound to: the ready fixtures, its vantage point and the check's point.
#[derive(Clone, Copy, Debug)]
pub struct Bound<'a> {
    pub ready: &'a ReadyFixtures,
    /// Its vantage point, if it has one.
    pub from: Option<&'a VantageKey>,
    /// The pool of the check's point.
    pub pool: Option<&'a PoolName>,
    /// The pool of the observed fixture, where the point has it as another axis.
    pub to: Option<&'a PoolName>,
    /// The node of the observed prober, where the check observes each node's.
    pub node: Option<NodeOrdinal>,
    /// The build of the check's pool.
    pub build: Option<WindowsBuild>,
    /// The image that the pool's sample should run.
    pub image: Option<&'a str>,
    /// The observed address family; `None` for the cluster's first.
    pub family: Option<IpFamily>,
    /// Whether a target that needs many requests to meet every pod gets only one: it then shows only whether
    /// any pod answers.
    pub once: bool,
}

impl<'a> Bound<'a> {
    /// Bound to ready fixtures and to nothing else.
    pub fn to_ready(ready: &'a ReadyFixtures) -> Self {
        Self {
            ready,
            from: None,
            pool: None,
            to: None,
            node: None,
            build: None,
            image: None,
            family: None,
            once: false,
        }
    }

    /// The word of the check's pool; empty where it has no pool.
    pub(crate) fn pool_word(&self) -> &'a str {
        self.pool.map_or("", PoolName::as_str)
    }

    /// The path of a fixture's objects in the check's pool.
    pub(crate) fn path_of(&self, plural: &str, fixture: &str) -> String {
        let (namespace, run, pool) = (&self.ready.namespace, &self.ready.run, self.pool_word());
        format!(
            "/api/v1/namespaces/{namespace}/{plural}?labelSelector=winconform%2Frun%3D{run}\
             %2Cwinconform%2Ffixture%3D{fixture}%2Cwinconform%2Fpool%3D{pool}"
        )
    }

    /// The first of these addresses that is of the observed family.
    pub(crate) fn of_family(&self, addresses: &[IpAddr]) -> Option<IpAddr> {
        let mut addresses = addresses.iter().copied();
        match self.family {
            None => addresses.next(),
            Some(family) => addresses.find(|address| IpFamily::from_address(*address) == family),
        }
    }

    /// Why there is nothing to ask over the observed family: the pod that observes has no address of it, or
    /// none of the observed pods has one. It is an error where they should have one: nothing was observed
    /// then, so no claim is refuted.
    pub(crate) fn without_family(&self, of: Option<FixtureName>) -> Result<Option<String>> {
        let Some(family) = self.family else {
            return Ok(None);
        };
        let lacks = |pod: &ReadyPod| self.of_family(&pod.addresses).is_none();
        // Pods on their nodes' networks have the addresses of the nodes, so none is due
        let explain = |lack: String, with_networks: &[ReadyPod]| {
            let due = |pod| self.ready.due(pod, family);
            match with_networks.iter().find_map(due) {
                None => Ok(Some(lack)),
                Some(why) => {
                    let detail = format!("{lack}, though {why}");
                    Err(ErrorKind::FixtureFailed.error(detail))
                }
            }
        };
        if let Ok(here) = self.vantage()
            && lacks(here)
        {
            let ReadyPod { name, node, .. } = here;
            let lack = format!("pod {name} on {node}, which observes, has no {family} address");
            return match self.from {
                Some(from) if !from.kind.is_pod() => explain(lack, &[]),
                _ => explain(lack, std::slice::from_ref(here)),
            };
        }
        let Some(of) = of else {
            return Ok(None);
        };
        match self.fixture(of).ok().map(|fixture| &*fixture.pods) {
            Some(pods @ [_, ..]) if pods.iter().all(lacks) => {
                let lack = format!("the pods of {} have no {family} address", of.as_str());
                match of.is_on_node() {
                    true => explain(lack, &[]),
                    false => explain(lack, pods),
                }
            }
            _ => Ok(None),
        }
    }

    pub fn fixture(&self, name: FixtureName) -> Result<&'a ReadyFixture> {
        self.standing(&name.in_pool(self.to.or(self.pool)).on(self.node))
    }

    /// The prober at the vantage point.
    pub fn prober(&self) -> Result<&'a ReadyFixture> {
        let nowhere = |detail: &str| ErrorKind::FixtureFailed.error(detail);
        let from = self
            .from
            .ok_or_else(|| nowhere("the assertion has no vantage point"))?;
        let prober = from
            .prober()
            .ok_or_else(|| nowhere("the vantage point has no pod"))?;
        self.standing(&prober)
    }

    /// The prober's pod at the vantage point.
    pub fn vantage(&self) -> Result<&'a ReadyPod> {
        let pods = &self.prober()?.pods;
        pods.first().ok_or_else(|| prober_lacks("pod"))
    }

    /// The cluster's DNS suffix; an error where no prober has reported it.
    pub fn domain(&self) -> Result<&'a str> {
        let prober = self.standing(&FixtureName::LINUX_POD_PROBER.in_pool(None))?;
        prober.domain.as_deref().ok_or_else(|| {
            let detail = "the cluster's DNS suffix: the prober in a Linux pod did not tell it";
            ErrorKind::FactUnknown.error(detail)
        })
    }

    /// The full name of a Service of the run.
    pub(crate) fn full_name(&self, name: &str) -> Result<String> {
        let (namespace, domain) = (&self.ready.namespace, self.domain()?);
        Ok(format!("{name}.{namespace}.svc.{domain}"))
    }

    fn standing(&self, key: &FixtureKey) -> Result<&'a ReadyFixture> {
        self.ready
            .fixtures
            .get(key)
            .ok_or_else(|| ErrorKind::FixtureFailed.error(format!("{key} is not ready")))
    }
}
