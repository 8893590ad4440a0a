//! The axes of a case.

use std::collections::BTreeMap;

use super::admission::read_values;
use crate::document::{Decoder, Fields, Node, Value};
use crate::facts::{Facts, Known, PoolName, WindowsBuild};
use crate::method::{ContainerKind, ErrorKind, SourceKind, Workload};
use crate::verdict::{Disposition, SkipReason};

/// The axes of a case.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Over {
    pub windows_pools: bool,
    pub only_pool: Option<PoolName>,
    /// What is observed from each pool.
    pub across: Across,
    /// Whether the case is repeated in the second family of addresses, where the cluster has two.
    pub families: bool,
    /// The network plugins that the case is for, as the facts name them; every cluster if empty.
    pub networks: Vec<String>,
    pub sources: Vec<SourceKind>,
    /// The kinds of objects; the case sends one of each.
    pub workloads: Vec<Workload>,
    pub containers: Vec<ContainerKind>,
    /// The values of the field, by name.
    pub values: BTreeMap<String, serde_json::Value>,
}

/// What is observed from each pool, and from where in it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Across {
    /// From one place, the pool itself or what belongs to no pool.
    #[default]
    Pool,
    /// From one place, every Windows pool, its own included.
    Pools,
    /// From each node, or in a large pool from some of its nodes.
    Nodes,
}

/// Reads the axes; problems are reported to the decoder.
pub(super) fn read_over(decoder: &mut Decoder<'_>, node: &Node) -> Option<Over> {
    let mut fields = decoder.fields(node, "`over`")?;
    let pool = fields.optional("pool");
    let to = fields.optional("to");
    let node = fields.optional("node");
    let networks = fields.or(decoder, "network", Vec::new(), |decoder, node| {
        decoder.each(node, "`network`", |decoder, node| {
            let product = decoder.text(node, "a network plugin")?;
            Some(product.to_owned())
        })
    });
    let sources = read_axis(decoder, &mut fields, "source", SourceKind::ALL);
    let workloads = read_axis(decoder, &mut fields, "workload", Workload::ALL);
    let containers = read_axis(decoder, &mut fields, "container", ContainerKind::ALL);
    let values = fields.or(decoder, "value", BTreeMap::new(), read_values);
    let families = fields.or(decoder, "family", false, |decoder, node| {
        let word = decoder.member(node, "axis of IP families", &[ALL_FAMILIES]);
        word.map(|_| true)
    });
    fields.finish(decoder);
    let pools = match pool {
        None => Some((false, None)),
        Some(node) => read_pools(decoder, node),
    };
    let across = read_across(decoder, pool, [to, node]);
    if let (Some(node), Some(sources)) = (node, &sources)
        && (sources.is_empty() || !sources.iter().all(|source| source.has_prober_per_node()))
    {
        let message = "`node: each` needs sources that have a prober on each node";
        let hint = "write `source: [windows-pod]`; `windows-node`, `linux-pod` and `linux-node` are allowed, too";
        decoder.report(node, message, Some(hint.to_owned()));
    }
    let (windows_pools, only_pool) = pools?;
    Some(Over {
        windows_pools,
        only_pool,
        across: across?,
        families: families?,
        networks: networks?,
        sources: sources?,
        workloads: workloads?,
        containers: containers?,
        values: values?,
    })
}

impl Over {
    /// Whether it has an axis; the networks are a condition.
    pub fn has_axes(&self) -> bool {
        let without = Self {
            networks: self.networks.clone(),
            ..Self::default()
        };
        *self != without
    }

    /// The disposition of a case on a cluster with another network plugin than its own; an unknown plugin
    /// makes it inconclusive.
    pub fn elsewhere(&self, facts: &Facts) -> Option<Disposition> {
        if self.networks.is_empty() {
            return None;
        }
        let plugin = match &facts.cni {
            Known::Unknown { reason } => {
                let detail = format!("the network plugin, on which it depends: {reason}");
                let error = ErrorKind::FactUnknown.error(detail);
                return Some(Disposition::Inconclusive(error));
            }
            Known::Fact { value: None, .. } => "no rule recognises the network plugin".to_owned(),
            Known::Fact {
                value: Some(cni), ..
            } if self.networks.contains(&cni.product) => return None,
            Known::Fact {
                value: Some(cni), ..
            } => format!("the network plugin is {}", cni.product),
        };
        let known = self.networks.join(" and ");
        let reason = format!("{plugin}, and it is known of {known} alone");
        Some(Disposition::Skip(SkipReason::NotApplicable { reason }))
    }
}

/// Reads `to: windows` or `node: each`; no case has both.
fn read_across(
    decoder: &mut Decoder<'_>,
    pool: Option<&Node>,
    [to, node]: [Option<&Node>; 2],
) -> Option<Across> {
    let (written, axis, known, across, message) = match (to, node) {
        (None, None) => return Some(Across::Pool),
        (Some(_), Some(node)) => {
            let message = "each node observes its own pool: `to` and `node` do not go together";
            return decoder.fail(node, message, Some("remove one of them".to_owned()));
        }
        (Some(to), None) => {
            let message = "`to` is the pool that is observed from another one";
            let axis = "axis of pools that are observed";
            (to, axis, ALL_POOLS, Across::Pools, message)
        }
        (None, Some(node)) => {
            let message = "`node` is each node of a pool";
            (node, "axis of nodes", EACH_NODE, Across::Nodes, message)
        }
    };
    if pool.is_none() {
        decoder.report(written, message, Some("add `pool: windows`".to_owned()));
    }
    decoder.member(written, axis, &[known]).map(|_| across)
}

/// Reads `windows`, or the name of one Windows pool.
fn read_pools(decoder: &mut Decoder<'_>, node: &Node) -> Option<(bool, Option<PoolName>)> {
    let named = [
        WindowsBuild::SERVER_2019,
        WindowsBuild::SERVER_2022,
        WindowsBuild::SERVER_2025,
    ]
    .map(PoolName::windows);
    let known: Vec<_> = std::iter::once(ALL_POOLS)
        .chain(named.iter().map(PoolName::as_str))
        .collect();
    decoder.word(node, "pool axis", &known, |word| {
        let only = named.iter().find(|name| name.as_str() == word);
        (word == ALL_POOLS || only.is_some()).then(|| (true, only.cloned()))
    })
}

/// The word for every Windows pool.
const ALL_POOLS: &str = "windows";

/// The word for every node of a pool.
const EACH_NODE: &str = "each";

/// The word for every family that a cluster has.
const ALL_FAMILIES: &str = "all";

/// Reads the values on one axis: a list of words, each once, or `all`.
fn read_axis<T: Copy + PartialEq + Into<&'static str>>(
    decoder: &mut Decoder<'_>,
    fields: &mut Fields<'_>,
    axis: &'static str,
    members: &[T],
) -> Option<Vec<T>> {
    let Some(node) = fields.optional(axis) else {
        return Some(Vec::new());
    };
    if node.value == Value::Text("all".to_owned()) {
        return Some(members.to_vec());
    }
    let mut values = Vec::new();
    for item in decoder.list(node, &format!("`{axis}`"))? {
        let value = decoder.member(item, axis, members);
        if let Some(word) = value
            && values.contains(&value)
        {
            let message = format!("{axis} `{}` appears twice", word.into());
            decoder.report(item, message, Some("remove one".to_owned()));
        }
        values.push(value);
    }
    values.into_iter().collect()
}
