//! Requests of test methods to a transport, and the replies: raw and bounded.

use std::net::IpAddr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use strum::IntoStaticStr;

use super::container::scenario::moment::Moment;
use super::container::scenario::steps::Scenario;
use super::error::{ErrorKind, ObservationError, Result};
use super::failure::FailureClass;
pub use crate::command::{ExecRequest, Host, HttpGet};
use crate::facts::Facts;
use crate::fixture::FixtureKey;
use crate::text::{bound, printable};

/// A request of a test method.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    Api(ApiRequest),
    /// HTTP GETs from the assertion's vantage point, one after the other; one exec session serves those of
    /// many assertions.
    Get(Vec<HttpGet>),
    /// Pings from the assertion's vantage point, one after the other; one exec session serves them likewise.
    Ping(Vec<IpAddr>),
    /// A path that answers with text.
    Text(String),
    /// A command in a container.
    Exec(PodRef, ExecRequest),
    /// The facts: those of the start of the run, or fresh ones where an assertion is observed again.
    Facts,
    /// The steps of a scenario.
    Play(Play),
}

/// A reply.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    Api(ApiReply),
    /// The replies to HTTP GETs, in their order.
    Get(Vec<HttpReply>),
    Ping(Vec<PingReply>),
    Exec(ExecReply),
    /// The steps of a scenario that were taken.
    Played(Vec<Moment>),
    /// The facts; no assertion records them, since the record holds them once.
    #[serde(skip)]
    Facts(Arc<Facts>),
}

impl Reply {
    /// The answer of the API server; any other reply is an error.
    pub(super) fn api(&self) -> Result<&ApiReply> {
        match self {
            Self::Api(reply) => Ok(reply),
            _ => Err(another_kind()),
        }
    }

    /// The items of a list of the API server; any other reply is an error.
    pub(super) fn items(&self) -> Result<&[Json]> {
        let reply = self.api()?;
        let words = reply.message();
        match (reply.status, reply.body["items"].as_array()) {
            (200, Some(items)) => Ok(items),
            (403, _) => Err(ErrorKind::Forbidden.error(words)),
            (status, _) => {
                let detail = format!("status {status}, not a list: {words}");
                Err(ErrorKind::UnrecognisedOutput.error(detail))
            }
        }
    }

    /// The reply as the record keeps it with an assertion, about `limit` bytes at most; `None` for facts.
    pub fn recorded(self, limit: usize) -> Option<Self> {
        Some(match self {
            Self::Facts(_) => return None,
            Self::Api(ApiReply { status, body }) => {
                let mut text = body.to_string();
                let body = if bound(&mut text, limit) {
                    Json::String(text)
                } else {
                    body
                };
                Self::Api(ApiReply { status, body })
            }
            Self::Get(mut replies) => {
                let each = limit / replies.len().max(1);
                for reply in &mut replies {
                    match reply {
                        HttpReply::Answered { body: text, .. }
                        | HttpReply::Failed { text, .. }
                        | HttpReply::Unreached { text, .. } => {
                            bound(text, each);
                        }
                    }
                }
                Self::Get(replies)
            }
            Self::Ping(mut replies) => {
                let each = limit / replies.len().max(1);
                for reply in &mut replies {
                    bound(&mut reply.text, each);
                }
                Self::Ping(replies)
            }
            Self::Played(mut moments) => {
                let each = limit / moments.len().max(1);
                for instead in moments.iter_mut().filter_map(|one| one.instead.as_mut()) {
                    bound(instead, each);
                }
                Self::Played(moments)
            }
            Self::Exec(mut reply) => {
                bound(&mut reply.stdout, limit / 2);
                bound(&mut reply.stderr, limit / 2);
                Self::Exec(reply)
            }
        })
    }
}

/// The error for a reply of another kind than the request.
pub(super) fn another_kind() -> ObservationError {
    ErrorKind::UnrecognisedOutput.error("an answer of another kind than the request")
}

/// A container to run a program in.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct PodRef {
    pub namespace: String,
    pub name: String,
    pub container: String,
}

/// A scenario, and the container that it is about.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Play {
    pub scenario: Scenario,
    pub of: FixtureKey,
    pub container: PodRef,
    /// The address and the port of the fixture's Service, where it has one.
    pub service: Option<(IpAddr, u16)>,
}

/// What a request does with an object.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
#[derive(IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Verb {
    Get,
    /// POST.
    Create,
    /// PATCH with `application/apply-patch+yaml`.
    Apply,
    /// PATCH with `application/strategic-merge-patch+json`.
    Patch,
    /// PUT.
    Replace,
    Delete,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ApiRequest {
    pub verb: Verb,
    /// Path and query, ready for the wire.
    pub path: String,
    /// Raw JSON; typed objects would drop fields unknown to them.
    pub body: Option<Json>,
}

impl ApiRequest {
    pub fn get(path: impl Into<String>) -> Self {
        Self {
            verb: Verb::Get,
            path: path.into(),
            body: None,
        }
    }
}

/// An answer of the API server, which may report an error.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ApiReply {
    pub status: u16,
    /// The whole body; a body over the limit is an error.
    pub body: Json,
}

impl ApiReply {
    /// The server's message, printable on a terminal.
    pub fn message(&self) -> String {
        printable(self.body["message"].as_str().unwrap_or("no message"))
    }

    /// The error for an answer that is none to the request, in the server's words.
    pub fn refused(&self, otherwise: ErrorKind) -> ObservationError {
        let detail = format!("status {}: {}", self.status, self.message());
        self.refusal(otherwise).error(detail)
    }

    /// The kind of error of a refusal: `Forbidden` for a 403, or else `otherwise`.
    pub fn refusal(&self, otherwise: ErrorKind) -> ErrorKind {
        match self.status {
            403 => ErrorKind::Forbidden,
            _ => otherwise,
        }
    }
}

/// The result of one HTTP GET.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HttpReply {
    Answered {
        status: u16,
        body: String,
    },
    /// No answer; curl's code and message.
    Failed {
        /// curl's exit code for this transfer, as in its message.
        code: u16,
        /// curl's message after the code.
        text: String,
    },
    /// No whole answer, of a class that is known without curl's words.
    Unreached {
        class: FailureClass,
        /// The words of the system that observes, or of its curl.
        text: String,
    },
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct PingReply {
    /// Whether ping ended with 0, which means that some host answered.
    pub answered: bool,
    /// What ping printed, in the system's language.
    pub text: String,
}

/// How an exec ended.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExitStatus {
    /// The program ran and ended with this code.
    Code(i64),
    /// The program did not run; the kubelet's or the runtime's words.
    NotStarted(String),
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ExecReply {
    /// Standard output, lossily decoded.
    pub stdout: String,
    /// Standard error, lossily decoded.
    pub stderr: String,
    pub exit: ExitStatus,
}

impl ExecReply {
    /// Splits the output of a session at these markers, one after the other: what is before each, and the rest of its
    /// line. It counts them, since an exec can lose output and still end with 0 (kubernetes#124571).
    pub(super) fn split(&self, markers: &[String]) -> Result<Vec<(&str, &str)>> {
        let mut rest = self.stdout.as_str();
        let mut parts = Vec::with_capacity(markers.len());
        for (index, marker) in markers.iter().enumerate() {
            let Some((before, after)) = rest.split_once(marker) else {
                let why = format!("{index} of {} results are there", markers.len());
                return Err(self.unrecognised(&why));
            };
            let (line, after) = after.split_once('\n').unwrap_or((after, ""));
            parts.push((before, line.trim_end()));
            rest = after;
        }
        match rest.trim().is_empty() {
            true => Ok(parts),
            false => Err(self.unrecognised("output after the last result")),
        }
    }

    /// The error for output of another form than expected; it quotes both streams.
    pub(crate) fn unrecognised(&self, why: &str) -> ObservationError {
        let detail = format!(
            "{why}; output `{}`, errors `{}`",
            printable(&self.stdout),
            printable(&self.stderr)
        );
        ErrorKind::UnrecognisedOutput.error(detail)
    }
}
