//! The test method `log`: the log of a container, as the kubelet returns it.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::ContainerOf;
use crate::fixture::{FixtureName, Need};
use crate::method::compare::{Comparison, Difference};
use crate::method::error::{ErrorKind, Result};
use crate::method::exchange::{ApiReply, Request};
use crate::method::place::Bound;
use crate::method::prepared::Prepared;
use crate::method::{Assertion, Method, Test, Traits};
use crate::text::{bound, bounded, printable};

/// How many bytes of a log an observation keeps.
const KEPT: usize = 1 << 10;
/// How many lines of it are read.
const LINES: usize = 200;

/// Lines that a log has, in this order.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LogExpectation(pub Vec<String>);

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct LogObservation {
    pub log: String,
}

/// The test method `log`.
#[derive(Clone, Debug)]
pub enum Log {}

impl Method for Log {
    type Query = ContainerOf;
    type Expectation = LogExpectation;
    type Observation = LogObservation;

    const TEST: fn(Assertion<Self>) -> Test = Test::Log;

    fn prepare<'a>(query: &'a ContainerOf, at: &Bound<'a>) -> Result<Prepared<'a, LogObservation>> {
        let pod = query.place(at);
        let path = format!(
            "/api/v1/namespaces/{}/pods/{}/log?container={}&tailLines={LINES}",
            pod.namespace, pod.name, pod.container
        );
        Ok(Prepared::new(Request::Text(path), |reply| {
            match reply.api()? {
                ApiReply {
                    status: 200,
                    body: Json::String(log),
                } => Ok(LogObservation { log: log.clone() }),
                reply => Err(reply.refused(ErrorKind::UnrecognisedOutput)),
            }
        }))
    }

    fn needs(query: &ContainerOf) -> Vec<(FixtureName, Need)> {
        super::needs(query.pod.of)
    }

    fn traits(_: &ContainerOf, _: &LogExpectation) -> Traits {
        super::traits()
    }

    fn kept(mut seen: LogObservation) -> LogObservation {
        bound(&mut seen.log, KEPT);
        seen
    }

    fn compare(expectation: &LogExpectation, seen: &LogObservation) -> Result<Comparison> {
        let text = bounded(printable(&seen.log), KEPT);
        let seen_words = match text.is_empty() {
            true => "an empty log".to_owned(),
            false => format!("the log `{text}`"),
        };
        let difference = Difference::between(expectation, seen_words);
        let mut lines = seen.log.lines();
        let has = |line: &String| lines.any(|seen| seen.trim_end() == line);
        Ok(match expectation.0.iter().all(has) {
            true => Comparison::Met(difference),
            false => Comparison::NotMet(difference),
        })
    }
}

impl fmt::Display for LogExpectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<_> = self.0.iter().map(|line| format!("`{line}`")).collect();
        write!(f, "a log with the lines {}", lines.join(" and then "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_count_whole_and_in_their_order() {
        let expectation = LogExpectation(vec!["one".to_owned(), "two".to_owned()]);
        let holds = |log: &str| {
            let seen = LogObservation {
                log: log.to_owned(),
            };
            let compared = Log::compare(&expectation, &seen);
            compared.expect("it compares").holds()
        };
        assert!(holds("zero\none \r\ntwo\n"));
        for refuted in ["", "one", "two\none\n", "one two\n"] {
            assert!(!holds(refuted), "{refuted}");
        }
    }
}
