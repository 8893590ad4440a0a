//! How the cluster is reached: kubeconfig, credentials, proxy, client.

pub(super) mod client;
pub(super) mod connect;
pub(super) mod credential;
pub(super) mod kubeconfig;
pub(super) mod kubeconfig_names;
pub(super) mod proxy;
