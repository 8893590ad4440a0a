//! The cluster a command is about.

use winconform_core::config::Config;

use super::args::ClusterArgs;
use super::error::CliError;
use crate::cluster::{Cluster, ConnectOptions, connect};

/// Connects with the limits of a configuration.
pub(super) async fn connected(
    options: &ConnectOptions,
    config: &Config,
) -> Result<Cluster, CliError> {
    connect(options, config.durations.clone(), config.limits.clone())
        .await
        .map_err(CliError::Connect)
}

impl From<ClusterArgs> for ConnectOptions {
    fn from(args: ClusterArgs) -> Self {
        Self {
            context: args.context,
            kubeconfig: args.kubeconfig,
        }
    }
}
