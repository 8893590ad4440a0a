//! What a container serves over HTTP.

/// What a web server serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Page {
    /// The `HttpListener` script of the Windows user guide.
    WinWebserver,
    /// IIS with its default site.
    Iis,
    /// `agnhost netexec`.
    Netexec,
}
