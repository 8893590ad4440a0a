//! The expectations of facts; a closed set. The suite holds their data.

use std::collections::BTreeMap;
use std::fmt;

use semver::{Version, VersionReq};
use strum::VariantNames;

use super::quantity::Quantity;
use super::seen::{NodeLabel, Observed, ObservedLabel, ObservedResource};
use super::version::numbers;
use crate::facts::{Os, WindowsBuild};

/// The expectation of each subject.
#[derive(Clone, Debug, Eq, PartialEq, VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum FactExpectation {
    /// Any value, which is only recorded.
    Told,
    /// These labels exist and agree with what the kubelet reports.
    LabelsAgree(Vec<NodeLabel>),
    On(Os),
    /// At least this many nodes of each operating system are Ready and schedulable.
    AtLeast(u16),
    /// A rule lists the build for the server's version; the first rule that matches that version counts.
    Supported(Vec<SupportRule>),
    Runtime(Vec<RuntimeRule>),
    /// The kubelet is not newer than the server, and not older than the first rule of the
    /// server's version allows.
    Skew(Vec<SkewRule>),
    Tainted(Vec<TaintRule>),
    /// At least this much of each of these resources is kept out of allocatable.
    Reserved(BTreeMap<String, Quantity>),
    /// Less of each of these resources is allocatable than the capacity.
    Lowered(Vec<String>),
    /// The node lists such an image.
    Present,
    /// The node lists an image version that has its build; a node that lists none proves nothing.
    RunsOnBuild(Vec<ImageRule>),
    Ready,
    /// No rule says that the update breaks the network plugin.
    NotBrokenBy(Vec<UpdateRule>),
    /// The VXLAN has this identifier and port.
    Vxlan {
        vni: u32,
        /// UDP port.
        port: u16,
    },
    /// The families include this one: `ipv4` or `ipv6`.
    Family(String),
    /// Nothing is lacking.
    None,
}

/// The Windows builds that a range of Kubernetes versions supports.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SupportRule {
    pub kubernetes: VersionReq,
    /// The builds its documents list.
    pub builds: Vec<WindowsBuild>,
    /// Builds that no document calls supported or unsupported.
    pub open: Vec<WindowsBuild>,
    /// Why these are open.
    pub reason: String,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RuntimeRule {
    /// As in `status.nodeInfo.containerRuntimeVersion`, before `://`.
    pub name: String,
    pub version: VersionReq,
    pub kubelet: VersionReq,
}

/// How much older a kubelet may be.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SkewRule {
    pub server: VersionReq,
    /// Minor versions.
    pub older: u64,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TaintRule {
    pub key: String,
    pub value: String,
    pub effects: Vec<String>,
}

/// The versions of an image that have a Windows build.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ImageRule {
    pub build: WindowsBuild,
    pub version: VersionReq,
}

/// Updates of a Windows build that break network plugins.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UpdateRule {
    pub build: WindowsBuild,
    /// Their patch revisions.
    pub revisions: VersionReq,
    /// The products of these plugins, as in the facts.
    pub plugins: Vec<String>,
    /// The first of the updates, which one mends it, and who says so.
    pub says: String,
}

/// How one subject compares.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Judged {
    Met,
    Unmet,
    /// No source says what to expect of it, for this reason.
    Open(String),
    /// The result depends on an unknown value, for this reason.
    Untold(String),
}

impl FactExpectation {
    pub const WORDS: &'static [&'static str] = Self::VARIANTS;

    /// Compares what one subject showed. The reader of suites refuses an expectation that does not fit the
    /// topic.
    pub(super) fn judge(&self, saw: &Observed) -> Judged {
        let met = match (self, saw) {
            (_, Observed::Untold(reason)) => return Judged::Untold(reason.clone()),
            (Self::Told, _) => true,
            (Self::LabelsAgree(wanted), Observed::Labels(labels)) => wanted.iter().all(|wanted| {
                let label = labels.iter().find(|seen| seen.label == *wanted);
                label.is_some_and(ObservedLabel::agrees)
            }),
            (Self::On(wanted), Observed::Os(os)) => os == wanted,
            (Self::On(wanted), Observed::Endpoints(endpoints)) => {
                if endpoints
                    .iter()
                    .any(|e| e.os.is_some_and(|os| os != *wanted))
                {
                    return Judged::Unmet;
                }
                let mut ready = endpoints.iter().filter(|endpoint| endpoint.ready);
                let Some(first) = ready.next() else {
                    return Judged::Unmet;
                };
                if let Some(untold) = ready.chain([first]).find(|e| e.os.is_none()) {
                    let reason = format!("what {} runs on is not told", untold.address);
                    return Judged::Untold(reason);
                }
                true
            }
            (Self::AtLeast(wanted), Observed::Nodes { usable, of: _ }) => {
                *usable >= usize::from(*wanted)
            }
            (Self::Supported(rules), Observed::Build { build, kubernetes }) => {
                return supported(rules, *build, kubernetes);
            }
            (Self::Runtime(rules), Observed::Runtime { runtime, kubelet }) => {
                return ran_by(rules, runtime, kubelet);
            }
            (Self::Skew(rules), Observed::Kubelet { kubelet, server }) => {
                return skew(rules, kubelet, server);
            }
            (Self::Tainted(rules), Observed::Taints(taints)) => {
                let mut wanted = rules.iter().flat_map(TaintRule::spelled);
                wanted.any(|wanted| taints.contains(&wanted))
            }
            (Self::Reserved(wanted), Observed::Resources(seen)) => {
                wanted.iter().all(|(name, least)| {
                    let seen = seen.get(name);
                    seen.is_some_and(|seen| seen.capacity.less(seen.allocatable) >= *least)
                })
            }
            (Self::Lowered(wanted), Observed::Resources(seen)) => wanted.iter().all(|name| {
                let seen = seen.get(name);
                seen.is_some_and(|seen| seen.allocatable < seen.capacity)
            }),
            (Self::Present, Observed::Images { found, .. }) => !found.is_empty(),
            (Self::RunsOnBuild(rules), Observed::Images { build, found, .. }) => {
                let rule = rules.iter().find(|rule| Some(rule.build) == *build);
                let versions: Vec<_> = found.iter().filter_map(|name| tag(name)).collect();
                if versions.is_empty() {
                    return Judged::Open("no such image with a version is listed".to_owned());
                }
                let Some(rule) = rule else {
                    return Judged::Open("nothing is known of images for the build".to_owned());
                };
                versions.iter().any(|v| rule.version.matches(v))
            }
            (Self::Ready, Observed::Ready { status, .. }) => status.as_deref() == Some("True"),
            (
                Self::NotBrokenBy(rules),
                Observed::Update {
                    build,
                    revision,
                    plugin,
                    unknown,
                },
            ) => {
                let mut rules = rules.iter().filter(|rule| rule.build == *build).peekable();
                // Where none is about the build, neither the revision nor the plugin matters
                if rules.peek().is_none() {
                    return Judged::Met;
                }
                if let Some(reason) = unknown {
                    return Judged::Untold(reason.clone());
                }
                let Some((plugin, revision)) = plugin.as_ref().zip(*revision) else {
                    let reason = "no rule recognises the network plugin";
                    return Judged::Open(reason.to_owned());
                };
                let revision = Version::new(revision, 0, 0);
                !rules
                    .any(|rule| rule.revisions.matches(&revision) && rule.plugins.contains(plugin))
            }
            (Self::Vxlan { vni, port }, Observed::Vxlan { vni: v, port: p }) => {
                *v == Some(*vni) && *p == Some(*port)
            }
            (Self::Family(wanted), Observed::Families(families)) => {
                families.split(',').any(|family| family == wanted)
            }
            (Self::None, Observed::Lacking { lacking, .. }) => *lacking == 0,
            _ => return Judged::Open("the expectation is of another kind of fact".to_owned()),
        };
        if met { Judged::Met } else { Judged::Unmet }
    }

    /// What a subject showed, in words, as far as the expectation is about it.
    pub(super) fn words(&self, saw: &Observed) -> String {
        match (self, saw) {
            (Self::LabelsAgree(wanted), Observed::Labels(labels)) => {
                let labels = labels.iter().filter(|seen| wanted.contains(&seen.label));
                Observed::Labels(labels.cloned().collect()).to_string()
            }
            (Self::Reserved(wanted), Observed::Resources(seen)) => {
                among(seen, |name| wanted.contains_key(name))
            }
            (Self::Lowered(wanted), Observed::Resources(seen)) => {
                among(seen, |name| wanted.contains(name))
            }
            (_, saw) => saw.to_string(),
        }
    }
}

fn among(seen: &BTreeMap<String, ObservedResource>, wanted: impl Fn(&String) -> bool) -> String {
    let kept = seen.iter().filter(|(name, _)| wanted(name));
    let kept: BTreeMap<_, _> = kept.map(|(name, seen)| (name.clone(), *seen)).collect();
    match kept.is_empty() {
        true => "not told".to_owned(),
        false => Observed::Resources(kept).to_string(),
    }
}

fn supported(rules: &[SupportRule], build: WindowsBuild, kubernetes: &str) -> Judged {
    let version = numbers(kubernetes);
    let rule = rules
        .iter()
        .find(|rule| version.as_ref().is_some_and(|v| rule.kubernetes.matches(v)));
    match rule {
        None => Judged::Open(format!("nothing is known of Kubernetes {kubernetes}")),
        Some(rule) if rule.builds.contains(&build) => Judged::Met,
        Some(rule) if rule.open.contains(&build) => Judged::Open(rule.reason.clone()),
        Some(_) => Judged::Unmet,
    }
}

/// Whether a runtime has the name by which cri-dockerd reports several products (Mirantis/cri-dockerd
/// `core/version.go`): the kubelet itself has no dockershim since 1.24.
fn through_cri_dockerd(runtime: &str, kubelet: &str) -> bool {
    let docker = runtime.starts_with("docker://");
    docker && numbers(kubelet).is_some_and(|kubelet| kubelet >= Version::new(1, 24, 0))
}

/// Compares a runtime; one that no rule allows under any kubelet is unmet, whatever the kubelet's version.
fn ran_by(rules: &[RuntimeRule], runtime: &str, kubelet: &str) -> Judged {
    let allowed: Vec<_> = rules.iter().filter(|rule| rule.names(runtime)).collect();
    let met = match numbers(kubelet) {
        _ if allowed.is_empty() => false,
        Some(version) => allowed.iter().any(|rule| rule.kubelet.matches(&version)),
        None if allowed.iter().any(|rule| rule.kubelet == VersionReq::STAR) => true,
        None => {
            let reason = format!("kubeletVersion is `{kubelet}`, which says nothing");
            return Judged::Untold(reason);
        }
    };
    if met && through_cri_dockerd(runtime, kubelet) {
        let reason = "Mirantis Container Runtime and Docker Engine both report themselves so \
                       through cri-dockerd: see which it is on the node";
        return Judged::Open(reason.to_owned());
    }
    if met { Judged::Met } else { Judged::Unmet }
}

fn skew(rules: &[SkewRule], kubelet: &str, server: &str) -> Judged {
    let (Some(kubelet), Some(server)) = (numbers(kubelet), numbers(server)) else {
        return Judged::Untold("a version cannot be read".to_owned());
    };
    let rule = rules.iter().find(|rule| rule.server.matches(&server));
    let Some(rule) = rule else {
        return Judged::Open(format!("nothing is known of Kubernetes {server}"));
    };
    let older = match kubelet.major == server.major {
        true => server.minor.checked_sub(kubelet.minor),
        false => None,
    };
    match older {
        Some(older) if older <= rule.older => Judged::Met,
        Some(_) | None => Judged::Unmet,
    }
}

impl RuntimeRule {
    fn names(&self, runtime: &str) -> bool {
        runtime.split_once("://").is_some_and(|(name, version)| {
            let version = numbers(version);
            name == self.name && version.is_some_and(|version| self.version.matches(&version))
        })
    }
}

impl TaintRule {
    fn spelled(&self) -> impl Iterator<Item = String> {
        let effects = self.effects.iter();
        effects.map(|effect| format!("{}={}:{effect}", self.key, self.value))
    }
}

/// The version that an image's tag begins with.
fn tag(image: &str) -> Option<Version> {
    let name = image.split_once('@').map_or(image, |(name, _)| name);
    let (_, last) = name.rsplit_once('/').unwrap_or(("", name));
    numbers(last.split_once(':')?.1)
}

/// The expectation, in words.
impl fmt::Display for FactExpectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Told => f.write_str("whatever it is, recorded"),
            Self::LabelsAgree(labels) => {
                let labels: Vec<_> = labels.iter().map(|label| label.as_str()).collect();
                write!(f, "{} as the kubelet reports", labels.join(", "))
            }
            Self::On(os) => write!(f, "on {} only", os.as_str()),
            Self::AtLeast(count) => write!(f, "at least {count} of each Ready and schedulable"),
            Self::Supported(_) => f.write_str("a build that this Kubernetes version supports"),
            Self::Runtime(rules) => {
                let rules = rules.iter().map(|rule| match rule.kubelet.comparators[..] {
                    [] => format!("{} {}", rule.name, rule.version),
                    _ => format!(
                        "{} {} with kubelet {}",
                        rule.name, rule.version, rule.kubelet
                    ),
                });
                f.write_str(&rules.collect::<Vec<_>>().join(", or "))
            }
            Self::Skew(rules) => {
                f.write_str("a kubelet not newer than the API server and at most ")?;
                let rules = rules
                    .iter()
                    .map(|rule| format!("{} minor older (server {})", rule.older, rule.server));
                f.write_str(&rules.collect::<Vec<_>>().join(", "))
            }
            Self::Tainted(rules) => {
                let spelled: Vec<_> = rules.iter().flat_map(TaintRule::spelled).collect();
                f.write_str(&spelled.join(" or "))
            }
            Self::Reserved(wanted) => {
                let wanted = wanted
                    .iter()
                    .map(|(name, least)| format!("{least} of {name}"));
                let wanted: Vec<_> = wanted.collect();
                write!(f, "at least {} kept out of allocatable", wanted.join(", "))
            }
            Self::Lowered(wanted) => {
                write!(f, "less {} allocatable than there is", wanted.join(", "))
            }
            Self::Present => f.write_str("such an image on every node"),
            Self::RunsOnBuild(rules) => {
                let rules = rules
                    .iter()
                    .map(|rule| format!("{} on {}", rule.version, rule.build));
                f.write_str(&rules.collect::<Vec<_>>().join(", "))
            }
            Self::Ready => f.write_str("Ready True"),
            Self::NotBrokenBy(rules) => {
                let says = rules.iter().map(|rule| rule.says.as_str());
                let says = says.collect::<Vec<_>>().join("; ");
                write!(f, "no update that breaks the network plugin: {says}")
            }
            Self::Vxlan { vni, port } => write!(f, "VNI {vni}, UDP port {port}"),
            Self::Family(family) => write!(f, "{family} among them"),
            Self::None => f.write_str("none"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubelets_without_dockershim_run_docker_by_cri_dockerd() {
        assert!(through_cri_dockerd("docker://20.10.9", "v1.24.0"));
        assert!(!through_cri_dockerd("docker://20.10.9", "v1.23.17"));
        assert!(!through_cri_dockerd("containerd://1.7.0", "v1.24.0"));
    }

    #[test]
    fn tags_are_read_beside_ports_and_digests() {
        for (image, version) in [
            ("registry.k8s.io/pause:3.10.2", Some((3, 10, 2))),
            ("localhost:5000/pause:3.6@sha256:00", Some((3, 6, 0))),
            (
                "mcr.microsoft.com/oss/v2/kubernetes/pause:3.10.1-3",
                Some((3, 10, 1)),
            ),
            ("localhost:5000/pause", None),
            ("registry.k8s.io/pause@sha256:00", None),
            ("pause:latest", None),
        ] {
            let version = version.map(|(major, minor, patch)| Version::new(major, minor, patch));
            assert_eq!(tag(image), version, "{image}");
        }
    }

    #[test]
    fn the_policy_of_version_skew() {
        let rule = |server: &str, older| SkewRule {
            server: server.parse().expect("a range"),
            older,
        };
        let rules = [rule(">=1.28", 3), rule(">=1.14, <1.28", 2)];
        for (server, kubelet, expected) in [
            ("v1.37.0", "v1.37.9", Judged::Met),
            ("v1.37.0", "v1.34.1", Judged::Met),
            ("v1.37.0", "v1.33.9", Judged::Unmet),
            ("v1.37.3-gke.1", "v1.38.0-alpha.1", Judged::Unmet),
            ("v1.28.0", "v1.25.0", Judged::Met),
            ("v1.27.0", "v1.25.0", Judged::Met),
            ("v1.27.0", "v1.24.0", Judged::Unmet),
            ("v2.0.0", "v1.37.0", Judged::Unmet),
        ] {
            assert_eq!(
                skew(&rules, kubelet, server),
                expected,
                "{server} {kubelet}"
            );
        }
        assert!(matches!(
            skew(&rules, "v1.13.0", "v1.13.0"),
            Judged::Open(_)
        ));
    }

    #[test]
    fn a_vxlan_is_expected_by_both_its_numbers() {
        let expectation = FactExpectation::Vxlan {
            vni: 4096,
            port: 4789,
        };
        for (vni, port, expected) in [
            (Some(4096), Some(4789), Judged::Met),
            (Some(1), Some(4789), Judged::Unmet),
            (Some(4096), Some(8472), Judged::Unmet),
            (None, Some(4789), Judged::Unmet),
            (Some(4096), None, Judged::Unmet),
        ] {
            assert_eq!(expectation.judge(&Observed::Vxlan { vni, port }), expected);
        }
    }

    #[test]
    fn a_kubelet_that_tells_nothing_matters_only_where_a_rule_asks_for_its_version() {
        let rule = |kubelet: &str| RuntimeRule {
            name: "containerd".to_owned(),
            version: ">=1.7".parse().expect("a range"),
            kubelet: kubelet.parse().expect("a range"),
        };
        let judged = |rules: &[RuntimeRule]| ran_by(rules, "containerd://1.7.20", "unknown");
        assert_eq!(judged(&[rule("*")]), Judged::Met);
        assert_eq!(judged(&[rule(">=1.20"), rule("*")]), Judged::Met);
        assert!(matches!(judged(&[rule(">=1.20")]), Judged::Untold(_)));
        assert_eq!(judged(&[]), Judged::Unmet);
    }

    #[test]
    fn what_is_not_expected_to_be_something_is_left_unsaid() {
        let quantity = |text| Quantity::parse(text).expect("a quantity");
        let resource = ObservedResource {
            capacity: quantity("4Gi"),
            allocatable: quantity("4Gi"),
        };
        let resources = ["cpu", "memory"].map(|name| (name.to_owned(), resource));
        let saw = Observed::Resources(resources.into());
        let lowered = |name: &str| FactExpectation::Lowered(vec![name.to_owned()]);
        let memory = "memory 0 of 4Gi kept out, 4Gi allocatable";
        assert_eq!(lowered("memory").words(&saw), memory);
        let reserved = [("memory".to_owned(), Quantity::ZERO)];
        assert_eq!(
            FactExpectation::Reserved(reserved.into()).words(&saw),
            memory
        );
        assert_eq!(lowered("storage").words(&saw), "not told");
        assert_eq!(FactExpectation::Told.words(&saw), saw.to_string());
        let label = |label: NodeLabel| ObservedLabel {
            label,
            value: None,
            reported: "x".to_owned(),
        };
        let labels = Observed::Labels(vec![label(NodeLabel::Os), label(NodeLabel::Arch)]);
        assert_eq!(
            FactExpectation::LabelsAgree(vec![NodeLabel::Arch]).words(&labels),
            "no kubernetes.io/arch, architecture x"
        );
    }

    #[test]
    fn each_expectation_has_words() {
        let range = |text: &str| text.parse::<VersionReq>().expect("a range");
        let runtime = |kubelet: &str| RuntimeRule {
            name: "containerd".to_owned(),
            version: range(">=1.7"),
            kubelet: range(kubelet),
        };
        let skews = [(">=1.28", 3), ("<1.28", 2)].map(|(server, older)| SkewRule {
            server: range(server),
            older,
        });
        let taint = TaintRule {
            key: "os".to_owned(),
            value: "windows".to_owned(),
            effects: vec!["NoSchedule".to_owned(), "NoExecute".to_owned()],
        };
        let image = ImageRule {
            build: WindowsBuild::SERVER_2025,
            version: range(">=3.10"),
        };
        let quantity = Quantity::parse("2Gi").expect("a quantity");
        for (expectation, words) in [
            (FactExpectation::Told, "whatever it is, recorded"),
            (
                FactExpectation::LabelsAgree(vec![NodeLabel::Os, NodeLabel::Arch]),
                "kubernetes.io/os, kubernetes.io/arch as the kubelet reports",
            ),
            (FactExpectation::On(Os::Linux), "on linux only"),
            (
                FactExpectation::AtLeast(2),
                "at least 2 of each Ready and schedulable",
            ),
            (
                FactExpectation::Runtime(vec![runtime("*"), runtime(">=1.20")]),
                "containerd >=1.7, or containerd >=1.7 with kubelet >=1.20",
            ),
            (
                FactExpectation::Skew(skews.into()),
                "a kubelet not newer than the API server and at most 3 minor older (server >=1.28), \
                 2 minor older (server <1.28)",
            ),
            (
                FactExpectation::Tainted(vec![taint]),
                "os=windows:NoSchedule or os=windows:NoExecute",
            ),
            (
                FactExpectation::Reserved([("memory".to_owned(), quantity)].into()),
                "at least 2Gi of memory kept out of allocatable",
            ),
            (
                FactExpectation::Lowered(vec!["cpu".to_owned(), "memory".to_owned()]),
                "less cpu, memory allocatable than there is",
            ),
            (
                FactExpectation::RunsOnBuild(vec![image]),
                ">=3.10 on 10.0.26100",
            ),
            (FactExpectation::Ready, "Ready True"),
            (
                FactExpectation::Vxlan { vni: 1, port: 2 },
                "VNI 1, UDP port 2",
            ),
        ] {
            assert_eq!(expectation.to_string(), words);
        }
    }
}
