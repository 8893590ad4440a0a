//! What stands to be observed, and where an assertion is bound to.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

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
    /// The name of its Service without an address in the first family.
    pub headless: Option<String>,
    /// The port its pods serve on.
    pub port: Option<u16>,
    /// The port its pods serve UDP on.
    pub udp: Option<u16>,
    /// Its pods, by name.
    pub pods: Vec<ReadyPod>,
    /// The cluster's DNS suffix, as a prober was given it.
    pub domain: Option<String>,
    /// Where a load balancer answers for its Service.
    pub balancer: Option<Balancer>,
    /// How it is served in the cluster's second family, where the cluster has two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub second: Option<Served>,
    /// Why its Services could not be made in the second family; what stands in the first stands
    /// nevertheless.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub second_broken: Option<ObservationError>,
}

impl ReadyFixture {
    /// How it is served in a family; the cluster's first where none is named.
    pub(crate) fn served(&self, family: Option<IpFamily>) -> Result<Served> {
        let Some(family) = family else {
            return Ok(Served {
                service: self.service,
                name: self.name.clone(),
                node_port: self.node_port,
                headless: self.headless.clone(),
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

/// How Services serve a fixture in one family; nothing of it where the API server gives Services no
/// addresses of that family.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Served {
    /// The Service's virtual address and port, where it has one.
    pub service: Option<(IpAddr, u16)>,
    pub name: Option<String>,
    pub node_port: Option<u16>,
    /// The name of its Service without an address.
    pub headless: Option<String>,
}

/// Where a load balancer answers, the first of `status.loadBalancer.ingress`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Balancer {
    /// Its address or name.
    pub at: String,
    /// Whether nodes and pods get to the Service's backends without it: it has an address, and no
    /// `ipMode` that is `Proxy` (KEP-1860).
    pub short_cut: bool,
}

impl Balancer {
    /// What a Service's status tells of it; `None` while there is nothing.
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
    /// How often its containers had been started again when it stood.
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

/// What stands of a run, for binding targets.
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
    /// All of its nodes, as the facts have them.
    pub node_facts: Arc<Vec<NodeFact>>,
    /// What lies outside the cluster.
    pub outside: Arc<Outside>,
    pub fixtures: BTreeMap<FixtureKey, ReadyFixture>,
}

impl ReadyFixtures {
    /// A run of which nothing stands yet.
    pub fn new(
        run: &str,
        [namespace, host_namespace]: [String; 2],
        facts: &Facts,
        outside: &Outside,
    ) -> Self {
        let all = facts.nodes.value().map(Vec::as_slice).unwrap_or_default();
        let mut nodes = Vec::new();
        for (pool, Pool { nodes: usable, .. }) in facts.pools() {
            nodes.extend(usable.into_iter().map(|name| {
                let mut own = all.iter().filter(|node| node.name == name);
                let own = own.next().map(|node| &node.details);
                let addresses = own.into_iter().flat_map(|details| &details.addresses);
                let internal = addresses.filter(|(kind, _)| kind == "InternalIP");
                PoolNode {
                    addresses: internal.filter_map(|(_, at)| at.parse().ok()).collect(),
                    kubelet: own.and_then(|details| details.kubelet_port),
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
            node_facts: Arc::new(all.to_vec()),
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

    /// Why a pod with a network of its own should have an address of this family: pods get one of each
    /// family that their node has a range of (Kubernetes, IPv4/IPv6 dual-stack), or others of its pool
    /// have one. Before Windows Server 2022 HNS gives none (hcsshim, `hcn/hcnglobals.go`).
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
        let pool = |name: &str| self.nodes.iter().find(|node| node.name == name);
        let pool = pool(&pod.node).map(|node| &node.pool)?;
        let beside = |node: &str| {
            self.nodes
                .iter()
                .any(|own| own.name == node && own.pool == *pool)
        };
        let fixtures = self.fixtures.iter();
        let own = fixtures.filter(|(key, _)| !key.name.is_on_node());
        let mut others = own.flat_map(|(_, fixture)| &fixture.pods);
        let has = |other: &&ReadyPod| {
            let mut addresses = other.addresses.iter();
            beside(&other.node)
                && addresses.any(|address| IpFamily::from_address(*address) == family)
        };
        let other = others.find(has)?;
        Some(format!("pod {} on {} has", other.name, other.node))
    }
}

/// Why nobody is asked of a fixture whose only pod is the one that observes.
pub(crate) fn assertions_alone(of: FixtureName) -> String {
    let of = of.as_str();
    format!("it observes from the only pod of {of}, which does not observe itself")
}

pub(crate) fn prober_lacks(what: &str) -> ObservationError {
    ErrorKind::FixtureFailed.error(format!("the prober has no {what}"))
}

/// Where an assertion is bound to: what stands, and the check's pool.
#[derive(Clone, Copy, Debug)]
pub struct Bound<'a> {
    pub ready: &'a ReadyFixtures,
    /// Where it observes from, when from somewhere.
    pub from: Option<&'a VantageKey>,
    /// The pool of the check's point.
    pub pool: Option<&'a PoolName>,
    /// The pool whose fixture is observed, where that is another axis of the point.
    pub to: Option<&'a PoolName>,
    /// The node whose prober is observed, where each is.
    pub node: Option<NodeOrdinal>,
    /// That pool's build.
    pub build: Option<WindowsBuild>,
    /// The image the pool's sample should run.
    pub image: Option<&'a str>,
    /// The family that is observed; the cluster's first where none is named.
    pub family: Option<IpFamily>,
    /// Whether what is asked as often as it takes to meet every pod is asked once: whether anybody
    /// answers is all that it tells then.
    pub once: bool,
}

impl<'a> Bound<'a> {
    /// Bound to what stands, and to nothing else.
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

    /// The word of the check's pool; none where it has no pool.
    pub(crate) fn pool_word(&self) -> &'a str {
        self.pool.map_or("", PoolName::as_str)
    }

    /// The path of a fixture's objects at the check's pool.
    pub(crate) fn path_of(&self, plural: &str, fixture: &str) -> String {
        let (namespace, run, pool) = (&self.ready.namespace, &self.ready.run, self.pool_word());
        format!(
            "/api/v1/namespaces/{namespace}/{plural}?labelSelector=winconform%2Frun%3D{run}\
             %2Cwinconform%2Ffixture%3D{fixture}%2Cwinconform%2Fpool%3D{pool}"
        )
    }

    /// Of somebody's addresses that of the family that is observed.
    pub(crate) fn of_family(&self, addresses: &[IpAddr]) -> Option<IpAddr> {
        let mut addresses = addresses.iter().copied();
        match self.family {
            None => addresses.next(),
            Some(family) => addresses.find(|address| IpFamily::from_address(*address) == family),
        }
    }

    /// Why there is nothing to ask over the family that is observed: the pod that observes has no
    /// address of it, or none of those that are observed has one. An error where they should have:
    /// what is asked was not observed, and no claim is refuted by that.
    pub(crate) fn without_family(&self, of: Option<FixtureName>) -> Result<Option<String>> {
        let Some(family) = self.family else {
            return Ok(None);
        };
        let lacks = |pod: &ReadyPod| self.of_family(&pod.addresses).is_none();
        // Pods on their nodes' networks have what the nodes have
        let told = |lack: String, with_networks: &[ReadyPod]| {
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
                Some(from) if !from.kind.is_pod() => told(lack, &[]),
                _ => told(lack, std::slice::from_ref(here)),
            };
        }
        let Some(of) = of else {
            return Ok(None);
        };
        match self.fixture(of).ok().map(|fixture| &*fixture.pods) {
            Some(pods @ [_, ..]) if pods.iter().all(lacks) => {
                let lack = format!("the pods of {} have no {family} address", of.as_str());
                match of.is_on_node() {
                    true => told(lack, &[]),
                    false => told(lack, pods),
                }
            }
            _ => Ok(None),
        }
    }

    pub fn fixture(&self, name: FixtureName) -> Result<&'a ReadyFixture> {
        self.standing(&name.in_pool(self.to.or(self.pool)).on(self.node))
    }

    /// The prober that is observed from.
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

    /// The pod that is observed from.
    pub fn vantage(&self) -> Result<&'a ReadyPod> {
        let pods = &self.prober()?.pods;
        pods.first().ok_or_else(|| prober_lacks("pod"))
    }

    /// The cluster's DNS suffix; what nobody has told is not assumed.
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
