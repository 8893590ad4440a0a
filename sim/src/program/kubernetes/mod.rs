//! Programs of Kubernetes' images.

pub(super) mod agnhost;
pub(super) mod connect;
pub(super) mod kubelet;
pub(super) mod netexec;
