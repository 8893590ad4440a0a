//! Programs in Kubernetes' images.

pub(crate) mod agnhost;
pub(crate) mod connect;
pub(crate) mod kubelet;
pub(crate) mod netexec;
