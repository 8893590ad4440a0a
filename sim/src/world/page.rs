//! What a container serves over HTTP and gRPC.

use std::sync::Arc;

/// A web server's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Page {
    /// The `HttpListener` script of the Windows user guide.
    WinWebserver,
    /// IIS with its default site.
    Iis,
    /// `agnhost netexec`.
    Netexec,
    /// `agnhost grpc-health-checking`, which speaks gRPC and knows the health of one service.
    Health { service: Arc<str> },
    /// Where that is told what to say of it.
    HealthControl,
}
