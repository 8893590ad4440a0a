//! What a way asks a transport to do, and what comes back: raw and bounded.

use std::net::IpAddr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::error::{ErrorKind, ObservationError, Result};
use super::failure::FailureClass;
pub use crate::command::{ExecRequest, Host, HttpGet};
use crate::facts::Facts;
use crate::text::{bound, printable};

/// What a way asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    Api(ApiRequest),
    /// HTTP GETs from the assertion's vantage, one after the other; those of many assertions are served by
    /// one exec.
    Get(Vec<HttpGet>),
    /// Pings from the assertion's vantage, one after the other, served by one exec likewise.
    Ping(Vec<IpAddr>),
    /// What the cluster says of itself: of the start of the run, and of now for what is observed
    /// again.
    Facts,
}

/// What came back.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    Api(ApiReply),
    /// Of HTTP GETs, in their order.
    Get(Vec<HttpReply>),
    Ping(Vec<PingReply>),
    /// The facts; never written with an assertion, since they are in the record once.
    #[serde(skip)]
    Facts(Arc<Facts>),
}

impl Reply {
    /// The items of a list of the API server; anything but a list is an error, `otherwise` where it is
    /// no answer of the API server at all.
    pub(crate) fn items(&self, otherwise: &str) -> Result<&[Json]> {
        let Self::Api(reply) = self else {
            return Err(ErrorKind::UnrecognisedOutput.error(otherwise));
        };
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

    /// The reply as it is recorded with an assertion, if it is: at most about `limit` bytes of it.
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
        })
    }
}

/// What is done with an object.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
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

/// An answer of the API server; its own errors included.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ApiReply {
    pub status: u16,
    /// The body, whole: what exceeds the limit is an error.
    pub body: Json,
}

impl ApiReply {
    /// What the server says, fit for a terminal.
    pub fn message(&self) -> String {
        printable(self.body["message"].as_str().unwrap_or("no message"))
    }

    /// What kind of error a refusal is: of who asks, or else `otherwise`.
    pub fn refusal(&self, otherwise: ErrorKind) -> ErrorKind {
        match self.status {
            403 => ErrorKind::Forbidden,
            _ => otherwise,
        }
    }
}

/// What one HTTP GET brought.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HttpReply {
    Answered {
        status: u16,
        body: String,
    },
    /// None; the tool's code and words.
    Failed {
        /// curl's exit code for this transfer, as in its message.
        code: u16,
        /// curl's message after the code.
        text: String,
    },
    /// None: the machine that observed could not reach the server.
    Unreached {
        class: FailureClass,
        /// In its system's words.
        text: String,
    },
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct PingReply {
    /// Whether it ended with 0, which says that anybody answered.
    pub answered: bool,
    /// What it printed, in the system's language.
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
    /// That its output is not what was asked for; both streams are said.
    pub(crate) fn unrecognised(&self, why: &str) -> ObservationError {
        let detail = format!(
            "{why}; output `{}`, errors `{}`",
            printable(&self.stdout),
            printable(&self.stderr)
        );
        ErrorKind::UnrecognisedOutput.error(detail)
    }
}
