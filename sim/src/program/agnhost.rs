//! `agnhost`, the subcommands that probers and targets use.
//!
//! Texts and exit codes: Kubernetes, test/images/agnhost at 1.37.0, read in source. What only tests
//! of Kubernetes itself use is refused by name.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use super::net::Net;
use super::{Place, Ran, Refusal, Started, connect};
use crate::topology::Os;
use crate::world::Page;

/// Runs `agnhost ARGS`.
pub(super) fn run(place: &Place, args: &[String], net: &dyn Net) -> Started {
    let Some((command, args)) = args.split_first() else {
        return Refusal::not_simulated("agnhost without a subcommand");
    };
    let serves =
        |port: Result<u16, String>, udp: Result<Option<u16>, String>, page| match (port, udp) {
            (Ok(port), Ok(udp)) => serves(port, udp, page),
            (Err(error), _) | (_, Err(error)) => {
                Started::Ended(Ran::complains(format!("Error: {error}\n"), 1))
            }
        };
    match command.as_str() {
        // pause.go
        "pause" => Started::Stays {
            prints: "Paused\nSignals registered\n".to_owned(),
        },
        "netexec" => {
            // -1 is none
            let udp = match port(args, "udp-port", 8081) {
                Err(_) if flag(args, "udp-port").as_deref() == Some("-1") => Ok(None),
                other => other.map(Some),
            };
            serves(port(args, "http-port", 8080), udp, Page::Netexec)
        }
        "test-webserver" => serves(port(args, "port", 80), Ok(None), Page::Files),
        "grpc-health-checking" => health(args),
        "serve-hostname" => serves(port(args, "port", 9376), Ok(None), Page::Hostname),
        "connect" => Started::Ended(connect::run(args, net)),
        // dns/common.go: joined with commas
        "dns-suffix" => Started::Ended(match net.settings().searches {
            none if none.is_empty() && place.os == Os::Linux => {
                Ran::complains("panic: Could not find DNS search list!\n", 2)
            }
            suffixes => Ran::prints(suffixes.join(",") + "\n"),
        }),
        // dns/dns.go: the words of the first line, under Linux alone; dns_windows.go: all servers
        "dns-server-list" => Started::Ended(match &net.settings().servers[..] {
            [] if place.os == Os::Linux => {
                Ran::complains("panic: Could not find DNS search list!\n", 2)
            }
            [first, ..] if place.os == Os::Linux => Ran::prints(format!("{first}\n")),
            all => {
                let all: Vec<String> = all.iter().map(ToString::to_string).collect();
                Ran::prints(all.join(",") + "\n")
            }
        }),
        // dns/common.go: the file, and an end of line
        "etc-hosts" => Started::Ended(Ran::prints(hosts(place, net) + "\n")),
        // k8s.io/component-base/cli prints what cobra calls the root: `app`
        "--version" => Started::Ended(Ran::prints("app version 2.53\n")),
        other => Refusal::not_simulated(&format!("agnhost {other}")),
    }
}

/// The kubelet's file on Linux (`pkg/kubelet/kubelet_pods.go`, `nodeHostsFileContent`); an untouched one
/// on Windows, whose lines are comments.
pub(super) fn hosts(place: &Place, net: &dyn Net) -> String {
    match place.os {
        Os::Linux => format!(
            "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n\
             fe00::\tip6-localnet\nfe00::\tip6-mcastprefix\nfe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n{}",
            own_lines(place, net)
        ),
        Os::Windows => HOSTS.replace('\n', "\r\n"),
    }
}

/// The pod's name for each of its addresses.
fn own_lines(place: &Place, net: &dyn Net) -> String {
    let first = net.address();
    let other: IpAddr = match first {
        IpAddr::V4(_) => Ipv6Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv4Addr::UNSPECIFIED.into(),
    };
    let second = Some(net.source(other)).filter(|second| *second != first);
    let own = [first].into_iter().chain(second);
    let lines = own.map(|address| format!("{address}\t{}\n", place.hostname));
    lines.collect::<Vec<_>>().concat()
}
/// The file that Windows comes with.
const HOSTS: &str = "\
# Copyright (c) 1993-2009 Microsoft Corp.
#
# This is a sample HOSTS file used by Microsoft TCP/IP for Windows.
#
# This file contains the mappings of IP addresses to host names. Each
# entry should be kept on an individual line. The IP address should
# be placed in the first column followed by the corresponding host name.
# The IP address and the host name should be separated by at least one
# space.
#
# Additionally, comments (such as these) may be inserted on individual
# lines or following the machine name denoted by a '#' symbol.
#
# For example:
#
#      102.54.94.97     rhino.acme.com          # source server
#       38.25.63.10     x.acme.com              # x client host

# localhost name resolution is handled within DNS itself.
#	127.0.0.1       localhost
#	::1             localhost
";

fn serves(port: u16, udp: Option<u16>, page: Page) -> Started {
    Started::Serves {
        prints: match page {
            Page::Netexec => format!("Started HTTP server on port {port}\n"),
            Page::Hostname => format!("Serving on port {port}.\n"),
            _ => String::new(),
        },
        listening_udp: udp.into_iter().map(|port| (port, page.clone())).collect(),
        listening: BTreeMap::from([(port, page)]),
        warm_up: WARM_UP,
    }
}

/// grpc-health-checking/grpc-health-checking.go: always healthy, as without
/// `--delay-unhealthy-sec`; the log's times are left out.
fn health(args: &[String]) -> Started {
    for simulated_not in ["delay-unhealthy-sec", "tls-cert-file"] {
        if flag(args, simulated_not).is_some_and(|value| !value.starts_with('-')) {
            let what = format!("agnhost grpc-health-checking --{simulated_not}");
            return Refusal::not_simulated(&what);
        }
    }
    match (port(args, "port", 5000), port(args, "http-port", 8080)) {
        (Ok(port), Ok(http)) => {
            let service = flag(args, "service").unwrap_or_default().into();
            Started::Serves {
                listening: BTreeMap::from([
                    (http, Page::HealthControl),
                    (port, Page::Health { service }),
                ]),
                listening_udp: BTreeMap::new(),
                warm_up: WARM_UP,
                prints: format!(
                    "Http server starting to listen on :{http}\n\
                     gRPC server starting to listen on :{port}\n"
                ),
            }
        }
        (Err(error), _) | (_, Err(error)) => {
            Started::Ended(Ran::complains(format!("Error: {error}\n"), 1))
        }
    }
}

/// Between the start of a server and its first answer.
const WARM_UP: Duration = Duration::from_millis(200);

fn flag(args: &[String], name: &str) -> Option<String> {
    let named = |arg: &str| {
        arg.strip_prefix("--")?
            .strip_prefix(name)
            .map(str::to_owned)
    };
    args.iter()
        .enumerate()
        .find_map(|(at, arg)| match named(arg)?.as_str() {
            "" => args.get(at + 1).cloned(),
            rest => rest.strip_prefix('=').map(str::to_owned),
        })
}

fn port(args: &[String], name: &str, default: u16) -> Result<u16, String> {
    let Some(text) = flag(args, name) else {
        return Ok(default);
    };
    text.parse().map_err(|_| {
        format!(
            "invalid argument {text:?} for \"--{name}\" flag: strconv.ParseInt: parsing {text:?}: invalid syntax"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{place, run as start};
    use super::*;
    use crate::image::Family;

    #[test]
    fn servers_listen_where_they_are_told() {
        for (args, expected) in [
            (vec!["/agnhost", "netexec"], 8080),
            (vec!["/agnhost", "netexec", "--http-port=80"], 80),
            (
                vec!["/agnhost", "netexec", "--udp-port=1", "--http-port", "81"],
                81,
            ),
        ] {
            match start(&place(Os::Linux, Family::Agnhost), &args) {
                Started::Serves { listening, .. } => {
                    assert_eq!(listening.keys().copied().collect::<Vec<_>>(), [expected]);
                }
                other => panic!("{other:?}"),
            }
        }
        let wrong = start(
            &place(Os::Linux, Family::Agnhost),
            &["/agnhost", "netexec", "--http-port=x"],
        );
        assert!(matches!(wrong, Started::Ended(Ran { code: 1, .. })));
    }

    #[test]
    fn connect_needs_a_destination() {
        let linux = place(Os::Linux, Family::Agnhost);
        let Started::Ended(ran) = start(&linux, &["/agnhost", "connect"]) else {
            panic!("it ends")
        };
        assert_eq!(ran.stderr, b"Error: accepts 1 arg(s), received 0\n");
        let Started::Ended(ran) = start(&linux, &["/agnhost", "connect", "nowhere:80"]) else {
            panic!("it ends")
        };
        let text = String::from_utf8(ran.stderr).expect("text");
        assert!(text.starts_with("DNS: lookup nowhere"), "{text}");
    }
}
