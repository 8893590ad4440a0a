//! HTTP as programs speak it, inside and outside of the cluster.

pub(super) mod http;
pub(super) mod net;
pub(super) mod outside;
pub(super) mod serve;
