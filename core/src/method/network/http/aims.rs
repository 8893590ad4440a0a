//! A target bound to ready fixtures: the requests of one assertion.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr};

use super::Target;
use super::binding::Binding;
use super::sample::sample;
use crate::fixture::FixtureName;
use crate::method::error::{ErrorKind, ObservationError, Result};
use crate::method::exchange::{Host, HttpGet};
use crate::method::place::{Bound, PoolNode, ReadyFixture, ReadyPod, prober_lacks};
use crate::method::vantage::SourceKind;

/// Adds the same requests at port 80.
fn by_80_too(mut aims: Aims<'_>) -> Aims<'_> {
    let by_80 = aims.each.iter().cloned().map(|mut aim| {
        aim.get.port = PORT_80;
        aim.shown = format!("port {PORT_80} of {}", aim.shown);
        aim
    });
    let by_80: Vec<_> = by_80.collect();
    aims.each.extend(by_80);
    aims
}

impl Target {
    /// The requests to a fixture, through the Services of another where one is named.
    pub(crate) fn aims<'a>(
        self,
        of: Option<FixtureName>,
        through: Option<FixtureName>,
        at: &Bound<'a>,
    ) -> Result<Aims<'a>> {
        if self.has_families()
            && let Some(absent) = at.without_family(of)?
        {
            return Ok(Aims::none(absent));
        }
        let without = || ErrorKind::FixtureFailed.error("the target has no fixture");
        let bound = || Binding::to_fixture(of.ok_or_else(without)?, through, at);
        if self.is_of_a_service()
            && let Some(absent) = without_service(bound()?.serving, at)?
        {
            return Ok(Aims::none(absent));
        }
        match self {
            Self::Pods => bound()?.pods(|_| true),
            Self::PodsOnSameNode => bound()?.pods_here(),
            Self::PodsOnOtherNodes => {
                let here = &at.vantage()?.node;
                bound()?.pods(|pod| pod.node != *here)
            }
            Self::Port80OnOtherNodes => {
                let here = &at.vantage()?.node;
                Ok(by_80_too(bound()?.pods(|pod| pod.node != *here)?))
            }
            Self::PodsBehindService => bound()?.pods_behind_service(),
            Self::EveryPodBehindServiceIp if !at.once => {
                let binding = bound()?;
                let pods = &binding.fixture.pods;
                Ok(Aims {
                    all: pods.iter().map(|pod| pod.name.clone()).collect(),
                    ..Aims::from_each(vec![binding.service()?; requests_to_meet(pods.len())])
                })
            }
            Self::OnePodBehindServiceIp if !at.once => {
                let binding = bound()?;
                let requests = requests_to_meet(binding.fixture.pods.len());
                Ok(Aims::from_each(vec![binding.service()?; requests]))
            }
            Self::ServiceIp | Self::EveryPodBehindServiceIp | Self::OnePodBehindServiceIp => {
                Ok(Aims::from_each([bound()?.service()?]))
            }
            Self::OtherServiceIp => Ok(Aims::from_each([bound()?.other_service()?])),
            Self::EveryServicePort => Ok(Aims::from_each(bound()?.service_ports()?)),
            Self::ServiceIpOnSameNode => bound()?.service_from_here(),
            Self::ShortName => Ok(Aims::from_each([bound()?.by_name(None)?])),
            Self::NamespacedName => Ok(Aims::from_each([bound()?.by_name(Some(String::new()))?])),
            Self::FullName => {
                let below = format!(".svc.{}", at.domain()?);
                Ok(Aims::from_each([bound()?.by_name(Some(below))?]))
            }
            Self::SourceSeenByPods => {
                let source = at.vantage()?;
                let mut aims = bound()?.pods(|pod| pod.name != source.name)?;
                for aim in &mut aims.each {
                    "/clientip".clone_into(&mut aim.get.path);
                    aim.by = std::slice::from_ref(source);
                }
                Ok(aims)
            }
            Self::HeadlessName => Ok(Aims::from_each([bound()?.headless()?])),
            Self::Alias => Ok(Aims::from_each([bound()?.alias()?])),
            Self::LoadBalancer => bound()?.balancer(),
            Self::PodsWithLongPayload => {
                let here = &at.vantage()?.name;
                let mut aims = bound()?.pods(|pod| pod.name != *here)?;
                let payload = long_payload(&at.ready.run);
                for aim in &mut aims.each {
                    aim.get.path = format!("/echo?msg={payload}");
                    aim.by = &[];
                    aim.says = Some(Cow::Owned(payload.clone()));
                }
                Ok(aims)
            }
            Self::Nodes | Self::OtherNodes | Self::OwnNode => kubelets(self, at),
            Self::Itself => itself(at, false),
            Self::ItselfByService => itself(at, true),
            Self::Metadata => Ok(metadata()),
            Self::OutsideNames | Self::OutsideAddresses => Ok(self.outside(at)),
            Self::NodePorts => bound()?.node_ports(|_| true),
            Self::NodePortsWithoutBackend => bound()?.node_ports_without_backend(),
            Self::NodePortsOfPool => {
                let pool = at.to.or(at.pool);
                bound()?.node_ports(|node| Some(&node.pool) == pool)
            }
            Self::NodePortsOfOtherNodes => bound()?.node_ports_of_others(&at.vantage()?.node),
            Self::OwnNodePort => bound()?.own_node_port(),
        }
    }
}

impl Target {
    /// The requests to targets outside the cluster, each of which its text identifies.
    fn outside<'a>(self, at: &Bound<'a>) -> Aims<'a> {
        let targets = self.set(&at.ready.outside).iter().map(|target| {
            let host = target.address().map(Host::Address);
            let host = host.unwrap_or_else(|| Host::Name(target.host.clone()));
            Aim {
                says: Some(Cow::Borrowed(&target.says)),
                ..Aim::to_host(host, target.port, &target.path, target.to_string())
            }
        });
        Aims::from_each(targets.chain(self.name_of_the_cluster(at)))
    }

    /// The request that shows whether the cluster's DNS works at all, by the name of the prober's own
    /// Service. Only a Linux pod sends it: its failure with names outside would otherwise excuse Windows.
    pub(super) fn name_of_the_cluster<'a>(self, at: &Bound<'a>) -> Option<Aim<'a>> {
        let asks = self == Self::OutsideNames && at.from?.kind == SourceKind::LinuxPod;
        let prober = at.prober().ok().filter(|_| asks)?;
        let (name, (_, port)) = (prober.name.as_ref()?, prober.service?);
        let name = at.full_name(name).ok()?;
        Some(Aim::to_host(Host::Name(name.clone()), port, "/", name))
    }
}

/// The requests to the kubelets of nodes, or of a sample of many. A kubelet answers plain HTTP with its own
/// words, which show that it was reached.
fn kubelets<'a>(of: Target, at: &Bound<'a>) -> Result<Aims<'a>> {
    let here = match of {
        Target::Nodes => None,
        _ => Some(&at.vantage()?.node),
    };
    let own = of == Target::OwnNode;
    let is_wanted = |node: &&PoolNode| here.is_none_or(|here| (node.name == *here) == own);
    let among: Vec<_> = at.ready.nodes.iter().filter(is_wanted).collect();
    if let (Some(here), true, false) = (here, among.is_empty(), at.ready.nodes.is_empty()) {
        return match own {
            true => Err(unknown("address", here)),
            false => Ok(Aims::none(format!(
                "it observes from node {here}, and no other is usable"
            ))),
        };
    }
    let aim = |node: &PoolNode| {
        let unknown = |what: &str| unknown(what, &node.name);
        let address = at.of_family(&node.addresses);
        let address = address.ok_or_else(|| unknown("address"))?;
        let port = node.kubelet.ok_or_else(|| unknown("kubelet's port"))?;
        let shown = format!("kubelet of node {}", node.name);
        Ok(Aim::to_host(Host::Address(address), port, "/", shown))
    };
    // Nodes may lack addresses of a second family though pods have them; a node without any known address may
    // have one
    let may_have = |node: &&PoolNode| {
        let of_family = at.of_family(&node.addresses);
        at.family.is_none() || of_family.is_some() || node.addresses.is_empty()
    };
    let is_any = !among.is_empty();
    let nodes = sample(&at.ready.run, among.into_iter().filter(may_have));
    let each: Vec<_> = nodes.into_iter().map(aim).collect::<Result<_>>()?;
    match (each.is_empty(), at.family) {
        (true, Some(family)) if is_any => {
            Ok(Aims::none(format!("no node has an {family} address")))
        }
        (true, _) => Err(ErrorKind::FactUnknown.error("no node is known of")),
        (false, _) => Ok(Aims::from_each(each)),
    }
}

/// The error for an unknown property of a node.
pub(super) fn unknown(what: &str, node: &str) -> ObservationError {
    ErrorKind::FactUnknown.error(format!("the {what} of node {node}"))
}

/// The pod that observes, by its own address or through its Service.
fn itself<'a>(at: &Bound<'a>, by_service: bool) -> Result<Aims<'a>> {
    let (prober, pod) = (at.prober()?, at.vantage()?);
    let (address, port, shown) = match by_service {
        true => {
            if let Some(absent) = without_service(prober, at)? {
                return Ok(Aims::none(absent));
            }
            let service = prober.served(at.family)?.service;
            let (address, port) = service.ok_or_else(|| prober_lacks("Service address"))?;
            (address, port, format!("its own Service IP {address}"))
        }
        false => {
            let address = at
                .of_family(&pod.addresses)
                .ok_or_else(|| prober_lacks("address"))?;
            let port = prober.port.ok_or_else(|| prober_lacks("port"))?;
            (address, port, format!("its own address {address}"))
        }
    };
    Ok(Aims::from_each([Aim {
        by: std::slice::from_ref(pod),
        ..Aim::to_host(Host::Address(address), port, "/hostname", shown)
    }]))
}

/// The request for a machine's metadata.
fn metadata<'a>() -> Aims<'a> {
    let shown = format!("{METADATA}, where clouds serve metadata");
    Aims::from_each([Aim::to_host(Host::Address(METADATA), PORT_80, "/", shown)])
}

/// A payload longer than a jumbo frame (9,000 bytes), which only this run sends.
fn long_payload(run: &str) -> String {
    let once = format!("{run}-");
    once.repeat(LONG.div_ceil(once.len()))
}

/// The least length of a long payload, in bytes.
const LONG: usize = 12_000;

pub(super) const PORT_80: u16 = 80;

/// Where AWS, Azure and Google Cloud each serve the metadata of a virtual machine.
const METADATA: IpAddr = IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254));

#[derive(Clone, Debug)]
pub(crate) struct Aim<'a> {
    pub(crate) get: HttpGet,
    /// The target, in words.
    pub(crate) shown: String,
    /// The pods that may answer; empty where any host may.
    pub(crate) by: &'a [ReadyPod],
    /// The text that each answer of the right host holds.
    pub(crate) says: Option<Cow<'a, str>>,
}

impl Aim<'_> {
    /// A request that any host may answer.
    pub(super) fn to_host(host: Host, port: u16, path: &str, shown: String) -> Self {
        let path = path.to_owned();
        Self {
            get: HttpGet { host, port, path },
            shown,
            by: &[],
            says: None,
        }
    }
}

/// The requests of one assertion.
#[derive(Debug, Default)]
pub(crate) struct Aims<'a> {
    pub(crate) each: Vec<Aim<'a>>,
    /// The names of the pods that must each answer at least once.
    pub(crate) all: Vec<String>,
    /// Why there is nothing to ask.
    pub(crate) absent: Option<String>,
}

impl<'a> Aims<'a> {
    /// No requests, and why.
    pub(super) fn none(reason: String) -> Self {
        Self {
            absent: Some(reason),
            ..Self::default()
        }
    }

    pub(super) fn from_each(each: impl IntoIterator<Item = Aim<'a>>) -> Self {
        Self {
            each: each.into_iter().collect(),
            ..Self::default()
        }
    }
}

/// Why a fixture has no Service in the second family, where that family is observed and the API server gives
/// Services no addresses of it.
pub(super) fn without_service(fixture: &ReadyFixture, at: &Bound<'_>) -> Result<Option<String>> {
    let Some(family) = at.family else {
        return Ok(None);
    };
    let none = fixture.served(at.family)?.service.is_none();
    Ok(none.then(|| format!("the API server gives Services no {family} addresses")))
}

/// Whether a body names a pod, by its name or one of its addresses, and not as a part of another's.
pub(crate) fn is_of(body: &str, pod: &ReadyPod) -> bool {
    let addresses = pod.addresses.iter().map(ToString::to_string);
    let mut words = addresses.chain([pod.name.clone()]);
    words.any(|word| {
        body.match_indices(&word).any(|(at, _)| {
            // A port may follow an IPv4 address
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

/// The least number of requests: a Service that loses one connection in five loses one of these in 95 of 100
/// runs (`1 - 0.8^n`).
pub const AT_LEAST: usize = 14;

/// How many requests, each over its own connection, it takes until the chance that one of `pods` gets none is
/// below one in a million, with backends chosen at random: `pods * (1 - 1/pods)^n`. They find a loss of
/// connections, too.
fn requests_to_meet(pods: usize) -> usize {
    let mut requests = 1;
    let pods = f64::from(u32::try_from(pods).unwrap_or(u32::MAX));
    let missed = 1.0 - 1.0 / pods;
    let mut chance = pods * missed;
    while chance >= 1e-6 {
        chance *= missed;
        requests += 1;
    }
    requests.max(AT_LEAST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_false_alarm_is_rarer_than_one_in_a_million() {
        // The number that finds a loss of one connection in five in 95 of 100 runs
        assert_eq!(requests_to_meet(1), 14);
        // 2 * (1/2)^20 is still above one in a million
        assert_eq!(requests_to_meet(2), 21);
        assert_eq!(requests_to_meet(3), 37);
    }

    #[test]
    fn a_body_is_of_the_pod_it_names_and_of_no_other() {
        let pod = |name: &str, address: [u8; 4]| ReadyPod {
            name: name.to_owned(),
            uid: String::new(),
            node: "n".to_owned(),
            addresses: vec![address.into()],
            restarts: 0,
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
        let six = ReadyPod {
            addresses: vec!["fd00::1".parse().expect("an address")],
            ..one
        };
        assert!(is_of("[fd00::1]:49152", &six));
        assert!(!is_of("fd00::1:2", &six));
    }
}
