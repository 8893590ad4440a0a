//! HTTP as programs speak it, inside and outside of the cluster.

pub(crate) mod http;
pub(crate) mod net;
pub(crate) mod outside;
pub(crate) mod serve;
