//! The harness faults: trouble between a client and its API server.

use std::fmt;

/// Trouble between a client and its API server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Trouble {
    /// 429 with `Retry-After: 1`, with a Status or with the plain text of API Priority and Fairness.
    TooManyRequests,
    /// 500 with a Status.
    InternalError,
    /// A watch's stream holds only an ERROR event with an `Expired` Status; a list is answered 410.
    Gone,
    /// The request is taken and never answered.
    Hang,
    /// The connection is reset before the answer, before or after the server has acted.
    Reset,
    /// The connection of an exec session ends without a close frame, before or after output.
    CutExec,
    /// An exec session closes normally but never said how its program ended.
    LoseExitFrame,
    /// 502 with a page of HTML, as a load balancer answers.
    Html502,
    /// The answer comes late, or in small pieces.
    Slow,
    /// The connection is reset in the middle of the answer's body.
    TruncateBody,
    /// A list is answered with what the same list gave before.
    StaleList,
    /// A watch stays open and says nothing, or nothing more.
    SilentWatch,
    /// What was just created is deleted by somebody else.
    DeleteCreated,
}

impl Trouble {
    /// Every trouble there is.
    pub const ALL: [Self; 13] = [
        Self::TooManyRequests,
        Self::InternalError,
        Self::Gone,
        Self::Hang,
        Self::Reset,
        Self::CutExec,
        Self::LoseExitFrame,
        Self::Html502,
        Self::Slow,
        Self::TruncateBody,
        Self::StaleList,
        Self::SilentWatch,
        Self::DeleteCreated,
    ];

    /// How it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TooManyRequests => "too-many-requests",
            Self::InternalError => "internal-error",
            Self::Gone => "gone",
            Self::Hang => "hang",
            Self::Reset => "reset",
            Self::CutExec => "cut-exec",
            Self::LoseExitFrame => "lose-exit-frame",
            Self::Html502 => "html-502",
            Self::Slow => "slow",
            Self::TruncateBody => "truncate-body",
            Self::StaleList => "stale-list",
            Self::SilentWatch => "silent-watch",
            Self::DeleteCreated => "delete-created",
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}
