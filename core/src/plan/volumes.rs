//! Why a pool gets no volume for a fixture.

use super::build::{Surroundings, unknown};
use super::check::PlannedAssertion;
use crate::facts::SHARING;
use crate::fixture::{Change, FixtureKey};
use crate::text::printable;
use crate::verdict::{Disposition, SkipReason};

impl Surroundings<'_> {
    /// The disposition of an assertion that needs a volume where its pool gets none or this is not known.
    pub(super) fn lacks_volume(&self, assertion: &PlannedAssertion) -> Option<Disposition> {
        let mut needs = assertion.needs.iter();
        needs.find_map(|(key, _)| match self.has_volume(key) {
            Ok(None) => None,
            Ok(Some(reason)) => Some(Disposition::Skip(SkipReason::NotApplicable { reason })),
            Err((what, reason)) => Some(Disposition::Inconclusive(unknown(what, reason))),
        })
    }

    /// Why a fixture gets no volume, if it claims one and gets none; the error is what is not known, and why.
    fn has_volume(&self, key: &FixtureKey) -> Result<Option<String>, (&'static str, &str)> {
        if key.name.claim().is_none() {
            return Ok(None);
        }
        let classes = self.facts.storage_classes.known();
        let classes = classes.map_err(|reason| ("the cluster's StorageClasses", reason))?;
        let Some(class) = key.name.class_among(classes) else {
            return Ok(Some(match key.name.shares_volume() {
                true => format!(
                    "no StorageClass makes shares of SMB of a run's own ({})",
                    SHARING.join(", ")
                ),
                false => "no StorageClass is the default one".to_owned(),
            }));
        };
        let (name, driver) = (printable(&class.name), printable(&class.provisioner));
        if class.retains {
            return Ok(Some(format!(
                "StorageClass {name} keeps volumes whose claims are gone (reclaimPolicy: Retain)"
            )));
        }
        let file_system = class.file_system.as_deref().filter(|name| !name.is_empty());
        let unfit = match file_system {
            // Who mounts a share asks for no file system
            _ if key.name.shares_volume() => None,
            Some(name) if name.eq_ignore_ascii_case("ntfs") => None,
            Some(name) => Some(format!("csi.storage.k8s.io/fstype is {}", printable(name))),
            // GKE's driver then gives volumes another file system, and mounts none of these on Windows
            // (gcp-compute-persistent-disk-csi-driver, `utils_windows.go`)
            None => (class.provisioner == "pd.csi.storage.gke.io")
                .then(|| "it lacks csi.storage.k8s.io/fstype: NTFS".to_owned()),
        };
        if let Some(why) = unfit {
            return Ok(Some(format!(
                "volumes of StorageClass {name} are not for Windows: {why}"
            )));
        }
        if key.name.changes().contains(&Change::Grow) && !class.expands {
            return Ok(Some(format!(
                "StorageClass {name} lets no volume grow (allowVolumeExpansion)"
            )));
        }
        if key.name.changes().contains(&Change::Snapshot) {
            let classes = self.facts.snapshot_classes.known();
            let classes =
                classes.map_err(|reason| ("the cluster's VolumeSnapshotClasses", reason))?;
            if class.snapshot_class(classes).is_none() {
                return Ok(Some(format!(
                    "no VolumeSnapshotClass of {driver}, the driver of StorageClass {name}, has deletionPolicy: Delete"
                )));
            }
        }
        let drivers = self.facts.csi_nodes.known();
        let drivers = drivers.map_err(|reason| ("the CSI drivers of the nodes", reason))?;
        let has_driver = |node: &String| {
            let mut drivers = drivers.iter().filter(|csi| csi.node == *node);
            drivers.any(|csi| csi.drivers.contains(&class.provisioner))
        };
        let pool = key.pool.as_ref().and_then(|pool| self.pools.get(pool));
        let mut nodes = pool.into_iter().flat_map(|pool| &pool.nodes);
        let lacks = nodes.find(|node| !has_driver(node));
        Ok(lacks.map(|node| {
            let node = printable(node);
            format!("{node} does not register {driver}, the driver of StorageClass {name}")
        }))
    }
}
