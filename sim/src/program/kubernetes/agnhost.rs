//! `agnhost`, the subcommands that probers and targets use.
//!
//! Texts and exit codes: Kubernetes, test/images/agnhost at 1.37.0. Subcommands that only Kubernetes' own
//! tests use are refused by name.

use std::collections::BTreeMap;
use std::time::Duration;

use super::connect;
use crate::program::forms::Call;
use crate::program::web::net::Net;
use crate::program::{Ran, Started};
use crate::topology::Os;
use crate::world::Page;

/// Runs `agnhost ARGS`.
pub(crate) fn run(call: &Call<'_>) -> Option<Started> {
    let (command, args) = call.args.split_first()?;
    Some(match (command.as_str(), args) {
        // pause.go
        ("pause", []) => Started::Stays {
            prints: "Paused\nSignals registered\n".to_owned(),
        },
        ("netexec", args) => netexec(args)?,
        ("connect", args) => Started::Ended(connect::run(args, call.seat)?),
        // dns/common.go: it joins the suffixes with commas
        ("dns-suffix", []) => Started::Ended(match call.seat.settings().searches {
            none if none.is_empty() && call.place().os == Os::Linux => {
                Ran::complains("panic: Could not find DNS search list!\n", 2)
            }
            suffixes => Ran::prints(suffixes.join(",") + "\n"),
        }),
        // cobra's help, of which the first line identifies it
        ("help", []) => Started::Ended(Ran::prints(
            "The agnhost image contains various binaries used in Kubernetes e2e tests.\n",
        )),
        _ => return None,
    })
}

/// `netexec [--http-port=N] [--udp-port=N]`, where -1 means no port; the kubelet's code handles `--delay-shutdown`.
fn netexec(args: &[String]) -> Option<Started> {
    let (mut http, mut udp) = (8080, Some(8081));
    for arg in args {
        let (name, value) = arg.split_once('=')?;
        match name {
            "--http-port" => http = value.parse().ok()?,
            "--udp-port" if value == "-1" => udp = None,
            "--udp-port" => udp = Some(value.parse().ok()?),
            "--delay-shutdown" => {}
            _ => return None,
        }
    }
    Some(Started::Serves {
        prints: format!("Started HTTP server on port {http}\n"),
        listening: BTreeMap::from([(http, Page::Netexec)]),
        listening_udp: udp.into_iter().map(|port| (port, Page::Netexec)).collect(),
        // The time between its start and its first answer
        warm_up: Duration::from_millis(200),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodes::image::Family;
    use crate::program::NOT_SIMULATED;
    use crate::program::tests::{place, run as start};

    #[test]
    fn servers_listen_where_they_are_told() {
        let linux = place(Os::Linux, Family::Agnhost);
        for (args, expected) in [
            (vec!["/agnhost", "netexec"], 8080),
            (vec!["/agnhost", "netexec", "--http-port=80"], 80),
            (
                vec!["/agnhost", "netexec", "--udp-port=1", "--http-port=81"],
                81,
            ),
        ] {
            match start(&linux, &args) {
                Started::Serves { listening, .. } => {
                    assert_eq!(listening.keys().copied().collect::<Vec<_>>(), [expected]);
                }
                other => panic!("{other:?}"),
            }
        }
        for args in [
            &["/agnhost", "netexec", "--http-port=x"][..],
            &["/agnhost", "connect", "nowhere:80"],
        ] {
            let Started::Ended(ran) = start(&linux, args) else {
                panic!("it ends")
            };
            assert_eq!(ran.code, NOT_SIMULATED, "{args:?}");
        }
    }
}
