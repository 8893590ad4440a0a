//! Observation errors: why nothing could be observed.

use std::fmt;

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

use crate::command::NotOn;
use crate::text::bounded;

/// How many bytes of its detail an error keeps.
const KEPT: usize = 4 << 10;

/// How the error ends of a pod that a webhook or policy changed.
pub const AS_CREATED: &str = "as it was created";

#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
#[derive(IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum ErrorKind {
    /// The exec session broke before it ended.
    ExecTransport,
    /// The exec session ended without its exit status.
    ExitStatusLost,
    /// The output is longer than the limit.
    OutputTruncated,
    /// The output has a form that no reader knows.
    UnrecognisedOutput,
    /// The program does not exist there.
    ToolMissing,
    /// The vantage point sees nothing: the machine outside has no network, its proxy does not answer, or the
    /// cluster's DNS resolves no names outside for a pod.
    NoView,
    ImagePull,
    /// The node cannot run the build of the image.
    BuildMismatch,
    /// The scheduler found no node, or the node that it found refused the pod.
    Unscheduled,
    /// The scheduler found no node, and one at least lacks room, which other pods may have.
    NoRoom,
    /// The node creates no sandbox for the pod.
    SandboxFailed,
    /// The API server forbids the request.
    Forbidden,
    /// Something refused or changed the request before the tested part of the API server saw it.
    Interfered,
    /// The API server does not accept the credential, such as a token that has expired.
    Unauthenticated,
    /// The API server kept asking for a later retry until the time limit.
    Throttled,
    /// The API server gave no proper answer until the time limit.
    ApiUnavailable,
    /// A fixture that the assertion depends on did not become ready.
    FixtureFailed,
    /// Somebody else deleted or replaced a fixture that the assertion depends on, or it is no longer ready.
    FixtureChanged,
    /// The harness could not apply the fixture, or could not watch its progress.
    NotApplied,
    /// A fact that the check needs could not be read.
    FactUnknown,
}

crate::text::words!(ErrorKind);

impl ErrorKind {
    /// Whether a retry soon after cannot help.
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
            | Self::NoRoom
            | Self::NoView
            | Self::Interfered
            | Self::Throttled
            | Self::ApiUnavailable
            | Self::FixtureChanged => false,
        }
    }

    /// Whether the API server refused the caller, as forbidden or unauthenticated.
    pub fn is_denied(self) -> bool {
        matches!(self, Self::Forbidden | Self::Unauthenticated)
    }

    /// An error of this kind, with bounded detail.
    pub fn error(self, detail: impl Into<String>) -> ObservationError {
        let detail = bounded(detail.into(), KEPT);
        ObservationError { kind: self, detail }
    }
}

/// Why nothing could be observed: an error of the harness, of the transport or of the surroundings.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub struct ObservationError {
    pub kind: ErrorKind,
    /// The details, which include foreign text; bounded.
    pub detail: String,
}

/// An observation, or why there is none.
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
