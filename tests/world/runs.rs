//! How trials make whole runs.

use std::path::Path;

use hybrid_sim::front::{Front, FrontOptions};
use winconform::cluster::{Cluster, connect, kube_config};
use winconform::engine::{Keep, Repeat, RunOptions};
use winconform_core::config::{Config, Durations, Limits, Outside, Target};
use winconform_core::plan::Selection;

use crate::world::options;

/// A run that gets in no other's way, of everything, once.
pub(crate) fn apart(run: &str, outside: Outside) -> RunOptions {
    RunOptions {
        run: run.to_owned(),
        lease: format!("winconform-{run}"),
        holder: run.to_owned(),
        config: Config {
            outside,
            ..Config::default()
        },
        selection: Selection::default(),
        deadline: None,
        repeat: Repeat::Times(1),
        resume: None,
        keep: Keep::Never,
    }
}

/// A look from outside that reaches the nodes by a proxy.
#[allow(dead_code, reason = "not every binary looks from outside")]
pub(crate) fn through(proxy: &str) -> Outside {
    Outside {
        reaches_nodes: true,
        proxy: Target::parse(proxy),
        ..Outside::default()
    }
}

/// A front without faults yet, and the cluster behind it: connecting has its own tests.
#[allow(dead_code, reason = "not every binary breaks what lies between")]
pub(crate) async fn fronted(
    kubeconfig: &Path,
    seed: u64,
    durations: Durations,
    limits: Limits,
) -> Result<(Front, Cluster), String> {
    let config = kube_config(&options(kubeconfig)).await;
    let config = config.map_err(|error| error.to_string())?;
    let quiet = FrontOptions {
        faults: Vec::new(),
        seed,
    };
    let front = Front::start(config, quiet).await;
    let front = front.map_err(|error| error.to_string())?;
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let kubeconfig = folder.path().join("kubeconfig");
    std::fs::write(&kubeconfig, front.kubeconfig()).map_err(|error| error.to_string())?;
    let cluster = connect(&options(&kubeconfig), durations, limits).await;
    Ok((front, cluster.map_err(|error| error.to_string())?))
}
