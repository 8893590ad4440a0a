//! Clusters behind a front.

use std::path::Path;

use hybrid_sim::front::{Front, FrontOptions};
use winconform::cluster::{Cluster, connect};
use winconform_core::config::{Durations, Limits};

use crate::world::options;

/// A front without faults yet, and the cluster behind it: connecting has its own tests.
pub(crate) async fn fronted(
    kubeconfig: &Path,
    seed: u64,
    durations: Durations,
    limits: Limits,
) -> Result<(Front, Cluster), String> {
    let direct = connect(&options(kubeconfig), durations.clone(), limits.clone()).await;
    let direct = direct.map_err(|error| error.to_string())?;
    let quiet = FrontOptions {
        faults: Vec::new(),
        seed,
    };
    let front = Front::before(direct.client, quiet).await;
    let front = front.map_err(|error| error.to_string())?;
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let kubeconfig = folder.path().join("kubeconfig");
    std::fs::write(&kubeconfig, front.kubeconfig()).map_err(|error| error.to_string())?;
    let cluster = connect(&options(&kubeconfig), durations, limits).await;
    Ok((front, cluster.map_err(|error| error.to_string())?))
}
