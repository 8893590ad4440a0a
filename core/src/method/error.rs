//! Why nothing could be seen.

use std::fmt;

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

use crate::command::NotOn;
use crate::text::bound;

/// The most text kept of one error, in bytes.
const KEPT: usize = 4 << 10;

#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
#[derive(IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum ErrorKind {
    /// The exec session broke before it ended.
    ExecTransport,
    /// The exec session ended without its exit status.
    ExitStatusLost,
    /// More output than is kept.
    OutputTruncated,
    /// Output of a form no reader knows.
    UnrecognisedOutput,
    /// The program is not there.
    ToolMissing,
    /// Nothing can be observed there: the machine outside has no network, its proxy does not answer, or the
    /// cluster's DNS does not tell a pod of names outside.
    NoView,
    ImagePull,
    /// The image is of a build the node cannot run.
    BuildMismatch,
    /// The scheduler found no node.
    Unscheduled,
    /// The node makes no sandbox for the pod.
    SandboxFailed,
    /// The API server does not allow it.
    Forbidden,
    /// Something refused or changed what was sent before the part of the API server in question saw it.
    Interfered,
    /// The API server does not accept the credential, such as a token that has expired.
    Unauthenticated,
    /// The API server asked to come back later, until patience ended.
    Throttled,
    /// The API server did not answer properly, until patience ended.
    ApiUnavailable,
    /// What the assertion needs did not come to stand.
    FixtureFailed,
    /// What the assertion needs was deleted or replaced by somebody else, or is no longer ready.
    FixtureChanged,
    /// The harness could not bring it up, or not watch it come up.
    NotApplied,
    /// A fact that the check needs could not be read.
    FactUnknown,
}

crate::text::words!(ErrorKind);

impl ErrorKind {
    /// Whether looking again soon cannot help.
    pub fn is_lasting(self) -> bool {
        match self {
            Self::ToolMissing
            | Self::ImagePull
            | Self::BuildMismatch
            | Self::Unscheduled
            | Self::SandboxFailed
            | Self::Forbidden
            | Self::Unauthenticated
            | Self::FixtureFailed
            | Self::NotApplied
            | Self::FactUnknown => true,
            Self::ExecTransport
            | Self::ExitStatusLost
            | Self::OutputTruncated
            | Self::UnrecognisedOutput
            | Self::NoView
            | Self::Interfered
            | Self::Throttled
            | Self::ApiUnavailable
            | Self::FixtureChanged => false,
        }
    }

    /// Whether the server refused whoever asked.
    pub fn is_denied(self) -> bool {
        matches!(self, Self::Forbidden | Self::Unauthenticated)
    }

    /// An error of this kind, with bounded detail.
    pub fn error(self, detail: impl Into<String>) -> ObservationError {
        let mut detail = detail.into();
        bound(&mut detail, KEPT);
        ObservationError { kind: self, detail }
    }
}

/// Why nothing could be seen: the harness's, the transport's or the surroundings' error.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub struct ObservationError {
    pub kind: ErrorKind,
    /// What was seen of it; foreign text, bounded.
    pub detail: String,
}

/// What was observed, or why nothing could be.
pub type Result<T, E = ObservationError> = std::result::Result<T, E>;

impl fmt::Display for ObservationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.as_str(), self.detail)
    }
}

impl From<NotOn> for ObservationError {
    fn from(not_on: NotOn) -> Self {
        ErrorKind::ToolMissing.error(not_on.to_string())
    }
}
