//! What PowerShell asks of the network: `Test-NetConnection` and `Invoke-WebRequest`.

use std::time::Duration;

use super::super::http::{self, Asked};
use super::super::net::{Link, Lookup, Net};
use super::super::seat::Seat;
use super::super::{Ran, Refusal, Started, system_limit};
use super::value;
use crate::topology::Os;

/// `Test-NetConnection HOST -Port N -InformationLevel Quiet`.
pub(super) fn probe(args: &[String], seat: &Seat<'_>) -> Ran {
    let quiet = args.iter().any(|arg| arg.eq_ignore_ascii_case("quiet"));
    let port = args
        .iter()
        .position(|arg| arg.eq_ignore_ascii_case("-port"));
    let port = port.and_then(|at| args.get(at + 1)?.parse().ok());
    let host = value(args, "-computername").unwrap_or_default();
    let (Some(port), true) = (port, quiet) else {
        return Refusal::instead_of(
            "Test-NetConnection but with -Port and -InformationLevel Quiet",
        );
    };
    let (link, took) = match seat.lookup(&host) {
        (Lookup::Address(address), took) => (seat.open(address, port), took),
        (_, took) => (Link::NoRoute, took),
    };
    let there = match link {
        Link::Open(_) => "True",
        Link::Refused | Link::TimedOut | Link::NoRoute | Link::Unreachable => "False",
    };
    Ran {
        took: took + failure(&link),
        ..Ran::prints(format!("{there}\r\n"))
    }
}

/// How long Windows takes to find that a connection cannot be made: it tries three times in 2 s where
/// it is refused.
fn failure(link: &Link) -> Duration {
    match link {
        Link::Refused => Duration::from_secs(2),
        Link::TimedOut => system_limit(Os::Windows),
        Link::Open(_) | Link::NoRoute | Link::Unreachable => Duration::ZERO,
    }
}

/// `(Invoke-WebRequest -UseBasicParsing URL).Content` and its like.
pub(super) fn fetch(statement: &str, words: &[String], net: &dyn Net) -> Started {
    let Some((_, wanted)) = statement.rsplit_once(").") else {
        return Refusal::not_simulated(statement);
    };
    let url = words
        .iter()
        .find(|word| word.to_ascii_lowercase().contains("http://"));
    let url = url.map(|url| {
        url.split(").")
            .next()
            .unwrap_or_default()
            .trim_end_matches(')')
    });
    let Some(rest) = url.and_then(|url| url.split_once("://").map(|(_, rest)| rest)) else {
        return Refusal::not_simulated(statement);
    };
    let (authority, request) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let (host, port) = authority.split_once(':').unwrap_or((authority, "80"));
    let Ok(port) = port.parse() else {
        return Refusal::not_simulated(statement);
    };
    let fails = |why: &str, took| {
        Started::Ended(Ran {
            took,
            ..Ran::complains(
                format!("Invoke-WebRequest : {why}\r\nAt line:1 char:2\r\n"),
                1,
            )
        })
    };
    let (address, took) = match net.lookup(host) {
        (Lookup::Address(address), took) => (address, took),
        (_, took) => {
            return fails(
                &format!("The remote name could not be resolved: '{host}'"),
                took,
            );
        }
    };
    let peer = match net.open(address, port) {
        Link::Open(peer) => peer,
        failed => {
            let why = "Unable to connect to the remote server";
            return fails(why, took + failure(&failed));
        }
    };
    let request = if request.is_empty() { "/" } else { request };
    let Some(answer) = net.ask(&peer, &Asked::get(request)) else {
        return fails(
            "The operation has timed out.",
            took + Duration::from_secs(100),
        );
    };
    if answer.status >= 400 {
        return fails(
            &format!(
                "The remote server returned an error: ({}) {}.",
                answer.status,
                http::phrase(answer.status)
            ),
            took,
        );
    }
    Started::Ended(match wanted.trim() {
        "Content" => Ran::prints(format!("{}\r\n", answer.body)),
        "StatusCode" => Ran::prints(format!("{}\r\n", answer.status)),
        _ => return Refusal::not_simulated(statement),
    })
}
