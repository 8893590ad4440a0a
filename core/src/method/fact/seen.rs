//! Observations of facts: subjects, each with what it showed.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

use super::quantity::Quantity;
use crate::facts::{Cni, CniMode, KubeProxy, Os, WindowsBuild};

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FactObservation {
    /// At least one subject.
    Subjects(Vec<Subject>),
    /// The question does not arise, for this reason.
    NotApplicable(String),
}

/// One thing that was observed.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Subject {
    /// Its name, such as a node's; empty for the cluster.
    pub name: String,
    pub saw: Observed,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum Observed {
    /// The value is unknown, for this reason.
    Untold(String),
    Labels(Vec<ObservedLabel>),
    /// The operating system of a node.
    Os(Os),
    /// Nodes of one operating system.
    Nodes {
        /// How many are Ready and schedulable.
        usable: usize,
        of: usize,
    },
    Build {
        build: WindowsBuild,
        /// The API server's version.
        kubernetes: String,
    },
    Runtime {
        /// As reported: `containerd://1.7.20`.
        runtime: String,
        /// The kubelet's version, as reported.
        kubelet: String,
    },
    Kubelet {
        kubelet: String,
        /// The API server's version.
        server: String,
    },
    /// Taints as `key=value:effect`.
    Taints(Vec<String>),
    Resources(BTreeMap<String, ObservedResource>),
    MemoryPressure {
        /// Its status; `None` when there is no such condition.
        status: Option<String>,
        /// The kubelet's version.
        kubelet: String,
    },
    /// Pods that run a node-problem-detector, as `namespace/name`.
    Detectors(Vec<String>),
    /// Images that match the names of the query.
    Images {
        /// The node's build, on Windows.
        build: Option<WindowsBuild>,
        /// The matching images, as the node lists them.
        found: Vec<String>,
        /// How many images the node lists in all.
        listed: usize,
        /// How long pulls took.
        pulls: ObservedPulls,
    },
    /// The drivers of a node, or of a StorageClass.
    Drivers(Vec<String>),
    /// Seconds from creation to Ready; `None` while not Ready.
    Provisioned(Option<i64>),
    /// By how many seconds a node's clock is ahead of the API server's.
    Clock(i64),
    Ready {
        /// Its status; `None` when there is no such condition.
        status: Option<String>,
        reason: String,
    },
    Kernel {
        /// Its version, with the patch revision.
        version: String,
        /// `status.nodeInfo.osImage`.
        os_image: String,
    },
    Update {
        build: WindowsBuild,
        /// The patch revision.
        revision: Option<u64>,
        /// The network plugin's product; `None` when no rule recognises one.
        plugin: Option<String>,
        /// Why the revision or the plugin is not known, if one is not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unknown: Option<String>,
    },
    /// The network plugin; `None` when no rule recognises one.
    Cni(Option<Cni>),
    Vxlan {
        /// VNI; `None` when left to the default.
        vni: Option<u32>,
        /// UDP port; `None` when left to the default.
        port: Option<u16>,
    },
    /// kube-proxy; `None` when there is no sign of it.
    KubeProxy(Option<KubeProxy>),
    Endpoints(Vec<ObservedEndpoint>),
    /// Address families as `ipv4`, `ipv6` or `ipv4,ipv6`.
    Families(String),
    /// Pods that lack something, or CSI drivers that a node lacks.
    Lacking {
        lacking: u64,
        of: u64,
        /// The first pods, as `namespace/name`, or the drivers.
        named: Vec<String>,
    },
}

/// A label beside what `status.nodeInfo` says.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ObservedLabel {
    pub label: NodeLabel,
    /// Its value; `None` where the node lacks the label.
    pub value: Option<String>,
    pub reported: String,
}

/// A label that the kubelet sets.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[derive(IntoStaticStr, VariantArray)]
pub enum NodeLabel {
    /// `kubernetes.io/os`.
    #[strum(serialize = "kubernetes.io/os")]
    Os,
    /// `kubernetes.io/arch`.
    #[strum(serialize = "kubernetes.io/arch")]
    Arch,
    /// `node.kubernetes.io/windows-build`.
    #[strum(serialize = "node.kubernetes.io/windows-build")]
    WindowsBuild,
}

crate::text::words!(NodeLabel);

impl NodeLabel {
    pub(super) fn reported_as(self) -> &'static str {
        match self {
            Self::Os => "operatingSystem",
            Self::Arch => "architecture",
            Self::WindowsBuild => "kernel",
        }
    }
}

impl ObservedLabel {
    pub(super) fn agrees(&self) -> bool {
        let Some(value) = &self.value else {
            return false;
        };
        match self.label {
            NodeLabel::Os | NodeLabel::Arch => *value == self.reported,
            NodeLabel::WindowsBuild => {
                let build = WindowsBuild::parse_label(value);
                build.is_some() && build == WindowsBuild::parse_kernel(&self.reported)
            }
        }
    }
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ObservedResource {
    /// `status.capacity`.
    pub capacity: Quantity,
    /// `status.allocatable`.
    pub allocatable: Quantity,
}

/// How long pulls took.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ObservedPulls {
    /// Images and milliseconds.
    Took(Vec<(String, u64)>),
    /// Unknown, for this reason.
    Untold(String),
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ObservedEndpoint {
    pub address: String,
    pub node: Option<String>,
    /// The operating system of that node.
    pub os: Option<Os>,
    pub ready: bool,
}

impl fmt::Display for ObservedLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.value, self.label) {
            (None, NodeLabel::WindowsBuild) => f.write_str("no label")?,
            (Some(value), NodeLabel::WindowsBuild) => write!(f, "label {value}")?,
            (None, label) => write!(f, "no {}", label.as_str())?,
            (Some(value), label) => write!(f, "{} {value}", label.as_str())?,
        }
        write!(f, ", {} {}", self.label.reported_as(), self.reported)
    }
}

impl fmt::Display for ObservedResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kept = self.capacity.less(self.allocatable);
        write!(
            f,
            "{kept} of {} kept out, {} allocatable",
            self.capacity, self.allocatable
        )
    }
}

/// What a subject showed, in words.
impl fmt::Display for Observed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Untold(reason) => f.write_str(reason),
            Self::Labels(labels) => join(f, labels, "; "),
            Self::Os(os) => f.write_str(os.as_str()),
            Self::Nodes { usable, of } => write!(f, "{usable} of {of} Ready and schedulable"),
            Self::Build { build, kubernetes } => write!(f, "{build} with Kubernetes {kubernetes}"),
            Self::Runtime { runtime, kubelet } => write!(f, "{runtime}, kubelet {kubelet}"),
            Self::Kubelet { kubelet, server } => write!(f, "kubelet {kubelet}, server {server}"),
            Self::Taints(taints) if taints.is_empty() => f.write_str("no taints"),
            Self::Taints(taints) => f.write_str(&taints.join(", ")),
            Self::Resources(resources) => {
                let words = resources
                    .iter()
                    .map(|(name, seen)| format!("{name} {seen}"));
                f.write_str(&words.collect::<Vec<_>>().join("; "))
            }
            Self::MemoryPressure { status, kubelet } => match status {
                None => write!(f, "no condition MemoryPressure, kubelet {kubelet}"),
                Some(status) => write!(f, "MemoryPressure {status}, kubelet {kubelet}"),
            },
            Self::Detectors(pods) if pods.is_empty() => f.write_str("no node-problem-detector"),
            Self::Detectors(pods) => f.write_str(&pods.join(", ")),
            Self::Images {
                found,
                listed,
                pulls,
                build: _,
            } => {
                match found.as_slice() {
                    [] => write!(f, "none of the {listed} listed")?,
                    found => f.write_str(&found.join(", "))?,
                }
                write!(f, "{pulls}")
            }
            Self::Drivers(names) if names.is_empty() => f.write_str("no CSI driver"),
            Self::Drivers(names) => f.write_str(&names.join(", ")),
            Self::Provisioned(None) => f.write_str("not Ready"),
            Self::Provisioned(Some(seconds)) => {
                write!(f, "Ready {seconds} s after its creation")
            }
            // Both are whole seconds, and the heartbeat is a moment old when it arrives
            Self::Clock(-2..=1) => f.write_str("its clock agrees with the API server's"),
            Self::Clock(ahead) => {
                let side = if *ahead > 0 { "ahead of" } else { "behind" };
                let seconds = ahead.unsigned_abs();
                write!(f, "its clock is {seconds} s {side} the API server's")
            }
            Self::Ready { status, reason } => {
                let status = status.as_deref().unwrap_or("not told");
                write!(f, "Ready {status}")?;
                if_any(f, reason)
            }
            Self::Kernel { version, os_image } => {
                f.write_str(version)?;
                if_any(f, os_image)
            }
            Self::Update {
                build,
                revision,
                plugin,
                ..
            } => {
                let revision = revision.map_or(String::new(), |revision| format!(".{revision}"));
                write!(f, "{build}{revision}")?;
                if_any(f, plugin.as_deref().unwrap_or_default())
            }
            Self::Cni(None) => f.write_str("no rule recognises the network plugin"),
            Self::Cni(Some(cni)) => cni_words(f, cni),
            Self::Vxlan { vni, port } => {
                let vni = vni.map_or("its default".to_owned(), |vni| vni.to_string());
                let port = port.map_or("its default".to_owned(), |port| port.to_string());
                write!(f, "VNI {vni}, UDP port {port}")
            }
            Self::KubeProxy(None) => f.write_str("no sign of kube-proxy"),
            Self::KubeProxy(Some(proxy)) => proxy_words(f, proxy),
            Self::Endpoints(endpoints) if endpoints.is_empty() => f.write_str("no endpoint"),
            Self::Endpoints(endpoints) => join(f, endpoints, ", "),
            Self::Families(families) => f.write_str(families),
            Self::Lacking { lacking, of, named } => {
                write!(f, "{lacking} of {of}")?;
                if_any(f, &named.join(", "))
            }
        }
    }
}

impl fmt::Display for ObservedPulls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Took(pulls) => {
                for (image, took) in pulls {
                    write!(
                        f,
                        "; pulling {image} took {}.{} s",
                        took / 1000,
                        took / 100 % 10
                    )?;
                }
                Ok(())
            }
            Self::Untold(reason) => write!(f, "; pull times are not told: {reason}"),
        }
    }
}

impl fmt::Display for ObservedEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let node = self.node.as_deref().unwrap_or("a node that is not told");
        write!(f, "{} on {node}", self.address)?;
        if let Some(os) = self.os {
            write!(f, " ({})", os.as_str())?;
        }
        f.write_str(if self.ready { "" } else { " not ready" })
    }
}

fn cni_words(f: &mut fmt::Formatter<'_>, cni: &Cni) -> fmt::Result {
    let mode = cni.mode.map_or("mode not told", CniMode::title);
    write!(f, "{}, {mode}", cni.product)?;
    signs(f, &cni.signs, &cni.unread)
}

fn proxy_words(f: &mut fmt::Formatter<'_>, proxy: &KubeProxy) -> fmt::Result {
    let mode = |mode: &Option<String>| mode.clone().unwrap_or("not told".to_owned());
    let dsr = match proxy.dsr {
        None => "not told",
        Some(true) => "asked for",
        Some(false) => "not asked for",
    };
    write!(
        f,
        "mode on Windows {}, on Linux {}; direct server return {dsr}",
        mode(&proxy.windows_mode),
        mode(&proxy.linux_mode)
    )?;
    signs(f, &proxy.signs, &proxy.unread)
}

fn signs(f: &mut fmt::Formatter<'_>, signs: &[String], unread: &[String]) -> fmt::Result {
    if_any(f, &signs.join("; "))?;
    match unread {
        [] => Ok(()),
        unread => write!(f, "; not read: {}", unread.join("; ")),
    }
}

fn if_any(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    match text {
        "" => Ok(()),
        text => write!(f, " ({text})"),
    }
}

fn join<T: fmt::Display>(f: &mut fmt::Formatter<'_>, parts: &[T], between: &str) -> fmt::Result {
    for (index, part) in parts.iter().enumerate() {
        let between = if index == 0 { "" } else { between };
        write!(f, "{between}{part}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::listed;

    #[test]
    fn what_a_fact_shows_has_words() {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Row {
            saw: Observed,
            words: String,
        }
        let rows: Vec<Row> = listed(include_str!("seen.yaml"));
        for Row { saw, words } in rows {
            assert_eq!(saw.to_string(), words);
        }
    }
}
