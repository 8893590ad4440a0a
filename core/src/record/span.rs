//! What takes time in a run, and what each of it waits for.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::fixture::FixtureKey;
use crate::method::VantageKey;

/// Something that took time.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Span {
    /// Its number, greater than the number of every span that it waited for.
    pub id: u32,
    /// What it was.
    pub what: Activity,
    /// When it began, in milliseconds from the run's start.
    pub began_ms: u64,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
    /// The spans that had to end before it could begin.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<After>,
}

/// One span that had to end before another could begin.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct After {
    /// Its number.
    pub id: u32,
    /// The pause after its end, in milliseconds: the one between two rounds of a check.
    #[serde(default, skip_serializing_if = "is_none")]
    pub pause_ms: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_none(pause_ms: &u64) -> bool {
    *pause_ms == 0
}

/// What takes time in a run.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Activity {
    /// Collecting facts, and planning.
    Plan,
    /// Taking the Lease.
    Lease,
    /// A fixture, from its application until it is ready or has failed.
    Fixture(FixtureKey),
    /// One API request.
    Request,
    /// One exec session, with many assertions from one vantage point.
    ExecSession(VantageKey),
    /// Tear-down: it waits for everything else.
    TearDown,
}

impl fmt::Display for Activity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plan => f.write_str("plan"),
            Self::Lease => f.write_str("Lease"),
            Self::Fixture(key) => key.fmt(f),
            Self::Request => f.write_str("API request"),
            Self::ExecSession(from) => write!(f, "exec session from {from}"),
            Self::TearDown => f.write_str("tear-down"),
        }
    }
}
