//! The harness faults: trouble between a client and its API server.

/// Trouble between a client and its API server; written in small letters with hyphens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumString, strum::VariantNames)]
#[strum(serialize_all = "kebab-case")]
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
    #[strum(serialize = "html-502")]
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
