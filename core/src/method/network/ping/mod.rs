//! The test method `ping`: one ICMP echo request to each target.
//!
//! The exit code, and the target's address with a time to live beside it, show what ping reports: its words
//! are in the system's language, and on Windows it also ends with 0 when a router reports that the host is
//! unreachable.

pub mod session;

use std::net::IpAddr;

use super::http::Target;
use super::reach::{ReachAnswer, ReachExpectation, ReachObservation, ReachedTarget, compare};
use crate::fixture::{FixtureName, Need};
use crate::method::error::{ErrorKind, Result};
use crate::method::exchange::{Host, PingReply, Reply, Request, another_kind};
use crate::method::failure::{FailureClass, Signature};
use crate::method::place::Bound;
use crate::method::prepared::{Prepared, of_each};
use crate::method::{Assertion, Comparison, Method, Test, Traits};
use crate::text::{bounded, printable};

/// How many bytes of ping's output for one target are kept.
const KEPT: usize = 400;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PingQuery {
    /// The fixture; `None` where the target belongs to none.
    pub of: Option<FixtureName>,
    pub target: Target,
}

/// The test method `ping`.
#[derive(Clone, Debug)]
pub enum Ping {}

impl PingQuery {
    /// The targets that have their own addresses.
    pub const TARGETS: [Target; 5] = [
        Target::Pods,
        Target::PodsOnSameNode,
        Target::PodsOnOtherNodes,
        Target::Nodes,
        Target::OutsideAddresses,
    ];
}

impl Method for Ping {
    type Query = PingQuery;
    type Expectation = ReachExpectation;
    type Observation = ReachObservation;

    const TEST: fn(Assertion<Self>) -> Test = Test::Ping;

    fn prepare<'a>(query: &'a PingQuery, at: &Bound<'a>) -> Result<Prepared<'a, ReachObservation>> {
        let aims = query.target.aims(query.of, None, at)?;
        let targets = aims.each.into_iter().map(|aim| match aim.get.host {
            Host::Address(address) => Ok((address, aim.shown)),
            Host::Name(name) => {
                let detail = format!("{name} is no address");
                Err(ErrorKind::FactUnknown.error(detail))
            }
        });
        let targets = targets.collect::<Result<Vec<_>>>()?;
        let addresses = targets.iter().map(|(address, _)| *address);
        let request = Request::Ping(addresses.collect());
        Ok(Prepared::new(request, move |reply| {
            let Reply::Ping(replies) = reply else {
                return Err(another_kind());
            };
            let replies = of_each(replies, targets.len())?;
            let each = targets.into_iter().zip(replies);
            let each = each.map(|((address, target), reply)| {
                let answer = read(address, reply)?;
                Ok(ReachedTarget { target, answer })
            });
            Ok(ReachObservation {
                targets: each.collect::<Result<_>>()?,
                absent: aims.absent,
            })
        }))
    }

    fn needs(query: &PingQuery) -> Vec<(FixtureName, Need)> {
        query.of.map(|of| (of, Need::Ready)).into_iter().collect()
    }

    fn traits(query: &PingQuery, expectation: &ReachExpectation) -> Traits {
        Traits {
            needs_source: true,
            converges: true,
            expects_no_answer: matches!(expectation, ReachExpectation::Fails(_)),
            outside: Some(query.target).filter(|target| target.is_outside()),
            has_families: query.target.has_families(),
            ..Traits::default()
        }
    }

    fn failing(expectation: &ReachExpectation, signature: &Signature) -> Option<ReachExpectation> {
        expectation.failing(signature)
    }

    fn compare(expectation: &ReachExpectation, seen: &ReachObservation) -> Result<Comparison> {
        Ok(compare(expectation, seen))
    }
}

/// What the ping of a target came to.
pub fn read(target: IpAddr, reply: &PingReply) -> Result<ReachAnswer> {
    let lines = reply.text.lines().filter(|line| names(line, target));
    let lines: Vec<_> = lines.collect();
    let said = || bounded(reply.text.trim().to_owned(), KEPT);
    let failed = |class| ReachAnswer::Failed {
        class,
        text: said(),
    };
    if let (Some(line), true) = (
        lines.iter().find(|line| replied(line, target)),
        reply.answered,
    ) {
        return Ok(ReachAnswer::Answered(line.trim().to_owned()));
    }
    // The words of busybox and iputils for a target without a route
    let lower = reply.text.to_ascii_lowercase();
    if lower.contains("network unreachable") || lower.contains("network is unreachable") {
        return Ok(failed(FailureClass::NoRoute));
    }
    // Ping's first and last lines name the target: a ping that could not send prints fewer
    if lines.len() < 2 {
        let detail = format!("ping of {target} said `{}`", printable(&said()));
        return Err(ErrorKind::UnrecognisedOutput.error(detail));
    }
    Ok(failed(match reply.answered {
        // Another host answered: "Destination host unreachable"
        true => FailureClass::NoRoute,
        false => FailureClass::Timeout,
    }))
}

/// Whether a line names an address, and not as a part of another.
fn names(line: &str, address: IpAddr) -> bool {
    let of_addresses = |c: char| c.is_ascii_hexdigit() || matches!(c, '.' | ':');
    let mut words = line.split(|c| !of_addresses(c));
    words.any(|word| word.trim_end_matches(':').parse() == Ok(address))
}

/// Whether a line that names the target reports its reply: it shows the time to live. Over IPv6 Windows shows
/// only the time, which the line of an unreachable host lacks.
fn replied(line: &str, target: IpAddr) -> bool {
    let line = line.to_ascii_lowercase();
    let digit = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
    let ttl = line.split("ttl=").skip(1).any(digit);
    let time = || {
        let mut behind = line.split(['<', '=']).skip(1);
        behind.any(|text| {
            let number = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
            digit(text) && number.trim_start().starts_with("ms")
        })
    };
    ttl || target.is_ipv6() && time()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(target: &str, answered: bool, text: &str) -> Option<FailureClass> {
        let text = text.to_owned();
        let target = target.parse().expect("an address");
        match read(target, &PingReply { answered, text }).expect("recognised") {
            ReachAnswer::Answered(_) => None,
            ReachAnswer::Failed { class, .. } => Some(class),
        }
    }

    #[test]
    fn answers_are_told_by_the_time_to_live_in_any_language() {
        let windows = "\r\nPinging 10.0.0.1 with 32 bytes of data:\r\n\
            Reply from 10.0.0.1: bytes=32 time<1ms TTL=128\r\n\r\n\
            Ping statistics for 10.0.0.1:\r\n    Packets: Sent = 1, Received = 1, Lost = 0 (0% loss),\r\n";
        assert_eq!(class("10.0.0.1", true, windows), None);
        let japanese = windows.replace("Reply from 10.0.0.1: bytes=32", "10.0.0.1 \u{fffd}: =32");
        assert_eq!(class("10.0.0.1", true, &japanese), None);
        let busybox = "PING 10.0.0.1 (10.0.0.1): 56 data bytes\n\
            64 bytes from 10.0.0.1: seq=0 ttl=64 time=0.085 ms\n\n--- 10.0.0.1 ping statistics ---\n";
        assert_eq!(class("10.0.0.1", true, busybox), None);
        let six = "Pinging fd00::1 with 32 bytes of data:\r\nReply from fd00::1: time<1ms\r\n\r\n\
            Ping statistics for fd00::1:\r\n";
        assert_eq!(class("fd00::1", true, six), None);
    }

    #[test]
    fn a_time_alone_is_an_answer_over_ipv6_alone() {
        let of = |target: &str, said: &str| {
            let text = format!("Pinging {target}:\nReply from {target}: {said}\n");
            class(target, true, &text)
        };
        assert_eq!(of("fd00::1", "time=5 ms"), None);
        assert_eq!(of("fd00::1", "bytes=32"), Some(FailureClass::NoRoute));
        assert_eq!(of("fd00::1", "time=ms"), Some(FailureClass::NoRoute));
        assert_eq!(of("10.0.0.1", "time<1ms"), Some(FailureClass::NoRoute));
    }

    #[test]
    fn exit_code_0_is_no_answer_by_itself() {
        let unreachable = "Pinging 10.0.0.1 with 32 bytes of data:\r\n\
            Reply from 10.0.0.9: Destination host unreachable.\r\n\r\nPing statistics for 10.0.0.1:\r\n";
        assert_eq!(
            class("10.0.0.1", true, unreachable),
            Some(FailureClass::NoRoute)
        );
        let other = unreachable.replace("Destination host unreachable.", "bytes=32 TTL=128");
        assert_eq!(class("10.0.0.1", true, &other), Some(FailureClass::NoRoute));
        let lost = unreachable.replace("Reply from 10.0.0.9: Destination host", "Request");
        assert_eq!(class("10.0.0.1", false, &lost), Some(FailureClass::Timeout));
        let no_way = "PING 10.0.0.1 (10.0.0.1): 56 data bytes\nping: sendto: Network unreachable\n";
        assert_eq!(
            class("10.0.0.1", false, no_way),
            Some(FailureClass::NoRoute)
        );
    }

    #[test]
    fn a_ping_that_could_not_ask_is_trouble() {
        for text in [
            "",
            "sh: ping: not found",
            "ping: permission denied (are you root?)",
            "PING 10.0.0.1 (10.0.0.1): 56 data bytes\n",
            "Pinging 10.0.0.11 with 32 bytes of data:\r\nPing statistics for 10.0.0.11:\r\n",
        ] {
            let text = text.to_owned();
            let reply = PingReply {
                answered: false,
                text,
            };
            let error = read([10, 0, 0, 1].into(), &reply).expect_err("an error");
            assert_eq!(error.kind, ErrorKind::UnrecognisedOutput);
        }
    }
}
