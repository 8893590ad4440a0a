//! Connects to the cluster: kubeconfig, credentials, proxy, client.

pub(crate) mod client;
pub(crate) mod connect;
pub(crate) mod credential;
pub(crate) mod kubeconfig;
pub(crate) mod kubeconfig_names;
pub(crate) mod proxy;
