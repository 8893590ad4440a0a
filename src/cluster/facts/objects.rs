//! Reads runtime classes, storage classes, CSI drivers and CSI nodes.

use serde_json::Value as Json;
use winconform_core::facts::products::texts;
use winconform_core::facts::{CsiNodeFact, RuntimeClassFact, StorageClassFact};

use super::read::{Unread, items, list};
use crate::cluster::objects::status::word;
use crate::transport::Api;

pub(super) const RUNTIME_CLASSES: &str = "/apis/node.k8s.io/v1/runtimeclasses";
pub(super) const STORAGE_CLASSES: &str = "/apis/storage.k8s.io/v1/storageclasses";
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

pub(super) async fn storage_classes(api: &Api) -> Result<Vec<StorageClassFact>, Unread> {
    list(api, STORAGE_CLASSES, |class| {
        let annotations = &class["metadata"]["annotations"];
        Some(StorageClassFact {
            name: name(class),
            provisioner: word(&class["provisioner"]),
            default: annotations["storageclass.kubernetes.io/is-default-class"] == "true",
            retains: class["reclaimPolicy"] == "Retain",
            file_system: class["parameters"]["csi.storage.k8s.io/fstype"]
                .as_str()
                .map(str::to_owned),
            expands: class["allowVolumeExpansion"] == true,
        })
    })
    .await
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
