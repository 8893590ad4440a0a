//! A target bound to what stands of it: the requests of one look.

use std::borrow::Cow;
use std::net::IpAddr;

use super::Target;
use super::sample::sample;
use crate::config::Target as OutsideTarget;
use crate::facts::PoolName;
use crate::way::exchange::{Host, HttpGet};
use crate::way::fixture::FixtureName;
use crate::way::place::{Bound, StandingFixture, StandingNode, StandingPod};
use crate::way::trouble::{Trouble, TroubleKind};

impl Target {
    /// What to ask of a fixture.
    pub(in crate::way) fn aims<'a>(
        self,
        of: Option<FixtureName>,
        at: &Bound<'a>,
    ) -> Result<Aims<'a>, Trouble> {
        match self {
            Self::Nodes => return kubelets(at),
            Self::Itself => return itself(at, false),
            Self::ItselfByService => return itself(at, true),
            Self::OutsideNames | Self::OutsideAddresses => {
                return Ok(outside(self.set(&at.standing.outside)));
            }
            _ => {}
        }
        let nobody = || Trouble::new(TroubleKind::FixtureFailed, "nobody is asked for it");
        let of = of.ok_or_else(nobody)?;
        let fixture = at.fixture(of)?;
        let binding = Binding { of, fixture, at };
        match self {
            Self::Pods => binding.pods(|_| true),
            Self::PodsOnSameNode => {
                let here = &at.vantage()?.node;
                binding.pods(|pod| pod.node == *here)
            }
            Self::PodsOnOtherNodes => {
                let here = &at.vantage()?.node;
                binding.pods(|pod| pod.node != *here)
            }
            Self::ServiceIp => Ok(Aims::of([binding.service()?])),
            Self::EveryPodBehindServiceIp => {
                let aim = binding.service()?;
                Ok(Aims {
                    each: vec![aim; requests_to_meet(fixture.pods.len())],
                    all: fixture.pods.iter().map(|pod| pod.name.clone()).collect(),
                    absent: None,
                })
            }
            Self::ShortName => Ok(Aims::of([binding.by_name(None)?])),
            Self::NamespacedName => Ok(Aims::of([binding.by_name(Some(String::new()))?])),
            Self::FullName => {
                let below = format!(".svc.{}", at.domain()?);
                Ok(Aims::of([binding.by_name(Some(below))?]))
            }
            Self::SourceSeenByPods => {
                let source = std::slice::from_ref(at.vantage()?);
                let mut aims = binding.pods(|_| true)?;
                for aim in &mut aims.each {
                    "/clientip".clone_into(&mut aim.get.path);
                    aim.by = source;
                }
                Ok(aims)
            }
            Self::HeadlessName => Ok(Aims::of([binding.headless()?])),
            Self::Alias => Ok(Aims::of([binding.alias()?])),
            Self::LoadBalancer => binding.balancer(),
            Self::PodsWithLongPayload => {
                let here = &at.vantage()?.name;
                let mut aims = binding.pods(|pod| pod.name != *here)?;
                let payload = long_payload(&at.standing.run);
                for aim in &mut aims.each {
                    aim.get.path = format!("/echo?msg={payload}");
                    aim.by = &[];
                    aim.says = Some(Cow::Owned(payload.clone()));
                }
                Ok(aims)
            }
            Self::Nodes
            | Self::Itself
            | Self::ItselfByService
            | Self::OutsideNames
            | Self::OutsideAddresses => Err(nobody()),
            Self::NodePorts => binding.node_ports(|_| true),
            Self::NodePortsOfPool => {
                let pool = at.to.or(at.pool);
                binding.node_ports(|node| Some(&node.pool) == pool)
            }
            Self::OwnNodePort => {
                let here = &at.vantage()?.node;
                let mut nodes = at.standing.nodes.iter();
                let aim = match nodes.find(|node| node.name == *here) {
                    Some(node) => binding.node_port(node)?,
                    None => None,
                };
                let unknown = || {
                    let detail = format!("the address of node {here}");
                    Trouble::new(TroubleKind::FactUnknown, detail)
                };
                Ok(Aims::of([aim.ok_or_else(unknown)?]))
            }
        }
    }
}

/// The kubelet of every node, or of a sample of many, which answers plain HTTP with words of its
/// own: who answers so was reached.
fn kubelets<'a>(at: &Bound<'a>) -> Result<Aims<'a>, Trouble> {
    let aim = |node: &StandingNode| {
        let unknown = |what: &str| {
            let detail = format!("the {what} of node {}", node.name);
            Trouble::new(TroubleKind::FactUnknown, detail)
        };
        let address = node.addresses.first().ok_or_else(|| unknown("address"))?;
        let port = node.kubelet.ok_or_else(|| unknown("kubelet's port"))?;
        Ok(Aim {
            get: HttpGet {
                host: Host::Address(*address),
                port,
                path: "/".to_owned(),
            },
            shown: format!("kubelet of node {}", node.name),
            by: &[],
            says: None,
        })
    };
    let nodes = sample(&at.standing.run, &at.standing.nodes);
    let each: Vec<_> = nodes.into_iter().map(aim).collect::<Result<_, Trouble>>()?;
    match each.is_empty() {
        true => Err(Trouble::new(
            TroubleKind::FactUnknown,
            "no node is known of",
        )),
        false => Ok(Aims::of(each)),
    }
}

/// The pod that looks, by its own address or through its Service.
fn itself<'a>(at: &Bound<'a>, by_service: bool) -> Result<Aims<'a>, Trouble> {
    let lacks = |what: &str| {
        let detail = format!("the prober has no {what}");
        Trouble::new(TroubleKind::FixtureFailed, detail)
    };
    let (prober, pod) = (at.prober()?, at.vantage()?);
    let (address, port, shown) = match by_service {
        true => {
            let (address, port) = prober.service.ok_or_else(|| lacks("Service address"))?;
            (address, port, format!("its own Service IP {address}"))
        }
        false => {
            let address = *pod.addresses.first().ok_or_else(|| lacks("address"))?;
            let port = prober.port.ok_or_else(|| lacks("port"))?;
            (address, port, format!("its own address {address}"))
        }
    };
    Ok(Aims::of([Aim {
        get: HttpGet {
            host: Host::Address(address),
            port,
            path: "/hostname".to_owned(),
        },
        shown,
        by: std::slice::from_ref(pod),
        says: None,
    }]))
}

/// More than a jumbo frame holds (9,000 bytes), and nobody else's.
fn long_payload(run: &str) -> String {
    let once = format!("{run}-");
    once.repeat(LONG.div_ceil(once.len()))
}

/// The least of a long payload, in bytes.
const LONG: usize = 12_000;

/// What lies outside the cluster, each known by what it says.
fn outside(targets: &[OutsideTarget]) -> Aims<'_> {
    Aims::of(targets.iter().map(|target| {
        let host = target.address().map(Host::Address);
        let host = host.unwrap_or_else(|| Host::Name(target.host.clone()));
        Aim {
            get: HttpGet {
                host,
                port: target.port,
                path: target.path.clone(),
            },
            shown: target.to_string(),
            by: &[],
            says: Some(Cow::Borrowed(&target.says)),
        }
    }))
}

/// One request.
#[derive(Clone, Debug)]
pub(in crate::way) struct Aim<'a> {
    pub(in crate::way) get: HttpGet,
    /// The target, in words.
    pub(in crate::way) shown: String,
    /// The pods that may answer; anyone where there is none.
    pub(in crate::way) by: &'a [StandingPod],
    /// What any answer of whoever is meant holds.
    pub(in crate::way) says: Option<Cow<'a, str>>,
}

/// The requests of one look.
#[derive(Debug)]
pub(in crate::way) struct Aims<'a> {
    pub(in crate::way) each: Vec<Aim<'a>>,
    /// The names of the pods that must each answer at least once.
    pub(in crate::way) all: Vec<String>,
    /// Why there is nothing to ask.
    pub(in crate::way) absent: Option<String>,
}

impl<'a> Aims<'a> {
    pub(super) fn of(each: impl IntoIterator<Item = Aim<'a>>) -> Self {
        Self {
            each: each.into_iter().collect(),
            all: Vec::new(),
            absent: None,
        }
    }
}

/// A fixture about to be asked.
pub(super) struct Binding<'b, 'a> {
    of: FixtureName,
    fixture: &'a StandingFixture,
    pub(super) at: &'b Bound<'a>,
}

impl<'a> Binding<'_, 'a> {
    fn pods(&self, wanted: impl Fn(&StandingPod) -> bool) -> Result<Aims<'a>, Trouble> {
        let port = self.fixture.port.ok_or_else(|| self.lacks("port"))?;
        let pods = self.fixture.pods.iter();
        let aims = pods.filter(|pod| wanted(pod)).map(|pod| {
            let address = pod.addresses.first();
            let address = address.ok_or_else(|| self.lacks("address of each pod"))?;
            Ok(Aim {
                get: self.get(Host::Address(*address), port),
                shown: format!("pod {} on {}", pod.name, pod.node),
                by: std::slice::from_ref(pod),
                says: None,
            })
        });
        let each: Vec<_> = aims.collect::<Result<_, Trouble>>()?;
        let absent = each.is_empty().then(|| {
            let nodes: std::collections::BTreeSet<_> =
                self.fixture.pods.iter().map(|pod| &*pod.node).collect();
            let nodes: Vec<_> = nodes.into_iter().collect();
            let here = self.at.vantage().map_or("nowhere", |pod| &pod.node);
            format!(
                "it looks from node {here}, and the pods of {} are on {}",
                self.of.as_str(),
                nodes.join(", ")
            )
        });
        Ok(Aims {
            each,
            all: Vec::new(),
            absent,
        })
    }

    fn service(&self) -> Result<Aim<'a>, Trouble> {
        let (address, port) = self.address()?;
        let host = Host::Address(address);
        Ok(self.to(format!("Service IP {host}"), host, port))
    }

    /// The Service by its name, with its namespace and `below` where that is given.
    fn by_name(&self, below: Option<String>) -> Result<Aim<'a>, Trouble> {
        let (_, port) = self.address()?;
        let name = self.fixture.name.as_ref();
        let name = name.ok_or_else(|| self.lacks("Service name"))?;
        let name = match below {
            None => name.clone(),
            Some(below) => format!("{name}.{}{below}", self.at.standing.namespace),
        };
        Ok(self.to(name.clone(), Host::Name(name), port))
    }

    /// The Service without an address by its full name, on the port of the pods.
    fn headless(&self) -> Result<Aim<'a>, Trouble> {
        let port = self.fixture.port.ok_or_else(|| self.lacks("port"))?;
        let name = self.fixture.headless.as_ref();
        let name = name.ok_or_else(|| self.lacks("headless Service"))?;
        let name = self.full(name)?;
        Ok(self.to(name.clone(), Host::Name(name), port))
    }

    /// The Service that stands for this one's name, by its full name.
    fn alias(&self) -> Result<Aim<'a>, Trouble> {
        let (_, port) = self.address()?;
        let alias = self.at.fixture(FixtureName::Alias)?;
        let name = alias.name.as_ref().ok_or_else(|| self.lacks("alias"))?;
        let name = self.full(name)?;
        Ok(self.to(name.clone(), Host::Name(name), port))
    }

    /// The full name of a Service of the run.
    fn full(&self, name: &str) -> Result<String, Trouble> {
        let (namespace, domain) = (&self.at.standing.namespace, self.at.domain()?);
        Ok(format!("{name}.{namespace}.svc.{domain}"))
    }

    fn node_ports(&self, wanted: impl Fn(&StandingNode) -> bool) -> Result<Aims<'a>, Trouble> {
        let nodes = self.at.standing.nodes.iter();
        let nodes = nodes
            .filter(|node| wanted(node))
            .filter(|node| node.pool == PoolName::linux() || self.has_our_pods(node));
        let aims = sample(&self.at.standing.run, nodes)
            .into_iter()
            .filter_map(|node| self.node_port(node).transpose());
        let each: Vec<_> = aims.collect::<Result<_, _>>()?;
        match each.is_empty() {
            true => {
                let of_ipv4 = self.address()?.0.is_ipv4();
                let family = if of_ipv4 { "IPv4" } else { "IPv6" };
                Err(self.lacks(&format!("node with an address of its family, {family}")))
            }
            false => Ok(Aims::of(each)),
        }
    }

    /// The node port at a node; `None` where the node has no address of the Service's family.
    fn node_port(&self, node: &StandingNode) -> Result<Option<Aim<'a>>, Trouble> {
        let (service, _) = self.address()?;
        let port = self
            .fixture
            .node_port
            .ok_or_else(|| self.lacks("node port"))?;
        let mut addresses = node.addresses.iter();
        let address = addresses.find(|address| address.is_ipv4() == service.is_ipv4());
        let aim = |address: &IpAddr| {
            let shown = format!("port {port} of node {}", node.name);
            self.to(shown, Host::Address(*address), port)
        };
        Ok(address.map(aim))
    }

    /// Windows forwards a node port only where at least one pod runs (Microsoft, common-problems.md,
    /// "my Kubernetes NodePort"): nodes without one of ours are nobody's fault.
    fn has_our_pods(&self, node: &StandingNode) -> bool {
        let pods = self.at.standing.fixtures.iter();
        let mut pods = pods
            .filter(|(key, _)| key.name != FixtureName::WindowsNodeProber)
            .flat_map(|(_, fixture)| &fixture.pods);
        pods.any(|pod| pod.node == node.name)
    }

    pub(super) fn address(&self) -> Result<(IpAddr, u16), Trouble> {
        self.fixture
            .service
            .ok_or_else(|| self.lacks("Service address"))
    }

    pub(super) fn to(&self, shown: String, host: Host, port: u16) -> Aim<'a> {
        Aim {
            get: self.get(host, port),
            shown,
            // IIS' own page tells of no pod
            by: match self.of {
                FixtureName::Iis => &[],
                _ => &self.fixture.pods,
            },
            says: None,
        }
    }

    fn get(&self, host: Host, port: u16) -> HttpGet {
        let path = match self.of {
            // agnhost answers any other path with the time
            FixtureName::LinuxServer
            | FixtureName::LinuxPodProber
            | FixtureName::WindowsPodProber
            | FixtureName::Churn
            | FixtureName::PolicyDenied
            | FixtureName::PolicyAllowed => "/hostname",
            _ => "/",
        };
        HttpGet {
            host,
            port,
            path: path.to_owned(),
        }
    }

    pub(super) fn lacks(&self, what: &str) -> Trouble {
        let detail = format!("{} has no {what}", self.of.as_str());
        Trouble::new(TroubleKind::FixtureFailed, detail)
    }
}

/// Whether a body is of a pod: it says its name or one of its addresses, and not as a part of
/// another's.
pub(in crate::way) fn is_of(body: &str, pod: &StandingPod) -> bool {
    let addresses = pod.addresses.iter().map(ToString::to_string);
    let mut words = addresses.chain([pod.name.clone()]);
    words.any(|word| {
        body.match_indices(&word).any(|(at, _)| {
            // After an IPv4 address a port may stand
            let colon = word.contains(':');
            let goes_on = |next: Option<char>| {
                next.is_some_and(|c| {
                    c.is_ascii_alphanumeric() || matches!(c, '-' | '.') || colon && c == ':'
                })
            };
            !goes_on(body[..at].chars().next_back())
                && !goes_on(body[at + word.len()..].chars().next())
        })
    })
}

/// So many requests over connections of their own that, with backends chosen at random, the
/// chance that one of `pods` meets none is below one in a million: `pods * (1 - 1/pods)^n`.
fn requests_to_meet(pods: usize) -> usize {
    let mut requests = 1;
    let pods = f64::from(u32::try_from(pods).unwrap_or(u32::MAX));
    let missed = 1.0 - 1.0 / pods;
    let mut chance = pods * missed;
    while chance >= 1e-6 {
        chance *= missed;
        requests += 1;
    }
    requests
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_false_alarm_is_rarer_than_one_in_a_million() {
        assert_eq!(requests_to_meet(1), 1);
        // 2 * (1/2)^20 is still above one in a million
        assert_eq!(requests_to_meet(2), 21);
        assert_eq!(requests_to_meet(3), 37);
    }

    #[test]
    fn a_body_is_of_the_pod_it_names_and_of_no_other() {
        let pod = |name: &str, address: [u8; 4]| StandingPod {
            name: name.to_owned(),
            uid: String::new(),
            node: "n".to_owned(),
            addresses: vec![address.into()],
        };
        let (one, other) = (pod("web-1", [10, 0, 0, 1]), pod("web-12", [10, 0, 0, 12]));
        for (body, of_one, of_other) in [
            ("web-1", true, false),
            ("web-12\n", false, true),
            ("<p>IP 10.0.0.1</p>", true, false),
            ("<p>IP 10.0.0.12 callerCount 1", false, true),
            ("a-web-1", false, false),
            ("10.0.0.1:49152", true, false),
            ("110.0.0.1", false, false),
            ("welcome", false, false),
        ] {
            assert_eq!(is_of(body, &one), of_one, "{body}");
            assert_eq!(is_of(body, &other), of_other, "{body}");
        }
        let six = StandingPod {
            addresses: vec!["fd00::1".parse().expect("an address")],
            ..one
        };
        assert!(is_of("[fd00::1]:49152", &six));
        assert!(!is_of("fd00::1:2", &six));
    }
}
