//! All facts of a cluster, and the pools that follow from them.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

use super::build::WindowsBuild;
use super::known::Known;
use super::network::{ClusterDns, Cni, KubeProxy};
use super::node::{NodeFact, VirtualNodeFact};
use super::objects::{
    CsiNodeFact, GmsaFact, LoadBalancerFact, RuntimeClassFact, SnapshotClassFact, StorageClassFact,
    WebhookFact, WorkloadsFact,
};
use super::pull::PullFact;

/// The operating system of a node.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
#[derive(IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Os {
    Linux,
    Windows,
}

crate::text::words!(Os);

/// The name of a pool: `linux`, `windows-2022`.
#[derive(Clone, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(transparent)]
pub struct PoolName(String);

impl PoolName {
    pub fn linux() -> Self {
        Self("linux".to_owned())
    }

    /// The pool of one Windows build.
    pub fn windows(build: WindowsBuild) -> Self {
        Self(build.pool())
    }
}

impl Borrow<str> for PoolName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

crate::text::name!(PoolName);

/// The nodes of one operating system and one build.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Pool {
    /// Its operating system.
    pub os: Os,
    pub build: Option<WindowsBuild>,
    /// The nodes that a run uses, sorted by name: usable ones, none of them excluded or spared.
    pub nodes: Vec<String>,
    /// Usable nodes that a run spares, since others are there.
    pub spared: Vec<String>,
    /// Its usable nodes that the configuration excludes.
    pub excluded: Vec<String>,
    /// Its nodes that are not Ready or not schedulable.
    pub unusable: Vec<String>,
    /// The taints of the nodes that a run uses, which pods placed there tolerate.
    pub taints: Vec<serde_json::Value>,
    /// The container runtimes that these nodes report, such as `containerd://1.7.20`.
    pub runtimes: BTreeSet<String>,
    /// The handlers that the runtimes of all these nodes have; `None` if one of them does not say.
    #[serde(default)]
    pub handlers: Option<BTreeSet<String>>,
}

/// A node's place in its pool, from 1: among all of its nodes, usable or not, in the order of their
/// names.
pub type NodeOrdinal = u16;

impl Pool {
    /// On how many of its first usable nodes a sample's pods are placed where they can be: so each vantage
    /// point has pods on its node and elsewhere.
    pub const TOGETHER: usize = 2;

    /// The nodes on which a sample's pods are placed where they can be; none if there is only one.
    pub fn together(&self) -> Vec<NodeOrdinal> {
        ordinals(self.usable().into_iter().take(Self::TOGETHER).collect())
    }

    /// The usable nodes that a run observes from: all, or in a pool of more than `most` nodes those at `most`
    /// evenly spread places, which are the same every night. One node alone has no other to observe.
    pub fn ring(&self, most: usize) -> Vec<NodeOrdinal> {
        let count = self.in_order().len();
        let places = count.min(most);
        let spread: BTreeSet<_> = (0..places).map(|nth| nth * count / places).collect();
        let usable = self.usable().into_iter();
        let (mut ring, others): (Vec<_>, Vec<_>) = usable.partition(|place| spread.contains(place));
        ring.extend(others.into_iter().take(2_usize.saturating_sub(ring.len())));
        ring.sort_unstable();
        ordinals(ring)
    }

    /// The places of its usable nodes, from 0.
    fn usable(&self) -> Vec<usize> {
        let names = self.in_order();
        let usable = |place: &usize| self.nodes.binary_search(names[*place]).is_ok();
        (0..names.len()).filter(usable).collect()
    }

    pub fn node(&self, ordinal: NodeOrdinal) -> Option<&String> {
        let place = usize::from(ordinal).checked_sub(1)?;
        self.in_order().get(place).copied()
    }

    /// The names of all its nodes, by their ordinals from 1.
    pub fn in_order(&self) -> Vec<&String> {
        let aside = [&self.spared, &self.excluded, &self.unusable];
        let mut names: Vec<_> = self
            .nodes
            .iter()
            .chain(aside.into_iter().flatten())
            .collect();
        names.sort_unstable();
        names
    }

    /// The places of its spared nodes.
    pub fn spared(&self) -> Vec<NodeOrdinal> {
        let names = self.in_order().into_iter().enumerate();
        let spared = names.filter(|(_, name)| self.spared.contains(name));
        let places = spared.filter_map(|(place, _)| (place + 1).try_into().ok());
        places.collect()
    }

    /// How many nodes it has, whether a run uses them or not.
    pub fn total(&self) -> usize {
        self.in_order().len()
    }

    /// How many nodes a run does not use, and why: `1 not usable`, `2 excluded`.
    pub fn unused(&self) -> Vec<String> {
        let words = [
            (&self.unusable, "not usable"),
            (&self.excluded, "excluded"),
            (&self.spared, "spared"),
        ];
        let words = words.into_iter().filter(|(nodes, _)| !nodes.is_empty());
        words
            .map(|(nodes, word)| format!("{} {word}", nodes.len()))
            .collect()
    }

    /// The RuntimeClass handler with which containerd on Windows runs containers as it does without a RuntimeClass
    /// (containerd `internal/cri/config/config_windows.go`); other runtimes have none in common.
    pub const HANDLER: &str = "runhcs-wcow-process";

    /// The handler for a RuntimeClass of its nodes, if they have it: their kubelets say so from Kubernetes 1.30 on,
    /// and before, containerd has it by default.
    pub fn handler(&self) -> Option<&'static str> {
        let is_known = |runtime: &String| runtime.starts_with("containerd://");
        let is_containerd = !self.runtimes.is_empty() && self.runtimes.iter().all(is_known);
        let has = match &self.handlers {
            Some(handlers) => handlers.contains(Self::HANDLER),
            None => is_containerd,
        };
        (self.os == Os::Windows && has).then_some(Self::HANDLER)
    }
}

/// The ordinals of nodes at places from 0; none if there is only one node.
fn ordinals(places: Vec<usize>) -> Vec<NodeOrdinal> {
    match places.len() {
        0 | 1 => Vec::new(),
        _ => places
            .into_iter()
            .filter_map(|place| (place + 1).try_into().ok())
            .collect(),
    }
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Facts {
    /// `gitVersion` of the API server.
    pub server: Known<String>,
    /// What the API server runs on, such as `linux/amd64`.
    pub platform: Known<String>,
    /// The API server's feature gates and whether each is on.
    pub gates: Known<BTreeMap<String, bool>>,
    /// UID of the namespace kube-system: the cluster's identity.
    pub cluster: Known<String>,
    pub nodes: Known<Vec<NodeFact>>,
    /// Names of the nodes that do not say whether they run Linux or Windows; `nodes` does not contain them.
    pub silent_nodes: Known<Vec<String>>,
    /// The nodes behind which no kubelet of a machine runs pods; `nodes` does not contain them.
    pub virtual_nodes: Known<Vec<VirtualNodeFact>>,
    /// Who provisioned the cluster, such as `aks`, `eks`, `gke` or `kubeadm`; `None` when no rule
    /// recognises it.
    pub provider: Known<Option<String>>,
    /// The network plugin; `None` when no rule recognises one.
    pub cni: Known<Option<Cni>>,
    /// What is known of kube-proxy; `None` when no sign of it was found.
    pub kube_proxy: Known<Option<KubeProxy>>,
    /// The cluster's DNS; `None` when no Service of it was found.
    pub dns: Known<Option<ClusterDns>>,
    pub runtime_classes: Known<Vec<RuntimeClassFact>>,
    pub storage_classes: Known<Vec<StorageClassFact>>,
    pub snapshot_classes: Known<Vec<SnapshotClassFact>>,
    pub csi_drivers: Known<Vec<String>>,
    /// Which CSI drivers run on which node.
    pub csi_nodes: Known<Vec<CsiNodeFact>>,
    /// Admission webhooks and policies that see pods.
    pub webhooks: Known<Vec<WebhookFact>>,
    pub load_balancer: Known<LoadBalancerFact>,
    /// Whether `metrics.k8s.io` is served; unknown where its server is not available.
    pub metrics_api: Known<bool>,
    /// Signs of gMSA support.
    pub gmsa: Known<GmsaFact>,
    /// The running workloads, as far as claims are about them.
    pub workloads: Known<WorkloadsFact>,
    /// Pulls to Windows nodes that events still report, by image and node.
    pub pulls: Known<Vec<PullFact>>,
}

impl Facts {
    /// The server's version as numbers; vendors' suffixes (`-gke.100`, `+k3s1`) do not count.
    pub fn kubernetes(&self) -> Option<semver::Version> {
        let text = self.server.value()?.trim_start_matches('v');
        let numbers = text.split(['-', '+']).next()?;
        semver::Version::parse(numbers).ok()
    }

    /// The pools. Windows nodes whose build cannot be read form the pool `windows-unknown`, so that they do
    /// not vanish. Of the spared nodes a run uses as many as a pool lacks of two others, or all where there is no other:
    /// without a second node nothing between two is observed.
    pub fn pools(&self) -> BTreeMap<PoolName, Pool> {
        let mut pools = BTreeMap::<PoolName, Pool>::new();
        let mut facts = BTreeMap::new();
        for node in self.nodes.value().into_iter().flatten() {
            let name = match (node.os, node.build) {
                (Os::Linux, _) => PoolName::linux(),
                (Os::Windows, Some(build)) => PoolName::windows(build),
                (Os::Windows, None) => PoolName("windows-unknown".to_owned()),
            };
            let pool = pools.entry(name).or_insert_with(|| Pool {
                os: node.os,
                build: node.build,
                nodes: Vec::new(),
                spared: Vec::new(),
                excluded: Vec::new(),
                unusable: Vec::new(),
                taints: Vec::new(),
                runtimes: BTreeSet::new(),
                handlers: None,
            });
            let among = match (node.usable, &node.excluded, &node.spared) {
                (false, _, _) => &mut pool.unusable,
                (true, Some(_), _) => &mut pool.excluded,
                (true, None, Some(_)) => &mut pool.spared,
                (true, None, None) => &mut pool.nodes,
            };
            among.push(node.name.clone());
            facts.insert(&node.name, node);
        }
        for pool in pools.values_mut() {
            pool.spared.sort();
            pool.excluded.sort();
            pool.unusable.sort();
            // A pool that is made of such nodes is not spared: it is what there is to be tested
            let lacking = match pool.nodes.len() {
                0 => pool.spared.len(),
                others => Pool::TOGETHER.saturating_sub(others).min(pool.spared.len()),
            };
            pool.nodes.extend(pool.spared.drain(..lacking));
            pool.nodes.sort();
            let used: Vec<_> = pool
                .nodes
                .iter()
                .filter_map(|name| facts.get(name))
                .collect();
            let handlers = used.iter().map(|node| node.details.handlers.clone());
            let both = |all: Option<BTreeSet<String>>, other: Option<_>| Some(&all? & &other?);
            pool.handlers = handlers.reduce(both).flatten();
            for node in used {
                pool.runtimes.insert(node.details.runtime.clone());
                for taint in &node.taints {
                    if !pool.taints.contains(taint) {
                        pool.taints.push(taint.clone());
                    }
                }
            }
        }
        pools
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_is_of_all_nodes_or_evenly_spread() {
        let pool = |nodes: usize| Pool {
            os: Os::Windows,
            build: None,
            nodes: (1..=nodes)
                .map(|number| format!("win-{number:02}"))
                .collect(),
            spared: Vec::new(),
            excluded: Vec::new(),
            unusable: Vec::new(),
            taints: Vec::new(),
            runtimes: BTreeSet::new(),
            handlers: None,
        };
        for (nodes, most, ring) in [
            (0, 16, vec![]),
            (1, 16, vec![]),
            (2, 16, vec![1, 2]),
            (3, 3, vec![1, 2, 3]),
            (10, 4, vec![1, 3, 6, 8]),
            (5, 4, vec![1, 2, 3, 4]),
        ] {
            assert_eq!(pool(nodes).ring(most), ring, "{nodes}");
        }
        let mut three = pool(3);
        assert_eq!(three.node(3).map(String::as_str), Some("win-03"));
        assert_eq!((three.node(0), three.node(4)), (None, None));
        // An unusable node keeps its place, and so do the others
        three.unusable.push(three.nodes.remove(0));
        assert_eq!(three.ring(16), [2, 3]);
        assert_eq!(three.node(1).map(String::as_str), Some("win-01"));
        let mut many = pool(10);
        many.unusable = many.nodes.drain(..8).collect();
        assert_eq!(many.ring(4), [9, 10]);
        many.unusable.extend(many.nodes.pop());
        assert!(many.ring(4).is_empty());
    }

    #[test]
    fn a_handler_is_what_all_kubelets_report_or_what_containerd_has() {
        let handler = |reported: [Option<&[&str]>; 2]| {
            let nodes = reported
                .iter()
                .zip(["win-a", "win-b"])
                .map(|(handlers, name)| {
                    serde_json::json!({"name": name, "os": "windows", "build": "10.0.20348",
                    "details": {"runtime": "containerd://2.1.0", "handlers": handlers}})
                });
            let nodes = serde_json::json!({"nodes": nodes.collect::<Vec<_>>()});
            let facts = crate::facts::values::facts(nodes.as_object().expect("values"));
            facts.pools()["windows-2022"].handler()
        };
        let own = ["runhcs-wcow-process", "other"];
        assert_eq!(handler([Some(&own), Some(&own)]), Some(Pool::HANDLER));
        assert_eq!(handler([Some(&own), Some(&[])]), None);
        // One of an older version
        assert_eq!(handler([Some(&["other"]), None]), Some(Pool::HANDLER));
    }

    #[test]
    fn vendor_suffixes_do_not_hide_the_version() {
        let facts = |version: &str| Facts {
            server: Known::Fact {
                value: version.to_owned(),
                source: "/version".to_owned(),
            },
            ..Facts::default()
        };
        for (text, minor) in [
            ("v1.37.0", 37),
            ("v1.33.4-gke.100", 33),
            ("v1.32.2+k3s1", 32),
        ] {
            assert_eq!(
                facts(text).kubernetes().map(|v| v.minor),
                Some(minor),
                "{text}"
            );
        }
        assert_eq!(facts("main").kubernetes(), None);
    }
}
