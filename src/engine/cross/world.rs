//! A healthy cluster of three builds in memory, and what the checks see of it.
//!
//! Facts, plan, manifests, requests, curl's sessions, readers and judges are the run's own; only
//! the scheduler, the controllers and the API server are not there.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::Range;
use std::time::Duration;

use hybrid_sim::memory::{Memory, Reply as Ran, Request as Exec};
use hybrid_sim::{FaultSet, NamedTopology, NodeSpec, Os as SimOs, Topology};
use serde_json::{Value as Json, json};
use winconform_core::command::{Command, HttpSession, Token};
use winconform_core::config::{Config, Durations, Images, Outside};
use winconform_core::facts::{
    Cni, Facts, Known, LoadBalancerFact, NodeDetails, NodeFact, Os, Pool, PoolName, WindowsBuild,
    WorkloadsFact,
};
use winconform_core::plan::{Check, Fate, Plan, PlannedLook, plan};
use winconform_core::suite::Suites;
use winconform_core::verdict::{Verdict, judge};
use winconform_core::way::ping::session;
use winconform_core::way::{
    Bound, ExecReply, ExitStatus, FixtureKey, FixtureName, HttpGet, HttpReply, PingReply, Reply,
    Request, SourceKind, Standing, StandingFixture, Taken, Trouble, VantageKey, curl,
};

use super::super::manifest::{self, host_namespace, namespace, pool_of, prober};
use super::super::second_family;
use super::super::stands::{standing, standing_pod};
use super::super::suffix;
use crate::transport::PodRef;

const RUN: &str = "r1";
/// A look over the network of another area.
pub(super) const BALANCED: &str = "sample.iis-loadbalancer/answers";
/// Nobody in memory guesses it.
const TOKEN: &str = "f00d";

/// The verdicts of one look at everything, and what each rests on.
pub(super) type Seen = BTreeMap<String, (Verdict, String)>;

pub(super) struct World {
    memory: Memory,
    plan: Plan,
    standing: Standing,
    pools: BTreeMap<PoolName, Pool>,
}

impl World {
    /// Everything stands and nothing is broken yet; the API tells of this network plugin.
    pub(super) fn healthy(topology: &Topology, suites: &Suites, cni: Option<Cni>) -> Self {
        Self::made_under(FaultSet::default(), topology, suites, cni)
    }

    /// The same, while this was broken.
    pub(super) fn made_under(
        faults: FaultSet,
        topology: &Topology,
        suites: &Suites,
        cni: Option<Cni>,
    ) -> Self {
        let mut memory = Memory::new(topology, 0);
        memory.break_with(faults);
        let facts = facts(topology, &memory, cni);
        let config = Config {
            outside: Outside {
                reaches_nodes: true,
                load_balancers: true,
                ..Outside::default()
            },
            ..Config::default()
        };
        let mut plan = plan(suites, &facts, &config);
        let of_network =
            |check: &Check| check.claim.area() == "net" || check.id.as_str().starts_with(BALANCED);
        plan.checks.retain(of_network);
        let namespaces = [namespace(RUN), host_namespace(RUN)];
        let mut world = Self {
            memory,
            standing: Standing::new(RUN, namespaces, &facts, &config.outside),
            plan,
            pools: facts.pools(),
        };
        let pools = world.pools.clone();
        let fixtures = world.plan.fixtures();
        let namespaces = FixtureName::Namespaces.at(None);
        for key in std::iter::once(namespaces).chain(fixtures) {
            let stands = world.stand(&key, &pools);
            world.standing.fixtures.insert(key, stands);
        }
        world
    }

    pub(super) fn three_builds(suites: &Suites) -> Self {
        Self::healthy(&three_builds(), suites, None)
    }

    fn stand(&mut self, key: &FixtureKey, pools: &BTreeMap<PoolName, Pool>) -> StandingFixture {
        let pool = pool_of(key, pools);
        let (images, durations) = (Images::default(), Durations::default());
        // Of the prober in a Linux pod, which stands before
        let mut standing_by_now = self.standing.fixtures.values();
        let domain = standing_by_now.find_map(|fixture| fixture.domain.clone());
        let domain = domain.as_deref();
        let mut objects =
            manifest::objects(key, RUN, pool, &images, &durations, domain).expect("a manifest");
        let second = self.plan.second_family();
        let second = second.filter(|_| key.name.is_in_second_family());
        if let Some(family) = second {
            second_family::add(&mut objects, family);
        }
        let mut pods = Vec::new();
        for object in &mut objects {
            match object["kind"].as_str() {
                Some("Namespace") => self.memory.apply(object).expect("a namespace"),
                Some("NetworkPolicy") => self.memory.apply(object).expect("a policy"),
                Some("Pod") => {
                    // Kept from the first node, where the prober is
                    let at = object["spec"]["affinity"]["podAntiAffinity"].is_object();
                    pods.extend(self.place(object, usize::from(at), pool));
                }
                Some("Deployment") => {
                    let replicas = object["spec"]["replicas"].as_u64().expect("a number");
                    for replica in 0..usize::try_from(replicas).expect("few") {
                        let mut pod = object["spec"]["template"].clone();
                        pod["kind"] = json!("Pod");
                        let name = object["metadata"]["name"].as_str().expect("a name");
                        pod["metadata"]["name"] = json!(format!("{name}-{replica}"));
                        pod["metadata"]["namespace"] = object["metadata"]["namespace"].clone();
                        pods.extend(self.place(&pod, replica, pool));
                    }
                }
                Some("Service") => {
                    self.memory.apply(object).expect("a Service");
                    let name = object["metadata"]["name"].as_str().expect("a name");
                    let address = self.memory.address("Service", &namespace(RUN), name);
                    let node_port = self.memory.node_port(&namespace(RUN), name);
                    let balancer = self.memory.balancer(&namespace(RUN), name);
                    if object["spec"]["clusterIP"].is_null() {
                        object["spec"]["clusterIP"] = json!(address);
                    }
                    if let Some(ports) = object["spec"]["ports"].as_array_mut() {
                        ports[0]["nodePort"] = json!(node_port);
                    }
                    if let Some(address) = balancer {
                        object["status"]["loadBalancer"]["ingress"] = json!([{"ip": address}]);
                    }
                }
                // Nothing in memory asks for these
                _ => {}
            }
        }
        if key.name == FixtureName::Churn {
            pods = self.replaced(&pods, pool);
        }
        let pods = pods.iter().filter_map(standing_pod).collect();
        let mut stands = standing(&objects, pods);
        if second.is_some() {
            second_family::complete(&mut stands, &objects, None);
        }
        if key.name == FixtureName::LinuxPodProber {
            let pod = PodRef {
                namespace: namespace(RUN),
                name: manifest::name("prober", key),
                container: "prober".to_owned(),
            };
            let ask = Command::DnsSuffix.on(Os::Linux).expect("of Linux");
            stands.domain = suffix::read(&self.exec(&pod, ask.argv(), None), &pod.namespace);
        }
        stands
    }

    /// Other pods in the place of these, which are gone.
    fn replaced(&mut self, pods: &[Json], pool: Option<&Pool>) -> Vec<Json> {
        let mut others = Vec::new();
        for (at, pod) in pods.iter().enumerate() {
            let name = pod["metadata"]["name"].as_str().expect("a name");
            let mut other = pod.clone();
            other["metadata"]["name"] = json!(format!("{name}-anew"));
            others.extend(self.place(&other, at, pool));
            let gone = self.memory.delete("Pod", &namespace(RUN), name);
            gone.expect("it was there");
        }
        others
    }

    /// Runs a pod on one of the pool's nodes, as a kubelet would report it.
    fn place(&mut self, pod: &Json, at: usize, pool: Option<&Pool>) -> Option<Json> {
        pool?;
        let mut pod = pod.clone();
        let required = "requiredDuringSchedulingIgnoredDuringExecution";
        let terms = &pod["spec"]["affinity"]["nodeAffinity"][required]["nodeSelectorTerms"];
        let terms = terms.as_array().expect("it is placed");
        let node = terms[at % terms.len()]["matchFields"][0]["values"][0].clone();
        pod["spec"]["nodeName"] = node;
        self.memory.apply(&pod).expect("a pod");
        let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
        let (namespace, name) = (
            text(&pod["metadata"]["namespace"]),
            text(&pod["metadata"]["name"]),
        );
        let addresses = self.memory.addresses("Pod", &namespace, &name);
        let addresses = addresses.iter().map(|address| json!({"ip": address}));
        pod["metadata"]["uid"] = json!(format!("uid-of-{name}"));
        pod["status"] = json!({"podIPs": addresses.collect::<Vec<_>>()});
        Some(pod)
    }

    /// What every check comes to while these faults hold, and nothing else.
    pub(super) fn with(&mut self, faults: FaultSet) -> Seen {
        self.memory.break_with(faults);
        let mut sweeps: BTreeMap<&VantageKey, Vec<(usize, usize)>> = BTreeMap::new();
        for (at, check) in self.plan.checks.iter().enumerate() {
            for (place, look) in check.looks.iter().enumerate() {
                let from = look
                    .from
                    .as_ref()
                    .expect("checks of the network look from somewhere");
                sweeps.entry(from).or_default().push((at, place));
            }
        }
        let mut taken = BTreeMap::new();
        for (from, looks) in sweeps {
            taken.extend(self.sweep(from, &looks));
        }
        let checks = self.plan.checks.iter().enumerate();
        let verdicts =
            checks.map(|(at, check)| (check.id.to_string(), concluded(at, check, &taken)));
        verdicts.collect()
    }

    fn sweep(
        &self,
        from: &VantageKey,
        looks: &[(usize, usize)],
    ) -> Vec<((usize, usize), Result<Taken, Trouble>)> {
        let (mut gets, mut pings) = (Vec::<HttpGet>::new(), Vec::<IpAddr>::new());
        let mut asked = Vec::new();
        for ix in looks {
            let (check, look) = self.look(*ix);
            match look.test.request(&self.bound(check, look)) {
                Ok(Request::Get(own)) => {
                    let first = gets.len();
                    gets.extend(own);
                    asked.push((*ix, Ok((false, first..gets.len()))));
                }
                Ok(Request::Ping(own)) => {
                    let first = pings.len();
                    pings.extend(own);
                    asked.push((*ix, Ok((true, first..pings.len()))));
                }
                Ok(other) => panic!("{}: {other:?}", check.id),
                Err(trouble) => asked.push((*ix, Err(trouble))),
            }
        }
        let swept = match prober(RUN, from) {
            Some(pod) => self.swept(from.kind, &pod, &gets, &pings),
            None => Ok((
                gets.iter().map(|get| self.fetched(get)).collect(),
                Vec::new(),
            )),
        };
        let taken = |ix, asked: Result<(bool, Range<usize>), Trouble>| {
            let (check, look) = self.look(ix);
            asked.and_then(|(is_ping, place)| {
                let (got, pinged) = swept.as_ref().map_err(Clone::clone)?;
                let reply = match is_ping {
                    true => Reply::Ping(pinged[place].to_vec()),
                    false => Reply::Get(got[place].to_vec()),
                };
                look.test.take(&self.bound(check, look), &reply)
            })
        };
        let asked = asked.into_iter();
        asked.map(|(ix, asked)| (ix, taken(ix, asked))).collect()
    }

    /// What a prober gets and what answers its pings, all in one session.
    fn swept(
        &self,
        kind: SourceKind,
        pod: &PodRef,
        gets: &[HttpGet],
        pings: &[IpAddr],
    ) -> Result<(Vec<HttpReply>, Vec<PingReply>), Trouble> {
        let token = Token::parse(TOKEN).expect("a token");
        let http = HttpSession {
            curl: curl::candidates(kind)[0],
            gets: gets.to_vec(),
            token: token.clone(),
            connect: Duration::from_secs(4),
            total: Duration::from_secs(8),
        };
        let Some(os) = kind.shell().filter(|_| !pings.is_empty()) else {
            let os = http.curl.os();
            let curl = Command::HttpSession(http).on(os)?;
            let got = curl::split(gets, &token, &self.exec(pod, curl.argv(), curl.stdin()))?;
            return Ok((got, Vec::new()));
        };
        let both = Command::Pings {
            targets: pings.to_vec(),
            token: token.clone(),
            after: Some(http),
        };
        let both = both.on(os)?;
        let reply = self.exec(pod, both.argv(), both.stdin());
        let (of_curl, of_pings) = session::apart(&token, &reply)?;
        let got = curl::split(gets, &token, &of_curl)?;
        Ok((got, session::split(pings, &token, &of_pings)?))
    }

    /// What a client outside gets through the proxy.
    fn fetched(&self, get: &HttpGet) -> HttpReply {
        let (status, body) = self.memory.fetch(&get.url()).expect("a URL");
        HttpReply::Answered { status, body }
    }

    /// How a fixture's readiness probe ends in each of its pods, as it is and with nobody listening.
    pub(super) fn readiness(&mut self, name: FixtureName) -> Vec<[ExitStatus; 2]> {
        let of: Vec<_> = self.standing.fixtures.keys().cloned().collect();
        let of = of.into_iter().filter(|key| key.name == name);
        let pools = self.pools.clone();
        of.map(|key| {
            let pool = pool_of(&key, &pools);
            let (images, durations) = (Images::default(), Durations::default());
            let objects =
                manifest::objects(&key, RUN, pool, &images, &durations, None).expect("a manifest");
            let pod = objects.iter().find(|object| object["kind"] == "Pod");
            let mut pod = pod.expect("a pod").clone();
            pod["spec"]["containers"][0]["args"] = json!(["pause"]);
            let container = &pod["spec"]["containers"][0];
            let command = container["readinessProbe"]["exec"]["command"].clone();
            let command: Vec<String> = serde_json::from_value(command).expect("words");
            let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
            let of = PodRef {
                namespace: text(&pod["metadata"]["namespace"]),
                name: text(&pod["metadata"]["name"]),
                container: text(&container["name"]),
            };
            let listening = self.exec(&of, &command, None);
            self.place(&pod, 0, pool);
            [listening.exit, self.exec(&of, &command, None).exit]
        })
        .collect()
    }

    fn look(&self, (check, look): (usize, usize)) -> (&Check, &PlannedLook) {
        let check = &self.plan.checks[check];
        (check, &check.looks[look])
    }

    fn bound<'a>(&'a self, check: &'a Check, look: &'a PlannedLook) -> Bound<'a> {
        Bound {
            standing: &self.standing,
            from: look.from.as_ref(),
            pool: check.point.pool.as_ref(),
            to: check.point.to.as_ref(),
            node: look.at_node(),
            build: check.build,
            image: check.image.as_deref(),
            family: check.point.family,
            once: false,
        }
    }

    fn exec(&self, pod: &PodRef, argv: &[String], stdin: Option<&str>) -> ExecReply {
        let exec = Exec {
            namespace: pod.namespace.clone(),
            pod: pod.name.clone(),
            container: Some(pod.container.clone()),
            argv: argv.to_vec(),
            stdin: stdin.unwrap_or_default().into(),
        };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match self.memory.exec(&exec).expect("the prober runs") {
            Ran::Ended {
                stdout,
                stderr,
                code,
                ..
            } => ExecReply {
                stdout: text(&stdout),
                stderr: text(&stderr),
                exit: ExitStatus::Code(code.into()),
            },
            Ran::Refused(words) => ExecReply {
                stdout: String::new(),
                stderr: String::new(),
                exit: ExitStatus::NotStarted(words),
            },
            Ran::Endless { .. } => panic!("{argv:?} does not end"),
        }
    }
}

fn concluded(
    at: usize,
    check: &Check,
    taken: &BTreeMap<(usize, usize), Result<Taken, Trouble>>,
) -> (Verdict, String) {
    match &check.fate {
        Fate::Look => {}
        Fate::Skip(reason) => return (Verdict::Skip, reason.to_string()),
        Fate::Broken(trouble) => return (Verdict::Broken, trouble.to_string()),
    }
    let looked = |look: usize| taken[&(at, look)].as_ref().map(|taken| &taken.comparison);
    let looked: Vec<_> = (0..check.looks.len()).map(looked).collect();
    let controls = check.controls(&looked);
    let verdict = judge(check.kind, looked[0], &controls, &check.scope);
    (verdict, format!("{:?}; controls: {controls:?}", looked[0]))
}

/// Two Linux nodes, and two of each build of Windows.
pub(super) fn three_builds() -> Topology {
    let mut all = NamedTopology::all().iter();
    let known = all.find(|known| known.name == "three-builds");
    known.expect("it is known").topology()
}

fn facts(topology: &Topology, memory: &Memory, cni: Option<Cni>) -> Facts {
    let node = |spec: &NodeSpec| {
        let build = spec.pool.build().map(|build| {
            let build = format!("10.0.{}", build.number());
            WindowsBuild::parse_label(&build).expect("a build")
        });
        let addresses = memory.addresses("Node", "", &spec.name).into_iter();
        let internal = addresses.map(|address| ("InternalIP".to_owned(), address.to_string()));
        let families = topology.ip_families.names().iter();
        let pod_cidrs = families.map(|family| match *family {
            "IPv6" => "fd00:10:244::/64".to_owned(),
            _ => "10.244.0.0/24".to_owned(),
        });
        NodeFact {
            name: spec.name.clone(),
            os: match spec.pool.os() {
                SimOs::Linux => Os::Linux,
                SimOs::Windows => Os::Windows,
            },
            build,
            usable: true,
            taints: Vec::new(),
            details: NodeDetails {
                addresses: internal.collect(),
                pod_cidrs: pod_cidrs.collect(),
                kubelet_port: Some(10250),
                runtime: "containerd://2.1.4".to_owned(),
                ..NodeDetails::default()
            },
        }
    };
    let source = "/".to_owned();
    Facts {
        server: Known::Fact {
            value: "v1.37.0".to_owned(),
            source: source.clone(),
        },
        cni: Known::Fact {
            value: cni,
            source: source.clone(),
        },
        nodes: Known::Fact {
            value: topology.nodes.iter().map(node).collect(),
            source: source.clone(),
        },
        load_balancer: Known::Fact {
            value: LoadBalancerFact {
                with_address: 1,
                ..LoadBalancerFact::default()
            },
            source: source.clone(),
        },
        workloads: Known::Fact {
            value: WorkloadsFact::default(),
            source,
        },
        ..Facts::default()
    }
}
