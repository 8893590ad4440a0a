//! `agnhost`, the subcommands that probers and targets use.
//!
//! Texts and exit codes: Kubernetes, test/images/agnhost at 1.37.0, read in source. What only tests
//! of Kubernetes itself use is refused by name.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use super::forms::Call;
use super::net::Net;
use super::{Place, Ran, Started, connect};
use crate::topology::Os;
use crate::world::Page;

/// Runs `agnhost ARGS`.
pub(super) fn run(call: &Call<'_>) -> Option<Started> {
    let (command, args) = call.args.split_first()?;
    let (place, net) = (call.place(), call.seat);
    let serves =
        |port: Result<u16, String>, udp: Result<Option<u16>, String>, page| match (port, udp) {
            (Ok(port), Ok(udp)) => serves(port, udp, page),
            (Err(error), _) | (_, Err(error)) => {
                Started::Ended(Ran::complains(format!("Error: {error}\n"), 1))
            }
        };
    Some(match command.as_str() {
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
        "grpc-health-checking" => health(args)?,
        "connect" => Started::Ended(connect::run(args, net)),
        // dns/common.go: joined with commas
        "dns-suffix" => Started::Ended(match net.settings().searches {
            none if none.is_empty() && place.os == Os::Linux => {
                Ran::complains("panic: Could not find DNS search list!\n", 2)
            }
            suffixes => Ran::prints(suffixes.join(",") + "\n"),
        }),
        // cobra's, of which the first line is enough to tell it by
        "help" => Started::Ended(Ran::prints(
            "The agnhost image contains various binaries used in Kubernetes e2e tests.\n",
        )),
        _ => return None,
    })
}

/// The kubelet's file on Linux (`pkg/kubelet/kubelet_pods.go`, `nodeHostsFileContent`).
pub(super) fn hosts(place: &Place, net: &dyn Net) -> String {
    format!(
        "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n\
         fe00::\tip6-localnet\nfe00::\tip6-mcastprefix\nfe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n{}",
        own_lines(place, net)
    )
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

fn serves(port: u16, udp: Option<u16>, page: Page) -> Started {
    Started::Serves {
        prints: match page {
            Page::Netexec => format!("Started HTTP server on port {port}\n"),
            _ => String::new(),
        },
        listening_udp: udp.into_iter().map(|port| (port, page.clone())).collect(),
        listening: BTreeMap::from([(port, page)]),
        warm_up: WARM_UP,
    }
}

/// grpc-health-checking/grpc-health-checking.go: always healthy, as without
/// `--delay-unhealthy-sec`; the log's times are left out.
fn health(args: &[String]) -> Option<Started> {
    let others = ["delay-unhealthy-sec", "tls-cert-file"];
    if others.iter().any(|name| flag(args, name).is_some()) {
        return None;
    }
    Some(
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
        },
    )
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
