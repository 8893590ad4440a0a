//! The cluster a command is about.

use winconform_core::config::{Durations, Limits};

use super::args::ClusterArgs;
use super::error::CliError;
use crate::cluster::{Cluster, ConnectOptions, connect};

/// Connects with the limits of every command.
pub(super) async fn connected(options: &ConnectOptions) -> Result<Cluster, CliError> {
    connect(options, Durations::default(), Limits::default())
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
