//! CSI drivers that nodes register.

use std::collections::BTreeSet;

use super::read::{needed, nodes, not_applicable};
use super::seen::{FactObservation, Observed, Subject};
use crate::facts::{Facts, NodeFact};
use crate::method::{Bound, Result};

/// Which of the drivers that the pool's nodes register each of them lacks (`CSINode.spec.drivers`).
pub(super) fn csi_drivers(at: &Bound<'_>, facts: &Facts) -> Result<FactObservation> {
    let csi_nodes = needed("csi-nodes", &facts.csi_nodes)?;
    let drivers = |node: &NodeFact| -> BTreeSet<&String> {
        let here = csi_nodes.iter().filter(|csi| csi.node == node.name);
        here.flat_map(|csi| &csi.drivers).collect()
    };
    let nodes = nodes(at, facts)?;
    let all: BTreeSet<_> = nodes.iter().flat_map(|node| drivers(node)).collect();
    if all.is_empty() {
        return Ok(not_applicable("no node registers a CSI driver"));
    }
    let subjects = nodes.into_iter().map(|node| {
        let here = drivers(node);
        let named: Vec<_> = all.difference(&here).map(|name| (*name).clone()).collect();
        Subject {
            name: node.name.clone(),
            saw: Observed::Lacking {
                lacking: named.len() as u64,
                of: all.len() as u64,
                named,
            },
        }
    });
    Ok(FactObservation::Subjects(subjects.collect()))
}
