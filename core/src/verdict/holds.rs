//! Where a known limitation holds.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use semver::VersionReq;

use super::disposition::Disposition;
use crate::document::{Decoder, Node};
use crate::facts::{CniMode, Facts, Pool, WindowsBuild, read_build};
use crate::method::ErrorKind;
use crate::method::fact::numbers;

/// The programs of nodes whose versions a scope may name: the kubelet, and runtimes as nodes report them.
const PROGRAMS: [&str; 3] = ["kubelet", "containerd", "docker"];

/// Where a limitation holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Holds {
    /// The builds; empty for all.
    pub builds: BTreeSet<WindowsBuild>,
    pub kubernetes: VersionReq,
    /// The network plugins; `None` for all.
    pub network: Option<ScopedNetwork>,
    /// The versions of the kubelet and of container runtimes, one of which a node of the pool has; empty for all.
    pub nodes: BTreeMap<&'static str, VersionReq>,
}

/// Network plugins, in some modes.
#[derive(Clone, Debug, PartialEq)]
pub struct ScopedNetwork {
    /// Their products, as in the facts.
    pub products: Vec<String>,
    /// How they connect Windows pods; empty for all modes.
    pub modes: Vec<CniMode>,
}

impl fmt::Display for ScopedNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.products.join(", "))?;
        let modes: Vec<_> = self.modes.iter().map(|mode| mode.as_str()).collect();
        match modes.as_slice() {
            [] => Ok(()),
            modes => write!(f, " in mode {}", modes.join(", ")),
        }
    }
}

fn unknown(what: &str) -> Disposition {
    let detail = format!("{what}, on which the limitation's scope depends");
    Disposition::Inconclusive(ErrorKind::FactUnknown.error(detail))
}

impl Holds {
    /// Why it does not hold for a pool; `None` if it does.
    pub(super) fn missed(
        &self,
        pool: Option<&Pool>,
        facts: &Facts,
    ) -> Result<Option<String>, Disposition> {
        let version = facts
            .kubernetes()
            .ok_or_else(|| unknown("the server's version"))?;
        if !self.kubernetes.matches(&version) {
            return Ok(Some(format!(
                "Kubernetes {version} is not {}",
                self.kubernetes
            )));
        }
        if let Some(network) = &self.network
            && let Some(elsewhere) = network.missed(facts)?
        {
            return Ok(Some(elsewhere));
        }
        if !self.nodes.is_empty() && !self.is_on_a_node(pool, facts)? {
            return Ok(Some(format!("no node of the pool has {}", self.programs())));
        }
        if self.builds.is_empty() {
            return Ok(None);
        }
        let build = pool.and_then(|pool| pool.build);
        let build = build.ok_or_else(|| unknown("the build of the nodes"))?;
        let missed = format!("build {build} is not among those it is known for");
        Ok((!self.builds.contains(&build)).then_some(missed))
    }

    /// Whether a node that the run uses of the pool has one of these programs in such a version.
    fn is_on_a_node(&self, pool: Option<&Pool>, facts: &Facts) -> Result<bool, Disposition> {
        let nodes = facts.nodes.value().into_iter().flatten();
        let used = nodes.filter(|node| pool.is_some_and(|pool| pool.nodes.contains(&node.name)));
        for node in used {
            let runtime = node.details.runtime.split_once("://");
            let runtime = runtime.ok_or_else(|| unknown("the container runtime of a node"))?;
            for (name, version) in [("kubelet", node.details.kubelet.as_str()), runtime] {
                let Some(range) = self.nodes.get(name) else {
                    continue;
                };
                let version = numbers(version);
                let version = version.ok_or_else(|| unknown("the version of a node's program"))?;
                if range.matches(&version) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// The programs of nodes that it names: `containerd <1.6.19 or docker *`.
    pub(crate) fn programs(&self) -> String {
        let programs = self.nodes.iter();
        let programs: Vec<_> = programs
            .map(|(name, range)| format!("{name} {range}"))
            .collect();
        programs.join(" or ")
    }
}

impl ScopedNetwork {
    /// Why a cluster's network is none of these; `None` if it is one. No source names others, nor does any name
    /// one that no rule recognises.
    fn missed(&self, facts: &Facts) -> Result<Option<String>, Disposition> {
        let unknown = |what: &str, why: &str| {
            let detail = format!("{what}, on which the limitation's scope depends: {why}");
            Disposition::Inconclusive(ErrorKind::FactUnknown.error(detail))
        };
        let cni = facts.cni.known();
        let cni = cni.map_err(|why| unknown("the network plugin", why))?;
        let missed = match cni {
            None => "no rule recognises the network plugin".to_owned(),
            Some(cni) if !self.products.contains(&cni.product) => {
                format!("the network plugin is {}", cni.product)
            }
            Some(_) if self.modes.is_empty() => return Ok(None),
            Some(cni) => match cni.mode {
                Some(mode) if self.modes.contains(&mode) => return Ok(None),
                Some(mode) => format!("{} is in mode {}", cni.product, mode.as_str()),
                None => {
                    return Err(unknown(
                        "the network plugin's mode",
                        "the API does not say it",
                    ));
                }
            },
        };
        Ok(Some(format!("{missed}, and it is known of {self} alone")))
    }
}

/// Reads the scope of an entry.
pub(super) fn read_scope(decoder: &mut Decoder<'_>, node: &Node) -> Option<Holds> {
    let mut fields = decoder.fields(node, "`scope`")?;
    let builds = fields.or(decoder, "builds", Vec::new(), |decoder, node| {
        decoder.each(node, "`builds`", read_build)
    });
    let kubernetes = fields.range(decoder, "kubernetes");
    let network = fields.maybe(decoder, "network", read_network);
    let nodes = fields.or(decoder, "nodes", BTreeMap::new(), read_nodes);
    fields.finish(decoder);
    Some(Holds {
        builds: builds?.into_iter().collect(),
        kubernetes: kubernetes?,
        network: network?,
        nodes: nodes?,
    })
}

fn read_network(decoder: &mut Decoder<'_>, node: &Node) -> Option<ScopedNetwork> {
    let mut fields = decoder.fields(node, "`network`")?;
    let products = fields.read(decoder, "products", |decoder, node| {
        decoder.each(node, "`products`", |decoder, node| {
            let product = decoder.text(node, "a network plugin")?;
            Some(product.to_owned())
        })
    });
    let modes = fields.or(decoder, "modes", Vec::new(), |decoder, node| {
        decoder.each(node, "`modes`", |decoder, node| {
            decoder.member(node, "mode", CniMode::ALL)
        })
    });
    fields.finish(decoder);
    Some(ScopedNetwork {
        products: products?,
        modes: modes?,
    })
}

fn read_nodes(
    decoder: &mut Decoder<'_>,
    node: &Node,
) -> Option<BTreeMap<&'static str, VersionReq>> {
    let mut fields = decoder.fields(node, "`nodes`")?;
    let mut ranges = BTreeMap::new();
    for name in PROGRAMS {
        let range = fields.maybe(decoder, name, |decoder, node| {
            decoder.range(node, "a version")
        })?;
        ranges.extend(range.map(|range| (name, range)));
    }
    (fields.finish(decoder) == 0).then_some(ranges)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::values::facts;
    use serde_json::json;

    #[test]
    fn a_program_of_one_node_of_the_pool_is_enough() {
        let old = "<1.6.19".parse().expect("a range");
        let holds = Holds {
            builds: BTreeSet::new(),
            kubernetes: VersionReq::STAR,
            network: None,
            nodes: BTreeMap::from([("containerd", old), ("docker", VersionReq::STAR)]),
        };
        let missed = |runtimes: &[&str]| {
            let node = |(nth, runtime): (usize, &&str)| {
                json!({"name": format!("win-{nth}"), "os": "windows", "build": "10.0.20348",
                    "details": {"runtime": runtime}})
            };
            let nodes: Vec<_> = runtimes.iter().enumerate().map(node).collect();
            let all = json!({"server": "v1.37.0", "nodes": nodes});
            let facts = facts(all.as_object().expect("values"));
            holds.missed(facts.pools().values().next(), &facts)
        };
        let none = "no node of the pool has containerd <1.6.19 or docker *";
        for runtimes in [
            ["containerd://1.6.19", "containerd://2.1.0"],
            ["cri-o://1.36.0"; 2],
        ] {
            assert_eq!(missed(&runtimes), Ok(Some(none.to_owned())), "{runtimes:?}");
        }
        for one in ["containerd://1.6.18", "docker://18.09.7", "docker://25.0.8"] {
            assert_eq!(missed(&["containerd://2.1.0", one]), Ok(None), "{one}");
        }
        assert!(missed(&["containerd://Unknown"]).is_err());
        assert!(missed(&[""]).is_err());
        // A pool without a node that the run uses has none
        assert_eq!(missed(&[]), Ok(Some(none.to_owned())));
    }
}
