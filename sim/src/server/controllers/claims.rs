//! Claims of volumes: the provisioner of a CSI driver makes a volume for each, makes it larger, and removes it with its
//! claim (kubernetes-csi/external-provisioner and external-resizer; kubernetes 1.37.0,
//! `pkg/controller/volume/persistentvolume/`). No finalizer protects a claim while pods use it. Snapshots of volumes
//! are ready at once, without an object of their content (kubernetes-csi/external-snapshotter).

use serde_json::{Value, json};

use super::pods::set_condition;
use crate::base::fields::Fields;
use crate::server::kinds::Kind;
use crate::server::storage::state::State;
use crate::server::storage::store::{Object, Store};
use crate::world::Key;

const CLAIMS: &str = "persistentvolumeclaims";
const VOLUMES: &str = "persistentvolumes";
const SNAPSHOTS: &str = "volumesnapshots";

/// Reconciles a claim, or what is left of one that is gone.
pub(super) fn look(state: &mut State, key: &Key) {
    let Some(claim) = state.store.get(CLAIMS, key).cloned() else {
        return release(state, key);
    };
    let class = claim["spec"]["storageClassName"].text();
    let Some(class) = state.store.global("storageclasses", class).cloned() else {
        return;
    };
    let volume = Key::new("", claim["spec"]["volumeName"].text());
    match state.store.get(VOLUMES, &volume).cloned() {
        Some(known) => resize(state, key, &claim, (&volume, &known)),
        None if !volume.name.is_empty() || is_awaited(&state.store, key, &class) => {}
        None => provision(state, key, &claim, &class),
    }
}

/// Whether the class makes a volume only for a pod, and no pod uses the claim yet.
fn is_awaited(store: &Store, key: &Key, class: &Value) -> bool {
    let mut pods = store.all("pods", &key.namespace);
    class["volumeBindingMode"] == "WaitForFirstConsumer"
        && !pods.any(|(_, pod)| used(pod).any(|name| name == key.name))
}

/// The names of the claims that a pod uses.
pub(super) fn used(pod: &Value) -> impl Iterator<Item = &str> {
    let volumes = pod["spec"]["volumes"].items();
    volumes.filter_map(|volume| volume["persistentVolumeClaim"]["claimName"].as_str())
}

fn provision(state: &mut State, key: &Key, claim: &Value, class: &Value) {
    let (meta, spec) = (&claim["metadata"], &claim["spec"]);
    let (driver, name) = (
        class["provisioner"].text(),
        format!("pvc-{}", meta["uid"].text()),
    );
    let mut csi = json!({"driver": driver, "volumeHandle": name});
    if spec["dataSource"]["kind"] == "VolumeSnapshot" {
        let snapshot = Key::new(&key.namespace, spec["dataSource"]["name"].text());
        let snapshot = state.store.get(SNAPSHOTS, &snapshot);
        let ready = snapshot.filter(|snapshot| snapshot["status"]["readyToUse"] == true);
        // The provisioner tries again until it is ready
        let Some(source) = ready.and_then(|snapshot| source(&state.store, snapshot)) else {
            return;
        };
        csi["volumeAttributes"] = json!({"source": source});
    }
    let capacity = json!({"storage": spec["resources"]["requests"]["storage"]});
    let volume = json!({
        "metadata": {"name": name, "annotations": {"pv.kubernetes.io/provisioned-by": driver}},
        "spec": {
            "capacity": capacity, "accessModes": spec["accessModes"], "volumeMode": spec["volumeMode"],
            "persistentVolumeReclaimPolicy": class["reclaimPolicy"].as_str().unwrap_or("Delete"),
            "storageClassName": spec["storageClassName"],
            "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "name": key.name,
                "namespace": key.namespace, "uid": meta["uid"]},
            "csi": csi,
        },
    });
    if let Err(refusal) = state.create(Kind::named(VOLUMES), "", volume, false) {
        tracing::debug!(?refusal, "a claim gets no volume");
        return;
    }
    state.edit(VOLUMES, &Key::new("", &name), |volume| {
        volume["status"]["phase"] = json!("Bound");
    });
    let modes = &spec["accessModes"];
    state.edit(CLAIMS, key, |claim| {
        claim["spec"]["volumeName"] = json!(name);
        claim["status"] = json!({"phase": "Bound", "accessModes": modes, "capacity": capacity});
    });
    let message = format!("Successfully provisioned volume {name}");
    state.tell(driver, claim, ("Normal", "ProvisioningSucceeded", &message));
}

/// Takes a snapshot, if the volume is there.
pub(super) fn take(state: &mut State, key: &Key) {
    let Some(snapshot) = state.store.get(SNAPSHOTS, key) else {
        return;
    };
    if snapshot["status"]["readyToUse"] == true || source(&state.store, snapshot).is_none() {
        return;
    }
    let content = format!("snapcontent-{}", snapshot["metadata"]["uid"].text());
    state.edit(SNAPSHOTS, key, |snapshot| {
        let bound = "boundVolumeSnapshotContentName";
        snapshot["status"] = json!({"readyToUse": true, bound: content});
    });
}

/// The volume that a snapshot is of, once its claim has one.
fn source(store: &Store, snapshot: &Value) -> Option<String> {
    let claim = snapshot["spec"]["source"]["persistentVolumeClaimName"].text();
    let claim = Key::new(snapshot["metadata"]["namespace"].text(), claim);
    let volume = &store.get(CLAIMS, &claim)?["spec"]["volumeName"];
    volume.as_str().map(str::to_owned)
}

/// Makes a volume as large as its claim asks; its file system is left to the node.
fn resize(state: &mut State, key: &Key, claim: &Value, (at, volume): (&Key, &Object)) {
    let asked = &claim["spec"]["resources"]["requests"]["storage"];
    if volume["spec"]["capacity"]["storage"] == *asked {
        return;
    }
    state.edit(VOLUMES, at, |volume| {
        volume["spec"]["capacity"]["storage"] = asked.clone();
    });
    let now = state.wall.now();
    state.edit(CLAIMS, key, |claim| {
        let message =
            "Waiting for user to (re-)start a pod to finish file system resize of volume on node.";
        set_condition(
            &mut claim["status"],
            ("FileSystemResizePending", "True", ""),
            message,
            now,
        );
    });
    let component = format!(
        "external-resizer {}",
        volume["spec"]["csi"]["driver"].text()
    );
    let message = "Require file system resize of volume on node";
    state.tell(
        &component,
        claim,
        ("Normal", "FileSystemResizeRequired", message),
    );
}

/// Removes the volumes of a claim that is gone, unless their class keeps them.
fn release(state: &mut State, claim: &Key) {
    let volumes = state.store.all(VOLUMES, "").filter(|(_, volume)| {
        let (spec, of) = (&volume["spec"], &volume["spec"]["claimRef"]);
        of["namespace"] == *claim.namespace
            && of["name"] == *claim.name
            && spec["persistentVolumeReclaimPolicy"] == "Delete"
    });
    let names: Vec<Key> = volumes.map(|(name, _)| name.clone()).collect();
    for name in names {
        state.discard(VOLUMES, &name);
    }
}
