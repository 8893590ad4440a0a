//! `agnhost connect`: silent success, else a word on the error stream and exit code 1.
//!
//! Kubernetes, test/images/agnhost/connect/connect.go at 1.37.0, read in source; the Linux texts are
//! compared with the real program by tests.

use std::net::IpAddr;
use std::time::Duration;

use super::Ran;
use super::go;
use super::net::{Datagram, Link, Lookup, Net};
use crate::topology::Os;

/// What is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Asked {
    destination: String,
    timeout: Option<Duration>,
    protocol: String,
    data: String,
}

/// Runs `agnhost connect ARGS`.
pub(super) fn run(args: &[String], net: &dyn Net) -> Ran {
    let asked = match Asked::parse(args) {
        Ok(asked) => asked,
        // component-base/cli: the error, without the usage
        Err(error) => return Ran::complains(format!("Error: {error}\n"), 1),
    };
    match asked.protocol.as_str() {
        "" | "tcp" => tcp(&asked, net),
        "udp" => udp(&asked, net),
        "sctp" => match target("sctp", &asked.destination, net).0 {
            Err(error) => complains(format!("DNS: {error}")),
            Ok(_) => complains("OTHER: protocol not supported".to_owned()),
        },
        other => Ran::complains(format!("Unsupported protocol\n{other}"), 1),
    }
}

impl Asked {
    fn parse(args: &[String]) -> Result<Self, String> {
        let mut asked = Self {
            protocol: "tcp".to_owned(),
            data: "hostname".to_owned(),
            ..Self::default()
        };
        let mut plain = Vec::new();
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let Some(flag) = arg.strip_prefix("--") else {
                plain.push(arg.clone());
                continue;
            };
            let (name, value) = match flag.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (flag, None),
            };
            if !matches!(name, "timeout" | "protocol" | "udp-data" | "sctp-data") {
                return Err(format!("unknown flag: --{name}"));
            }
            let Some(value) = value.or_else(|| args.next().cloned()) else {
                return Err(format!("flag needs an argument: --{name}"));
            };
            match name {
                "timeout" => {
                    let limit = go::duration(&value).ok_or_else(|| {
                        format!(
                            "invalid argument {value:?} for \"--timeout\" flag: time: invalid duration {value:?}"
                        )
                    })?;
                    asked.timeout = Some(limit).filter(|limit| !limit.is_zero());
                }
                "protocol" => asked.protocol = value,
                "udp-data" => asked.data = value,
                _ => {}
            }
        }
        let count = plain.len();
        let one: Result<[String; 1], _> = plain.try_into();
        let Ok([destination]) = one else {
            return Err(format!("accepts 1 arg(s), received {count}"));
        };
        asked.destination = destination;
        Ok(asked)
    }
}

fn complains(text: String) -> Ran {
    Ran::complains(text + "\n", 1)
}

/// `net.SplitHostPort`.
fn split(destination: &str) -> Result<(&str, &str), String> {
    let wrong = |why: &str| Err(format!("address {destination}: {why}"));
    let Some((host, port)) = destination.rsplit_once(':') else {
        return wrong("missing port in address");
    };
    if let Some(inner) = host.strip_prefix('[') {
        return match inner.strip_suffix(']') {
            Some(inner) => Ok((inner, port)),
            None => wrong("missing ']' in address"),
        };
    }
    if host.contains(':') {
        return wrong("too many colons in address");
    }
    Ok((host, port))
}

/// `net.ResolveTCPAddr` and its like, and how long that takes.
fn target(
    kind: &str,
    destination: &str,
    net: &dyn Net,
) -> (Result<(IpAddr, u16), String>, Duration) {
    let parsed = split(destination).and_then(|(host, port)| Ok((host, go::port(kind, port)?)));
    let (host, port) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return (Err(error), Duration::ZERO),
    };
    let (found, took) = go::resolve(net, host);
    let target = match found {
        Lookup::Address(address) => Ok((address, port)),
        failed => Err(go::lookup_error(net, host, &failed)),
    };
    (target, took)
}

fn tcp(asked: &Asked, net: &dyn Net) -> Ran {
    let host = match split(&asked.destination) {
        Ok((host, _)) => host,
        Err(error) => return complains(format!("UNKNOWN: {error}")),
    };
    let ((_, port), resolved) = match target("tcp", &asked.destination, net) {
        (Ok(target), took) => (target, took),
        (Err(error), took) => return after(took, complains(format!("DNS: {error}"))),
    };
    // It has only looked whether the name resolves; `net.DialTimeout` asks again and tries all
    // addresses
    let (addresses, again) = go::addresses(net, host);
    let links = addresses
        .iter()
        .map(|address| (address, net.open(*address, port)));
    let mut failed = None;
    for (address, link) in links {
        if matches!(link, Link::Open(_)) {
            failed = Some((address, link));
            break;
        }
        failed = failed.or(Some((address, link)));
    }
    let Some((address, link)) = failed else {
        let error = go::lookup_error(net, host, &Lookup::NoSuchName);
        return after(resolved, complains(format!("DNS: {error}")));
    };
    let at = format!("{}:{port}", go::host(*address));
    let os = net.os();
    let (text, took) = match (link, os) {
        (Link::Open(_), _) => {
            return Ran {
                took: resolved + again + Duration::from_millis(2),
                ..Ran::default()
            };
        }
        // Windows repeats the SYN after a reset (curl issue 14144). syscall.ECONNREFUSED is an
        // invented number there, so connect.go does not know the error for what it is
        (Link::Refused, Os::Windows) => (
            format!("OTHER: {}", go::refused(os, "tcp", &at)),
            Duration::from_millis(2040),
        ),
        (Link::Refused, Os::Linux) => ("REFUSED".to_owned(), Duration::from_millis(1)),
        (Link::NoRoute, _) => {
            let took = if os == Os::Linux { 3070 } else { 1 };
            (
                format!("OTHER: {}", go::no_route(os, "tcp", &at)),
                Duration::from_millis(took),
            )
        }
        (Link::Unreachable, _) => (
            format!("OTHER: {}", go::unreachable(os, "tcp", &at)),
            Duration::from_millis(1),
        ),
        // `Timeout()` of Windows' WSAETIMEDOUT holds too (syscall/types_windows.go)
        (Link::TimedOut, _) => ("TIMEOUT".to_owned(), super::system_limit(os)),
    };
    let took = again + took;
    match asked.timeout {
        Some(limit) if limit < took => after(resolved + limit, complains("TIMEOUT".to_owned())),
        _ => after(resolved + took, complains(text)),
    }
}

fn after(took: Duration, ran: Ran) -> Ran {
    Ran { took, ..ran }
}

fn udp(asked: &Asked, net: &dyn Net) -> Ran {
    let ((address, port), resolved) = match target("udp", &asked.destination, net) {
        (Ok(target), took) => (target, took),
        (Err(error), took) => return after(took, complains(format!("DNS: {error}"))),
    };
    let from = format!(
        "read udp {}:49152->{}:{port}",
        go::host(net.source(address)),
        go::host(address)
    );
    match net.datagram(address, port, &format!("{}\n", asked.data)) {
        Datagram::Answered(_) => after(resolved + Duration::from_millis(2), Ran::default()),
        // The text of Windows does not say "connection refused", so connect.go calls it unknown
        Datagram::Refused => {
            let word = if net.os() == Os::Linux {
                "REFUSED"
            } else {
                "UNKNOWN"
            };
            let text = format!("{word}: {from}: {}", go::datagram_refused(net.os()));
            after(resolved, complains(text))
        }
        Datagram::Lost => {
            // Without a limit it waits for ever
            let limit = asked.timeout.unwrap_or(Duration::MAX);
            let text = format!("TIMEOUT: {from}: i/o timeout");
            after(resolved.saturating_add(limit), complains(text))
        }
    }
}
