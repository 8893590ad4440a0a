//! The way `http`: a GET from a vantage to a bound target.
//!
//! It checks what answered, not only that something did: the body must carry a marker.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::exchange::{HttpGet, HttpReply, Reply, Request};
use super::failure::FailureClass;
use super::place::{Bound, FixtureName};
use super::trouble::{Trouble, TroubleKind};
use super::{Comparison, Difference, Way};
use crate::text::{bound, printable};

/// Bytes of an answer's body kept in an observation.
const BODY_KEPT: usize = 1 << 10;

/// Which of a fixture's addresses is asked.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Target {
    /// The Service's virtual address.
    ServiceIp,
}

impl Target {
    /// Every target.
    pub const ALL: [Self; 1] = [Self::ServiceIp];

    /// The target's word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ServiceIp => "service-ip",
        }
    }

    /// The target with this word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|target| target.as_str() == word)
    }
}

/// What is asked.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpAsk {
    /// The fixture that should answer.
    pub of: FixtureName,
    /// Which of its addresses.
    pub target: Target,
}

/// What should be seen.
#[derive(Clone, Debug, PartialEq)]
pub enum HttpExpect {
    /// Status 200 and a body with this marker.
    Answers {
        /// The marker.
        body: String,
    },
    /// A failure of one of these classes, where the marker would be the lifted limitation.
    Fails {
        /// The signature.
        classes: BTreeSet<FailureClass>,
        /// The marker of the answer that should not come.
        instead_of: String,
    },
}

/// What was seen.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HttpSeen {
    /// An HTTP answer.
    Answered {
        /// Its status.
        status: u16,
        /// Its body, bounded.
        body: String,
    },
    /// No HTTP answer.
    Failed {
        /// How.
        class: FailureClass,
        /// In the tool's words.
        text: String,
    },
}

/// The way `http`.
#[derive(Debug)]
pub enum Http {}

impl Way for Http {
    type Ask = HttpAsk;
    type Expect = HttpExpect;
    type Seen = HttpSeen;

    fn request(ask: &HttpAsk, at: &Bound<'_>) -> Result<Request, Trouble> {
        let fixture = at.fixture(ask.of)?;
        let (host, port) = match ask.target {
            Target::ServiceIp => fixture.service.ok_or_else(|| {
                let detail = format!("the Service of {} has no address", ask.of.as_str());
                Trouble::new(TroubleKind::FixtureFailed, detail)
            })?,
        };
        Ok(Request::Get(HttpGet {
            host,
            port,
            path: "/".to_owned(),
        }))
    }

    fn read(_: &HttpAsk, _: &Bound<'_>, reply: &Reply) -> Result<HttpSeen, Trouble> {
        match reply {
            Reply::Get(HttpReply::Answered { status, body }) => {
                let mut body = body.clone();
                bound(&mut body, BODY_KEPT);
                Ok(HttpSeen::Answered {
                    status: *status,
                    body,
                })
            }
            Reply::Get(HttpReply::Failed { code, text }) => {
                let class = classify(*code, text).ok_or_else(|| {
                    let detail = format!("curl: ({code}) {text}");
                    Trouble::new(TroubleKind::UnrecognisedOutput, detail)
                })?;
                Ok(HttpSeen::Failed {
                    class,
                    text: format!("curl: ({code}) {text}"),
                })
            }
            Reply::Api(_) | Reply::Facts(_) => Err(Trouble::new(
                TroubleKind::UnrecognisedOutput,
                "an answer of another kind to an HTTP look",
            )),
        }
    }

    fn compare(expect: &HttpExpect, seen: &HttpSeen) -> Result<Comparison, Trouble> {
        Ok(match expect {
            HttpExpect::Answers { body } => {
                let difference = difference(format!("200 with `{body}`"), seen);
                match failure(seen, body) {
                    None => Comparison::Holds(difference),
                    Some(FailureClass::WrongAnswer | FailureClass::HttpStatus) => {
                        Comparison::Otherwise(difference)
                    }
                    Some(_) => Comparison::Refuted(difference),
                }
            }
            HttpExpect::Fails {
                classes,
                instead_of,
            } => {
                let words: Vec<_> = classes.iter().map(|class| class.as_str()).collect();
                let difference = difference(format!("failure by {}", words.join(" or ")), seen);
                match failure(seen, instead_of) {
                    None => Comparison::Refuted(difference),
                    Some(class) if classes.contains(&class) => Comparison::Holds(difference),
                    Some(_) => Comparison::Otherwise(difference),
                }
            }
        })
    }
}

fn difference(expected: String, seen: &HttpSeen) -> Difference {
    let seen = match seen {
        HttpSeen::Answered { status, body } => format!("{status} with `{}`", printable(body)),
        HttpSeen::Failed { class, text } => format!("{}: {}", class.as_str(), printable(text)),
    };
    Difference { expected, seen }
}

/// How an observation falls short of an answer with `marker`; `None` when it does not.
fn failure(seen: &HttpSeen, marker: &str) -> Option<FailureClass> {
    match seen {
        HttpSeen::Answered { status: 200, body } if body.contains(marker) => None,
        HttpSeen::Answered { status: 200, .. } => Some(FailureClass::WrongAnswer),
        HttpSeen::Answered { .. } => Some(FailureClass::HttpStatus),
        HttpSeen::Failed { class, .. } => Some(*class),
    }
}

/// The class of one of curl's failures. Exit 7 is read by its text: on Windows it is a refusal, a
/// time-out or a missing route (calico#5522, kubernetes#85604); unknown texts give none.
fn classify(code: u16, text: &str) -> Option<FailureClass> {
    let says = |words: &[&str]| {
        let text = text.to_ascii_lowercase();
        words.iter().any(|word| text.contains(word))
    };
    match code {
        6 => Some(FailureClass::Dns),
        7 | 28 if says(&["unreachable", "no route to host"]) => Some(FailureClass::NoRoute),
        7 if says(&["refused"]) => Some(FailureClass::Refused),
        // `Operation timed out after 8000 milliseconds with 0 bytes received`: it was connected
        28 if says(&["bytes received"]) => Some(FailureClass::NoAnswer),
        7 | 28 if says(&["timed out", "timeout was reached"]) => Some(FailureClass::Timeout),
        // Current curl says this of every failed connect but a time-out (lib/connect.c)
        7 if says(&["couldn't connect to server", "could not connect to server"]) => {
            Some(FailureClass::NotConnected)
        }
        35 | 51 | 53 | 54 | 58 | 59 | 60 | 77 => Some(FailureClass::Tls),
        52 => Some(FailureClass::Reset),
        55 | 56 if says(&["reset", "aborted", "forcibly closed"]) => Some(FailureClass::Reset),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARKER: &str = "Windows Container Web Server";

    fn answers() -> HttpExpect {
        HttpExpect::Answers {
            body: MARKER.to_owned(),
        }
    }

    fn times_out() -> HttpExpect {
        let classes = [FailureClass::Timeout].into();
        HttpExpect::Fails {
            classes,
            instead_of: MARKER.to_owned(),
        }
    }

    fn answered(status: u16, body: &str) -> HttpSeen {
        HttpSeen::Answered {
            status,
            body: body.to_owned(),
        }
    }

    fn failed(class: FailureClass) -> HttpSeen {
        HttpSeen::Failed {
            class,
            text: String::new(),
        }
    }

    #[test]
    fn published_texts_are_classed() {
        for (code, text, class) in [
            (
                7,
                "Failed to connect to 10.107.10.132 port 80: Timed out",
                FailureClass::Timeout,
            ),
            (
                7,
                "Failed to connect to 172.20.101.110 port 8081: Network unreachable",
                FailureClass::NoRoute,
            ),
            (
                6,
                "Could not resolve host: aggregator-service",
                FailureClass::Dns,
            ),
            (
                7,
                "Failed to connect to 10.0.0.1 port 80 after 2041 ms: Connection refused",
                FailureClass::Refused,
            ),
            (
                28,
                "Connection timed out after 4001 milliseconds",
                FailureClass::Timeout,
            ),
            (
                28,
                "Failed to connect to 10.0.0.1 port 80 after 4002 ms: Timeout was reached",
                FailureClass::Timeout,
            ),
            (
                56,
                "Recv failure: Connection was reset",
                FailureClass::Reset,
            ),
            (
                28,
                "Operation timed out after 8001 milliseconds with 0 bytes received",
                FailureClass::NoAnswer,
            ),
            (
                7,
                "Failed to connect to 10.0.0.1 port 80 after 2045 ms: Could not connect to server",
                FailureClass::NotConnected,
            ),
        ] {
            assert_eq!(classify(code, text), Some(class), "{text}");
        }
        assert_eq!(classify(7, "Failed for reasons unheard of"), None);
        assert_eq!(classify(3, "URL using bad/illegal format"), None);
    }

    #[test]
    fn an_answer_without_the_marker_is_not_an_answer() {
        let captive = answered(200, "<html>welcome</html>");
        assert!(matches!(
            Http::compare(&answers(), &captive),
            Ok(Comparison::Otherwise(_))
        ));
        // Nor does it lift a limitation
        assert!(matches!(
            Http::compare(&times_out(), &captive),
            Ok(Comparison::Otherwise(_))
        ));
    }

    #[test]
    fn a_limitation_holds_only_by_its_signature() {
        let compare = |seen| Http::compare(&times_out(), &seen).expect("told");
        assert!(compare(failed(FailureClass::Timeout)).holds());
        assert!(matches!(
            compare(failed(FailureClass::Refused)),
            Comparison::Otherwise(_)
        ));
        assert!(matches!(
            compare(answered(200, MARKER)),
            Comparison::Refuted(_)
        ));
    }

    #[test]
    fn a_capability_is_refuted_by_failing() {
        let compare = |seen| Http::compare(&answers(), &seen).expect("told");
        assert!(compare(answered(200, MARKER)).holds());
        assert!(matches!(
            compare(failed(FailureClass::Timeout)),
            Comparison::Refuted(_)
        ));
        assert!(matches!(
            compare(answered(500, MARKER)),
            Comparison::Otherwise(_)
        ));
    }
}
