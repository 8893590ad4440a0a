//! Volumes that pods claim: the CSI driver of their node mounts them, and makes their file systems larger. What is made
//! of a snapshot begins with what the snapshot's volume has when the new one is first mounted.
//!
//! The messages are those of kubernetes 1.37.0: `pkg/kubelet/volumemanager`, `pkg/volume/util/operationexecutor`,
//! `pkg/volume/util` and its `volumepathhandler`; that of a driver without its proxy is of kubernetes-csi/csi-driver-smb,
//! issue 233.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Volume as Spec;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::refer;
use super::volumes::SYNC;
use crate::fault::FaultKind;
use crate::nodes::cluster::Cluster;
use crate::nodes::files::Volume;
use crate::pods::course::run::PodRun;
use crate::pods::reporting::events;
use crate::topology::Os;

/// The condition of a claim whose volume is larger than its file system.
const PENDING: &str = "FileSystemResizePending";

/// The claim of a volume, and whether it is mounted read-only.
pub(super) fn claim(volume: &Spec) -> Option<(String, bool)> {
    let claim = volume.persistent_volume_claim.as_ref()?;
    Some((claim.claim_name.clone(), claim.read_only.unwrap_or(false)))
}

/// Mounts the volume behind a claim, whose content is the same on each node; the error is the message of the event.
pub(super) async fn mount(
    cluster: &Cluster,
    run: &PodRun,
    volume: &str,
    claim: &str,
) -> Result<Volume, String> {
    let claimed = bound(cluster, run, claim).await;
    let claimed = claimed.map_err(|why| unprocessed(run, volume, claim, &why))?;
    let spec = claimed.spec.unwrap_or_default();
    let name = spec.volume_name.unwrap_or_default();
    let (is_windows, suffers) = (run.node.pool.os() == Os::Windows, |kind| {
        run.suffers(kind, cluster)
    });
    if spec.volume_mode.as_deref() == Some("Block") {
        return match is_windows && !suffers(FaultKind::BlockDevicesMapped) {
            true => Err(unmapped(run, &name)),
            false => Ok(Volume::default()),
        };
    }
    if suffers(FaultKind::CsiMountsNothing) {
        return Err(format!(
            "MountVolume.MountDevice failed for volume \"{name}\" : rpc error: code = Unavailable desc = connection \
             error: desc = \"transport: Error while dialing open \\\\\\\\.\\\\pipe\\\\csi-proxy-filesystem-v1beta1: The \
             system cannot find the file specified.\""
        ));
    }
    if suffers(FaultKind::VolumesForgotten) {
        return Ok(Volume::default());
    }
    if spec.data_source.is_none() || suffers(FaultKind::SnapshotsEmpty) {
        return Ok(cluster.disks.volume(&name));
    }
    let source = source(cluster, &name).await;
    let source = source.map_err(|why| unprocessed(run, volume, claim, &why))?;
    Ok(cluster.disks.made_of(&source, &name))
}

/// The volume whose snapshot another one is made of.
async fn source(cluster: &Cluster, name: &str) -> Result<String, String> {
    let volumes: Api<PersistentVolume> = Api::all(cluster.client.clone());
    let volume = cluster.insist("volume", || volumes.get(name)).await;
    let spec = volume.map_err(refer::words)?.spec.unwrap_or_default();
    let attributes = spec.csi.and_then(|csi| csi.volume_attributes);
    let source = attributes.and_then(|mut all| all.remove("source"));
    Ok(source.unwrap_or_default())
}

/// The claim, once it is bound.
async fn bound(
    cluster: &Cluster,
    run: &PodRun,
    name: &str,
) -> Result<PersistentVolumeClaim, String> {
    let claims = claims(cluster, run);
    let claim = cluster.insist("claim", || claims.get(name)).await;
    let claim = claim.map_err(|error| {
        let why = refer::words(error);
        format!("failed to fetch PVC from API server: {why}")
    })?;
    let phase = claim
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    let volume = claim
        .spec
        .as_ref()
        .and_then(|spec| spec.volume_name.as_ref());
    match phase == Some("Bound") && volume.is_some() {
        true => Ok(claim),
        false => Err("PVC is not bound".to_owned()),
    }
}

fn claims(cluster: &Cluster, run: &PodRun) -> Api<PersistentVolumeClaim> {
    Api::namespaced(cluster.client.clone(), &run.key.namespace)
}

fn unprocessed(run: &PodRun, volume: &str, claim: &str, why: &str) -> String {
    let namespace = &run.key.namespace;
    format!(
        "Unable to attach or mount volumes: unmounted volumes=[{volume}], unattached volumes=[], \
         failed to process volumes=[{volume}]: error processing PVC {namespace}/{claim}: {why}"
    )
}

/// A block device, which a kubelet on Windows does not hold open.
fn unmapped(run: &PodRun, volume: &str) -> String {
    let (uid, devices) = (
        &run.uid,
        "\\var\\lib\\kubelet\\plugins\\kubernetes.io\\csi\\volumeDevices",
    );
    format!(
        "MapVolume.MapBlockVolume failed for volume \"{volume}\" : blkUtil.AttachFileDevice failed. \
         globalMapPath:{devices}\\{volume}\\dev, podUID: {uid}: AttachFileDevice not supported for this build"
    )
}

/// Makes the file system of a volume larger whenever the kubelet syncs the pod and its volume is; on Windows this is
/// documented not to work. Never completes.
pub(super) async fn follow(cluster: &Cluster, run: &Arc<PodRun>, claim: &str) {
    for turn in 0_u64.. {
        let name = format!("growth of {claim} in {} {turn}", run.uid);
        cluster.clock.pass(cluster.chance.about(&name, SYNC)).await;
        cluster.heard(&run.node).await;
        if run.node.pool.os() == Os::Linux || run.suffers(FaultKind::VolumesGrow, cluster) {
            // Boxed: its memory is needed only now and then
            Box::pin(grow(cluster, run, claim)).await;
        }
    }
}

async fn grow(cluster: &Cluster, run: &Arc<PodRun>, name: &str) {
    let Ok(claim) = bound(cluster, run, name).await else {
        return;
    };
    let (spec, status) = (
        claim.spec.unwrap_or_default(),
        claim.status.unwrap_or_default(),
    );
    let mut conditions = status.conditions.unwrap_or_default();
    let pending = conditions.len();
    conditions.retain(|condition| condition.type_ != PENDING);
    if conditions.len() == pending {
        return;
    }
    let asked = spec.resources.and_then(|resources| resources.requests);
    let grown = json!({"status": {"capacity": asked, "conditions": conditions}});
    let (patch, params) = (Patch::Merge(grown), PatchParams::default());
    let claims = claims(cluster, run);
    let told = cluster.insist("claim", || claims.patch_status(name, &params, &patch));
    if told.await.is_ok() {
        let volume = spec.volume_name.unwrap_or_default();
        let message = format!("MountVolume.NodeExpandVolume succeeded for volume \"{volume}\"");
        events::normal(cluster, run, "FileSystemResizeSuccessful", message);
    }
}
