//! `agnhost`, the subcommands that probers and targets use.
//!
//! Texts and exit codes: Kubernetes, test/images/agnhost/{connect,netexec,pause}, read in source.

use std::collections::BTreeMap;
use std::time::Duration;

use super::serve::Page;
use super::{Place, Ran, Reached, Refusal, Started, View};
use crate::network::Outcome;
use crate::topology::Os;

/// Runs `agnhost ARGS`.
pub(super) fn run(place: &Place, args: &[String], view: &View<'_>) -> Started {
    let Some((command, args)) = args.split_first() else {
        return Refusal::not_simulated("agnhost without a subcommand");
    };
    match command.as_str() {
        "pause" => Started::Stays {
            prints: "Paused\n".to_owned(),
        },
        "netexec" => serves(port(args, "http-port", 8080), Page::Netexec),
        "test-webserver" => serves(port(args, "port", 80), Page::Netexec),
        "serve-hostname" => serves(port(args, "port", 9376), Page::Hostname),
        "connect" => Started::Ended(connect(place, args, view)),
        other => Refusal::not_simulated(&format!("agnhost {other}")),
    }
}

fn serves(port: u16, page: Page) -> Started {
    Started::Serves {
        listening: BTreeMap::from([(port, page)]),
        warm_up: Duration::from_millis(200),
        prints: format!("Started HTTP server on port {port}\n"),
    }
}

fn flag<'a>(args: &'a [String], name: &str) -> Option<&'a str> {
    let named = |arg: &'a String| arg.trim_start_matches('-').strip_prefix(name);
    args.iter()
        .enumerate()
        .find_map(|(at, arg)| match named(arg)? {
            "" => args.get(at + 1).map(String::as_str),
            rest => rest.strip_prefix('='),
        })
}

fn port(args: &[String], name: &str, default: u16) -> u16 {
    flag(args, name)
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

/// connect.go: silent success, else one word on the error stream and exit code 1.
fn connect(place: &Place, args: &[String], view: &View<'_>) -> Ran {
    let timeout = flag(args, "timeout")
        .and_then(duration)
        .filter(|limit| !limit.is_zero());
    let target = args
        .iter()
        .rev()
        .find(|arg| !arg.starts_with('-') && arg.contains(':'));
    let Some((host, port)) = target.and_then(|target| target.rsplit_once(':')) else {
        return Ran::complains("Error: missing port in address\n", 1);
    };
    let Ok(number) = port.parse::<u16>() else {
        return Ran::complains(format!("DNS: lookup tcp/{port}: unknown port\n"), 1);
    };
    let Ok(Reached {
        address, outcome, ..
    }) = view.reach(&place.origin, host, number)
    else {
        return Ran::complains(format!("DNS: lookup {host}: no such host\n"), 1);
    };
    let (word, took) = match (outcome, place.os) {
        (
            Outcome::Answered { .. } | Outcome::Reset | Outcome::WrongAnswer | Outcome::Stalled,
            _,
        ) => {
            return Ran {
                took: Duration::from_millis(2),
                ..Ran::default()
            };
        }
        // Windows repeats the SYN after a reset: curl issue 14144
        (Outcome::Refused, Os::Windows) => (
            // syscall.ECONNREFUSED is an invented number on Windows, so connect.go does not know it
            format!(
                "OTHER: dial tcp {address}:{number}: connectex: No connection could be made because the \
                 target machine actively refused it."
            ),
            Duration::from_millis(2040),
        ),
        (Outcome::Refused, Os::Linux) => ("REFUSED".to_owned(), Duration::from_millis(1)),
        (Outcome::NoRoute, Os::Linux) => (
            format!("OTHER: dial tcp {address}:{number}: connect: no route to host"),
            Duration::from_millis(3070),
        ),
        (Outcome::NoRoute, Os::Windows) => (
            format!(
                "OTHER: dial tcp {address}:{number}: connectex: A socket operation was attempted to an \
                 unreachable network."
            ),
            Duration::from_millis(1),
        ),
        (Outcome::TimedOut, Os::Linux) => ("TIMEOUT".to_owned(), Duration::from_secs(127)),
        (Outcome::TimedOut, Os::Windows) => ("TIMEOUT".to_owned(), Duration::from_secs(21)),
    };
    match timeout {
        Some(limit) if limit < took => Ran {
            took: limit,
            ..Ran::complains("TIMEOUT\n", 1)
        },
        _ => Ran {
            took,
            ..Ran::complains(format!("{word}\n"), 1)
        },
    }
}

/// Go's `time.ParseDuration`, for one unit.
fn duration(text: &str) -> Option<Duration> {
    let (number, unit) = [("ms", 0.001), ("s", 1.0), ("m", 60.0)]
        .into_iter()
        .find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, seconds)))?;
    Duration::try_from_secs_f64(number.parse::<f64>().ok()? * unit).ok()
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
    }

    #[test]
    fn connect_says_what_its_source_says() {
        let linux = place(Os::Linux, Family::Agnhost);
        let Started::Ended(ran) = start(&linux, &["/agnhost", "connect", "nowhere:80"]) else {
            panic!("it ends")
        };
        assert_eq!(ran.stderr, b"DNS: lookup nowhere: no such host\n");
        assert!(matches!(
            start(&linux, &["/agnhost", "connect"]),
            Started::Ended(Ran { code: 1, .. })
        ));
        assert_eq!(duration("1500ms"), Some(Duration::from_millis(1500)));
        assert_eq!(duration("-1s"), None);
    }
}
