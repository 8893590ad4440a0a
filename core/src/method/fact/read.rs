//! Reads the observation of a topic from the facts.

use std::collections::{BTreeMap, BTreeSet};

use super::csi::{csi_drivers, volume_drivers};
use super::image::images;
use super::quantity::Quantity;
use super::seen::{
    FactObservation, NodeLabel, Observed, ObservedEndpoint, ObservedLabel, ObservedResource,
    Subject,
};
use super::topic::Topic;
use super::version::numbers;
use crate::facts::{CniMode, DnsEndpoint, Facts, IpFamily, Known, NodeFact, Os, WorkloadsFact};
use crate::method::{Bound, ErrorKind, ObservationError, Result};
use crate::text::printable;

/// Reads a topic from the facts; an unknown fact is an error, never a default.
pub(super) fn read(topic: &Topic, at: &Bound<'_>, facts: &Facts) -> Result<FactObservation> {
    match topic {
        Topic::ControlPlane => control_plane(facts),
        Topic::UsableNodes => usable_nodes(facts),
        Topic::Cni => needed("cni", &facts.cni).map(|cni| cluster(Observed::Cni(cni.clone()))),
        Topic::CsiDrivers => csi_drivers(at, facts),
        Topic::VolumeDrivers => volume_drivers(at, facts),
        Topic::Vxlan => vxlan(facts),
        Topic::KubeProxy => {
            let proxy = needed("kube-proxy", &facts.kube_proxy)?;
            Ok(cluster(Observed::KubeProxy(proxy.clone())))
        }
        Topic::Dns => dns(facts),
        Topic::IpFamilies => ip_families(facts),
        Topic::PodsWithoutOs => lacking(facts, |workloads| {
            (workloads.without_os_count, &workloads.without_os)
        }),
        Topic::PodsWithoutRequests => lacking(facts, |fact| {
            (fact.without_requests_count, &fact.without_requests)
        }),
        Topic::Labels
        | Topic::Builds
        | Topic::Runtimes
        | Topic::Kubelets
        | Topic::Taints
        | Topic::Resources
        | Topic::MemoryPressure
        | Topic::ProblemDetectors
        | Topic::Images(_)
        | Topic::Provisioning
        | Topic::Clocks
        | Topic::Kernels
        | Topic::Updates => of_nodes(topic, at, facts).map(FactObservation::Subjects),
        Topic::Readiness => {
            let mut subjects = of_nodes(topic, at, facts)?;
            // Silent nodes belong to no pool
            if at.pool.is_none() {
                match needed("silent-nodes", &facts.silent_nodes) {
                    // A node whose kubelet has not reported is not Ready, whatever its conditions are set to
                    Ok(silent) => subjects.extend(silent.iter().map(|name| Subject {
                        name: name.clone(),
                        saw: Observed::Ready {
                            status: None,
                            reason: "it does not say what it runs".to_owned(),
                        },
                    })),
                    Err(error) => subjects.push(Subject {
                        name: String::new(),
                        saw: Observed::Untold(error.detail),
                    }),
                }
            }
            Ok(FactObservation::Subjects(subjects))
        }
    }
}

fn of_nodes(topic: &Topic, at: &Bound<'_>, facts: &Facts) -> Result<Vec<Subject>> {
    let subjects = nodes(at, facts)?.into_iter().map(|node| {
        let name = node.name.clone();
        let saw = of_node(topic, node, facts)?;
        Ok(Subject { name, saw })
    });
    subjects.collect()
}

pub(super) fn needed<'f, T>(name: &str, fact: &'f Known<T>) -> Result<&'f T> {
    let unread = |reason: &str| lacks(format!("{name}: {reason}"));
    fact.known().map_err(unread)
}

/// The error of what is not known for this reason.
pub(super) fn lacks(reason: String) -> ObservationError {
    // The collection of facts spells a refusal so
    let kind = match reason.contains("status 403") {
        true => ErrorKind::Forbidden,
        false => ErrorKind::FactUnknown,
    };
    kind.error(reason)
}

fn unknown(detail: impl Into<String>) -> ObservationError {
    ErrorKind::FactUnknown.error(detail)
}

fn cluster(saw: Observed) -> FactObservation {
    let name = String::new();
    FactObservation::Subjects(vec![Subject { name, saw }])
}

/// The nodes of the point's pool, or all nodes; an error where there are none.
pub(super) fn nodes<'f>(at: &Bound<'_>, facts: &'f Facts) -> Result<Vec<&'f NodeFact>> {
    let nodes = needed("nodes", &facts.nodes)?;
    let in_pool =
        |node: &&NodeFact| at.pool.is_none() || node.os == Os::Windows && node.build == at.build;
    let nodes: Vec<_> = nodes.iter().filter(in_pool).collect();
    match (nodes.is_empty(), at.pool) {
        (false, _) => Ok(nodes),
        (true, Some(_)) => Err(unknown("the pool has no nodes any more")),
        (true, None) => Err(unknown("the cluster has no nodes")),
    }
}

/// What a node shows; [`Observed::Untold`] where it does not report it in a known form, since other nodes may
/// decide the comparison. An error where a fact is unknown that every node is compared with.
fn of_node(topic: &Topic, node: &NodeFact, facts: &Facts) -> Result<Observed> {
    let details = &node.details;
    Ok(match topic {
        Topic::Labels => Observed::Labels(labels(node)),
        Topic::Builds => match node.build {
            Some(build) => Observed::Build {
                build,
                kubernetes: server(facts)?,
            },
            None => untold("kernelVersion", &details.kernel),
        },
        Topic::Runtimes => {
            let version = details.runtime.split_once("://");
            if version.is_none_or(|(_, version)| numbers(version).is_none()) {
                return Ok(untold("containerRuntimeVersion", &details.runtime));
            }
            Observed::Runtime {
                runtime: details.runtime.clone(),
                kubelet: details.kubelet.clone(),
            }
        }
        Topic::Kubelets => match numbers(&details.kubelet) {
            Some(_) => Observed::Kubelet {
                kubelet: details.kubelet.clone(),
                server: server(facts)?,
            },
            None => untold("kubeletVersion", &details.kubelet),
        },
        Topic::Taints => Observed::Taints(details.all_taints.iter().map(spelled).collect()),
        Topic::Resources => resources(node).map_or_else(Observed::Untold, Observed::Resources),
        Topic::MemoryPressure => Observed::MemoryPressure {
            status: details
                .condition("MemoryPressure")
                .map(|condition| condition.status.clone()),
            kubelet: details.kubelet.clone(),
        },
        Topic::ProblemDetectors => {
            let detectors = &needed("workloads", &facts.workloads)?.problem_detectors;
            let here = detectors.iter().filter(|(_, on)| *on == node.name);
            Observed::Detectors(here.map(|(pod, _)| pod.clone()).collect())
        }
        Topic::Images(names) => images(names, node, facts),
        Topic::Provisioning => {
            let ready = details.condition("Ready").filter(|c| c.status == "True");
            match ready.map(|condition| condition.since.zip(details.created)) {
                None => Observed::Provisioned(None),
                Some(Some((since, of))) => {
                    Observed::Provisioned(Some(since.duration_since(of).as_secs()))
                }
                Some(None) => untold("creation or since when it is Ready", ""),
            }
        }
        Topic::Clocks => match details.clock_ahead {
            Some(ahead) => Observed::Clock(ahead),
            None => untold("its heartbeat, or its arrival", ""),
        },
        Topic::Readiness => {
            let ready = details.condition("Ready");
            Observed::Ready {
                status: ready.map(|condition| condition.status.clone()),
                reason: ready.map_or(String::new(), |condition| condition.reason.clone()),
            }
        }
        Topic::Kernels => match details.kernel.as_str() {
            "" => untold("kernelVersion", ""),
            version => Observed::Kernel {
                version: version.to_owned(),
                os_image: details.os_image.clone(),
            },
        },
        Topic::Updates => {
            let says_nothing = unsaid("kernelVersion", &details.kernel);
            let Some(build) = node.build else {
                return Ok(Observed::Untold(says_nothing));
            };
            let revision = details.kernel.split(['.', ' ']).nth(3);
            let revision = revision.and_then(|text| text.parse().ok());
            let plugin = needed("cni", &facts.cni);
            let unknown = match (revision, &plugin) {
                (None, _) => Some(says_nothing),
                (Some(_), Err(error)) => Some(error.detail.clone()),
                (Some(_), Ok(_)) => None,
            };
            let plugin = plugin.ok().and_then(Option::as_ref);
            Observed::Update {
                build,
                revision,
                plugin: plugin.map(|cni| cni.product.clone()),
                unknown,
            }
        }
        // These topics are not about single nodes
        _ => return Err(unknown("no node says it")),
    })
}

/// A value that the node does not report in a known form.
fn untold(what: &str, value: &str) -> Observed {
    Observed::Untold(unsaid(what, value))
}

fn unsaid(what: &str, value: &str) -> String {
    format!("{what} is `{value}`, which says nothing")
}

fn server(facts: &Facts) -> Result<String> {
    let version = needed("server", &facts.server)?;
    match numbers(version) {
        Some(_) => Ok(version.clone()),
        None => Err(unknown(format!("the API server's version is `{version}`"))),
    }
}

fn labels(node: &NodeFact) -> Vec<ObservedLabel> {
    let seen = |label: NodeLabel| ObservedLabel {
        label,
        value: node.details.labels.get(label.as_str()).cloned(),
        reported: match label {
            NodeLabel::Os => node.os.as_str().to_owned(),
            NodeLabel::Arch => node.details.arch.clone(),
            NodeLabel::WindowsBuild => node.details.kernel.clone(),
        },
    };
    let wanted = |label: &NodeLabel| node.os == Os::Windows || *label != NodeLabel::WindowsBuild;
    NodeLabel::ALL
        .iter()
        .copied()
        .filter(wanted)
        .map(seen)
        .collect()
}

/// A taint as `kubectl` spells it.
fn spelled(taint: &serde_json::Value) -> String {
    let text = |key: &str| taint[key].as_str().unwrap_or_default();
    format!("{}={}:{}", text("key"), text("value"), text("effect"))
}

/// The resources that both capacity and allocatable list; memory must be one of them.
fn resources(node: &NodeFact) -> Result<BTreeMap<String, ObservedResource>, String> {
    let read = |name: &str, text: &str| {
        Quantity::parse(text).ok_or_else(|| unsaid(&format!("its {name}"), text))
    };
    let mut seen = BTreeMap::new();
    for (name, capacity) in &node.details.capacity {
        let Some(allocatable) = node.details.allocatable.get(name) else {
            continue;
        };
        let resource = ObservedResource {
            capacity: read(name, capacity)?,
            allocatable: read(name, allocatable)?,
        };
        seen.insert(name.clone(), resource);
    }
    match seen.contains_key("memory") {
        true => Ok(seen),
        false => Err(unsaid("its memory", "")),
    }
}

fn control_plane(facts: &Facts) -> Result<FactObservation> {
    let nodes = needed("nodes", &facts.nodes)?;
    let of_control_plane = nodes.iter().filter(|node| node.details.control_plane);
    let subjects = of_control_plane.map(|node| Subject {
        name: node.name.clone(),
        saw: Observed::Os(node.os),
    });
    let subjects: Vec<_> = subjects.collect();
    Ok(match subjects.is_empty() {
        true => not_applicable(
            "no node is labelled as one of the control plane, so its provider keeps it apart",
        ),
        false => FactObservation::Subjects(subjects),
    })
}

fn usable_nodes(facts: &Facts) -> Result<FactObservation> {
    let nodes = needed("nodes", &facts.nodes)?;
    let of = |os: Os| {
        let nodes = || nodes.iter().filter(|node| node.os == os);
        Subject {
            name: os.as_str().to_owned(),
            saw: Observed::Nodes {
                usable: nodes().filter(|node| node.usable).count(),
                of: nodes().count(),
            },
        }
    };
    let subjects = vec![of(Os::Linux), of(Os::Windows)];
    Ok(FactObservation::Subjects(subjects))
}

fn vxlan(facts: &Facts) -> Result<FactObservation> {
    let Some(cni) = needed("cni", &facts.cni)? else {
        return Ok(not_applicable("no rule recognises the network plugin"));
    };
    match (cni.product.as_str(), &cni.vxlan, cni.unread.as_slice()) {
        ("flannel", Some(vxlan), _) => Ok(cluster(Observed::Vxlan {
            vni: vxlan.vni,
            port: vxlan.port,
        })),
        ("flannel", None, unread @ [_, ..]) => Err(lacks(format!("cni: {}", unread.join("; ")))),
        ("flannel", None, []) if cni.mode == Some(CniMode::L2bridge) => {
            Ok(not_applicable("Flannel without VXLAN"))
        }
        ("flannel", None, []) => Err(unknown("cni: no sign of Flannel's backend was found")),
        (other, ..) => Ok(not_applicable(&format!(
            "the network plugin is {}",
            printable(other)
        ))),
    }
}

fn dns(facts: &Facts) -> Result<FactObservation> {
    let Some(dns) = needed("dns", &facts.dns)? else {
        return Err(unknown(
            "dns: no Service of the cluster's DNS is recognised",
        ));
    };
    let nodes = needed("nodes", &facts.nodes)?;
    let seen = |endpoint: &DnsEndpoint| {
        let on = |node: &&NodeFact| endpoint.node.as_ref() == Some(&node.name);
        ObservedEndpoint {
            address: endpoint.address.clone(),
            node: endpoint.node.clone(),
            os: nodes.iter().find(on).map(|node| node.os).or_else(|| {
                let mut virtual_nodes = facts.virtual_nodes.value().into_iter().flatten();
                virtual_nodes
                    .find(|node| endpoint.node.as_ref() == Some(&node.name))?
                    .os
            }),
            ready: endpoint.ready,
        }
    };
    let endpoints: Vec<_> = dns.endpoints.iter().map(seen).collect();
    Ok(FactObservation::Subjects(vec![Subject {
        name: dns.service.clone(),
        saw: Observed::Endpoints(endpoints),
    }]))
}

fn ip_families(facts: &Facts) -> Result<FactObservation> {
    let nodes = needed("nodes", &facts.nodes)?;
    let windows: Vec<_> = nodes.iter().filter(|node| node.os == Os::Windows).collect();
    if windows.is_empty() {
        return Ok(not_applicable("the cluster has no Windows node"));
    }
    let families = &needed("workloads", &facts.workloads)?.windows_families;
    let of_pods = families.iter().map(|(families, count)| Subject {
        name: format!("{count} pods on Windows nodes"),
        saw: Observed::Families(families.clone()),
    });
    let mut subjects: Vec<_> = of_pods.collect();
    if subjects.is_empty() {
        let with_cidrs = windows.iter().filter(|n| !n.details.pod_cidrs.is_empty());
        subjects.extend(with_cidrs.map(|node| Subject {
            name: format!("podCIDRs of {}", node.name),
            saw: Observed::Families(families_of(&node.details.pod_cidrs)),
        }));
    }
    Ok(match subjects.is_empty() {
        true => not_applicable(
            "no pod on a Windows node has an address, and no Windows node has podCIDRs",
        ),
        false => FactObservation::Subjects(subjects),
    })
}

pub(super) fn not_applicable(reason: &str) -> FactObservation {
    FactObservation::NotApplicable(reason.to_owned())
}

fn families_of(cidrs: &[String]) -> String {
    let families: BTreeSet<_> = cidrs
        .iter()
        .map(|cidr| IpFamily::of_written(cidr))
        .collect();
    let words: Vec<_> = families.into_iter().map(IpFamily::as_str).collect();
    words.join(",")
}

fn lacking(
    facts: &Facts,
    of: impl Fn(&WorkloadsFact) -> (u64, &Vec<String>),
) -> Result<FactObservation> {
    let workloads = needed("workloads", &facts.workloads)?;
    if workloads.windows_pods == 0 {
        return Ok(not_applicable("no pod runs on a Windows node"));
    }
    let (lacking, named) = of(workloads);
    Ok(cluster(Observed::Lacking {
        lacking,
        of: workloads.windows_pods,
        named: named.clone(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_of_cidrs() {
        let of = |cidrs: &[&str]| {
            families_of(&cidrs.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        assert_eq!(of(&["10.0.0.0/24"]), "ipv4");
        assert_eq!(of(&["fd00::/64"]), "ipv6");
        assert_eq!(of(&["fd00::/64", "10.0.0.0/24"]), "ipv4,ipv6");
    }
}
