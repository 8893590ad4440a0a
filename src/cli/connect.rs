//! Connects to the cluster of a command.

use winconform_core::config::Config;

use super::args::{ClusterArgs, ProtectedArgs};
use super::error::CliError;
use super::screen::Screen;
use crate::cluster::{Cluster, ConnectOptions, connect, guard};

/// The warning about a server whose certificate is not verified.
const UNVERIFIED: &str = "the server's certificate is not verified (`insecure-skip-tls-verify`): \
                          another server may answer in its place, and get the credential";

/// Connects with the limits of a configuration, and warns if the server's certificate is not verified.
pub(crate) async fn connected(
    args: &ClusterArgs,
    config: &Config,
    screen: &Screen,
) -> Result<Cluster, CliError> {
    let options = ConnectOptions {
        context: args.context.clone(),
        kubeconfig: args.kubeconfig.clone(),
    };
    let cluster = connect(&options, config.durations.clone(), config.limits.clone()).await?;
    if cluster.unverified {
        screen.complain(&format!("warning: {UNVERIFIED}\n"));
    }
    Ok(cluster)
}

/// Like [`connected`], for a command that creates objects: refuses a protected cluster, and warns if its
/// protection could not be read.
pub(crate) async fn connected_to_change(
    (cluster, protected): (&ClusterArgs, &ProtectedArgs),
    config: &Config,
    screen: &Screen,
) -> Result<Cluster, CliError> {
    let cluster = connected(cluster, config, screen).await?;
    let allowed = protected.allow_protected.as_deref();
    let guarded = guard(&cluster, &config.protected, allowed).await;
    if let Some(unread) = guarded.map_err(CliError::Guarded)? {
        screen.complain(&format!("warning: {unread}\n"));
    }
    Ok(cluster)
}
