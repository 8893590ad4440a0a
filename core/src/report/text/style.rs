//! What a report's words look like on a terminal.

use crate::verdict::Verdict;

/// How a piece of the page looks.
#[derive(Clone, Copy)]
pub(crate) enum Style {
    Good,
    Known,
    Bad,
    Doubt,
    News,
    Quiet,
    Title,
}

impl Style {
    /// How a verdict looks; a missing verdict is in doubt.
    pub(crate) fn for_verdict(verdict: Option<Verdict>) -> Self {
        match verdict {
            Some(Verdict::Pass) => Self::Good,
            Some(Verdict::KnownLimitation | Verdict::Informational) => Self::Known,
            Some(Verdict::Fail) => Self::Bad,
            Some(Verdict::LimitationLifted | Verdict::Warn) => Self::News,
            Some(Verdict::Skip) => Self::Quiet,
            Some(Verdict::Inconclusive) | None => Self::Doubt,
        }
    }

    /// The parameters of its SGR sequence.
    pub(crate) fn sgr(self) -> &'static str {
        match self {
            Self::Good => "32",
            Self::Known => "36",
            Self::Bad => "1;31",
            Self::Doubt => "35",
            Self::News => "33",
            Self::Quiet => "2",
            Self::Title => "1",
        }
    }
}
