//! Reads runtime classes, storage classes, classes of snapshots, CSI drivers and CSI nodes.

use std::collections::BTreeMap;

use serde_json::Value as Json;
use winconform_core::facts::products::texts;
use winconform_core::facts::{CsiNodeFact, RuntimeClassFact, SnapshotClassFact, StorageClassFact};

use super::read::{Unread, list};
use crate::cluster::objects::status::{items, word};
use crate::transport::Api;

pub(super) const RUNTIME_CLASSES: &str = "/apis/node.k8s.io/v1/runtimeclasses";
pub(super) const STORAGE_CLASSES: &str = "/apis/storage.k8s.io/v1/storageclasses";
pub(super) const SNAPSHOT_CLASSES: &str = "/apis/snapshot.storage.k8s.io/v1/volumesnapshotclasses";
pub(super) const CSI_DRIVERS: &str = "/apis/storage.k8s.io/v1/csidrivers";
pub(super) const CSI_NODES: &str = "/apis/storage.k8s.io/v1/csinodes";

pub(super) async fn runtime_classes(api: &Api) -> Result<Vec<RuntimeClassFact>, Unread> {
    list(api, RUNTIME_CLASSES, |class| {
        let scheduling = &class["scheduling"];
        Some(RuntimeClassFact {
            name: name(class),
            handler: word(&class["handler"]),
            node_selector: texts(&scheduling["nodeSelector"]),
            tolerations: items(&scheduling["tolerations"]).cloned().collect(),
            overhead: texts(&class["overhead"]["podFixed"]),
        })
    })
    .await
}

/// The cluster's storage classes, the newest first: of several default ones a claim gets that
/// (`pkg/volume/util/storageclass.go`, `GetDefaultClass`).
pub(super) async fn storage_classes(api: &Api) -> Result<Vec<StorageClassFact>, Unread> {
    let classes = list(api, STORAGE_CLASSES, |class| {
        let metadata = &class["metadata"];
        let is_default = |name: &str| metadata["annotations"][name] == "true";
        let fact = StorageClassFact {
            name: name(class),
            provisioner: word(&class["provisioner"]),
            default: is_default("storageclass.kubernetes.io/is-default-class")
                || is_default("storageclass.beta.kubernetes.io/is-default-class"),
            retains: class["reclaimPolicy"] == "Retain",
            file_system: class["parameters"]["csi.storage.k8s.io/fstype"]
                .as_str()
                .map(str::to_owned),
            sharing: sharing(&class["parameters"]),
            expands: class["allowVolumeExpansion"] == true,
        };
        Some((word(&metadata["creationTimestamp"]), fact))
    });
    let mut classes = classes.await?;
    classes.sort_by(|(a, one), (b, other)| b.cmp(a).then_with(|| one.name.cmp(&other.name)));
    Ok(classes.into_iter().map(|(_, class)| class).collect())
}

/// Those that say whether several nodes of Windows can mount a volume; drivers take their names in any case.
fn sharing(parameters: &Json) -> BTreeMap<String, String> {
    let parameters = texts(parameters).into_iter();
    let parameters = parameters.map(|(name, value)| (name.to_lowercase(), value));
    parameters
        .filter(|(name, _)| StorageClassFact::SHARING.contains(&name.as_str()))
        .collect()
}

/// The classes of snapshots; none where the cluster does not serve them.
pub(super) async fn snapshot_classes(api: &Api) -> Result<Vec<SnapshotClassFact>, Unread> {
    let classes = list(api, SNAPSHOT_CLASSES, |class| {
        Some(SnapshotClassFact {
            name: name(class),
            driver: word(&class["driver"]),
            retains: class["deletionPolicy"] == "Retain",
        })
    });
    match classes.await {
        Err(Unread { absent: true, .. }) => Ok(Vec::new()),
        read => read,
    }
}

pub(super) async fn csi_drivers(api: &Api) -> Result<Vec<String>, Unread> {
    list(api, CSI_DRIVERS, |driver| Some(name(driver))).await
}

pub(super) async fn csi_nodes(api: &Api) -> Result<Vec<CsiNodeFact>, Unread> {
    list(api, CSI_NODES, |node| {
        let drivers = items(&node["spec"]["drivers"]);
        Some(CsiNodeFact {
            node: name(node),
            drivers: drivers.map(|driver| word(&driver["name"])).collect(),
        })
    })
    .await
}

fn name(object: &Json) -> String {
    word(&object["metadata"]["name"])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::fake::Fake;
    use super::*;

    #[tokio::test]
    async fn of_several_default_storage_classes_the_newest_is_first() {
        let fake = Fake::default();
        for (name, day, annotation) in [
            ("a", 1, "storageclass.kubernetes.io/is-default-class"),
            ("b", 3, "storageclass.beta.kubernetes.io/is-default-class"),
            ("c", 2, "example.com/is-default-class"),
        ] {
            let class = json!({"metadata": {"name": name, "annotations": {annotation: "true"},
                "creationTimestamp": format!("2026-01-0{day}T00:00:00Z")}, "provisioner": "disk"});
            fake.put(&format!("{STORAGE_CLASSES}/{name}"), class);
        }
        let classes = storage_classes(&fake.api()).await.expect("they are read");
        let of_each = classes.iter().map(|class| (&*class.name, class.default));
        let of_each: Vec<_> = of_each.collect();
        assert_eq!(of_each, [("b", true), ("c", false), ("a", true)]);
    }

    #[tokio::test]
    async fn a_class_of_snapshots_is_read_with_what_becomes_of_them() {
        let fake = Fake::default();
        for (name, policy) in [("a", "Delete"), ("b", "Retain")] {
            let class =
                json!({"metadata": {"name": name}, "driver": "disk", "deletionPolicy": policy});
            fake.put(&format!("{SNAPSHOT_CLASSES}/{name}"), class);
        }
        let classes = snapshot_classes(&fake.api()).await.expect("they are read");
        let of_each = classes
            .iter()
            .map(|class| (&*class.name, &*class.driver, class.retains));
        let of_each: Vec<_> = of_each.collect();
        assert_eq!(of_each, [("a", "disk", false), ("b", "disk", true)]);
    }
}
