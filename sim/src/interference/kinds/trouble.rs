//! The harness faults: trouble between a client and its API server.

/// Trouble between a client and its API server; its textual form is in kebab case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumString, strum::VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum Trouble {
    /// 429 with `Retry-After: 1`, with a Status or with the plain text of API Priority and Fairness.
    TooManyRequests,
    /// 500 with a Status.
    InternalError,
    /// A watch's stream holds only an ERROR event with an `Expired` Status; a list gets 410.
    Gone,
    /// The request is accepted and never answered.
    Hang,
    /// The connection is reset before the answer; the server may have acted or not.
    Reset,
    /// The connection of an exec session ends without a close frame, before or after output.
    CutExec,
    /// An exec session closes normally, but without reporting how its program ended.
    LoseExitFrame,
    /// 502 with an HTML page, as a load balancer answers.
    #[strum(serialize = "html-502")]
    Html502,
    /// The answer comes late, or in small pieces.
    Slow,
    /// The connection is reset in the middle of the answer's body.
    TruncateBody,
    /// A list gets the answer that the same list got before.
    StaleList,
    /// A watch stays open and sends nothing, or nothing more.
    SilentWatch,
    /// Another client deletes a created object at once.
    DeleteCreated,
}
