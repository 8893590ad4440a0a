//! Clusters behind what interferes with their clients.

use std::path::Path;

use hybrid_sim::interference::Interference;
use winconform::cluster::{Cluster, connect};
use winconform::transport::Env;
use winconform_core::config::{Durations, Limits};

use crate::world::options;

/// An interference without faults yet, and the cluster behind it: connecting has its own tests.
pub(crate) async fn interfered(
    kubeconfig: &Path,
    seed: u64,
    durations: Durations,
    limits: Limits,
) -> Result<(Interference, Cluster), String> {
    let direct = connect(&options(kubeconfig), durations.clone(), limits.clone()).await;
    let direct = direct.map_err(|error| error.to_string())?;
    let interference = Interference::new(Vec::new(), seed);
    let client = interference.before(&direct.client);
    let cluster = Cluster::behind(Env::system(), client, &direct.context, durations, limits);
    Ok((interference, cluster))
}
