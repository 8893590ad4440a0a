//! The cluster a command is about.

use winconform_core::config::Config;

use super::args::{ClusterArgs, ProtectedArgs};
use super::error::CliError;
use super::screen::Screen;
use crate::cluster::{Cluster, ConnectOptions, connect, guard};

/// Connects with the limits of a configuration.
pub(super) async fn connected(
    options: &ConnectOptions,
    config: &Config,
) -> Result<Cluster, CliError> {
    connect(options, config.durations.clone(), config.limits.clone())
        .await
        .map_err(CliError::Connect)
}

/// The same for a command that makes something: a protected cluster is refused, and that nobody could
/// tell is said.
pub(super) async fn connected_to_change(
    options: &ConnectOptions,
    config: &Config,
    args: &ProtectedArgs,
    screen: &Screen,
) -> Result<Cluster, CliError> {
    let cluster = connected(options, config).await?;
    let guarded = guard(&cluster, &config.protected, args.allow_protected.as_deref()).await;
    if let Some(unread) = guarded.map_err(CliError::Guarded)? {
        screen.complain(&format!("warning: {unread}\n"));
    }
    Ok(cluster)
}

impl From<ClusterArgs> for ConnectOptions {
    fn from(args: ClusterArgs) -> Self {
        Self {
            context: args.context,
            kubeconfig: args.kubeconfig,
        }
    }
}
