//! HTTP as programs use it, inside and outside the cluster.

pub(crate) mod http;
pub(crate) mod net;
pub(crate) mod outside;
pub(crate) mod serve;
