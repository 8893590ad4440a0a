//! The test method `udp`: agnhost in one pod sends a datagram to agnhost in another, which answers with its
//! name.
//!
//! `netexec` takes the request over HTTP (`/dial`) and sends the datagram, so that one HTTP session serves it
//! together with all others (kubernetes, test/images/agnhost/netexec/netexec.go). It waits 5 s for an answer;
//! `tries=1`, since only the last try counts. Targets are addresses: the failed look-up of a name would have
//! another status.

use serde::Deserialize;

use super::reach::{ReachAnswer, ReachExpectation, ReachObservation, ReachedTarget, compare};
use crate::facts::Os;
use crate::fixture::{FixtureName, Need};
use crate::method::error::{ErrorKind, Result};
use crate::method::exchange::{Host, HttpGet, HttpReply};
use crate::method::failure::{FailureClass, Signature};
use crate::method::place::{Bound, ReadyPod, assertions_alone, prober_lacks};
use crate::method::prepared::Prepared;
use crate::method::{Assertion, Comparison, Method, Test, Traits};
use crate::text::{bounded, printable};

/// How many bytes of a datagram's result are kept.
const KEPT: usize = 400;

/// The test method `udp`. A query is the fixture to whose pods datagrams go.
#[derive(Clone, Debug)]
pub enum Udp {}

impl Method for Udp {
    type Query = FixtureName;
    type Expectation = ReachExpectation;
    type Observation = ReachObservation;

    const TEST: fn(Assertion<Self>) -> Test = Test::Udp;

    fn prepare<'a>(of: &'a FixtureName, at: &Bound<'a>) -> Result<Prepared<'a, ReachObservation>> {
        let of = *of;
        let absent = at.without_family(Some(of))?;
        let targets = match absent {
            Some(_) => Vec::new(),
            None => targets(of, at)?,
        };
        let prober_port = at.prober()?.port.ok_or_else(|| prober_lacks("port"))?;
        let family = at.vantage()?.addresses.first();
        let family = family.ok_or_else(|| prober_lacks("address"))?;
        let itself: std::net::IpAddr = match family.is_ipv4() {
            true => std::net::Ipv4Addr::LOCALHOST.into(),
            false => std::net::Ipv6Addr::LOCALHOST.into(),
        };
        let dial = |(pod, port): (&ReadyPod, u16)| {
            let address = at.of_family(&pod.addresses).ok_or_else(|| {
                let detail = format!("{} has no address", pod.name);
                ErrorKind::FixtureFailed.error(detail)
            })?;
            Ok(HttpGet {
                host: Host::Address(itself),
                port: prober_port,
                path: format!(
                    "/dial?host={address}&port={port}&protocol=udp&request=hostname&tries=1"
                ),
            })
        };
        let gets = targets.iter().copied().map(dial).collect::<Result<_>>()?;
        let absent = absent.or_else(|| {
            targets.is_empty().then(|| match of.os() {
                Os::Windows => assertions_alone(of),
                Os::Linux => format!("no pod of {} is on another node", of.as_str()),
            })
        });
        Ok(Prepared::gets(gets, move |replies| {
            let each = targets.into_iter().zip(replies);
            let each = each.map(|((pod, port), reply)| {
                Ok(ReachedTarget {
                    target: format!("UDP port {port} of pod {} on {}", pod.name, pod.node),
                    answer: read(pod, reply)?,
                })
            });
            Ok(ReachObservation {
                targets: each.collect::<Result<_>>()?,
                absent,
            })
        }))
    }

    fn needs(of: &FixtureName) -> Vec<(FixtureName, Need)> {
        vec![(*of, Need::Ready)]
    }

    fn traits(of: &FixtureName, expectation: &ReachExpectation) -> Traits {
        Traits {
            needs_source: true,
            converges: true,
            tells_who_answers: *expectation == ReachExpectation::Answers,
            expects_no_answer: matches!(expectation, ReachExpectation::Fails(_)),
            has_families: true,
            // The prober's `/dial` sends the datagram
            agnhost_sends: true,
            agnhost_serves: of.is_pod_prober(),
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

/// The pods that get a datagram, each with its port; never the one that sends it. Of Linux pods, which others are
/// compared with, only those on other nodes: what a firewall drops it drops between nodes.
fn targets<'a>(of: FixtureName, at: &Bound<'a>) -> Result<Vec<(&'a ReadyPod, u16)>> {
    let fixture = at.fixture(of)?;
    let port = fixture.udp.ok_or_else(|| {
        let detail = format!("{} serves no UDP", of.as_str());
        ErrorKind::FixtureFailed.error(detail)
    })?;
    let here = at.vantage()?;
    let is_apart = |pod: &&ReadyPod| of.os() == Os::Windows || pod.node != here.node;
    let others = fixture
        .pods
        .iter()
        .filter(|pod| pod.name != here.name)
        .filter(is_apart);
    Ok(others.map(|pod| (pod, port)).collect())
}

/// The reply of `/dial`: the answers, or why there are none.
#[derive(Deserialize)]
struct Dialled {
    #[serde(default)]
    responses: Vec<String>,
    #[serde(default)]
    errors: Vec<String>,
}

fn read(pod: &ReadyPod, reply: &HttpReply) -> Result<ReachAnswer> {
    let unread = |why: &str| {
        let detail = format!("the prober's own server: {}", printable(why));
        ErrorKind::UnrecognisedOutput.error(detail)
    };
    let body = match reply {
        HttpReply::Answered { status: 200, body } => body,
        HttpReply::Answered { status, body } => return Err(unread(&format!("{status}: {body}"))),
        HttpReply::Failed { text, .. } | HttpReply::Unreached { text, .. } => {
            return Err(unread(text));
        }
    };
    let dialled: Dialled = serde_json::from_str(body).map_err(|_| unread(body))?;
    let kept = |text: &str| bounded(text.to_owned(), KEPT);
    match (dialled.responses.as_slice(), dialled.errors.as_slice()) {
        ([name], []) if is_of(name.trim(), pod) => Ok(ReachAnswer::Answered(kept(name))),
        ([name], []) => Ok(ReachAnswer::Failed {
            class: FailureClass::WrongAnswer,
            text: kept(name),
        }),
        ([], [error]) => Ok(ReachAnswer::Failed {
            class: class(error).ok_or_else(|| unread(error))?,
            text: kept(error),
        }),
        _ => Err(unread(body)),
    }
}

/// Whether a name is that of a pod: Windows also has a shorter one, of 15 characters in capitals
/// (Microsoft, naming conventions: `NetBIOS` computer names).
fn is_of(name: &str, pod: &ReadyPod) -> bool {
    let short = pod.name.get(..15);
    name == pod.name || short.is_some_and(|short| name.eq_ignore_ascii_case(short))
}

/// The class of an error of Go, by its words on Linux and on Windows.
fn class(error: &str) -> Option<FailureClass> {
    let lower = error.to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    if says(&["i/o timeout", "timed out"]) {
        Some(FailureClass::Timeout)
    } else if says(&["connection refused", "actively refused", "forcibly closed"]) {
        Some(FailureClass::Refused)
    } else if says(&["no route to host", "unreachable"]) {
        Some(FailureClass::NoRoute)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_of(status: u16, body: &str) -> Result<ReachAnswer> {
        let pod = ReadyPod {
            name: "prober-windows-2022".to_owned(),
            uid: String::new(),
            node: "n".to_owned(),
            addresses: Vec::new(),
            restarts: 0,
        };
        let body = body.to_owned();
        read(&pod, &HttpReply::Answered { status, body })
    }

    #[test]
    fn who_answers_is_told_by_its_name() {
        for name in ["prober-windows-2022", "PROBER-WINDOWS-"] {
            let answered = read_of(200, &format!(r#"{{"responses":["{name}"]}}"#));
            assert_eq!(answered, Ok(ReachAnswer::Answered(name.to_owned())));
        }
        let class = |body| match read_of(200, body).expect("recognised") {
            ReachAnswer::Failed { class, .. } => class,
            ReachAnswer::Answered(text) => panic!("{text}"),
        };
        for (body, expected) in [
            (
                r#"{"responses":["prober-windows-2"]}"#,
                FailureClass::WrongAnswer,
            ),
            (
                r#"{"errors":["reading from udp connection failed. err:'read udp 10.0.0.9:1->10.0.0.1:8081: i/o timeout'"]}"#,
                FailureClass::Timeout,
            ),
            (
                r#"{"errors":["read udp: wsarecv: An existing connection was forcibly closed by the remote host."]}"#,
                FailureClass::Refused,
            ),
        ] {
            assert_eq!(class(body), expected, "{body}");
        }
    }

    #[test]
    fn what_nobody_knows_is_trouble() {
        for (status, body) in [
            (400, "host and/or port param are invalid."),
            (200, ""),
            (200, "{}"),
            (200, "<html>welcome</html>"),
            (200, r#"{"errors":["something new"]}"#),
            (200, r#"{"responses":["a"],"errors":["i/o timeout"]}"#),
        ] {
            let error = read_of(status, body).expect_err(body);
            assert_eq!(error.kind, ErrorKind::UnrecognisedOutput);
        }
    }
}
