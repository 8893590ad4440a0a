//! The network errors of Go programs, on Linux and on Windows.
//!
//! Texts: Go 1.26, `net/net.go`; those of Windows' sockets from kubernetes and moby issues with `connectex:`
//! and `wsarecv:`. Tests compare the Linux ones with the real program.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use crate::program::web::net::{Link, Net, Peer};
use crate::topology::Os;

/// An address as Go writes it before a port.
pub(crate) fn host(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}

/// The error of a refused connection. On Windows the system's text ends with a full stop.
pub(crate) fn refused(os: Os, at: &str) -> String {
    format!("dial tcp {at}: {}", refusal(os))
}

fn refusal(os: Os) -> &'static str {
    match os {
        Os::Linux => "connect: connection refused",
        Os::Windows => {
            "connectex: No connection could be made because the target machine actively refused it."
        }
    }
}

/// Why a connection fails.
pub(crate) struct Undialled {
    pub(crate) link: Link,
    /// Go's error text.
    pub(crate) words: String,
    pub(crate) took: Duration,
}

/// `net.Dial` without its own time-out.
pub(crate) fn dial(net: &dyn Net, to: SocketAddr) -> Result<Peer, Undialled> {
    let (os, at) = (net.os(), to.to_string());
    let link = net.open(to.ip(), to.port());
    let millis = Duration::from_millis;
    let (why, took) = match (&link, os) {
        (Link::Open(peer), _) => return Ok(peer.clone()),
        // Windows repeats the SYN after a reset (curl issue 14144)
        (Link::Refused, Os::Windows) => (refusal(os), millis(2040)),
        (Link::Refused, Os::Linux) => (refusal(os), millis(1)),
        // Linux reports after three ARP requests that no system answers
        (Link::NoRoute, Os::Linux) => ("connect: no route to host", millis(3070)),
        (Link::Unreachable, Os::Linux) => ("connect: network is unreachable", millis(1)),
        (Link::NoRoute | Link::Unreachable, Os::Windows) => (
            "connectex: A socket operation was attempted to an unreachable network.",
            millis(1),
        ),
        (Link::Forbidden, _) => (
            "connectex: An attempt was made to access a socket in a way forbidden by its access permissions.",
            millis(1),
        ),
        (Link::TimedOut, _) => ("i/o timeout", super::system_limit(os)),
    };
    let words = format!("dial tcp {at}: {why}");
    Err(Undialled { link, words, took })
}

/// The error of a connection that the other end resets.
pub(crate) fn reset(os: Os, source: IpAddr, at: &str) -> String {
    let why = match os {
        Os::Linux => "read: connection reset by peer",
        Os::Windows => "wsarecv: An existing connection was forcibly closed by the remote host.",
    };
    format!("read tcp {}:49152->{at}: {why}", host(source))
}

/// The error of a datagram to a port without a listener.
pub(crate) fn datagram_refused(os: Os) -> &'static str {
    match os {
        Os::Linux => "read: connection refused",
        // Windows reports the ICMP message as WSAECONNRESET
        Os::Windows => "wsarecv: An existing connection was forcibly closed by the remote host.",
    }
}
