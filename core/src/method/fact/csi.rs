//! Drivers of volumes: those of CSI that nodes register, and those in Kubernetes itself.

use std::collections::BTreeSet;

use super::read::{needed, nodes, not_applicable};
use super::seen::{FactObservation, Observed, Subject};
use crate::facts::{CsiNodeFact, Facts, NodeFact};
use crate::method::{Bound, Result};

/// The drivers that a node registers (`CSINode.spec.drivers`).
fn registered<'f>(
    csi_nodes: &'f [CsiNodeFact],
    node: &NodeFact,
) -> impl Iterator<Item = &'f String> {
    let here = csi_nodes.iter().filter(|csi| csi.node == node.name);
    here.flat_map(|csi| &csi.drivers)
}

/// Which of the drivers that the pool's nodes register each of them lacks.
pub(super) fn csi_drivers(at: &Bound<'_>, facts: &Facts) -> Result<FactObservation> {
    let csi_nodes = needed("csi-nodes", &facts.csi_nodes)?;
    let drivers = |node: &NodeFact| registered(csi_nodes, node).collect::<BTreeSet<_>>();
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

/// The CSI drivers of each of the pool's nodes, and each `StorageClass` whose driver is in Kubernetes' own tree
/// (`kubernetes.io/…`, but for `no-provisioner`, which has none).
pub(super) fn volume_drivers(at: &Bound<'_>, facts: &Facts) -> Result<FactObservation> {
    let csi_nodes = needed("csi-nodes", &facts.csi_nodes)?;
    let classes = needed("storage-classes", &facts.storage_classes)?;
    let nodes = nodes(at, facts)?.into_iter().map(|node| {
        let drivers = registered(csi_nodes, node).cloned().collect();
        (node.name.clone(), drivers)
    });
    let is_in_tree = |driver: &str| {
        driver.starts_with("kubernetes.io/") && driver != "kubernetes.io/no-provisioner"
    };
    let classes = classes
        .iter()
        .filter(|class| is_in_tree(&class.provisioner));
    let classes = classes.map(|class| {
        let name = format!("StorageClass {}", class.name);
        (name, vec![class.provisioner.clone()])
    });
    let subjects = nodes.chain(classes).map(|(name, drivers)| Subject {
        name,
        saw: Observed::Drivers(drivers),
    });
    Ok(FactObservation::Subjects(subjects.collect()))
}
