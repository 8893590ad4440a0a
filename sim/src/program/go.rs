//! What Go programs say of the network, on Linux and on Windows.
//!
//! Texts: Go 1.26, `net/net.go`, `net/dnsclient.go`, `net/lookup_windows.go`, `net/port.go`,
//! `time/format.go`; those of Windows' sockets from kubernetes and moby issues with `connectex:` and
//! `wsarecv:`. The Linux ones are compared with the real program by tests.

use std::net::IpAddr;
use std::time::Duration;

use super::net::{Lookup, Net, NotFound};
use crate::names::{Query, Resolver};
use crate::topology::Os;

/// An address as it stands before a port.
pub(super) fn host(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}

/// A refused connection. On Windows the system's text ends with a full stop.
pub(super) fn refused(os: Os, kind: &str, at: &str) -> String {
    let why = match os {
        Os::Linux => "connect: connection refused",
        Os::Windows => {
            "connectex: No connection could be made because the target machine actively refused it."
        }
    };
    format!("dial {kind} {at}: {why}")
}

/// A connection for which there is no way.
pub(super) fn no_route(os: Os, kind: &str, at: &str) -> String {
    let why = match os {
        Os::Linux => "connect: no route to host",
        Os::Windows => "connectex: A socket operation was attempted to an unreachable network.",
    };
    format!("dial {kind} {at}: {why}")
}

/// A connection to a family that the system has no address of.
pub(super) fn unreachable(os: Os, kind: &str, at: &str) -> String {
    match os {
        Os::Linux => format!("dial {kind} {at}: connect: network is unreachable"),
        Os::Windows => no_route(os, kind, at),
    }
}

fn find(net: &dyn Net, host: &str) -> (Result<Vec<IpAddr>, NotFound>, Duration) {
    // Nothing means the program's own machine
    let host = if host.is_empty() { "127.0.0.1" } else { host };
    net.find(&Query {
        by: Resolver::Go,
        ..Query::address(host)
    })
}

/// The addresses of a host in the order that `net.Dial` tries them; and how long that took.
pub(super) fn addresses(net: &dyn Net, host: &str) -> (Vec<IpAddr>, Duration) {
    let (found, took) = find(net, host);
    (found.unwrap_or_default(), took)
}

/// The address of a host as `net.ResolveTCPAddr` picks it: IPv4 if there is one (net/ipsock.go,
/// `forResolve`), and how long that took.
pub(super) fn resolve(net: &dyn Net, host: &str) -> (Lookup, Duration) {
    let (found, took) = find(net, host);
    let found = found.map(|mut addresses| {
        addresses.sort_by_key(IpAddr::is_ipv6);
        addresses
    });
    (Lookup::from(found), took)
}

/// A connection that the other end cut.
pub(super) fn reset(os: Os, source: IpAddr, at: &str) -> String {
    let why = match os {
        Os::Linux => "read: connection reset by peer",
        Os::Windows => "wsarecv: An existing connection was forcibly closed by the remote host.",
    };
    format!("read tcp {}:49152->{at}: {why}", host(source))
}

/// A datagram that nobody listens for.
pub(super) fn datagram_refused(os: Os) -> &'static str {
    match os {
        Os::Linux => "read: connection refused",
        // WSAECONNRESET is what Windows makes of the ICMP message
        Os::Windows => "wsarecv: An existing connection was forcibly closed by the remote host.",
    }
}

/// A name that was not found. On Linux Go asks by itself and names the server; on Windows it asks
/// the system.
pub(super) fn lookup_error(net: &dyn Net, name: &str, failed: &Lookup) -> String {
    let server = match (net.os(), net.settings().servers.first().copied()) {
        (Os::Linux, Some(server)) => format!(" on {}:53", host(server)),
        _ => String::new(),
    };
    match (failed, net.os()) {
        (Lookup::TimedOut, Os::Linux) => {
            let asked = net.settings().servers.first().copied();
            let own = host(asked.map_or(net.address(), |server| net.source(server)));
            let asked = asked.map(host).unwrap_or_default();
            format!("lookup {name}{server}: read udp {own}:49152->{asked}:53: i/o timeout")
        }
        (Lookup::TimedOut, Os::Windows) => format!(
            "lookup {name}: getaddrinfow: This is usually a temporary error during hostname resolution \
             and means that the local server did not receive a response from an authoritative server."
        ),
        _ => format!("lookup {name}{server}: no such host"),
    }
}

/// A port, or what is said of something that is none.
pub(super) fn port(kind: &str, text: &str) -> Result<u16, String> {
    if text.is_empty() {
        return Ok(0);
    }
    match text.parse::<i64>() {
        Ok(number) => u16::try_from(number).map_err(|_| format!("address {text}: invalid port")),
        Err(_) => match text {
            "http" => Ok(80),
            "https" => Ok(443),
            "domain" => Ok(53),
            _ => Err(format!("lookup {kind}/{text}: unknown port")),
        },
    }
}

/// `time.ParseDuration`, for amounts that are not negative.
pub(super) fn duration(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    let mut all = Duration::ZERO;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(digits);
        let (unit, seconds) = [
            ("ns", 1e-9),
            ("us", 1e-6),
            ("ms", 1e-3),
            ("s", 1.0),
            ("m", 60.0),
            ("h", 3600.0),
        ]
        .into_iter()
        .find(|(unit, _)| after.starts_with(unit))?;
        let amount = number.parse::<f64>().ok()? * seconds;
        all = all.checked_add(Duration::try_from_secs_f64(amount).ok()?)?;
        rest = &after[unit.len()..];
    }
    Some(all)
}

/// `json.Marshal`, which escapes what HTML would read.
pub(super) fn json(value: &serde_json::Value) -> String {
    value
        .to_string()
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_as_go_writes_them() {
        assert_eq!(duration("1500ms"), Some(Duration::from_millis(1500)));
        assert_eq!(duration("1m30s"), Some(Duration::from_secs(90)));
        assert_eq!(duration("0"), Some(Duration::ZERO));
        for wrong in ["", "1", "-1s", "s", "1x"] {
            assert_eq!(duration(wrong), None, "`{wrong}`");
        }
    }

    #[test]
    fn ports_and_what_is_none() {
        assert_eq!(port("tcp", "80"), Ok(80));
        assert_eq!(
            port("tcp", "abc"),
            Err("lookup tcp/abc: unknown port".to_owned())
        );
        assert_eq!(
            port("tcp", "70000"),
            Err("address 70000: invalid port".to_owned())
        );
    }
}
